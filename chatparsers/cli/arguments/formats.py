"""The arguments of the commands that list and write formats."""

from __future__ import annotations

from .shared import Commands, Parser, add_command


def add_formats(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.formats:run"
    formats = add_command(commands, "formats", run, "list the formats, including those of plugins")
    shapes = formats.add_mutually_exclusive_group()
    shapes.add_argument("--json", action="store_true", help="print JSON")
    shapes.add_argument(
        "--markdown", action="store_true", help="print the built-in formats as the tables of docs/models.md"
    )
    formats.add_argument(
        "name", nargs="?", metavar="NAME", help="with --diagram: the format that is drawn; or: check FORMAT …"
    )
    formats.add_argument(
        "files",
        nargs="*",
        metavar="FORMAT TEMPLATE",
        help="after check: a name, a document or a module (.py), and chat templates of its models that judge it",
    )
    formats.add_argument(
        "--model",
        metavar="MODEL",
        help="with check: the model that is said to write a document, a folder or file",
    )
    formats.add_argument(
        "--known", metavar="FILE", help="with check: differences that are accepted, as `exam` takes them"
    )
    shapes.add_argument(
        "--diagram", metavar="FILE", help="write a format's railroad diagram as SVG; - prints it"
    )
    shapes.add_argument(
        "--check", metavar="FILE", help="exit 1 if the table in FILE differs from that of --markdown"
    )


def add_export(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.export:run"
    export = add_command(commands, "export", run, "write a format as a document of JSON, with samples")
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
