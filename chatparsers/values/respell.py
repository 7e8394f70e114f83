"""Python literals that differ from JSON only in quotes and words, respelt in one pass.

The interpreter's scanner of JSON judges what comes out. It is many times faster than a loop over the text.
"""

from __future__ import annotations

import re

from .json import PYTHON_WORDS, STRING, judge

_PART = 64
LONGEST_ESCAPE = 10
"""The longest escape in Python's strings."""

SINGLE = r"""[^'\\\x00-\x1f]*(?:\\(?:['"\\bfnrt]|u[0-9a-fA-F]{4})[^'\\\x00-\x1f]*)*"""
"""The inside of a single-quoted string whose escapes are JSON's, or escaped quotes."""

single_inside = re.compile(SINGLE).match
_double = re.compile(STRING).match

# What JSON may spell otherwise: a string (group 1: the inside of one in single quotes), a word, and a quote that begins
# no string of these kinds.
_tokens = re.compile(rf"""'(?!'')({SINGLE})'|"{STRING}"|\b(?:None|True|False)\b|['"]""").finditer


def requoted(inside: str) -> str:
    """Respells the inside of a single-quoted string for double quotes; its escapes are JSON's, or escaped quotes.

    It has no control characters, so one of them may stand for the escaped backslash.
    """
    if "\\" in inside:
        inside = inside.replace("\\\\", "\0").replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
        return inside.replace("\0", "\\\\")
    return inside.replace('"', '\\"')


def _respelt(text: str) -> tuple[str, list[tuple[int, int]], int]:
    """The text with the quotes and words of JSON, up to the first quote that begins no whole string; after which places
    it is longer, and by how much; and where that quote is, or the end."""
    parts: list[str] = []  # a quote comes between two of them
    longer: list[tuple[int, int]] = []
    kept, odd, before = 0, len(text), ""
    for match in _tokens(text):
        inside = match[1]
        start, end = match.span()
        if inside is not None:
            parts.append(before + text[kept:start])
            if '"' in inside or "\\'" in inside:
                inside = requoted(inside)
                longer.append((end, len(inside) + 2 - (end - start)))
            parts.append(inside)
            kept, before = end, ""
        elif end - start == 1:
            odd = start
            break  # what follows would be searched for the end of a string again and again
        elif text[start] != '"':
            before += text[kept:start] + PYTHON_WORDS[match[0]]
            kept = end
    return '"'.join([*parts, before + text[kept:odd]]), longer, odd


def whole_value(text: str, start: int) -> tuple[int, str]:
    """The end of the value in brackets at ``start``, and its JSON; 0 if it is not whole, or if more than its quotes and
    words differs from JSON. The interpreter's scanner of JSON judges growing parts of the text."""
    size = _PART
    while True:
        part = text[start : start + size]
        more = start + size < len(text)
        out, longer, odd = _respelt(part)
        end = judge(out, 0, more or odd < len(part))
        if end < 0 and odd < len(part):  # nothing is wrong before: perhaps a string goes on after this part
            match = (single_inside if part[odd] == "'" else _double)(part, odd + 1)
            end = -1 if more and match and match.end() > len(part) - LONGEST_ESCAPE else 0
        if end >= 0:
            break
        size *= 4
    shift = 0
    for place, by in longer:
        if place + shift + by > end:
            break
        shift += by
    return (start + end - shift, out[:end]) if end else (0, "")
