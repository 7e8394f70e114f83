"""A format's markers, spelt nearly as the format spells them: other bars, blanks within, attributes in a tag.

Servers and models write them so: ``<｜｜DSML｜｜invoke`` for ``<｜DSML｜invoke``, ``<tool_call id="1">`` for
``<tool_call>``. A text is read once more with the format's own spelling in their place.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ..answers.format import Format

_PARTS = re.compile(r"(?P<bars>[|｜]+)|(?P<blanks>[▁_ ]+)|(?P<end>(?<=\w)>\Z)|(?P<other>.)", re.DOTALL)
_ATTRIBUTES = r"(?:\s+[\w-]+=(?:\"[^\"<>]*\"|'[^'<>]*'))*\s*>"


class Respelt(NamedTuple):
    """A text with the format's own spelling. ``steps``: for each changed place, the character after it in this text,
    and in the text that was given."""

    text: str
    steps: tuple[tuple[int, int], ...] = ()

    def before(self, position: int) -> int:
        """The character of the text that was given, at which this one stands."""
        here = there = 0
        for ours, theirs in self.steps:
            if ours > position:
                break
            here, there = ours, theirs
        return there + position - here


def respelt(format: Format, text: str) -> Respelt:
    """The text with each marker of ``format`` as the format spells it. Without such places it is the same text."""
    made: list[str] = []
    steps: list[tuple[int, int]] = []
    end = length = 0
    loose, spellings = _loose(format)
    for hit in loose.finditer(text) if spellings else ():
        marker = spellings[hit.lastindex - 1] if hit.lastindex else ""
        if marker == hit[0]:
            continue
        made += [text[end : hit.start()], marker]
        length += hit.start() - end + len(marker)
        end = hit.end()
        steps.append((length, end))
    return Respelt("".join(made) + text[end:], tuple(steps))


@lru_cache(maxsize=256)
def _loose(format: Format) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A pattern with a group for each special token of the format that is more than a word; the tokens, the longest
    first."""
    tokens = [token for token in format.preserved_tokens if len(token) > 3 and not token.isalnum()]
    ordered = tuple(sorted(tokens, key=len, reverse=True))
    return re.compile("|".join(f"({_pattern(token)})" for token in ordered) or r"(?!)"), ordered


def _pattern(token: str) -> str:
    found = ""
    for part in _PARTS.finditer(token):
        if part["bars"]:
            found += r"\s{0,2}[|｜]{1,4}\s{0,2}"
        elif part["blanks"]:
            found += r"[▁_ ]{1,2}"
        elif part["end"]:
            found += _ATTRIBUTES
        else:
            found += re.escape(part[0])
    return found
