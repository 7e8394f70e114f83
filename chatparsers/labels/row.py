"""A conversation as ids: what each id is, and whether a loss counts it.

    ids ──pieces──> text in which only marker ids spell markers ──cut──> parts ──> a kind for each id

A trainer may have encoded a user's words that spell a marker as words, or as the marker. So where ordinary ids spell
one, a character of it is replaced by a private one (`hidden`); all texts that are compared with it are hidden too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..chat.cut import Part, cut
from ..chat.request import Request
from ..chat.sample import Kind
from ..chat.spoken import pieces
from ..tokens.vocabulary import Vocabulary

_HIDDEN = "\ue002"
BORDER, SILENT, AFTER = -1, -2, -3
"""Kinds of ids beside those of a sample: what lies over a border or is the prompt's or the model's, by the wish for
thoughts; what is written for no thought; text after an answer's stop."""
WORDS = frozenset((Kind.REASONING, Kind.CONTENT, Kind.CALL, Kind.ARGUMENT))


@dataclass(slots=True)
class Placed:
    """A part, and the places of its first id, of the first id of its stop, and after its last."""

    part: Part
    first: int
    stop: int
    last: int

    @property
    def role(self) -> str:
        return str(self.part.message["role"])

    def text(self, key: str) -> str:
        return str(self.part.message.get(key) or "")


@dataclass(slots=True)
class Row:
    """``starts``: where each id begins in the text. ``kinds``: of the ids. ``counts``: whether they count.
    ``stopped``: the ids at which a label is a stop that the row does not have (LLaMA-Factory's ``efficient_eos``)."""

    ids: Sequence[int]
    counts: Sequence[bool]
    text: str
    starts: Sequence[int]
    kinds: list[int]
    parts: list[Placed]
    markers: frozenset[int]
    stopped: frozenset[int] = frozenset()

    @property
    def answers(self) -> list[Placed]:
        """The answers. What reads like one before the first question and does not count is an example in the head."""
        asked = next((at for at, one in enumerate(self.parts) if one.role == "user"), 0)
        written = (pair for pair in enumerate(self.parts) if pair[1].part.written)
        return [one for at, one in written if at >= asked or self.counted(one)]

    def counted(self, one: Placed) -> bool:
        return any(self.counts[one.first : one.last])

    def gap(self, index: int) -> str:
        """The text between a part and the one before it."""
        part = self.parts[index].part
        end = min(part.silent, part.free[0]) if part.written else part.start
        return self.text[self.parts[index - 1].part.end if index else 0 : end]

    def witness(self, place: int) -> str:
        """The text around an id, in which what counts is marked."""
        first, last = max(0, place - 10), min(len(self.ids), place + 14)
        found, on = [], False
        for at in range(first, last):
            if self.counts[at] != on:
                on = not on
                found.append("⟦" if on else "⟧")
            found.append(self.text[self.starts[at] : self.starts[at + 1]])
        return "".join(found).replace(_HIDDEN, "·") + ("⟧" if on else "")


def hidden(pattern: re.Pattern[str] | None, text: str) -> str:
    """The text, in which no word spells a marker."""
    return text if pattern is None else pattern.sub(lambda found: _HIDDEN + found[0][1:], text)


def cut_row(
    request: Request,
    ids: Sequence[int],
    counts: Sequence[bool],
    stopped: frozenset[int] = frozenset(),
) -> Row:
    """The ids, cut into messages. Raises `TemplateError` if the template marks no roles."""
    tokenizer, pattern = request.chat.tokenizer, request.markers
    added = {id for id, token in Vocabulary.bare(tokenizer).added.items() if token.text.strip()}
    texts = pieces(tokenizer, ids)
    found: list[str] = []
    run = 0
    for at, id in enumerate([*ids, None]):
        if id is None or id in added:
            found.append(hidden(pattern, "".join(texts[run:at])))
            found += texts[at : at + 1]
            run = at + 1
    text, starts = "".join(found), [*accumulate(map(len, texts), initial=0)]
    parts = [_placed(part, starts) for part in cut(request, text, (True, False))]
    markers = frozenset(at for at, id in enumerate(ids) if id in added)
    row = Row(ids, counts, text, starts, [int(Kind.MARKUP)] * len(ids), parts, markers, stopped)
    for index, one in enumerate(parts):
        _fill(row, one, parts[index + 1] if index + 1 < len(parts) else None)
    return row


def _placed(part: Part, starts: Sequence[int]) -> Placed:
    return Placed(part, *(bisect_left(starts, at) for at in (part.start, part.stop, part.end)))


def _fill(row: Row, one: Placed, following: Placed | None) -> None:
    part, starts, kinds = one.part, row.starts, row.kinds
    for start, end, kind in part.runs():
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        kinds[first:last] = [kind] * (last - first)
    if not part.written:
        return
    free, given = (bisect_left(starts, at) for at in part.free)
    kinds[free:given] = [BORDER] * (given - free)
    silent = bisect_left(starts, part.silent)
    kinds[silent : one.first] = [SILENT] * (one.first - silent)
    if silent and starts[silent] > part.silent:  # a token that lies over the border is nobody's
        kinds[silent - 1] = BORDER
    if (
        one.stop == one.last and following is not None
    ):  # no stop: white space there may be the end of its words
        for at in range(one.last, bisect_left(starts, following.part.opens)):
            if row.text[starts[at] : starts[at + 1]].isspace():
                kinds[at] = BORDER
    if one.stop < one.last:
        end = len(row.ids) if following is None else following.first
        marker = next((at for at in range(one.last, end) if at in row.markers), end)
        if following is None:
            marker = end
        elif marker == end:  # no marker between: it is the header
            marker = one.last
        kinds[one.last : marker] = [AFTER] * (marker - one.last)
