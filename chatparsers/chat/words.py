"""Whose words are in a text that a format wrote: a writer, unlike a template, takes plain texts and gives one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..templates.jinja.traced import Run, concatenated, runs_of, traced, within
from ..templates.messages import reasoning_of
from ..tokens.markers import texts_in
from ..values.cut import cut_json
from .places import words_of

_PLAIN = re.compile(r"""[^\x00-\x1f"'\\]+""")
"""What writers spell as it is."""


def with_words(text: str, message: Mapping[str, Any]) -> str:
    """The text of an answer, traced where it has the traced words of ``message``, which a format writes in this order:
    as they are, as JSON spells them, or in other spellings, of which the plain parts are found."""
    runs: list[Run] = []
    at = 0
    for words in _words(text, message):
        known = runs_of(words)
        if not known:
            continue
        source, first, last = known[0][2], known[0][3], known[-1][4]
        plain = str.__str__(words)
        ways = [
            [plain],
            [json.dumps(plain, ensure_ascii=False)[1:-1]],
            [json.dumps(plain)[1:-1]],
            _PLAIN.findall(plain),
        ]
        for pieces in ways:
            ends = [at]
            for piece in pieces:
                found = text.find(piece, ends[-1])
                ends += (found, found + len(piece)) if found >= 0 else ()
            if len(ends) > 1:
                spans = zip(ends[1::2], ends[2::2], strict=True)
                runs += ((start, end, source, first, last) for start, end in spans)
                at = ends[-1]
                break
    return concatenated([traced(text, tuple(runs))]) if runs else text


def _words(text: str, message: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an answer; of arguments the JSON if it is in the text, else the texts in it."""
    yield reasoning_of(message)
    yield from words_of(message)
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        yield function.get("name") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments not in text:
            cut = cut_json(arguments)
            kept = arguments[: max(cut.inside, cut.whole)]
            value = json.loads(str.__str__(kept) + ('"' if cut.inside >= 0 else "") + cut.closers or "{}")
            arguments = within(value, arguments)
        yield from texts_in(arguments)
