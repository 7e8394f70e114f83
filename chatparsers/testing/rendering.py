"""Makes the text on the wire from a scenario and a template: renders, cuts the assistant's turn out, and gives the
message that must come back.

A template cannot show every message. The template's own probe (`cannot_show`) and a search for the needles in the
rendering find the messages that it cannot show. Its name decides nothing. `Inexpressible` says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..answers.format import Format, Turn
from ..errors import TemplateError
from ..templates import Template
from ..templates.probe.edges import edges_of
from .needles import find_needles
from .scenarios import Scenario, raw_stops

_HISTORY = [{"role": "user", "content": "Please go on."}]
# Fixed, so that what a template writes of today is the same in every run.
_CLOCK: dict[str, Any] = {"strftime_now": lambda form: "2025-01-01", "date_string": "2025-01-01"}


class Inexpressible(Exception):
    """The template cannot show this scenario; the text says why."""


def exact(text: str) -> Any:
    """A JSON text as data in which numbers are compared as they are spelt. Raises ValueError."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_float=_Spelt, parse_int=_Spelt, parse_constant=refuse)


class _Spelt:
    """A number as it is spelt, unlike any string."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Spelt) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Expected:
    """The message that must be read back.

    ``calls``: names and arguments (JSON text). ``ids``: the ids of calls that the template wrote. A field that is
    None is not checked.
    """

    content: str | None = ""
    reasoning: str | None = ""
    calls: tuple[tuple[str, str], ...] = ()
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A text on the wire, the request that it answers, and the message that must be read back. ``template``: its
    source."""

    format: Format
    template: str
    scenario: str
    text: str
    prefix: str
    expected: Expected
    options: Mapping[str, Any]
    heavy: bool = False

    def turn(self, **more: Any) -> Turn:
        """The request bound to the format."""
        return self.format.bind(prefix=self.prefix, **{"id_seed": "", **self.options, **more})

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for cases that are the same to a parser."""
        return (
            self.format.name,
            self.prefix,
            self.text,
            json.dumps(self.options, sort_keys=True),
            self.expected,
        )


def render(format: Format, template: Template, scenario: Scenario) -> Case:
    """The case that ``template`` makes of ``scenario``. Raises `Inexpressible` if the template cannot show it."""
    reason = cannot_show(format, template, scenario)
    if reason:
        raise Inexpressible(reason)
    message, tools = scenario.message(), list(scenario.tools) or None
    try:
        prompt, header, wire = template.exchange(
            message, history=_HISTORY, tools=tools, thinking=scenario.thinking, **_CLOCK
        )
        switch = {**template.thinking_kwargs(scenario.thinking), **_CLOCK}
        opened = _continued(template, scenario, tools, switch) if scenario.continued else ""
    except TemplateError as error:
        raise Inexpressible(f"the template raises: {str(error)[:160]}") from error
    for part in find_needles(
        [message["content"], scenario.reasoning, [call.arguments for call in scenario.calls]]
    ):
        if part not in wire:
            raise Inexpressible(f"the template drops {part.strip('$')[2:3]}-needles")
    for other in _look_alikes(message):
        if template.assistant_turn(
            other, history=_HISTORY, tools=tools, thinking=scenario.thinking, **_CLOCK
        ) == (prompt, wire):
            raise Inexpressible("the template writes another message in the same way")
    said = json.dumps(message)
    last = wire.rfind(scenario.calls[-1].name) if scenario.calls else 0
    if any(0 <= wire.find(stop) < last and stop not in said for stop in format.stops):
        raise Inexpressible("the template ends the turn before its last call")
    prefix = edges_of(format).opening(header)
    if scenario.opened:
        prefix, wire = _reopen(scenario, prompt, wire, prefix, opened)
    if scenario.after:
        wire = _append(format, wire, scenario.after)
    return Case(
        format,
        template.name,
        scenario.name,
        wire,
        prefix,
        _expected(scenario, wire),
        {
            "tools": tools,
            "tool_choice": scenario.tool_choice,
            "parallel_tool_calls": scenario.parallel,
            "response_format": scenario.response_format,
            "thinking": scenario.thinking,
        },
        scenario.heavy,
    )


def _look_alikes(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The message without the members that are null; with an empty object for each empty list; and with an empty text
    for each empty object or list, and for each null in a list."""

    def changed(value: Any, empty: Any) -> Any:
        if isinstance(value, (dict, list)) and not value and empty is not None:
            return empty
        if isinstance(value, dict):
            kept = ((key, item) for key, item in value.items() if item is not None or empty is not None)
            return {key: changed(item, empty) for key, item in kept}
        if isinstance(value, list):
            return ["" if item is None and empty == "" else changed(item, empty) for item in value]
        return value

    calls = message.get("tool_calls", [])
    given = [exact(call["function"]["arguments"]) for call in calls]
    empties: tuple[Any, ...] = (None, {}, "")
    for empty in empties:
        others = [changed(arguments, empty) if arguments else {} for arguments in given]
        if others != given:
            functions = [
                {**call["function"], "arguments": _written(arguments)}
                for call, arguments in zip(calls, others, strict=True)
            ]
            pairs = zip(calls, functions, strict=True)
            yield {**message, "tool_calls": [{**call, "function": function} for call, function in pairs]}


