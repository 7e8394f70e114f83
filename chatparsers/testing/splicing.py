"""Finds texts that go every way through a format's program: what a model may write, well or badly.

Strategy: it begins with texts that the format writes, and with texts drawn from its tree (`Drawn`). These are cut into
pieces, as the parser reads them, and the pieces are left out, doubled, exchanged and put beside the format's literals.
A text stays if it reaches two outcomes one after the other that no text before it reached so (`Paths`). Of those that
stay, the best are chosen, and made as short as what they are chosen for allows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from ..answers.format import Format, Turn
from ..answers.idioms import Options
from ..core.tree import once
from ..errors import ChatParsersError
from ..streams.start import start
from .drawn import Drawn, can_be_missed
from .paths import Outcome, Paths
from .wild import fragments

_Kind = tuple[bool, bool]
"""Whether the request has tools, which is another program, and whether no diagnostic tells of the text."""
_Pair = tuple[_Kind, Outcome | str, Outcome | None]
"""Two outcomes that follow each other; or something else that the text shows."""

TRIES = 6000
"""How many spliced texts are enough for a format."""
_TREE = Options(tools=True)
_DRAWS = 12
"""How many texts are drawn for each way to miss a node."""
_SHORT = 100
"""A text of so many characters is short enough: what else it holds may tell a reader that is wrong."""
_LONGEST = 600
"""The longest text that is tried, in characters."""


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


_TEXT = {"type": "string"}
TOOLS = (
    _tool("get_weather", city=_TEXT, days={"type": "integer"}),
    _tool("get_time"),
    _tool("keep", text=_TEXT, on={"type": "boolean"}, tags={"type": "array"}, at={"type": "object"}),
    _tool("acme.do-it", **{"the-id": _TEXT}),
)
"""The tools of a request."""
CALLS = (
    ("get_weather", '{"city": "Oslo"}'),
    ("get_weather", '{"city": "New York", "days": 2}'),
    ("get_time", "{}"),
    ("keep", '{"text": "a < \\"b\\"\\n", "on": true, "tags": ["x", 1.5, null], "at": {"c": {}}}'),
    ("acme.do-it", '{"the-id": "é"}'),
    ("forecast", '{"city": "Oslo"}'),
)
"""Calls of these tools, and of one that no request has."""


@dataclass(slots=True)
class Text:
    """A text that stays, and all outcomes that it reaches."""

    turn: Turn
    text: str
    pieces: list[str]
    ways: frozenset[_Pair]


class Search:
    """One search for texts of ``format``. What it finds depends on ``draw`` alone."""

    def __init__(self, format: Format, draw: random.Random) -> None:
        self.format = format
        self.draw = draw
        self.literals = fragments(format)
        self.paths: dict[Options, Paths] = {}
        self.turns: list[Turn] = []
        self.kept: list[Text] = []
        self.reached: set[_Pair] = set()

    def run(self, samples: Iterable[Mapping[str, Any]] = (), tries: int = TRIES) -> None:
        """Tries so many spliced texts, after those that the format writes, the samples and some that are drawn."""
        for turn, text in (*_written(self.format), *_given(self.format, samples)):
            if turn not in self.turns:
                self.turns.append(turn)
            self.offer(turn, text)
        drawn = Drawn(self.format.tree(_TREE), CALLS, self.draw)
        for _ in range(tries // 4):
            self.offer(self.turns[self.draw.random() < 0.1], drawn.text())
        self.missing()
        for _ in range(tries):
            near = self.kept[-40:] if self.draw.random() < 0.5 else self.kept
            one = self.draw.choice(near)
            turn = one.turn if self.draw.random() < 0.9 else self.draw.choice(self.turns)
            self.offer(turn, self.spliced(one))

    def missing(self) -> None:
        """Keeps a text for each node that a text can miss, and each way to miss it; and for each stop."""
        for stop in self.format.stops:
            self.offer(self.turns[0], f"It is sunny.{stop[:-1]}", f"misses {stop}")
        drawn = Drawn(self.format.tree(_TREE), CALLS, self.draw)
        for place, node in enumerate(once(drawn.tree)):
            for more in (False, True):
                if not can_be_missed(node, more):
                    continue
                texts = [text for _ in range(_DRAWS) if (text := drawn.text(node, more)) and drawn.misses]
                if texts:
                    self.offer(self.turns[0], min(texts, key=len), f"misses {place} {more}")

    def offer(self, turn: Turn, text: str, also: str = "") -> None:
        """Keeps the text if it reaches what no other text does. ``also``: what else it shows."""
        if len(text) > _LONGEST:
            return
        ways, pieces = self.of(turn, text)
        if also:
            ways |= {((True, False), also, None)}
        if not ways <= self.reached:
            self.reached |= ways
            self.kept.append(Text(turn, text, pieces, ways))

    def of(self, turn: Turn, text: str) -> tuple[frozenset[_Pair], list[str]]:
        paths = self.paths.get(turn.options)
        if paths is None:
            paths = self.paths[turn.options] = Paths(start(turn.format, turn.options, "").machine.program)
        way = paths.of(turn, text)
        kind = turn.options.tools, way.clean
        return frozenset((kind, *pair) for pair in pairwise(way.outcomes)), way.pieces

    def spliced(self, one: Text) -> str:
        """The text with one to three of its pieces changed."""
        draw = self.draw
        pieces = [part for piece in one.pieces for part in _parts(piece)]
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3))):
            at = draw.randrange(len(pieces) + 1)
            to = min(len(pieces), at + draw.choice((1, 1, 2, 4)))
            other = draw.choice(self.kept).pieces or [""]
            begin = draw.randrange(len(other))
            some = other[begin : begin + draw.choice((1, 1, 2, 4, len(other)))]
            put = draw.choice(([draw.choice(self.literals)], [draw.choice(_BLANKS)], some))
            pieces[at:to] = draw.choice(
                (
                    [],
                    put,
                    [*pieces[at:to], *put],
                    [*pieces[at:to], *pieces[at:to]],
                    pieces[at:to][::-1],
                    [piece[: draw.randrange(len(piece) + 1)] for piece in pieces[at:to]],
                )
            )
            if draw.random() < 0.1:  # cut off, perhaps within a literal
                literal = draw.choice(self.literals)
                pieces[at:] = [literal[: draw.randrange(len(literal))]]
        return "".join(pieces)

    def chosen(self, number: int) -> list[Text]:
        """At most ``number`` of the texts: those first that reach most outcomes, then those that reach most pairs of
        them. Each is made short."""
        found: list[Text] = []
        for reaches in (_outcomes, frozenset[_Pair]):
            reached: set[Any] = {way for one in found for way in reaches(one.ways)}
            left = [(-len(one.ways), len(one.text), place) for place, one in enumerate(self.kept)]
            heapify(left)
            while left and len(found) < number:
                _, length, place = heappop(left)
                one = self.kept[place]
                new = reaches(one.ways) - reached
                if left and -len(new) > left[0][0]:  # others may reach more
                    heappush(left, (-len(new), length, place))
                elif new:
                    short = self.shortened(one, reaches, new)
                    reached |= reaches(short.ways)
                    if all((short.turn, short.text) != (other.turn, other.text) for other in found):
                        found.append(short)
        return found

    def shortened(self, one: Text, reaches: Callable[[Any], frozenset[Any]], new: frozenset[Any]) -> Text:
        """The text without the pieces that it does not need to reach what is ``new``."""
        pieces, ways = [part for piece in one.pieces for part in _parts(piece)], one.ways
        size = len(pieces) // 2
        while size and len("".join(pieces)) > _SHORT:
            for at in range(len(pieces) - size, -1, -size):
                fewer = pieces[:at] + pieces[at + size :]
                found, _ = self.of(one.turn, "".join(fewer))
                if new <= reaches(found):
                    pieces, ways = fewer, found
            size //= 2
        return Text(one.turn, "".join(pieces), pieces, ways)


def _outcomes(ways: frozenset[_Pair]) -> frozenset[tuple[_Kind, Any]]:
    return frozenset((kind, one) for kind, *pair in ways for one in pair)


_BLANKS = (" ", "\n", "\n\n", "\t")
_part = re.compile(r"\w+|\s+|[^\w\s]")


def _parts(piece: str) -> list[str]:
    """A piece of a text, in words and signs if it is long."""
    return _part.findall(piece) if len(piece) > 24 else [piece]


def _written(format: Format) -> Iterator[tuple[Turn, str]]:
    """Texts that the format writes, each with the turn that it answers."""
    plain, without = format.bind(tools=TOOLS, id_seed=""), format.bind(id_seed="")
    for turn in (plain, without):
        yield turn, "It is sunny."
    for name, message in _messages():
        try:
            text = format.render(message, TOOLS)
        except ChatParsersError:
            continue  # the format has no place for a part of it
        yield plain, text
        yield without, text
        if name in text[1:]:
            opener = text[: text.index(name)]
            yield format.bind(tools=TOOLS, prefix=opener, id_seed=""), text[len(opener) :]


def _messages() -> Iterator[tuple[str, dict[str, Any]]]:
    calls = [
        {"id": f"call{place:05}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(CALLS)
    ]
    for thought in ("", "Hm."):
        for content in ("", "It is sunny."):
            for some in ([], *([call] for call in calls), calls[:2], calls):
                message: dict[str, Any] = {"role": "assistant", "content": content}
                if thought:
                    message["reasoning_content"] = thought
                if some:
                    message["tool_calls"] = some
                yield "Hm.", message


def _given(format: Format, samples: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Turn, str]]:
    """The texts of samples, each with the turn that it answers."""
    for sample in samples:
        tools = sample.get("tools") or (TOOLS if sample.get("expect", {}).get("calls") else None)
        yield format.bind(tools=tools, prefix=sample.get("prefix", ""), id_seed=""), sample["text"]
