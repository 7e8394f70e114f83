"""``chatparsers inspect``: the record of a model's format, as a table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from .explain import emit_module, explain
from .files import print_json, to_json
from .request import chat_of

__all__ = ["rows", "run"]


def run(arguments: Namespace) -> int:
    """Prints what `Chat.record` says of the model; with ``--explain`` what an analysis of its template does."""
    tokenizer = None
    if arguments.tokenizer is not None:
        from ..tokens import read_tokenizer

        tokenizer = read_tokenizer(arguments.tokenizer)
    chat = chat_of(arguments.model, arguments, tokenizer=tokenizer)
    if arguments.emit_module is not None:
        emit_module(chat, arguments.emit_module)
    if arguments.explain:
        return explain(chat, arguments)
    if arguments.emit_module is not None:
        return 0
    record = asdict(chat.record())
    if arguments.json:
        print_json(record, indent=2)
        return 0
    table = list(rows(record))
    width = max((len(label) for label, _ in table), default=0)
    for label, value in table:
        print(f"{label:<{width}}  {value}".rstrip())
    return 0


def rows(record: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, str]]:
    """A label and a text for each line of the table: what is in a mapping or list has lines of its own."""
    for key, value in record.items():
        label = f"{under}{str(key).replace('_', ' ')}"
        if isinstance(value, Mapping) and value:
            yield from rows(value, f"{label}: ")
        elif isinstance(value, (list, tuple, set, frozenset)) and value:
            for place, item in enumerate(value):
                yield ("" if place else label), _shown(item)
        else:
            yield label, _shown(value)


def _shown(value: object) -> str:
    """Texts as JSON where their ends or line breaks would not be seen."""
    if value is None or value == () or value == [] or value == {} or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and value == value.strip() and value.isprintable():
        return value
    return to_json(value)
