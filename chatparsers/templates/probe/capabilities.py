"""Finds what a template can show, and in which shape it reads it, by rendering. Its source is never read.

Each question is a few small renderings of needles: words that occur nowhere else. A candidate shape is right if every
needle comes out once, and not inside a printed Python dict. So a cosmetic edit of the template cannot change the
answer. Everything is lazy and cached: if a template is given only texts, only the shape of texts is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any, Literal, Protocol

from ...core.shown import Shown
from ...errors import TemplateError
from ...kept import cached
from ..messages import CallIds, ReasoningAs, Wants, shape
from .turns import MARKER, NEEDLE

Messages = list[dict[str, Any]]

_USER = "needleuser"
_REASONING = "needlereasoning"
_TOOL = "needle_tool"
_CALLED = ("needle_called", "needle_second")
_KEY, _VALUE = "needle_key", "needlevalue"
_RESULT = "needleresult"
_IDS = ("needle001", "needle002")

# Parts printed as they are, by Python or as JSON: {'type': 'text', 'text': 'needle…
_PRINTED = re.compile(r"""["'](?:text|thinking)["']: ?["']\Z""")
_PRINTED_ARGUMENTS = ("{'" + _KEY, '\\"' + _KEY)

_CLOCK = datetime(2024, 1, 1).strftime  # renderings that are compared must not see it move

_ARGUMENT_FORMS: tuple[Literal["dict", "text"], ...] = ("dict", "text")
_REASONING_FORMS: tuple[ReasoningAs, ...] = ("reasoning_content", "reasoning", "thinking", "part", "blocks")

ABSENT = object()
# How templates spell the switch: (keyword, value for on, value for off).
_SWITCHES: tuple[tuple[str, object, object], ...] = (
    ("enable_thinking", True, False),
    ("thinking", True, False),
    ("thinking_mode", "thinking", "chat"),
    ("thinking_mode", "enabled", "disabled"),
    ("thinking_mode", "on", "off"),
    ("thinking_option", "on", "off"),
    ("thinking_budget", ABSENT, 0),
    ("force_reasoning", True, False),
    ("skip_reasoning", False, True),
)
SWITCHES = frozenset(name for name, _, _ in _SWITCHES)
"""The variables with which templates spell the switch of thinking."""


@dataclass(frozen=True, slots=True)
class Capabilities(Shown):
    """What a template shows of a conversation. If a field is False, the template drops or refuses that part.

    ``tools``: the tools' definitions. ``tool_calls``, ``parallel_calls``: one, and more than one, call in a
    turn; ``bare_calls``: also in a turn without reasoning. ``content_beside_calls``: the text of a turn that calls,
    as content (not as reasoning). ``reasoning``: the last turn's reasoning before content; ``reasoning_with_calls``:
    before a call.
    ``system_role``, ``tool_role``, ``developer_role``: such messages. ``several_systems``, ``consecutive_users``: two
    of them in a row. ``late_system``: a system message after an answer. ``parallel_results``: the results of two
    calls; ``result_ids``: which call a result answers, by its id. ``images``: a picture's place among parts of text.
    ``content_as``, ``arguments_as``, ``reasoning_as``: see ``Wants``. ``thinking_switches``: the keywords that turn
    thinking on and off. ``thinking_default``: whether thinking is on without them, None if the prompt is neither the
    one nor the other. ``channel``: the markers that open and close the content of an answer, without the turn's own.
    ``generation_prompt``: the text that the template adds after a user message.
    """

    tools: bool
    tool_calls: bool
    parallel_calls: bool
    bare_calls: bool
    content_beside_calls: bool
    reasoning: bool
    reasoning_with_calls: bool
    system_role: bool
    tool_role: bool
    developer_role: bool
    several_systems: bool
    late_system: bool
    consecutive_users: bool
    parallel_results: bool
    result_ids: bool
    images: bool
    content_as: Literal["text", "parts", "either"]
    arguments_as: Literal["dict", "text"]
    reasoning_as: ReasoningAs | None
    thinking_switches: tuple[str, ...]
    thinking_default: bool | None
    channel: tuple[str, str]
    generation_prompt: str


class Writer(Protocol):
    """Renders shaped messages with the template's variables; raises ``TemplateError``."""

    def __call__(
        self,
        messages: Messages,
        wants: Wants,
        tools: list[dict[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> str: ...


Turn = Callable[[Mapping[str, Any], Mapping[str, Any]], "tuple[str, str]"]


def _user(content: Any = _USER) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _assistant(content: str, *, reasoning: str = "", calls: int = 0) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        arguments = {_KEY: _VALUE}
        message["tool_calls"] = [
            {"function": {"name": name, "arguments": arguments}} for name in _CALLED[:calls]
        ]
    return message


def probe_tools() -> list[dict[str, Any]]:
    """A tool whose name is a needle."""
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string", "description": "w"}},
        "required": ["word"],
    }
    return [{"type": "function", "function": {"name": _TOOL, "description": "d", "parameters": schema}}]


def shows(text: str | None, *needles: str) -> bool:
    """Whether all needles come out, and no needle inside a printed Python or JSON part."""
    if text is None or any(needle not in text for needle in needles):
        return False
    return not any(_PRINTED.search(text[: text.index(needle)][-16:]) for needle in needles)


class Prober:
    """Asks one template; ``write`` renders, ``name`` is for messages of errors. ``reads``: the variables that it reads;
    None if that cannot be told."""

    def __init__(self, write: Writer, name: str, reads: Callable[[], frozenset[str] | None]) -> None:
        self._write = write
        self._name = name
        self._reads = reads

    def _try(
        self,
        messages: Messages,
        wants: Wants,
        *,
        tools: bool = False,
        generate: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> str | None:
        definitions = probe_tools() if tools else None
        given = {"strftime_now": _CLOCK, **(variables or {})}
        try:
            return self._write(shape(messages, wants, self._name), wants, definitions, generate, given)
        except TemplateError:
            return None

    @cached
    def plain(self) -> Wants:
        """The shape of contents and tools."""
        empty: tuple[Literal["none", "list"], ...] = ("none", "list")
        forms: tuple[Literal["text", "parts"], ...] = ("text", "parts")
        for functions, no_tools, content in product((False, True), empty, forms):
            wants = Wants(content_as=content, no_tools=no_tools, functions=functions)
            if shows(self._try([_user()], wants), _USER):
                break
        else:
            return Wants()
        if not self._shows_tools(wants):
            others = replace(wants, functions=True), replace(wants, flat_tools=True)
            wants = next(filter(self._shows_tools, others), wants)
        if wants.content_as == "text":
            either = replace(wants, content_as="either")
            if shows(self._try([_user([{"type": "text", "text": _USER}])], either), _USER):
                return either
        return wants

    def _shows_tools(self, wants: Wants) -> bool:
        return shows(self._try([_user()], wants, tools=True), _TOOL)

    @cached
    def calls(self) -> Wants:
        """``plain`` and the shape of calls."""
        last_only = None
        for wants in self._call_shapes():
            if self._keeps_calls(wants, 1):
                if self._keeps_calls(wants, 1, ids=True) and self._keeps_calls(wants, 1, ids=False):
                    break
                last_only = last_only or wants
        else:
            wants = last_only or self._behind_reasoning or self.plain
        bare = replace(wants, empty_content="none")
        # R1-Distill-Qwen renders the empty text beside a call as a turn of its own.
        return bare if self._keeps_calls(bare, 1) and self._length(bare) < self._length(wants) else wants

    @cached
    def _behind_reasoning(self) -> Wants | None:
        """The shape of calls that come out only behind reasoning; None if none does."""
        if not self._shows_tools(self.plain):
            return None
        call = _assistant("", reasoning=_REASONING, calls=1)
        for form, on in product(_REASONING_FORMS, (None, True)):
            plain = replace(self.plain, reasoning_as=form)
            variables = self.thinking(on)
            turns = (
                self._try(
                    [_user(), call], replace(plain, arguments_as=arguments), tools=True, variables=variables
                )
                for arguments in _ARGUMENT_FORMS
            )
            if any(_CALLED[0] in (text or "") for text in turns):
                for wants in self._call_shapes():
                    if self._keeps_calls(
                        replace(wants, reasoning_as=form), 1, reasoning=True, variables=variables
                    ):
                        return wants
        return None

    def _length(self, wants: Wants) -> int:
        return len(self._try([_user(), _assistant("", calls=1)], wants, tools=True) or "")

    def _call_shapes(self) -> Iterator[Wants]:
        all_ids: tuple[CallIds, ...] = ("keep", "fill", "short", "function")
        empties: tuple[Literal["text", "none"], ...] = ("text", "none")
        for ids, empty, arguments in product(all_ids, empties, _ARGUMENT_FORMS):
            yield replace(self.plain, call_ids=ids, empty_content=empty, arguments_as=arguments)

    def _keeps_calls(
        self,
        wants: Wants,
        number: int,
        *,
        ids: bool | None = None,
        reasoning: bool = False,
        variables: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether calls come out whole: in the last turn, or before their results, with or without ids; ``reasoning``:
        behind reasoning."""
        messages = [_user(), _assistant("", reasoning=_REASONING if reasoning else "", calls=number)]
        if ids is not None:
            for position, call in enumerate(messages[-1]["tool_calls"]):
                result = {"role": "tool", "name": call["function"]["name"], "content": _RESULT}
                if ids:
                    call["id"] = result["tool_call_id"] = f"call-of-some-other-form-{position}"
                messages.append(result)
        text = self._try(messages, wants, tools=True, variables=variables)
        if text is None or not shows(text, *_CALLED[:number]):
            return False
        keys = text.count(_KEY)  # twice in each call if a tag has its name: <key>value</key>
        kept = text.count(_VALUE) == number and keys in (number, 2 * number)
        return kept and not any(form in text for form in _PRINTED_ARGUMENTS)

    @cached
    def full(self) -> Wants:
        """``calls`` and the shape of reasoning."""
        for form, switch in product(_REASONING_FORMS, (False, True)):
            wants = replace(self.calls, reasoning_as=form)
            variables = self.thinking(True) if switch else {}
            beside_call = self._keeps_reasoning(wants, 1, variables)
            if beside_call or self._keeps_reasoning(wants, 0, variables):
                joined = beside_call and self._all_three(wants, variables) is None
                return replace(wants, join_content=joined)
        return self.calls

    def _keeps_reasoning(self, wants: Wants, calls: int, variables: Mapping[str, Any]) -> bool:
        answer = _assistant("" if calls else NEEDLE, reasoning=_REASONING, calls=calls)
        text = self._try([_user(), answer], wants, tools=bool(calls), variables=variables)
        return shows(text, _REASONING, _CALLED[0] if calls else NEEDLE)

    def _all_three(self, wants: Wants, variables: Mapping[str, Any]) -> str | None:
        answer = _assistant(NEEDLE, reasoning=_REASONING, calls=1)
        return self._try([_user(), answer], wants, tools=True, variables=variables)

    @cached
    def _switches(self) -> tuple[tuple[str, object, object], ...]:
        found: list[tuple[str, object, object]] = []
        reads = self._reads()
        for name, on, off in _SWITCHES:
            if reads is not None and name not in reads:
                continue
            texts = [self._thinking_text(_given({name: value})) for value in (on, off)]
            if None not in texts and texts[0] != texts[1] and name not in (known for known, _, _ in found):
                found.append((name, on, off))
        if found:
            return tuple(found)
        if reads is not None and "reasoning_effort" not in reads:
            return ()
        # Not every effort has an "off": if "none" does not change the prompt's end, "low" is the least effort.
        for off in ("none", "low"):
            text, default = self._thinking_text({"reasoning_effort": off}), self._thinking_text({})
            if (
                text is not None
                and default is not None
                and text != default
                and (off == "low" or _ends_differ(text, default))
            ):
                return (("reasoning_effort", ABSENT, off),)
        return ()

    def _thinking_text(self, variables: Mapping[str, Any]) -> str | None:
        return self._try([_user()], self.plain, generate=True, variables=variables)

    def thinking(self, thinking: bool | None) -> dict[str, Any]:
        """The keywords that turn thinking on or off; ``{}`` for None."""
        if thinking is None:
            return {}
        return _given({name: on if thinking else off for name, on, off in self._switches})

    def _thinking_default(self) -> bool | None:
        if not self._switches:
            return None
        default, on, off = (self._thinking_text(self.thinking(state)) for state in (None, True, False))
        return True if default == on else False if default == off else None

    def capabilities(self, turn: Turn, generation_prompt: str, images: bool) -> Capabilities:
        """All answers; ``turn(answer, variables)`` is ``Template.assistant_turn``."""

        def wire(answer: Mapping[str, Any], *needles: str) -> str | None:
            for variables in ({}, self.thinking(True)):
                try:
                    text = turn(answer, variables)[1]
                except TemplateError:
                    continue
                if shows(text, *needles):
                    return text
            return None

        wants = self.full

        def kept(messages: Messages, *needles: str, tools: bool = False) -> bool:
            return shows(self._try(messages, wants, tools=tools), *needles)

        system, more = ({"role": "system", "content": f"needle{word}"} for word in ("system", "more"))
        developer = {"role": "developer", "content": "needledeveloper"}
        said = [f"{_RESULT}{letter}" for letter in "ab"]
        results = [
            {"role": "tool", "name": name, "tool_call_id": id, "content": text}
            for name, id, text in zip(_CALLED, _IDS, said, strict=True)
        ]
        one, two = ([_user(), _called(number), *results[:number]] for number in (1, 2))
        return Capabilities(
            tools=self._shows_tools(wants),
            tool_calls=self._shows_calls(wants, 1),
            parallel_calls=self._shows_calls(wants, 2),
            bare_calls=self._keeps_calls(wants, 1),
            content_beside_calls=self._content_beside_calls(wire),
            reasoning=wire(_assistant(NEEDLE, reasoning=_REASONING), _REASONING, NEEDLE) is not None,
            reasoning_with_calls=wire(_assistant("", reasoning=_REASONING, calls=1), _REASONING, _CALLED[0])
            is not None,
            system_role=kept([system, _user()], "needlesystem", _USER),
            tool_role=kept(one, said[0], tools=True),
            developer_role=kept([developer, _user()], "needledeveloper", _USER),
            several_systems=kept([system, more, _user()], "needlesystem", "needlemore", _USER),
            late_system=kept(
                [_user(), _assistant(NEEDLE), system, _user("needlemore")], "needlesystem", "needlemore"
            ),
            consecutive_users=kept([_user(), _user("needlemore")], _USER, "needlemore"),
            parallel_results=kept(two, *said, tools=True),
            result_ids=self._result_ids(one, wants),
            images=images,
            content_as=wants.content_as,
            arguments_as=wants.arguments_as,
            reasoning_as=wants.reasoning_as,
            thinking_switches=tuple(name for name, _, _ in self._switches),
            thinking_default=self._thinking_default(),
            channel=_channel(wire(_assistant(NEEDLE), NEEDLE) or ""),
            generation_prompt=generation_prompt,
        )

    def _shows_calls(self, wants: Wants, number: int) -> bool:
        """Whether that many calls come out, also if only behind reasoning."""
        if self._keeps_calls(wants, number):
            return True
        return self._behind_reasoning is not None and any(
            self._keeps_calls(wants, number, reasoning=True, variables=self.thinking(on))
            for on in (None, True)
        )

    def _result_ids(self, messages: Messages, wants: Wants) -> bool:
        """Whether a result shows its id: with the result, the id occurs more often than with only the call."""
        id = messages[1]["tool_calls"][0]["id"]
        whole, call = (self._try(messages[:end], wants, tools=True) for end in (3, 2))
        return whole is not None and call is not None and whole.count(id) > call.count(id)

    def _content_beside_calls(self, wire: Callable[..., str | None]) -> bool:
        text = wire(_assistant(NEEDLE, calls=1), NEEDLE, _CALLED[0])
        if text is None or text == wire(_assistant("", reasoning=NEEDLE, calls=1), NEEDLE):
            return False  # in the second case the text is shown, but in the place of reasoning
        plain = wire(_assistant(NEEDLE), NEEDLE)
        end = plain[plain.rindex(NEEDLE) + len(NEEDLE) :].strip() if plain else ""
        first, last = sorted((text.index(NEEDLE), text.index(_CALLED[0])))
        return not end or end not in text[first:last]  # else they are two turns


def _called(number: int) -> dict[str, Any]:
    """A turn of that many calls, each with an id that any template takes."""
    message = _assistant("", calls=number)
    for call, id in zip(message["tool_calls"], _IDS, strict=False):
        call["id"] = id
    return message


def _channel(wire: str) -> tuple[str, str]:
    """The text from the first marker before the needle, and the first marker after it if a second one follows."""
    before, _, behind = wire.partition(NEEDLE)
    opens = [found for found in MARKER.finditer(before)]
    closes = MARKER.findall(behind)
    opener = before[opens[0].start() :] if opens else ""
    return opener, closes[0] if opener and len(closes) > 1 else ""


def _given(variables: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in variables.items() if value is not ABSENT}


def _ends_differ(text: str, other: str) -> bool:
    return (
        text[text.rindex(_USER) :] != other[other.rindex(_USER) :]
        if _USER in text and _USER in other
        else False
    )
