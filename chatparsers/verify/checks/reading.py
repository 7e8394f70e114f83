"""The answer beside our own reading of the raw text of the same request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...streams.message import Message
from ..answer import NOT_JSON
from ..exchange import Exchange
from ..forced import begins_at
from ..rows import Blame, Row
from .check import answered, judges
from .contract import fits

_BEGUN = 24
"""How many characters of a call that was cut off are enough to see that it is shown."""

_CLOSED = "a call that was cut off is given as a whole one"


def _read(exchange: Exchange) -> bool:
    """Whether there is a reading to compare with. Under a grammar of its own a server may write calls in its own form:
    then the result is judged, and not the reading."""
    reading = exchange.reading
    if not answered(exchange) or reading is None or exchange.forced_calls is not None:
        return False
    own = exchange.probe.forced and not reading.tool_calls
    return not (own and (exchange.answer.calls or exchange.cut))


def _cut_in_forced(exchange: Exchange) -> bool:
    """Whether an answer was cut off, and its calls are in the server's own form, so that whole ones can be counted."""
    return answered(exchange) and exchange.cut and exchange.forced_calls is not None


def _ours(exchange: Exchange) -> Message:
    assert exchange.reading is not None
    return exchange.reading


def _calls(exchange: Exchange) -> tuple[list[Any], list[Any]]:
    """The whole calls of the answer and of our reading. What was cut inside a call is no whole call."""
    said = [(call.name, call.value) for call in exchange.answer.calls]
    ours = [(call.name, call.parsed_arguments) for call in _ours(exchange).tool_calls if call.complete]
    return ([call for call in said if call[1] != NOT_JSON] if exchange.cut else said), ours


@judges("call-invented", where=_cut_in_forced)
def forced_calls(exchange: Exchange) -> Iterator[Row]:
    """In the server's own form too, a call is whole only where its text is."""
    whole = [[call.name, call.arguments] for call in exchange.answer.calls if call.value != NOT_JSON]
    assert exchange.forced_calls is not None
    if len(whole) > exchange.forced_calls:
        yield exchange.row(
            "call-invented", _CLOSED, whole, whole[: exchange.forced_calls], blame=exchange.proof
        )


@judges("call-lost", "call-invented", "call-differs", where=_read)
def calls(exchange: Exchange) -> Iterator[Row]:
    """Every call that the model wrote, and no other."""
    if exchange.probe.choice == "none":
        return  # whether such a call is dropped or shown as text, each server decides
    said, ours = _calls(exchange)
    shown = [[call.name, call.arguments] for call in exchange.answer.calls]
    right = [[call.name, call.arguments] for call in _ours(exchange).tool_calls if call.complete]
    if exchange.cut and ours and said == ours[:-1]:
        what = "the last call, whose end was cut off, is left out"
        yield exchange.row("call-lost", what, shown, right, blame="policy")
    elif len(said) < len(ours):
        what = f"{len(said)} of the {len(ours)} calls that the model wrote"
        yield exchange.row("call-lost", what, shown, right, blame=exchange.call_blame)
    elif len(said) > len(ours) and exchange.cut:
        yield exchange.row("call-invented", _CLOSED, shown, right, blame=exchange.call_blame)
    elif len(said) > len(ours):
        blame: Blame = "model" if exchange.broken else "unknown"
        yield exchange.row("call-invented", "a call that we do not read", shown, right, blame=blame)
    elif said != ours:
        yield exchange.row(
            "call-differs", "another name or other arguments", shown, right, blame=exchange.call_blame
        )


@judges("reasoning-lost", "reasoning-in-content", "reasoning-differs", where=_read)
def reasoning(exchange: Exchange) -> Iterator[Row]:
    """The reasoning is its own part of the answer."""
    said, ours = exchange.answer, _ours(exchange)
    if exchange.probe.stops:
        return  # the request's own stop may end the text inside the reasoning
    theirs, right = said.reasoning.strip(), ours.reasoning.strip()
    if theirs == right:
        return
    more = theirs.removesuffix(right).strip()
    if more and more in exchange.turn.prefix and not (exchange.text or "").lstrip().startswith(more):
        what = "the reasoning begins with what the prompt wrote of it"
        yield exchange.row("reasoning-differs", what, theirs, right, blame="policy")
        return
    inside = right and right in said.content and right not in ours.content
    code = "reasoning-in-content" if inside else "reasoning-lost" if not theirs else "reasoning-differs"
    what = {
        "reasoning-in-content": "the reasoning stands in the content",
        "reasoning-lost": "the reasoning is not shown",
        "reasoning-differs": "the reasoning differs",
    }[code]
    yield exchange.row(code, what, theirs, right, blame=exchange.text_blame)


