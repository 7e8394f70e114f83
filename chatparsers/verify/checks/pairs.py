"""A streamed answer beside the whole one of the same request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..exchange import Exchange
from ..rows import Blame, Row


def stream_differs(whole: Exchange, stream: Exchange, again: Sequence[Exchange]) -> Iterator[Row]:
    """Both say the same, if the model wrote the same: with equal ids, or as two equal runs of each show."""
    said, should = stream.answer.plain(), whole.answer.plain()
    if said != should and _stripped(said) == _stripped(should):
        yield stream.row(
            "stream-differs", "streamed and whole differ in white space", said, should, blame="policy"
        )
        return
    blame: Blame
    if said == should:
        return
    ids = whole.raw.ids, stream.raw.ids
    if None not in ids:
        if ids[0] == ids[1]:
            blame = "model" if whole.broken else "server"  # what streams cannot be taken back
            yield stream.row("stream-differs", _what(said, should), said, should, blame=blame)
        return  # the model wrote something else: nothing can be said
    answers = [each.answer.plain() for each in again if each.said is not None]
    steady = answers == [should, said]
    if not steady and any(answer == said for answer in answers[:1]):
        return  # a second whole answer is the streamed one
    what = _what(said, should) + ("" if steady else "; the same request gives other answers each time")
    blame = "unknown" if not steady else "model" if whole.broken else "server"
    yield stream.row("stream-differs", what, said, should, blame=blame)


def _stripped(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.strip() if name in ("content", "reasoning") else value for name, value in said.items()
    }


def _what(said: dict[str, object], should: dict[str, object]) -> str:
    parts = [name for name in said if said[name] != should[name]]
    return f"streamed and whole differ in {', '.join(parts)}"