def _written(value: Any) -> str:
    """What `exact` has read, as JSON text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return value.text if isinstance(value, _Spelt) else json.dumps(value)


def _expected(scenario: Scenario, wire: str) -> Expected:
    calls = tuple((call.name, call.arguments) for call in scenario.calls)
    content = None if scenario.after else scenario.content
    ids = tuple(call["id"] for call in scenario.message().get("tool_calls", ()) if call["id"] in wire)
    return Expected(content, "" if scenario.opened == "content" else scenario.reasoning, calls, ids)


def cannot_show(format: Format, template: Template, scenario: Scenario) -> str:
    """Why the template's own probe or the format's features rule the scenario out; "" if they do not."""
    can = template.probe()
    needs = [
        (bool(scenario.calls), can.tool_calls, "no tool calls"),
        (len(scenario.calls) > 1, can.parallel_calls, "no parallel calls"),
        (bool(scenario.reasoning and not scenario.calls), can.reasoning, "no reasoning"),
        (bool(scenario.reasoning and scenario.calls), can.reasoning_with_calls, "no reasoning with calls"),
        (bool(scenario.content and scenario.calls), can.content_beside_calls, "no text beside calls"),
        (scenario.thinking is False, bool(template.thinking_kwargs(False)), "no switch for thinking"),
        (bool(scenario.calls), format.features.tools, "the format has no calls"),
        (len(scenario.calls) > 1, format.features.parallel, "the format has no parallel calls"),
    ]
    if scenario.reasoning and scenario.content and scenario.calls:
        needs.append((True, not template.wants.join_content, "no text beside reasoning and calls"))
    for needed, shown, reason in needs:
        if needed and not shown:
            return reason
    held = [stop for stop in raw_stops(format) for call in scenario.calls if stop in call.arguments]
    return "a string that holds what ends it" if held else ""


def _continued(
    template: Template, scenario: Scenario, tools: list[dict[str, Any]] | None, switch: Mapping[str, Any]
) -> str:
    """The prompt of a turn whose beginning is given."""
    message = {"role": "assistant", "content": ""}
    if scenario.opened == "reasoning":
        message["reasoning_content"] = scenario.continued
    else:
        message["content"] = scenario.continued
        if scenario.reasoning:
            message["reasoning_content"] = scenario.reasoning
    return template.render([*_HISTORY, message], tools=tools, continue_final_message=True, **switch)


def _reopen(scenario: Scenario, prompt: str, wire: str, prefix: str, opened: str) -> tuple[str, str]:
    """Prefix and wire text of a turn whose prompt ends inside reasoning or content."""
    if scenario.continued:
        full = prompt + wire
        if not full.startswith(opened.rstrip()) or len(opened) < len(prompt):
            raise Inexpressible("a message to continue is rendered otherwise than a whole one")
        if not full.startswith(opened):
            opened = opened.rstrip()
        at = len(opened) - len(prompt)
    else:
        at = wire.index(scenario.reasoning)
        if not at and not prefix:
            raise Inexpressible("nothing is written before the reasoning")
    return prefix + wire[:at], wire[at:]


def _append(format: Format, wire: str, after: str) -> str:
    """Adds text after the calls, before the end of the turn."""
    turn, end = wire.rstrip(), ""
    while stop := next((stop for stop in format.stops if turn.endswith(stop)), ""):
        if stop in format.preserved_tokens:
            raise Inexpressible("what closes a call ends the turn")
        turn, end = turn[: -len(stop)], stop + end
    return turn + "\n\n" + after + end
