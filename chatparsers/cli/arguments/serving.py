"""The arguments of ``serve``."""

from __future__ import annotations

from .shared import (
    FORMAT,
    Commands,
    Group,
    Parser,
    above_zero,
    add_command,
    add_lenient_calls,
    add_thoughts,
    at_least_one,
    number,
)


def add_serve(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.serve:run"
    serve = add_command(
        commands, "serve", run, "serve OpenAI's and Anthropic's chat APIs over an engine that completes text"
    )
    _engine(serve.add_argument_group("the engine"))
    _served_model(serve.add_argument_group("the model"))
    _access(serve.add_argument_group("who may ask, and where"))
    _limits(serve.add_argument_group("what a request may cost"))
    _store(serve.add_argument_group("what is kept"))
    _recording(serve.add_argument_group("rollouts"))
    _times(serve.add_argument_group("times"))


def _engine(group: Group) -> None:
    group.add_argument("--upstream", metavar="URL", help="the engine, such as http://127.0.0.1:8080")
    group.add_argument(
        "--upstream-kind",
        choices=(
            "llama-server",
            "vllm",
            "vllm-generate",
            "sglang",
            "sglang-generate",
            "ollama",
            "openai-completions",
        ),
        help="what runs there",
    )
    group.add_argument("--upstream-model", metavar="NAME", help="the engine's own name for the model")
    group.add_argument("--upstream-key", metavar="KEY", help="the engine's key ($CHATPARSERS_UPSTREAM_KEY)")
    group.add_argument(
        "--gguf", metavar="FILE", help="run this model in the process, with llama-cpp-python; no --upstream"
    )
    group.add_argument(
        "--context", type=at_least_one, metavar="N", default=8192, help="for --gguf: tokens (8192)"
    )
    group.add_argument(
        "--gpu-layers", type=int, metavar="N", default=-1, help="for --gguf: -1, the default: all"
    )
    group.add_argument(
        "--threads", type=at_least_one, metavar="N", help="for --gguf: on the CPU (half of the processors)"
    )
    group.add_argument("--no-grammar", action="store_true", help="send no grammars")
    group.add_argument(
        "--trust-ids", action="store_true", help="go on if the engine's tokenizer gives a text other ids"
    )
    group.add_argument(
        "--pass-on", nargs="+", metavar="PATH", help="paths of the engine to pass on, such as /v1/embeddings"
    )


def _served_model(group: Group) -> None:
    group.add_argument(
        "--model", metavar="FILE", help="a model folder, its tokenizer_config.json, a .gguf or a template"
    )
    group.add_argument("--tokenizer", metavar="FILE", help="its tokenizer.json, if it is elsewhere")
    group.add_argument("--format", metavar="NAME", help=FORMAT)
    group.add_argument("--name", metavar="NAME", help="the model's name for clients")
    add_thoughts(group)
    group.add_argument(
        "--template-kwargs",
        metavar="JSON",
        help="variables of the template, for requests that do not give them",
    )
    group.add_argument(
        "--pin-template-kwargs",
        action="store_true",
        help="what is said here of thoughts and variables stands for all requests",
    )


def _access(group: Group) -> None:
    group.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="(127.0.0.1)")
    group.add_argument("--port", type=at_least_one, metavar="N", default=8000, help="(8000)")
    group.add_argument(
        "--api-key", metavar="KEY", help="the key that clients must send ($CHATPARSERS_API_KEY)"
    )
    group.add_argument(
        "--api-key-file", metavar="FILE", help="a file with more keys, one in a line; it may change"
    )
    group.add_argument(
        "--allowed-hosts",
        nargs="+",
        metavar="NAME",
        help="names of this server, besides addresses and localhost",
    )
    group.add_argument(
        "--cors",
        nargs="+",
        metavar="ORIGIN",
        help="pages that may ask, such as https://chat.example; * allows all",
    )
    group.add_argument(
        "--log",
        metavar="FILE",
        help="write a line of JSON for each request, without its texts; - to print them",
    )


