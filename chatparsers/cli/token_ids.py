"""Answers that commands read: a text, or token ids and the tokenizer that they are of."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from .files import Refused, name_of, read_text, to_json
from .request import names_format


def tokenizer_for_ids(arguments: Namespace) -> Any:
    """The tokenizer for ``--ids``; None if the model's files have it."""
    if not arguments.ids:
        return None
    if arguments.tokenizer is not None:
        from ..tokens import read_tokenizer

        return read_tokenizer(arguments.tokenizer)
    if arguments.model is None or names_format(arguments.model):
        raise Refused("--ids needs the model's tokenizer: say --tokenizer FILE")
    return None


def read_answer(arguments: Namespace) -> str | list[int]:
    """The answer in ANSWER: with ``--ids`` its token ids, else its text."""
    return read_ids(arguments.answer) if arguments.ids else read_text(arguments.answer)


def read_ids(path: str) -> list[int]:
    text = read_text(path).strip()
    try:
        ids = json.loads(text) if text.startswith("[") else [int(word) for word in text.split()]
    except (ValueError, RecursionError) as error:
        raise Refused(
            f"{name_of(path)}: expected token ids, as JSON or between white space: {error}"
        ) from error
    return checked_ids(ids, name_of(path))


def checked_ids(ids: Any, where: str) -> list[int]:
    if not isinstance(ids, list):
        raise Refused(f"{where}: expected token ids, found {to_json(ids):.40}")
    for place, id in enumerate(ids):
        if type(id) is not int or id < 0:
            raise Refused(f"{where}: expected token ids, found {id!r:.40} at place {place}")
    return ids
