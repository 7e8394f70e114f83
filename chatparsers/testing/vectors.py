"""Test vectors of a format: texts, each with the request that it answers, its events and its message, as data.

Another reader of the format, in any language, is judged by them (docs/formats-as-data.md). `Search` finds the texts.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from ..answers.format import Format, Turn
from ..streams.events import CallArguments, CallStart, Content, Event, Reasoning, joined_events
from ..streams.message import Message
from .splicing import TRIES, Search


def vectors(
    format: Format,
    number: int,
    *,
    samples: Iterable[Mapping[str, Any]] = (),
    tries: int | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """At most ``number`` vectors of ``format``, the shortest first. Together they reach as much of it as so many can.

    ``samples``: other texts to begin with, as a document has them. ``tries``: how many texts are spliced and tried; a
    thousand take about a second. None: a hundred for each vector, and at most 6,000. The same arguments give the same
    vectors.

    >>> from chatparsers.testing import vectors
    >>> found = vectors(chatparsers.get_format("kimi-k1-5"), 3, tries=50)
    >>> sorted(found[0])
    ['events', 'message', 'text', 'tools']
    """
    search = Search(format, random.Random(f"{format.name}{seed}"))
    search.run(samples, min(100 * number, TRIES) if tries is None else tries)
    chosen = sorted(search.chosen(number), key=lambda one: len(one.text))
    return [vector(one.turn, one.text) for one in chosen]


def vector(turn: Turn, text: str) -> dict[str, Any]:
    """The vector of ``text``, as an answer to the request of ``turn``."""
    found: dict[str, Any] = {"tools": list(turn.tools.raw)} if turn.tools else {}
    if turn.prefix:
        found["prefix"] = turn.prefix
    stream = turn.stream()
    events = [*stream.feed(text), *stream.finish()]
    return {
        **found,
        "text": text,
        "events": joined(events, turn),
        "message": message_record(turn, stream.message),
    }


def message_record(turn: Turn, message: Message) -> dict[str, Any]:
    """What a reader must find in the text: the message without the words of diagnostics and ids that no model wrote."""
    calls = []
    for call in message.tool_calls:
        one = {"name": call.name, "arguments": call.arguments, "complete": call.complete}
        calls.append(one if call.id == turn.call_id(call.index) else {**one, "id": call.id})
    return {
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": calls,
        "complete": message.complete,
        "diagnostics": [[one.code, one.position] for one in message.diagnostics],
        "regions": [[one.kind, one.start, one.end] for one in message.regions],
    }


def joined(events: Iterable[Event], turn: Turn) -> list[dict[str, Any]]:
    """The events as data; those that follow each other and only add text are one."""
    return [_event(event, turn) for event in joined_events(events)]


def _event(event: Event, turn: Turn) -> dict[str, Any]:
    if isinstance(event, (Content, Reasoning)):
        return {"event": type(event).__name__.lower(), "text": event.text}
    if isinstance(event, CallArguments):
        return {"event": "arguments", "call": event.index, "text": event.text}
    if isinstance(event, CallStart):
        one: dict[str, Any] = {"event": "call", "call": event.index, "name": event.name}
    else:
        one = {"event": "end", "call": event.index, "complete": event.complete}
    return one if event.id in (None, turn.call_id(event.index)) else {**one, "id": event.id}