def _limits(group: Group) -> None:
    group.add_argument("--max-tokens", type=at_least_one, metavar="N", help="for requests that name no limit")
    group.add_argument("--max-body", type=at_least_one, metavar="MB", default=16, help="of a request (16)")
    group.add_argument("--max-tools", type=at_least_one, metavar="N", default=512, help="of a request (512)")
    group.add_argument("--max-images", type=at_least_one, metavar="N", default=64, help="of a request (64)")
    group.add_argument(
        "--max-schemas", type=at_least_one, metavar="N", default=500_000, help="characters of tools (500000)"
    )
    group.add_argument(
        "--max-prompt", type=at_least_one, metavar="N", default=2_000_000, help="characters of it (2000000)"
    )
    group.add_argument(
        "--max-cpu",
        type=above_zero,
        metavar="S",
        default=10.0,
        help="seconds of CPU to prepare a request (10)",
    )
    group.add_argument(
        "--concurrency", type=at_least_one, metavar="N", default=1024, help="requests at once (1024)"
    )
    group.add_argument(
        "--fetch-images",
        nargs="+",
        metavar="HOST",
        help="hosts of URLs from which the images of requests are fetched, such as img.example (none)",
    )
    group.add_argument(
        "--drop-unsupported",
        action="store_true",
        help="leave images and tools of other servers out of requests, and do not refuse them (coding agents)",
    )
    group.add_argument(
        "--strict-fields",
        action="store_true",
        help="refuse requests with fields that no API has; without it they are ignored, counted and named once",
    )
    group.add_argument(
        "--strict-tools",
        action="store_true",
        help="guide a tool with strict: false by its schema too, and not to any object",
    )
    add_lenient_calls(group)


def _store(group: Group) -> None:
    group.add_argument(
        "--store",
        metavar="DIR",
        help="keep responses and conversations of the Responses API in a file there, which processes share; or: memory",
    )
    group.add_argument(
        "--store-entries", type=at_least_one, metavar="N", default=100_000, help="kept at once (100000)"
    )
    group.add_argument("--store-size", type=at_least_one, metavar="MB", default=1024, help="of all (1024)")
    group.add_argument(
        "--store-age",
        type=above_zero,
        metavar="DAYS",
        default=30.0,
        help="after which what is not used goes (30)",
    )


def _recording(group: Group) -> None:
    group.add_argument(
        "--rollouts", metavar="DIR", help="record each client's session there, by exact ids, for training"
    )
    group.add_argument(
        "--history",
        choices=("template", "exact"),
        default="template",
        help="what stays where the template drops what was sampled: the template's text, or the ids (template)",
    )
    group.add_argument(
        "--ignore",
        action="append",
        metavar="REGEX",
        help="lines of system texts that differ in each request (x-anthropic-billing-header)",
    )
    for name, most, what in (
        ("sessions", 100_000, "sessions"),
        ("session-answers", 10_000, "answers of a session"),
        ("session-ids", 50_000_000, "ids of a session"),
        ("session-lines", 1_000, "lines of a session"),
        ("rollouts-size", 1_048_576, "MB of all logs"),
    ):
        group.add_argument(
            f"--{name}", type=at_least_one, metavar="N", default=most, help=f"{what} at most ({most})"
        )
    group.add_argument(
        "--session-idle",
        type=above_zero,
        metavar="S",
        default=600.0,
        help="seconds without a request after which a session leaves the memory, not the folder (600)",
    )


def _times(group: Group) -> None:
    group.add_argument(
        "--stall",
        type=above_zero,
        metavar="S",
        default=300.0,
        help="seconds that the engine may be silent (300)",
    )
    group.add_argument(
        "--body-timeout", type=above_zero, metavar="S", default=30.0, help="seconds for a body to arrive (30)"
    )
    group.add_argument(
        "--keep-alive",
        type=above_zero,
        metavar="S",
        default=15.0,
        help="seconds of silence before a comment (15)",
    )
    group.add_argument(
        "--slow-client",
        type=above_zero,
        metavar="S",
        default=120.0,
        help="seconds that a client may take nothing (120)",
    )
    group.add_argument(
        "--wait", type=number, metavar="S", default=0.0, help="seconds for the engine to start (0)"
    )
    group.add_argument(
        "--drain", type=number, metavar="S", default=60.0, help="seconds for open requests at the end (60)"
    )
