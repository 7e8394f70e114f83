"""The arguments of the commands that look at a model's files."""

from __future__ import annotations

from .shared import FORMAT, OUTPUTS, TOOLS, Commands, Parser, add_command, add_template, add_thoughts


def add_render(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.render:run"
    render = add_command(commands, "render", run, "render a conversation with a model's chat template")
    add_template(render, required=True)
    render.add_argument(
        "--messages", metavar="FILE", required=True, help="a JSON file with the list of messages"
    )
    render.add_argument("--tools", metavar="FILE", help=TOOLS)
    add_thoughts(render)
    render.add_argument("--no-generation-prompt", action="store_true", help="end after the last message")


def add_detect(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.detect:run"
    detect = add_command(
        commands, "detect", run, "find the format of a chat template (exit 1: no format explains it)"
    )
    detect.add_argument(
        "file", metavar="FILE", help="a template or a model's file or folder; - reads a template"
    )
    detect.add_argument("--json", action="store_true", help="print JSON")
    detect.add_argument(
        "--emit", choices=("data",), help="print the format as a document of JSON (see export)"
    )


def add_inspect(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.inspect:run"
    inspect = add_command(
        commands, "inspect", run, "print everything that is known about a model's chat format"
    )
    inspect.add_argument(
        "model", metavar="MODEL", help="a model folder, a file of it, a .jinja or a .gguf file"
    )
    inspect.add_argument("--format", metavar="NAME", help=FORMAT)
    inspect.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    inspect.add_argument(
        "--messages",
        metavar="FILE",
        help="a JSON file with messages: say how they are rendered, and what that needs",
    )
    inspect.add_argument("--tools", metavar="FILE", help=TOOLS)
    add_thoughts(inspect)
    inspect.add_argument(
        "--diff", metavar="MODEL", help="print how this model or template differs (exit 1: it does)"
    )
    inspect.add_argument("--json", action="store_true", help="print JSON")
    inspect.add_argument(
        "--explain",
        action="store_true",
        help="print what an analysis of the template asks, sees and concludes",
    )
    inspect.add_argument(
        "--emit-module",
        metavar="FILE",
        help="write the format that the analysis finds as the source of a module",
    )
    inspect.add_argument(
        "--data", action="store_true", help="print the format as a document of JSON (see export)"
    )
    inspect.add_argument(
        "--html", metavar="FILE", help="write a page: what the template shows, and a strip of it"
    )
    inspect.add_argument(
        "--plain", action="store_true", help="no colours (also with NO_COLOR set, or no terminal)"
    )


def add_check(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.check:run"
    check = add_command(
        commands, "check", run, "find what is wrong with a model's template, tokenizer, format and grammar"
    )
    check.add_argument(
        "models", nargs="+", metavar="MODEL", help="a folder, a file of it, a .jinja or a .gguf file"
    )
    check.add_argument("--format", metavar="NAME", help=FORMAT)
    check.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    check.add_argument("--tools", metavar="FILE", help=TOOLS)
    check.add_argument(
        "--only", metavar="CHECK", action="append", default=[], help="only this check; may be repeated"
    )
    check.add_argument("--json", action="store_true", help="print JSON (the same as --format-output json)")
    check.add_argument("--format-output", choices=OUTPUTS, default="text", help="(text)")
    check.add_argument("--html", metavar="FILE", help="write the report as a page as well")
    check.add_argument("--strict", action="store_true", help="notes count too: exit 1 for any finding")
    check.add_argument(
        "--samples",
        metavar="N",
        type=int,
        default=0,
        help="sample N answers under the grammar in each installed engine (0)",
    )
    check.add_argument(
        "--fix", metavar="DIR", help="write corrected copies, as far as the checks prove them, with a diff"
    )
    check.add_argument(
        "--response-template",
        choices=("servers", "transformers"),
        help="with --fix: also a response_template for vLLM and SGLang, or for transformers, proved on the turns",
    )


def add_report(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.report:run"
    report = add_command(
        commands, "report", run, "put all that mends an answer that was read wrongly into one file"
    )
    report.add_argument(
        "model", metavar="MODEL", help="a model folder, a file of it, a .jinja or a .gguf file"
    )
    given = report.add_mutually_exclusive_group()
    given.add_argument("--output", metavar="FILE", help="the model's answer as text; - reads stdin")
    given.add_argument(
        "--ids", metavar="FILE", help="the answer as token ids: JSON, or numbers between white space"
    )
    report.add_argument("--format", metavar="NAME", help=FORMAT)
    report.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    report.add_argument("--tools", metavar="FILE", help=TOOLS)
    report.add_argument(
        "--prefix", metavar="TEXT", help="what the prompt wrote of the answer, such as <think>"
    )
    report.add_argument("--out", metavar="FILE", default="-", help="(standard output)")
