"""Calls that a server left in the content: found without knowing the model's format.

Strategy: every format whose markers are in the text reads it. A reading counts if all its calls are whole and name
tools of the request. Of several, the best is the one that writes the calls exactly as the text has them, else the one
that leaves the least text as content. Two best readings that disagree say nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..core.definition.idioms import Options
from ..core.definition.nodes import Body
from ..core.definition.tree import first, head, once
from ..core.events import CallEnd
from ..core.format import Format, Turn
from ..core.message import Message, ToolCall
from ..errors import ChatParsersError, RequestError
from ..public import public
from ..registry import get_format, list_formats
from ..schema.tools import Tools, Toolset, read_tools


@public
@dataclass(frozen=True)
class Recovered:
    """What `recover` found in a text.

    ``calls``: the calls, of declared tools alone and whole. ``spans``: the characters of each call, its markup
    included. ``formats``: the names of the formats that read them so. ``content`` and ``reasoning``: the rest of the
    text; without calls, the content is the text itself. ``doubts``: what speaks against it, or why nothing was found.
    """

    calls: list[ToolCall]
    spans: list[tuple[int, int]]
    formats: list[str]
    content: str
    reasoning: str
    doubts: list[str]


class _Reading(NamedTuple):
    """How one format reads the text. ``rank``: smaller is better."""

    turn: Turn
    message: Message
    rank: tuple[bool, int]

    @property
    def meaning(self) -> str:
        return json.dumps([(call.name, call.parsed_arguments) for call in self.message.tool_calls])


@public
def recover(text: str, tools: Tools) -> Recovered:
    """The calls in a text whose format is unknown, as another server's ``content`` with leaked markup.

    Each format whose markers are in the text reads it, so this takes as long as 20 to 40 parses, and seconds once, to
    make the parsers. A call counts if it is whole and names one of ``tools``. If two formats disagree on the calls,
    there are none. Raises `RequestError` for tools that are malformed or none, and for anything but a text.

    >>> leaked = 'Let me look.\\n<tool_call>\\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\\n</tool_call>'
    >>> found = chatparsers.recover(leaked, tools)
    >>> [(call.name, call.arguments) for call in found.calls], found.content
    ([('get_weather', '{"city": "Oslo"}')], 'Let me look.')
    >>> chatparsers.recover("Write <tool_call> first.", tools).calls
    []
    """
    if not isinstance(text, str):
        raise RequestError(f"recover: expected a text, found {type(text).__name__}")
    known = read_tools(tools)
    if not known:
        raise RequestError(
            "recover: expected at least one tool, found none: only calls of declared tools count"
        )
    readings, doubts = _readings(text, known)
    least = min((reading.rank for reading in readings), default=None)
    best = [reading for reading in readings if reading.rank == least]
    if len({reading.meaning for reading in best}) > 1:
        doubts = [f"{reading.turn.format.name} reads {reading.meaning:.200}" for reading in best]
        best = []
    if not best:
        return Recovered([], [], [], text, "", doubts)
    turn, message, rank = best[0]
    others = [one for one in readings if one.rank[1] == rank[1] and one.meaning != best[0].meaning]
    doubts = [f"{one.turn.format.name} reads {one.meaning:.200}" for one in others]
    doubts += map(str, message.diagnostics)
    return Recovered(
        calls=message.tool_calls,
        spans=list(_spans(turn, message)),
        formats=[reading.turn.format.name for reading in best],
        content=message.content,
        reasoning=message.reasoning,
        doubts=doubts,
    )


def _readings(text: str, tools: Toolset) -> tuple[list[_Reading], list[str]]:
    """The readings that count, and why others do not."""
    found: list[_Reading] = []
    doubts: dict[str, None] = {}
    for info in list_formats():
        format = get_format(info.name)
        if not (format.features.tools and _may_read(format, text)):
            continue
        turn = format.bind(tools=tools, id_seed="recover")
        message = turn.parse(text)
        unknown = [call.name for call in message.tool_calls if call.name not in tools]
        broken = [call.name for call in message.tool_calls if not call.complete]
        if unknown:
            doubts[f"no tool of the request has the name {unknown[0]:.80}"] = None
        elif broken:
            doubts[f"the call of {broken[0]:.80} is not whole"] = None
        elif message.tool_calls:
            left = len("".join(message.content.split()))
            found.append(_Reading(turn, message, (not _writes(turn, message), left)))
    return found, list(doubts)


@lru_cache(maxsize=1024)
def _markers(format: Format) -> tuple[str, ...]:
    """Texts of which one is in each text with a call of the format; none if a call needs none."""
    bodies = [node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body)]
    if any(body.start is not None for body in bodies):
        return ()
    parts = [part for body in bodies for part in (body.calls, body.marks) if part is not None]
    texts = {*format.preserved_tokens, *(text.strip() for part in parts for text in first(head(part)))}
    return tuple({*texts, *(text.replace("｜", "|") for text in texts)})


def _may_read(format: Format, text: str) -> bool:
    markers = _markers(format)
    return not markers or any(marker in text for marker in markers)


def _writes(turn: Turn, message: Message) -> bool:
    """Whether the format writes the calls as they are in the text."""
    answer = {"role": "assistant", "content": "", "tool_calls": message.to_openai()["tool_calls"]}
    try:
        written = turn.format.render(answer, turn.tools)
    except ChatParsersError:
        return False
    return written.strip() in message.text


def _spans(turn: Turn, message: Message) -> Iterator[tuple[int, int]]:
    """The characters of each call: from the beginning of the markup before it, or the end of the call before it."""
    stream, ends = turn.stream(), []
    for at, character in enumerate(message.text, 1):
        ends += [at for event in stream.feed(character) if isinstance(event, CallEnd)]
    ends += [len(message.text)] * (len(message.tool_calls) - len(ends))
    before = 0
    for number, end in enumerate(ends):
        shown = [r.end for r in message.regions if r.kind in ("content", "reasoning") and r.end < end]
        begin = max([before, *shown])
        more = [r.start for r in message.regions if r.kind in ("content", "reasoning") and r.start >= end]
        after = min([*more, len(message.text)])
        before = after if number + 1 == len(ends) or ends[number + 1] > after else end
        yield begin, before
