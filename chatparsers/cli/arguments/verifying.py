"""The arguments of ``verify``."""

from __future__ import annotations

from .shared import FORMAT, OUTPUTS, Commands, Group, Parser, above_zero, add_command, at_least_one


def add_verify(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.verify:run"
    verify = add_command(
        commands, "verify", run, "ask a chat server, and say what in its answers is wrong for a model"
    )
    verify.add_argument("url", nargs="?", metavar="URL", help="the server, such as http://127.0.0.1:8080")
    verify.add_argument(
        "--model", metavar="MODEL", required=True, help="a folder, a file of it, a .jinja or a .gguf file"
    )
    verify.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    verify.add_argument("--format", metavar="NAME", help=FORMAT)
    _asked(verify.add_argument_group("what is asked"))
    _limits_of_asking(verify.add_argument_group("how much is asked"))
    _reports(verify.add_argument_group("reports"))


def _asked(group: Group) -> None:
    group.add_argument(
        "--api", choices=("chat", "messages", "responses", "all"), default="chat", help="(chat)"
    )
    group.add_argument(
        "--engine",
        choices=("auto", "llama-server", "vllm", "sglang", "chatparsers", "ollama", "other"),
        default="auto",
        help="what runs there (auto: the server says it)",
    )
    group.add_argument("--name", metavar="NAME", help="the server's name for the model (its first one)")
    group.add_argument("--probes", metavar="A,B", help="only these requests; --plan lists them")
    group.add_argument(
        "--replay",
        metavar="FILE",
        action="append",
        default=[],
        help="ask the requests in these lines instead",
    )
    group.add_argument(
        "--judge", metavar="FILE", help="judge the requests with answers in these lines; nothing is sent"
    )
    group.add_argument("--against", metavar="URL2", help="ask this server too, and compare the two")
    group.add_argument(
        "--dictate",
        action="store_true",
        help="feed the server's parser with texts, where it can be fed alone",
    )
    group.add_argument("--black-box", action="store_true", help="do not ask for the raw text")
    group.add_argument(
        "--shrink", action="store_true", help="find the smallest request for each fault (24 more for each)"
    )
    group.add_argument("--extra", metavar="JSON", help="fields for every request")
    group.add_argument("--samples", type=at_least_one, metavar="N", default=1, help="ask so often (1)")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="of the first sample (0)")


def _limits_of_asking(group: Group) -> None:
    group.add_argument(
        "--requests", type=at_least_one, metavar="N", help="stop there (60 for each API and sample)"
    )
    group.add_argument(
        "--tokens", type=at_least_one, metavar="N", help="stop there (40000 for each API and sample)"
    )
    group.add_argument(
        "--answer-tokens", type=at_least_one, metavar="N", default=200, help="of one answer (200)"
    )
    group.add_argument(
        "--concurrency", type=at_least_one, metavar="N", default=2, help="requests at once (2)"
    )
    group.add_argument(
        "--timeout", type=above_zero, metavar="S", default=300.0, help="seconds of silence (300)"
    )
    group.add_argument(
        "--key-file", metavar="FILE", help="a file with the server's key (else $CHATPARSERS_VERIFY_KEY)"
    )
    group.add_argument("--plan", action="store_true", help="print what would be asked; send nothing")


def _reports(group: Group) -> None:
    group.add_argument("--json", metavar="FILE", help="write all rows and facts as JSON; - prints them")
    group.add_argument("--html", metavar="FILE", help="write the report as a page as well")
    group.add_argument("--format-output", choices=OUTPUTS, default="text", help="(text)")
    group.add_argument("--record", metavar="FILE", help="write requests and answers as lines, for --judge")
    group.add_argument(
        "--show-texts", action="store_true", help="show the texts of replayed requests in reports too"
    )
    group.add_argument("--strict", action="store_true", help="what is likely counts too: exit 1 for it")
