"""``chatparsers export``: a format as a document, or vectors that judge another reader of it; and ``formats check``,
which says what is wrong with a document."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..lazy import load_reference
from ..plain import plain_lines
from .files import Refused, existing, name_of, print_json
from .request import chat_of, named_format_of, names_format

if TYPE_CHECKING:
    from ..answers.format import Format

_VECTORS = "chatparsers.testing.vectors:vectors"
_NO_MORE = Namespace()


def run(arguments: Namespace) -> int:
    """Prints the document of a format or of a model's format, with samples; or vectors; or the JSON Schema of
    documents."""
    if arguments.schema:
        from ..document import schema

        print(json.dumps(schema(), indent=1, ensure_ascii=False))
        return 0
    source = arguments.model or arguments.format
    if source is None:
        raise Refused(
            "which format? Name one (`chatparsers formats` lists them), or a model's folder or file"
        )
    format = format_of(source, arguments)
    print(text_of(format) if arguments.vectors is None else _vectors(format, arguments.vectors, source))
    return 0


def _vectors(format: Format, most: int, source: str) -> str:
    """Vectors of the format, a line of JSON for each."""
    found = load_reference(_VECTORS)(format, most, samples=_samples(source))
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in found)


def _is_document(source: str) -> bool:
    return source.endswith(".json") and names_format(source)


def _samples(source: str) -> list[Any]:
    """The samples of a document, if ``source`` is one."""
    from ..doctor.document import malformed
    from ..formats._files import read_both

    found = read_both(source)[1].get("samples", []) if _is_document(source) else []
    for place, sample in enumerate(found):
        if wrong := malformed(sample):
            raise Refused(f"{source}: $.samples[{place}]: {wrong}; see chatparsers formats check")
    return list(found)


def text_of(format: Format) -> str:
    """The document of ``format``, with samples."""
    from ..doctor.document import samples_of
    from ..document import dumps

    return dumps({**format.to_data(), "samples": samples_of(format)})


def format_of(source: str, arguments: Namespace = _NO_MORE) -> Format:
    """The format of a name, a document, a module (its ``FORMAT``), or a model."""
    return named_format_of(source) if names_format(source) else chat_of(source, arguments).format


def check(arguments: Namespace) -> int:
    """Prints what is wrong with a format, judged by chat templates of its models; or with a document alone. Returns 1
    if anything is."""
    source = arguments.source
    if arguments.templates:
        return _exam(source, [str(existing(template)) for template in arguments.templates], arguments)
    if not _is_document(source):
        raise Refused(
            f"{source}: say a chat template of its models too: chatparsers formats check {source} TEMPLATE…"
        )
    from ..doctor.document import document_report
    from ..formats._files import read_both

    format, document = read_both(source)
    chat = None if arguments.writer is None else chat_of(arguments.writer, _NO_MORE)
    report = document_report(source, format, document.get("samples", []), chat)
    if arguments.form == "json":
        print_json(report.to_dict(), indent=2)
    else:
        print(plain_lines(str(report)))
    return 0 if report else 1


def _exam(source: str, templates: list[str], arguments: Namespace) -> int:
    """The exam of a format: prints its red lines, or that it passed."""
    exam = load_reference("chatparsers.testing.exam:exam")
    failures = exam(format_of(source), templates, arguments.known)
    if arguments.form == "json":
        print_json([asdict(failure) for failure in failures], indent=2)
    else:
        for failure in failures:
            print(failure)
        if not failures:
            print(f"{source}: passed, by {', '.join(map(name_of, templates))}")
    return 1 if failures else 0
