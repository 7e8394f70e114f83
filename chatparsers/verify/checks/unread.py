"""A call that stands in the content, in the model's own format or in another one; also where no raw text is known."""

from __future__ import annotations

from collections.abc import Iterator

from ...explaining.explain import explain
from ...watch import looks_like_a_call
from ..exchange import Exchange
from ..rows import Blame, Row
from .check import answered, judges


def _without_calls(exchange: Exchange) -> bool:
    """Whether the request allows calls, and neither the answer has one nor our reading, which is told as lost."""
    reading = exchange.reading
    asked = bool(exchange.turn.tools) and exchange.probe.choice != "none"
    return (
        answered(exchange)
        and asked
        and not (exchange.answer.calls or exchange.cut or (reading and reading.tool_calls))
    )


@judges("call-in-content", where=_without_calls)
def call_in_content(exchange: Exchange) -> Iterator[Row]:
    """The content is no call. What `explain` says of it stands in the row."""
    content = exchange.answer.content
    turn = exchange.turn._replace(prefix="")
    message = turn.parse(content)
    if any(call.complete and call.name in turn.tools for call in message.tool_calls):
        what = f"a call of {message.tool_calls[0].name} as {turn.format.name} writes it stands in the content"
        blame: Blame = "model" if exchange.reading is not None else exchange.shown_blame
        yield exchange.row("call-in-content", what, content, blame=blame)
    elif looks_like_a_call(turn, message):
        causes = explain(content, turn).causes
        why = str(causes[0]) if causes else "unread: no format reads it"
        blame = "model" if exchange.reading is not None else "unknown"
        yield exchange.row("call-in-content", f"a call that nobody read: {why}", content, blame=blame)
