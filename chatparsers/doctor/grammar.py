"""The check of the grammar: it takes the template's own call, in each dialect, and says what it does not enforce."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Literal

from ..core.errors import ChatParsersError, SchemaError, TemplateError
from ..detection.analysis.accepted import accepts
from ..templates.probe.edges import opening
from .report import Finding
from .subject import CLOCK, Subject, call, quoted, user

__all__ = ["grammar"]

_DIALECTS: tuple[Literal["gbnf", "lark", "structural_tag"], ...] = ("gbnf", "lark", "structural_tag")


def grammar(model: Subject) -> Iterator[Finding]:
    """Whether the grammar can be written in each dialect, takes the template's own call, and what it weakens."""
    if not model.format.features.tools:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            turn = model.chat.prepare([user("Q")], tools=model.tools, tool_choice="required")
        except ChatParsersError as error:
            yield Finding("grammar-refused", "warning", f"a call cannot be required: {error}")
            return
    weakened: dict[str, str] = {}
    for dialect in _DIALECTS:
        try:
            written = turn.grammar(dialect)
        except SchemaError as error:
            yield Finding(
                "grammar-refused", "error", f"the {dialect} grammar cannot be written: {error}", str(error)
            )
            continue
        if written is None:
            continue
        weakened.update({f"{each.path} {each.keyword}": each.why for each in written.weakened})
    for where, why in list(weakened.items())[:8]:
        yield Finding(
            "grammar-weakened",
            "note",
            f"the grammar does not enforce {where}",
            why,
            "check the arguments after parsing",
        )
    if not model.can.tool_calls or model.given:
        return
    try:
        _, header, wire = model.template.exchange(
            call({"city": "Oslo"}),
            history=[user("Q")],
            tools=model.tools if model.can.tools else None,
            strftime_now=CLOCK,
        )
    except TemplateError:
        return
    fmt = model.format
    turn = fmt.bind(tools=model.tools, tool_choice="required", prefix=opening(fmt, header))
    message = turn.parse(wire)
    if [(each.name, each.complete) for each in message.tool_calls] != [("check_weather", True)]:
        yield Finding(
            "call-not-read",
            "error",
            "the parser does not read the call that the template writes",
            quoted(wire),
            "name the right format with --format, or send the report: chatparsers report",
        )
    elif not accepts(turn, *_without_ends(wire, (*fmt.stops, *model.template.end_of_turn(fmt)))):
        yield Finding(
            "grammar-refuses-own-call",
            "warning",
            "the grammar does not take the call as the template writes it",
            quoted(wire),
            "the sampler keeps the model from what it learned: send the report: chatparsers report",
        )


def _without_ends(wire: str, stops: Iterable[str]) -> Iterator[str]:
    """The text, and the text without its stops and the space before them: the grammar ends where a stop begins."""
    ends = [stop.strip() for stop in stops if stop.strip()]
    for _ in range(3):
        yield from (wire, wire.rstrip())
        wire = wire.rstrip()
        stop = next((stop for stop in ends if wire.endswith(stop)), None)
        if stop is None:
            return
        wire = wire.removesuffix(stop)
    yield from (wire, wire.rstrip())
