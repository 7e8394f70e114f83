"""The arguments of the commands that read a model's answers, or say how one is written."""

from __future__ import annotations

from .shared import Commands, Parser, add_command, add_format, add_request, at_least_one, number


def add_demo(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.demo:run"
    demo = add_command(
        commands, "demo", run, "show an answer piece by piece; with names, whole sample outputs"
    )
    demo.add_argument("formats", nargs="*", metavar="FORMAT", help="the sample outputs of these formats")
    demo.add_argument("--all", action="store_true", help="those of all formats that have one")
    demo.add_argument(
        "--speed", type=number, metavar="N", help="pieces a second; 0: no delay (70 on a terminal)"
    )
    demo.add_argument(
        "--plain", action="store_true", help="no colours (also with NO_COLOR set, or no terminal)"
    )


def add_parse(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.parse:run"
    parse = add_command(commands, "parse", run, "parse a model's raw output into a message, printed as JSON")
    parse.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the output; - (the default) reads stdin"
    )
    add_format(parse)
    add_request(parse)
    parse.add_argument("--stream", action="store_true", help="print events as JSON lines, the message last")
    parse.add_argument(
        "--pieces", type=at_least_one, metavar="N", help="feed N characters (or ids) at a time"
    )
    parse.add_argument(
        "--why", action="store_true", help="say why nothing was called in place of the message (`explain`)"
    )
    parse.add_argument("--show", action="store_true", help="draw the text with the kind of each part")
    parse.add_argument(
        "--timeline", action="store_true", help="draw what came out of each piece, and what is held"
    )
    parse.add_argument("--html", metavar="FILE", help="with --show or --timeline: write a page instead")
    parse.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="(auto; NO_COLOR)"
    )
    parse.add_argument(
        "--strict", action="store_true", help="fail at the first text that is not in the format"
    )
    parse.add_argument(
        "--reasoning", choices=("split", "inline"), default="split", help="inline: leave it in the content"
    )
    parse.add_argument(
        "--openai", action="store_true", help="print the message in the form of the chat-completions API"
    )
    parse.add_argument(
        "--ids", action="store_true", help="FILE holds token ids: JSON, or numbers between white space"
    )
    parse.add_argument(
        "--tokenizer", metavar="FILE", help="for --ids: tokenizer.json, a model folder or a .gguf file"
    )
    parse.add_argument(
        "--jsonl",
        action="store_true",
        help="each line of FILE is an output in JSON, as in a file *.jsonl: print a message for each",
    )
    parse.add_argument(
        "--field", metavar="NAME", default="output", help="for lines that are objects: what holds it (output)"
    )


def add_explain(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.explain:run"
    explain = add_command(
        commands, "explain", run, "say why an answer was not read as a call, and what to do (exit 1: a cause)"
    )
    explain.add_argument(
        "file", nargs="?", default="-", metavar="ANSWER", help="the answer; - (the default) reads stdin"
    )
    explain.add_argument(
        "--model", metavar="MODEL", help="the model's folder, .gguf file or template, or a format's name"
    )
    add_format(explain)
    add_request(explain)
    explain.add_argument(
        "--ids", action="store_true", help="ANSWER holds token ids: JSON, or numbers between white space"
    )
    explain.add_argument(
        "--tokenizer", metavar="FILE", help="for --ids: tokenizer.json, a model folder or a .gguf file"
    )
    explain.add_argument("--json", action="store_true", help="print the explanation as JSON")


def add_grammar(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.grammar:run"
    grammar = add_command(
        commands, "grammar", run, "write the grammar that keeps a model to its format and tools"
    )
    add_format(grammar)
    add_request(grammar)
    grammar.add_argument("--dialect", choices=("gbnf", "lark", "structural_tag"), default="gbnf")
    grammar.add_argument(
        "--info", action="store_true", help="say lazy, triggers and weakened as JSON on stderr"
    )
    actions = grammar.add_subparsers(metavar="[check FILE]", required=False)
    check = add_command(actions, "check", "chatparsers.cli.grammar:check", "check a GBNF grammar of your own")
    check.add_argument("file", metavar="FILE", help="the grammar; - reads stdin")


def add_playground(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.playground:run"
    text = (
        "serve a page on which the package reads outputs in your browser (the first time, it needs Node.js)"
    )
    playground = add_command(commands, "playground", run, text)
    playground.add_argument(
        "--build", metavar="DIR", help="only build the static folder; any server can serve it"
    )
    playground.add_argument(
        "--pyodide", metavar="DIR", help="the npm package pyodide, unpacked (default: npm fetches it)"
    )
    playground.add_argument("--dir", metavar="DIR", help="serve this folder, which --build made")
    playground.add_argument("--port", type=at_least_one, metavar="N", default=8001, help="(8001)")
