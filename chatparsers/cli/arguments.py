"""The arguments of every command. A command names its module by reference; the module is imported when it runs."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from ..errors import did_you_mean
from ..lazy import load_reference
from .examples import EXAMPLES
from .files import Refused

_DESCRIPTION = "Streaming parsers and grammars for the answers of open-weights chat models."
_FORMAT = "use this format, or that of a document (FILE.json), instead of the detected one"
_REQUEST = (
    "a JSON file with the list of tools, OpenAI-shaped (or an object with it under 'tools'); - reads stdin"
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raises `Refused` with one line, which ``chatparsers.cli.main`` prints."""
        raise Refused(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse, which names all choices, with the nearest ones alone if there are any."""
        if action.choices is not None and value not in action.choices:
            hint = did_you_mean(value, map(str, action.choices)) if isinstance(value, str) else ""
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}: {hint}")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, with a hint for an option that is not known."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            option = unknown[0].partition("=")[0]
            near = did_you_mean(option, found.options) if option.startswith("--") else ""
            hint = f": {near}" if near.startswith("did") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found


_OUTPUTS = ("text", "json", "github", "sarif", "junit")


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of the whole command line; it raises `Refused` for unknown arguments."""
    parser = _Parser(prog="chatparsers", description=_DESCRIPTION)
    parser.add_argument(
        "--version", action=_PrintAndExit, about="version", help="say the version, and what it runs with"
    )
    parser.add_argument(
        "--print-completion",
        action=_PrintAndExit,
        about="completion",
        choices=("bash", "zsh", "fish"),
        help="write what completes commands and options in this shell",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _demo(commands)
    _parse(commands)
    _batch(commands)
    _grammar(commands)
    _render(commands)
    _detect(commands)
    _inspect(commands)
    _check(commands)
    _report(commands)
    _formats(commands)
    _export(commands)
    _playground(commands)
    _serve(commands)
    _rollouts(commands)
    _verify(commands)
    for name, command in commands.choices.items():
        command.epilog = "\n  ".join(("examples:", *EXAMPLES[name]))
        names = [name for action in command._actions for name in action.option_strings]
        command.set_defaults(options=names)
    return parser


class _PrintAndExit(argparse.Action):
    """An option that prints something about the package and ends the command, as ``--help`` does."""

    def __init__(self, option_strings: list[str], dest: str, about: str, **options: Any) -> None:
        nargs = None if "choices" in options else 0
        super().__init__(option_strings, dest, nargs=nargs, default=argparse.SUPPRESS, **options)
        self.about = about

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        print(load_reference(f"chatparsers.cli.about:{self.about}")(*([values] if values else ())))
        parser.exit()


class _Help(argparse.HelpFormatter):
    """Breaks descriptions as usual, and leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


_Commands = argparse._SubParsersAction  # argparse gives these types no public names
_Group = argparse._ArgumentGroup


def _command(commands: _Commands[_Parser], name: str, run: str, text: str) -> _Parser:
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        formatter_class=_Help,
    )
    parser.set_defaults(run=run)
    return parser


def _demo(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.demo:run"
    demo = _command(commands, "demo", run, "stream sample outputs of several formats, piece by piece")
    demo.add_argument("formats", nargs="*", metavar="FORMAT", help="only these formats")
    demo.add_argument(
        "--speed", type=_number, metavar="N", help="pieces a second; 0: no delay (70 on a terminal)"
    )
    demo.add_argument(
        "--plain", action="store_true", help="no colours (also with NO_COLOR set, or no terminal)"
    )


def _parse(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.parse:run"
    parse = _command(commands, "parse", run, "parse a model's raw output into a message, printed as JSON")
    parse.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the output; - (the default) reads stdin"
    )
    _choice_of_format(parse)
    _request(parse)
    parse.add_argument("--stream", action="store_true", help="print events as JSON lines, the message last")
    parse.add_argument("--pieces", type=_positive, metavar="N", help="feed N characters (or ids) at a time")
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


def _batch(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.batch:run"
    batch = _command(
        commands, "batch", run, "parse, render, encode, normalize or translate whole files of rows"
    )
    batch.add_argument("action", choices=("parse", "render", "encode", "normalize", "translate"))
    batch.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="JSON lines (also .gz, .zst), Parquet or Arrow files, patterns, folders; - reads lines from stdin",
    )
    batch.add_argument("--out", metavar="DIR", help="the folder of the parts; - writes JSON lines to stdout")
    batch.add_argument("--model", metavar="MODEL", help="a model's files, or a format's name")
    batch.add_argument(
        "--model-column", metavar="COLUMN", help="parse: the column that names each row's format"
    )
    batch.add_argument(
        "--model-paths", action="store_true", help="parse: open the model files that --model-column names too"
    )
    batch.add_argument("--to", metavar="MODEL", help="translate: the model to write for")
    batch.add_argument("--encode", action="store_true", help="translate: write samples instead of text")
    batch.add_argument("--output", metavar="COLUMN", default="output", help="parse: text or ids (output)")
    batch.add_argument("--messages", metavar="COLUMN", help="(messages; normalize: as the shape has it)")
    batch.add_argument("--tools", metavar="FILE|COLUMN", help="a JSON file, or a column (tools)")
    batch.add_argument("--text", metavar="COLUMN", help="normalize: rendered prompts of --model")
    batch.add_argument("--row-id", metavar="COLUMN", default="row_id", help="the rows' names (row_id)")
    batch.add_argument("--shape", metavar="NAME", default="auto", help="normalize: the shape of the rows")
    batch.add_argument("--wire", metavar="NAME", default="auto", help="normalize: the format of their texts")
    batch.add_argument(
        "--explain", action="store_true", help="normalize: say what the rows are, write nothing"
    )
    batch.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    batch.add_argument("--prefix", metavar="TEXT", help="parse: what the prompt wrote of each answer")
    batch.add_argument("--thinking", choices=("on", "off"), help="(default: as the template has it)")
    batch.add_argument("--generation-prompt", action="store_true", help="render: end where an answer begins")
    batch.add_argument("--max-length", type=_positive, metavar="N", help="encode: at most N ids a row")
    batch.add_argument(
        "--on-long",
        choices=("cut", "cut-left", "drop", "error"),
        help="encode: what becomes of longer rows (cut: their beginning is kept)",
    )
    batch.add_argument(
        "--drop-empty", action="store_true", default=None, help="encode: leave out rows of which no id counts"
    )
    batch.add_argument(
        "--append",
        metavar="COLUMN",
        help="parse: put each answer at the end of these messages, so that encode reads them",
    )
    batch.add_argument(
        "--as-sampled",
        action="store_true",
        default=None,
        help="encode: each answer counts, after the prompt that asked for it: one row or several",
    )
    batch.add_argument("--workers", type=_positive, metavar="N", help="processes (default: one a core)")
    batch.add_argument("--engine", choices=("local", "ray"), default="local", help="(local)")
    batch.add_argument("--address", metavar="A", help="of a Ray cluster (default: this machine alone)")
    batch.add_argument("--limit", type=_positive, metavar="N", help="only the first N rows")
    batch.add_argument("--lines", type=_positive, metavar="N", default=10_000, help="lines a part (10000)")
    batch.add_argument("--resume", action="store_true", help="go on where a batch was stopped")
    batch.add_argument("--json", action="store_true", help="print the summary as JSON")


def _grammar(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.grammar:run"
    grammar = _command(
        commands, "grammar", run, "write the grammar that keeps a model to its format and tools"
    )
    _choice_of_format(grammar)
    _request(grammar)
    grammar.add_argument("--dialect", choices=("gbnf", "lark", "structural_tag"), default="gbnf")
    grammar.add_argument(
        "--info", action="store_true", help="say lazy, triggers and weakened as JSON on stderr"
    )
    actions = grammar.add_subparsers(metavar="[check FILE]", required=False)
    check = _command(actions, "check", "chatparsers.cli.grammar:check", "check a GBNF grammar of your own")
    check.add_argument("file", metavar="FILE", help="the grammar; - reads stdin")


def _render(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.render:run"
    render = _command(commands, "render", run, "render a conversation with a model's chat template")
    _template(render, required=True)
    render.add_argument(
        "--messages", metavar="FILE", required=True, help="a JSON file with the list of messages"
    )
    render.add_argument("--tools", metavar="FILE", help=_REQUEST)
    render.add_argument("--thinking", choices=("on", "off"), help="(default: the template's)")
    render.add_argument("--no-generation-prompt", action="store_true", help="end after the last message")


def _detect(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.detect:run"
    detect = _command(
        commands, "detect", run, "find the format of a chat template (exit 1: no format explains it)"
    )
    detect.add_argument(
        "file", metavar="FILE", help="a template or a model's file or folder; - reads a template"
    )
    detect.add_argument("--json", action="store_true", help="print JSON")
    detect.add_argument(
        "--emit", choices=("data",), help="print the format as a document of JSON (see export)"
    )


def _inspect(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.inspect:run"
    inspect = _command(commands, "inspect", run, "print everything that is known about a model's chat format")
    inspect.add_argument(
        "model", metavar="MODEL", help="a model folder, a file of it, a .jinja or a .gguf file"
    )
    inspect.add_argument("--format", metavar="NAME", help=_FORMAT)
    inspect.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    inspect.add_argument(
        "--messages",
        metavar="FILE",
        help="a JSON file with messages: say how they are rendered, and what that needs",
    )
    inspect.add_argument("--tools", metavar="FILE", help=_REQUEST)
    inspect.add_argument("--thinking", choices=("on", "off"), help="(default: the template's)")
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


def _check(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.check:run"
    check = _command(
        commands, "check", run, "find what is wrong with a model's template, tokenizer, format and grammar"
    )
    check.add_argument(
        "models", nargs="+", metavar="MODEL", help="a folder, a file of it, a .jinja or a .gguf file"
    )
    check.add_argument("--format", metavar="NAME", help=_FORMAT)
    check.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    check.add_argument("--tools", metavar="FILE", help=_REQUEST)
    check.add_argument(
        "--only", metavar="CHECK", action="append", default=[], help="only this check; may be repeated"
    )
    check.add_argument("--json", action="store_true", help="print JSON (the same as --format-output json)")
    check.add_argument("--format-output", choices=_OUTPUTS, default="text", help="(text)")
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


def _report(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.report:run"
    report = _command(
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
    report.add_argument("--format", metavar="NAME", help=_FORMAT)
    report.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    report.add_argument("--tools", metavar="FILE", help=_REQUEST)
    report.add_argument(
        "--prefix", metavar="TEXT", help="what the prompt wrote of the answer, such as <think>"
    )
    report.add_argument("--out", metavar="FILE", default="-", help="(standard output)")


def _formats(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.formats:run"
    formats = _command(commands, "formats", run, "list the formats, including those of plugins")
    shapes = formats.add_mutually_exclusive_group()
    shapes.add_argument("--json", action="store_true", help="print JSON")
    shapes.add_argument(
        "--markdown", action="store_true", help="print the built-in formats as the tables of docs/models.md"
    )
    formats.add_argument(
        "name", nargs="?", metavar="NAME", help="with --diagram: the format that is drawn; or: check FILE"
    )
    formats.add_argument("file", nargs="?", metavar="FILE", help="after check: the document that is checked")
    formats.add_argument(
        "--model", metavar="MODEL", help="with check: the model that is said to write it, a folder or file"
    )
    shapes.add_argument(
        "--diagram", metavar="FILE", help="write a format's railroad diagram as SVG; - prints it"
    )
    shapes.add_argument(
        "--check", metavar="FILE", help="exit 1 if the table in FILE differs from that of --markdown"
    )


def _export(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.export:run"
    export = _command(commands, "export", run, "write a format as a document of JSON, with samples")
    export.add_argument(
        "source", nargs="?", metavar="FORMAT", help="a format's name, or a model's folder or file"
    )
    export.add_argument("-o", "--out", metavar="FILE", default="-", help="(standard output)")
    export.add_argument("--schema", action="store_true", help="write the JSON Schema of documents instead")
    export.add_argument(
        "--vectors",
        metavar="N",
        type=int,
        help="write at most N texts with their events and messages instead, as JSON lines: to judge another reader",
    )


def _playground(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.playground:run"
    text = (
        "serve a page on which the package reads outputs in your browser (the first time, it needs Node.js)"
    )
    playground = _command(commands, "playground", run, text)
    playground.add_argument(
        "--build", metavar="DIR", help="only build the static folder; any server can serve it"
    )
    playground.add_argument(
        "--pyodide", metavar="DIR", help="the npm package pyodide, unpacked (default: npm fetches it)"
    )
    playground.add_argument("--dir", metavar="DIR", help="serve this folder, which --build made")
    playground.add_argument("--port", type=_positive, metavar="N", default=8001, help="(8001)")


def _serve(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.serve:run"
    serve = _command(
        commands, "serve", run, "serve OpenAI's and Anthropic's chat APIs over an engine that completes text"
    )
    _engine(serve.add_argument_group("the engine"))
    _served_model(serve.add_argument_group("the model"))
    _access(serve.add_argument_group("who may ask, and where"))
    _limits(serve.add_argument_group("what a request may cost"))
    _kept(serve.add_argument_group("what is kept"))
    _recorded(serve.add_argument_group("rollouts"))
    _times(serve.add_argument_group("times"))


def _engine(group: _Group) -> None:
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
        "--context", type=_positive, metavar="N", default=8192, help="for --gguf: tokens (8192)"
    )
    group.add_argument(
        "--gpu-layers", type=int, metavar="N", default=-1, help="for --gguf: -1, the default: all"
    )
    group.add_argument(
        "--threads", type=_positive, metavar="N", help="for --gguf: on the CPU (half of the processors)"
    )
    group.add_argument("--no-grammar", action="store_true", help="send no grammars")
    group.add_argument(
        "--trust-ids", action="store_true", help="go on if the engine's tokenizer gives a text other ids"
    )
    group.add_argument(
        "--pass-on", nargs="+", metavar="PATH", help="paths of the engine to pass on, such as /v1/embeddings"
    )


def _served_model(group: _Group) -> None:
    group.add_argument(
        "--model", metavar="FILE", help="a model folder, its tokenizer_config.json, a .gguf or a template"
    )
    group.add_argument("--tokenizer", metavar="FILE", help="its tokenizer.json, if it is elsewhere")
    group.add_argument("--format", metavar="NAME", help=_FORMAT)
    group.add_argument("--name", metavar="NAME", help="the model's name for clients")


def _access(group: _Group) -> None:
    group.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="(127.0.0.1)")
    group.add_argument("--port", type=_positive, metavar="N", default=8000, help="(8000)")
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


def _limits(group: _Group) -> None:
    group.add_argument("--max-tokens", type=_positive, metavar="N", help="for requests that name no limit")
    group.add_argument("--max-body", type=_positive, metavar="MB", default=16, help="of a request (16)")
    group.add_argument("--max-tools", type=_positive, metavar="N", default=512, help="of a request (512)")
    group.add_argument("--max-images", type=_positive, metavar="N", default=64, help="of a request (64)")
    group.add_argument(
        "--max-schemas", type=_positive, metavar="N", default=500_000, help="characters of tools (500000)"
    )
    group.add_argument(
        "--max-prompt", type=_positive, metavar="N", default=2_000_000, help="characters of it (2000000)"
    )
    group.add_argument(
        "--max-cpu", type=_some, metavar="S", default=10.0, help="seconds of CPU to prepare a request (10)"
    )
    group.add_argument(
        "--concurrency", type=_positive, metavar="N", default=1024, help="requests at once (1024)"
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
        "--lenient-calls",
        action="store_true",
        help="also read a whole answer as calls that is JSON in a fence, in tags or bare",
    )


def _kept(group: _Group) -> None:
    group.add_argument(
        "--store",
        metavar="DIR",
        help="keep responses and conversations of the Responses API in a file there, which processes share; or: memory",
    )
    group.add_argument(
        "--store-entries", type=_positive, metavar="N", default=100_000, help="kept at once (100000)"
    )
    group.add_argument("--store-size", type=_positive, metavar="MB", default=1024, help="of all (1024)")
    group.add_argument(
        "--store-age", type=_some, metavar="DAYS", default=30.0, help="after which what is not used goes (30)"
    )


def _recorded(group: _Group) -> None:
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
            f"--{name}", type=_positive, metavar="N", default=most, help=f"{what} at most ({most})"
        )
    group.add_argument(
        "--session-idle",
        type=_some,
        metavar="S",
        default=600.0,
        help="seconds without a request after which a session leaves the memory, not the folder (600)",
    )


def _rollouts(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.rollouts:run"
    rollouts = _command(
        commands, "rollouts", run, "say what serve --rollouts recorded, and write its samples"
    )
    rollouts.add_argument("folder", metavar="DIR", help="the folder of serve --rollouts")
    rollouts.add_argument("session", nargs="?", metavar="SESSION", help="only this session")
    rollouts.add_argument("--group", metavar="NAME", help="only sessions of this group")
    rollouts.add_argument("--json", action="store_true", help="print JSON")
    rollouts.add_argument(
        "--samples", metavar="FILE", help="write the rows there: .arrow, else JSON lines; -: print"
    )
    rollouts.add_argument(
        "--twins",
        choices=("keep", "context", "drop"),
        default="context",
        help="answers that nobody took: count them, show them as context, or not at all (context)",
    )
    rollouts.add_argument("--model", metavar="FILE", help="--samples: the model that was served")
    rollouts.add_argument(
        "--tokenizer", metavar="FILE", help="--samples: its tokenizer.json, if it is elsewhere"
    )
    rollouts.add_argument("--format", metavar="NAME", help="--samples: as for serve")


def _times(group: _Group) -> None:
    group.add_argument(
        "--stall", type=_some, metavar="S", default=300.0, help="seconds that the engine may be silent (300)"
    )
    group.add_argument(
        "--body-timeout", type=_some, metavar="S", default=30.0, help="seconds for a body to arrive (30)"
    )
    group.add_argument(
        "--keep-alive", type=_some, metavar="S", default=15.0, help="seconds of silence before a comment (15)"
    )
    group.add_argument(
        "--slow-client",
        type=_some,
        metavar="S",
        default=120.0,
        help="seconds that a client may take nothing (120)",
    )
    group.add_argument(
        "--wait", type=_number, metavar="S", default=0.0, help="seconds for the engine to start (0)"
    )
    group.add_argument(
        "--drain", type=_number, metavar="S", default=60.0, help="seconds for open requests at the end (60)"
    )


def _verify(commands: _Commands[_Parser]) -> None:
    run = "chatparsers.cli.verify:run"
    verify = _command(
        commands, "verify", run, "ask a chat server, and say what in its answers is wrong for a model"
    )
    verify.add_argument("url", nargs="?", metavar="URL", help="the server, such as http://127.0.0.1:8080")
    verify.add_argument(
        "--model", metavar="MODEL", required=True, help="a folder, a file of it, a .jinja or a .gguf file"
    )
    verify.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    verify.add_argument("--format", metavar="NAME", help=_FORMAT)
    _asked(verify.add_argument_group("what is asked"))
    _limits_of_asking(verify.add_argument_group("how much is asked"))
    _reports(verify.add_argument_group("reports"))


def _asked(group: _Group) -> None:
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
    group.add_argument("--samples", type=_positive, metavar="N", default=1, help="ask so often (1)")
    group.add_argument("--seed", type=int, metavar="N", default=0, help="of the first sample (0)")


def _limits_of_asking(group: _Group) -> None:
    group.add_argument(
        "--requests", type=_positive, metavar="N", help="stop there (60 for each API and sample)"
    )
    group.add_argument(
        "--tokens", type=_positive, metavar="N", help="stop there (40000 for each API and sample)"
    )
    group.add_argument(
        "--answer-tokens", type=_positive, metavar="N", default=200, help="of one answer (200)"
    )
    group.add_argument("--concurrency", type=_positive, metavar="N", default=2, help="requests at once (2)")
    group.add_argument("--timeout", type=_some, metavar="S", default=300.0, help="seconds of silence (300)")
    group.add_argument(
        "--key-file", metavar="FILE", help="a file with the server's key (else $CHATPARSERS_VERIFY_KEY)"
    )
    group.add_argument("--plan", action="store_true", help="print what would be asked; send nothing")


def _reports(group: _Group) -> None:
    group.add_argument("--json", metavar="FILE", help="write all rows and facts as JSON; - prints them")
    group.add_argument("--html", metavar="FILE", help="write the report as a page as well")
    group.add_argument("--format-output", choices=_OUTPUTS, default="text", help="(text)")
    group.add_argument("--record", metavar="FILE", help="write requests and answers as lines, for --judge")
    group.add_argument(
        "--show-texts", action="store_true", help="show the texts of replayed requests in reports too"
    )
    group.add_argument("--strict", action="store_true", help="what is likely counts too: exit 1 for it")


def _template(parser: _Parser, *, required: bool = False) -> None:
    parser.add_argument(
        "--template",
        metavar="FILE",
        required=required,
        help="a chat template (.jinja), or a model's tokenizer_config.json, folder or .gguf file",
    )
    parser.add_argument("--bos-token", metavar="TEXT", help="the text of the template's bos_token")
    parser.add_argument("--eos-token", metavar="TEXT", help="the text of the template's eos_token")


def _choice_of_format(parser: _Parser) -> None:
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="the format (`chatparsers formats` lists them), or its document (FILE.json)",
    )
    _template(parser)
    parser.add_argument(
        "--prefix",
        metavar="TEXT",
        help="the part of the answer that the prompt already wrote, such as <think>",
    )
    parser.add_argument("--thinking", choices=("on", "off"), help="(default: as the template has it)")


def _request(parser: _Parser) -> None:
    parser.add_argument("--tools", metavar="FILE", help=_REQUEST)
    parser.add_argument(
        "--tool-choice", metavar="CHOICE", default="auto", help="auto, none, required or a tool's name"
    )
    parser.add_argument("--no-parallel", action="store_true", help="at most one call in the turn")
    parser.add_argument(
        "--lenient-calls",
        action="store_true",
        help="also read a whole answer as calls that is JSON in a fence, in tags or bare",
    )
    parser.add_argument(
        "--response-format",
        metavar="FILE",
        help="a JSON file with response_format or a JSON Schema, or a .gbnf grammar",
    )


def _number(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


def _some(text: str) -> float:
    number = _number(text)
    if number <= 0:
        raise ValueError(text)
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_number.__name__ = "number"  # argparse prints it: "invalid number value"
_some.__name__ = _positive.__name__ = "number above 0"
