"""``chatparsers export``: a format as a document, or vectors that judge another reader of it; and ``formats check``,
which says what is wrong with a document."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..lazy import load_reference
from ..plain import plain_lines
from .files import Refused, print_json, write_text

if TYPE_CHECKING:
    from ..core.format import Format

_VECTORS = "chatparsers.testing.vectors:vectors"


def run(arguments: Namespace) -> int:
    """Writes the document of a format or of a model's format, with samples; or vectors; or the JSON Schema of
    documents."""
    if arguments.schema:
        from ..document import schema

        write_text(arguments.out, json.dumps(schema(), indent=1, ensure_ascii=False))
        return 0
    if arguments.source is None:
        raise Refused(
            "which format? Name one (`chatparsers formats` lists them), or a model's folder or file"
        )
    format = _format(arguments)
    write_text(arguments.out, text_of(format) if arguments.vectors is None else _vectors(arguments, format))
    return 0


def _vectors(arguments: Namespace, format: Format) -> str:
    """Vectors of the format, a line of JSON for each."""
    if arguments.vectors < 1:
        raise Refused(f"--vectors: expected a number from 1 on, found {arguments.vectors}")
    found = load_reference(_VECTORS)(format, arguments.vectors, samples=_samples(arguments.source))
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in found)


def _is_document(source: str) -> bool:
    from ..tokens.loaders import FOLDER_FILES

    return source.endswith(".json") and Path(source).name not in FOLDER_FILES


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


def _format(arguments: Namespace) -> Format:
    from ..errors import UnknownFormat
    from ..registry import named_format
    from .request import chat_of

    source: str = arguments.source
    if not _is_document(source) and (os.sep in source or source == "-" or Path(source).exists()):
        return chat_of(source, arguments).format
    try:
        return named_format(source)
    except UnknownFormat as error:
        raise Refused(f"{error}; or name a model's folder or file") from None


def check(arguments: Namespace) -> int:
    """Prints what is wrong with the document ``arguments.file``. Returns 1 if anything is that is more than a note."""
    from ..doctor.document import document_report
    from ..formats._files import read_both
    from .request import chat_of

    if arguments.file is None:
        raise Refused("which document? Say: chatparsers formats check FILE.json")
    format, document = read_both(arguments.file)
    chat = None if arguments.model is None else chat_of(arguments.model, Namespace())
    report = document_report(arguments.file, format, document.get("samples", []), chat)
    if arguments.json:
        print_json(report.to_dict(), indent=2)
    else:
        print(plain_lines(str(report)))
    return 0 if report else 1
