"""Calls that a server left in the content: found without knowing the model's format.

Every format whose markers are in the text reads it (readings.py). Two best readings that disagree say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..answers.format import Turn
from ..errors import RequestError
from ..public import public
from ..schema.tools import Tools, read_tools
from ..streams.events import CallEnd
from ..streams.message import Message, ToolCall
from .readings import readings


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
    found, doubts = readings(text, known)
    best = [reading for reading in found if reading.rank == found[0].rank]
    if len({reading.meaning for reading in best}) > 1:
        doubts = [f"{reading.name} reads {reading.meaning:.200}" for reading in best]
        best = []
    if not best:
        return Recovered([], [], [], text, "", doubts)
    turn, message, rank, spelling = best[0]
    others = [one for one in found if one.rank[1] == rank[1] and one.meaning != best[0].meaning]
    doubts = [f"{one.name} reads {one.meaning:.200}" for one in others]
    doubts += map(str, message.diagnostics)
    return Recovered(
        calls=message.tool_calls,
        spans=[(spelling.before(start), spelling.before(end)) for start, end in _spans(turn, message)],
        formats=[reading.name for reading in best],
        content=message.content,
        reasoning=message.reasoning,
        doubts=doubts,
    )


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
