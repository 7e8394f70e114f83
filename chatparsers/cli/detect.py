"""``chatparsers detect``: finds the format of a chat template."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from ..plain import one_line
from .files import Refused, existing, name_of, print_json, read_template

if TYPE_CHECKING:
    from ..templates import Template

_MODEL_FILES = (".json", ".gguf")


def run(arguments: Namespace) -> int:
    """Prints name, score and evidence; returns 1 if no format explains the template."""
    from ..detection.detect import detect_in

    template = _template(arguments.model)
    found = detect_in(template)
    if arguments.form == "data" and found.name is not None:
        from ..registry import get_format
        from .export import text_of

        print(text_of(found.format or get_format(found.name)))
    elif arguments.form == "json":
        print_json({"name": found.name, "score": found.score, "evidence": list(found.evidence)}, indent=2)
    else:
        out = sys.stderr if arguments.form == "data" else sys.stdout  # no document
        print(f"{found.name or 'none'}  {found.score:.2f}", file=out)
        for line in found.evidence:
            print(f"  {one_line(line)}", file=out)
    return 0 if found.name else 1


def _template(path: str) -> Template:
    """The chat template from a template file, from a model's files, or (``-``) from standard input.

    Raises `Refused` if there is no such file or it has no template, and `LoadError` if it is broken.
    """
    source = None if path == "-" else existing(path)
    if source is None or (source.is_file() and source.suffix not in _MODEL_FILES):
        from ..templates import Template

        return Template(read_template(path), name=name_of(path))
    from .. import load

    chat = load(source)
    if chat.builtin is not None:
        raise Refused(
            f"{path}: no chat template (chat_template in tokenizer_config.json, chat_template.jinja, "
            f"tokenizer.chat_template in a GGUF file); load would serve it with the built-in one {chat.builtin!r}"
        )
    return chat.template()
