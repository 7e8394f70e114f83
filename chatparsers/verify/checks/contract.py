"""What the request itself asks for: its choice of tools, its schema, its stops, its grammar."""

from __future__ import annotations

from collections.abc import Iterator

from ..answer import NOT_JSON, data_of
from ..exchange import Exchange
from ..rows import Blame, Row
from .check import answered, judges
from .shape import follows


def _chosen(exchange: Exchange) -> bool:
    return answered(exchange) and exchange.probe.choice != "auto" and bool(exchange.probe.tools)


@judges("choice-ignored", where=_chosen)
def choice(exchange: Exchange) -> Iterator[Row]:
    """``required`` and a named tool have a call, ``none`` has none."""
    said, probe = exchange.answer, exchange.probe
    if probe.forced and not said.calls and not exchange.cut:
        yield exchange.row(
            "choice-ignored", f"tool_choice {probe.choice}, and no call", said.content[:300], "a call"
        )
    if probe.named and any(call.name != probe.named for call in said.calls):
        yield exchange.row(
            "choice-ignored", "another tool is called", [call.name for call in said.calls], probe.named
        )
    if probe.choice == "none" and said.calls:
        yield exchange.row(
            "choice-ignored", "tool_choice none, and a call", [call.name for call in said.calls], []
        )


@judges(
    "parallel-ignored",
    where=lambda exchange: answered(exchange) and exchange.probe.body.get("parallel_tool_calls") is False,
)
def parallel(exchange: Exchange) -> Iterator[Row]:
    """``parallel_tool_calls: false`` allows one call."""
    calls = exchange.answer.calls
    if len(calls) > 1:
        shown = [[call.name, call.arguments] for call in calls]
        yield exchange.row("parallel-ignored", f"{len(calls)} calls where one is allowed", shown)


@judges(
    "format-ignored",
    where=lambda exchange: answered(exchange) and exchange.probe.schema is not None and not exchange.cut,
)
def response_format(exchange: Exchange) -> Iterator[Row]:
    """The content follows the JSON Schema of the request."""
    wrong = _misfit(exchange)
    if wrong:
        yield exchange.row("format-ignored", wrong[:200], exchange.answer.content[:300])


def _misfit(exchange: Exchange) -> str:
    value = data_of(exchange.answer.content)
    return "the content is no JSON" if value == NOT_JSON else follows(exchange.probe.schema, value)


def fits(exchange: Exchange) -> bool:
    """Whether the content follows the schema of the request."""
    return not _misfit(exchange)


@judges(
    "stop-shown",
    where=lambda exchange: answered(exchange) and bool(exchange.probe.stops) and exchange.api.stops,
)
def stop(exchange: Exchange) -> Iterator[Row]:
    """A stop of the request ends the content and is not part of it."""
    for text in exchange.probe.stops:
        if text in exchange.answer.content:
            yield exchange.row(
                "stop-shown", f"the content has the stop {text!r}", exchange.answer.content[:300]
            )


@judges("unknown-tool", where=lambda exchange: answered(exchange) and bool(exchange.answer.calls))
def known_tools(exchange: Exchange) -> Iterator[Row]:
    """Only tools of the request are called. Without a grammar that is up to the model."""
    for call in exchange.answer.calls:
        if call.name not in exchange.probe.tools:
            reading = exchange.reading
            written = reading is not None and any(each.name == call.name for each in reading.tool_calls)
            blame: Blame = "server" if exchange.probe.forced else "model" if written else exchange.blame
            yield exchange.row(
                "unknown-tool", "a tool that the request does not have", call.name, blame=blame
            )


def _enforced(exchange: Exchange) -> bool:
    """Whether the engine tells which grammar it used for a request that needs one."""
    needs = exchange.probe.forced or exchange.probe.schema is not None
    return answered(exchange) and needs and "grammar" in exchange.raw.settings


@judges("nothing-enforced", where=_enforced)
def grammar(exchange: Exchange) -> Iterator[Row]:
    """Where the request forces a call or a schema, the engine's grammar holds from the first token."""
    settings = exchange.raw.settings
    if not settings.get("grammar"):
        yield exchange.row("nothing-enforced", "the engine ran without a grammar", "", "a grammar")
    elif settings.get("grammar_lazy"):
        what = "the engine's grammar waits for a call, which the request forces"
        yield exchange.row("nothing-enforced", what, "a lazy grammar", "a grammar from the first token")
