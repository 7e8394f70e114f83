"""The counts of tokens, beside the ids, and beside what is shown."""

from __future__ import annotations

from collections.abc import Iterator

from ..exchange import Exchange
from ..rows import Row
from .check import answered, judges

_ROOM, _CALL_ROOM = 12, 28
"""How many tokens the markup of an answer, and of each of its calls, may have."""


@judges(
    "usage-wrong",
    where=lambda exchange: answered(exchange) and exchange.answer.completion is not None,
)
def usage(exchange: Exchange) -> Iterator[Row]:
    """The usage counts what the model wrote, with the stop or without it."""
    said, ids = exchange.answer, exchange.raw.ids
    assert said.completion is not None
    if ids is not None and exchange.raw.source == "engine" and abs(said.completion - len(ids)) > 1:
        yield exchange.row("usage-wrong", "completion tokens, beside the ids", said.completion, len(ids))
    elif said.completion == 0 and (said.content or said.reasoning or said.calls):
        yield exchange.row("usage-wrong", "completion tokens", 0, "more than none")
    elif ids is None and exchange.sane and said.completion < 0.8 * (_shown(exchange) or 0) - 2:
        what = "fewer completion tokens than what is shown has"
        yield exchange.row("usage-wrong", what, said.completion, _shown(exchange))


def _without_raw_text(exchange: Exchange) -> bool:
    judged = exchange.sane and not exchange.cut and not exchange.probe.stops
    return (
        judged
        and answered(exchange)
        and exchange.reading is None
        and exchange.answer.completion is not None
        and exchange.subject.tokenizer is not None
    )


@judges("tokens-unaccounted", where=_without_raw_text)
def unaccounted(exchange: Exchange) -> Iterator[Row]:
    """Without the raw text: what was paid for is shown."""
    shown, paid = _shown(exchange), exchange.answer.completion
    assert shown is not None and paid is not None
    room = _ROOM + _CALL_ROOM * len(exchange.answer.calls)
    if paid > shown + room:
        what = f"{paid} completion tokens, and {shown} in what is shown"
        yield exchange.row("tokens-unaccounted", what, exchange.answer.plain())


def _shown(exchange: Exchange) -> int | None:
    """The tokens of what a client sees."""
    said = exchange.answer
    texts = [said.content, said.reasoning]
    texts += [f"{call.name}{call.arguments}" for call in said.calls]
    counts = [exchange.subject.count(text) for text in texts if text]
    return None if None in counts else sum(each or 0 for each in counts)