@judges("content-differs", "white-space", "cut-markup", where=_read)
def content(exchange: Exchange) -> Iterator[Row]:
    """The content is what the model wrote as content."""
    said, right = exchange.answer.content, _content(exchange)
    if right is None or said == right or (exchange.probe.schema is not None and fits(exchange)):
        return  # under a schema the result is judged, and not what is around it
    if exchange.cut and _unfinished(exchange, said, right):
        what = "what began a call, and was cut off before it was one, is left out"
        yield exchange.row("content-differs", what, said, right, blame="policy")
        return
    if said.strip() == right.strip():
        yield exchange.row("white-space", "white space around the content", said, right, blame="policy")
        return
    ours = _ours(exchange)
    if ours.reasoning.strip() and ours.reasoning.strip() in said and right.strip() in said:
        return  # told as reasoning-in-content
    if exchange.opened and exchange.opened[:_BEGUN] in said:
        what = "a call that was cut off is shown as text"
        marked = any(marker in said and marker not in right for marker in exchange.subject.markers)
        blame = exchange.text_blame if marked and partial(exchange) else "policy"
        yield exchange.row("cut-markup", what, said, right, blame=blame)
    elif exchange.probe.choice == "none" and ours.tool_calls:
        yield exchange.row(
            "content-differs", "a call under none is shown as text", said, right, blame="policy"
        )
    elif (
        len(exchange.answer.calls) == len(ours.tool_calls) or not ours.tool_calls
    ):  # else it is told as a lost call
        yield exchange.row("content-differs", "the content differs", said, right, blame=exchange.text_blame)


def _unfinished(exchange: Exchange, said: str, right: str) -> bool:
    """Whether only the beginning of a call is left out, which was cut off before it was a call."""
    left_out = right[len(said) :].strip()
    begins = right.startswith(said) and any(map(left_out.startswith, exchange.subject.markers))
    cut_off = any(each.code == "truncated" for each in _ours(exchange).diagnostics)
    return begins and cut_off and len(exchange.answer.calls) <= len(_ours(exchange).tool_calls)


def partial(exchange: Exchange) -> bool:
    """Whether the API can show a part of a call. In the others a call that was cut off is left out, or it is text."""
    return exchange.api.name == "chat"


def _content(exchange: Exchange) -> str | None:
    """The content that the server should show; None if that cannot be told."""
    ours = _ours(exchange)
    found = ours.content
    for stop in exchange.probe.stops:
        if stop in ours.reasoning:
            return None
        found = found.partition(stop)[0]
    return found


@judges("markup-shown", where=answered)
def markup(exchange: Exchange) -> Iterator[Row]:
    """No marker of the format, and no special token, reaches the client."""
    said, ours = exchange.answer, exchange.reading
    for part, text in (("content", said.content), ("reasoning", said.reasoning)):
        right = "" if ours is None else getattr(ours, part)
        shown = [each for each in exchange.subject.markers if each in text and each not in right]
        if shown:
            blame = "policy" if _in_values(exchange, text, shown) else _marked(exchange)
            yield exchange.row("markup-shown", f"{shown[0]} in the {part}", text, right, blame=blame)
            return


def _in_values(exchange: Exchange, text: str, markers: list[str]) -> bool:
    """Whether the markers are those of values, in calls of the server's own form that were cut off and are text."""
    begun = begins_at(text) if _cut_in_forced(exchange) else None
    return begun is not None and not any(marker in text[:begun] for marker in markers)


def _marked(exchange: Exchange) -> Blame:
    if exchange.cut and not (partial(exchange) and exchange.reading is not None):
        return "policy"  # what began a call, and was cut off before it was one, is text
    if exchange.reading is not None:
        return exchange.text_blame
    return exchange.shown_blame
