"""A streamed answer beside the whole one of the same request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..exchange import Exchange
from ..rows import Blame, Row


def stream_differs(whole: Exchange, stream: Exchange, again: Sequence[Exchange]) -> Iterator[Row]:
    """Both say the same, if the model wrote the same: with equal ids, or as two equal runs of each show."""
    said, should = stream.answer.plain(), whole.answer.plain()
    what = f"streamed and whole differ in {', '.join(part for part in said if said[part] != should[part])}"
    blame: Blame = "server"
    if said == should:
        return
    if _stripped(said) == _stripped(should):
        what, blame = "streamed and whole differ in white space", "policy"
    elif whole.raw.ids is not None and stream.raw.ids is not None:
        if whole.raw.ids != stream.raw.ids:
            return  # the model wrote something else: nothing can be said
    else:
        answers = [each.answer.plain() for each in again if each.said is not None]
        if answers != [should, said]:
            if said in answers[:1]:
                return  # a second whole answer is the streamed one
            what, blame = f"{what}; the same request gives other answers each time", "unknown"
    row = stream.row("stream-differs", what, said, should, blame=blame)
    same = row.raw is None and blame != "unknown"  # two equal runs wrote what the whole one wrote
    yield replace(row, raw=whole.text, reading=whole.reading) if same else row


def _stripped(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.strip() if name in ("content", "reasoning") else value for name, value in said.items()
    }
