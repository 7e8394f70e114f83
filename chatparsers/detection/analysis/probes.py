"""The questions to a template, and its answers.

A question is an assistant's message of words that occur nowhere else. The answer is the turn that the template makes of
it, cut out of the conversation by the rules of ``templates.turns``. If the template refuses or drops a message, there
is no answer; only the facts that this answer would have shown are lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import TemplateError
from ...kept import cached
from ...templates import Template
from ...templates.probe.differences import is_marker, shared_start, units
from ...templates.probe.stand_ins import NAME, QUESTION, TOOLS, ending_in, question

ADDRESSEE = "\x01"
"""Stands for a tool's name in the header of a message that is addressed to it, if the call itself names it again."""
CLOSED = "\x02"
"""Stands for a tool's name in the markup after the call's arguments."""
_THOUGHT = "Slate hums low."
_HISTORY = [question()]


@dataclass(frozen=True, slots=True)
class Words:
    """A set of words for questions. No word may occur anywhere else in a template's renderings.

    ``texts`` are values of string arguments. ``numbers`` are JSON numbers that no counter reaches.
    """

    content: str
    reasoning: str
    names: tuple[str, str, str]
    keys: tuple[str, str, str]
    texts: tuple[str, str, str]
    number: int
    ids: tuple[str, str, str]


ASKED = Words(
    content="Basalt rests here.",
    reasoning="Gneiss ponders slowly.",
    names=("find_quartz", "hold_marble", "lift_granite"),
    keys=("beryl", "opal", "topaz"),
    texts=("zircon", "feldspar", "kyanite"),
    number=40963,
    ids=("Xq7aaaaa1", "Xq7aaaab2", "Xq7aaaac3"),
)
HELD_BACK = Words(
    content='Herons  wade:\n\nslowly & <b>softly</b>, "so" they say.',
    reasoning="Egrets   muse:\n\n1 < 2 & 'fine'.",
    names=("watch_heron", "ring_egret2", "count"),
    keys=("place", "wing_span", "x"),
    texts=('reeds "tall"', " <i>mud</i> & it's\n\tdeep\\n\n", "Ørsted 😀 [x] {y: 1}, z=2"),
    number=-70412,
    ids=("Zr4bbbbb1", "Zr4bbbbc2", "Zr4bbbbd3"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it was asked for."""

    name: str
    arguments: Mapping[str, Any]
    id: str


@dataclass(frozen=True, slots=True)
class Rendering:
    """A message and the turn that the template made of it.

    ``opening``: the part of the assistant's turn that the prompt wrote, with its role header. ``wire``: the text that
    the model would have written.
    """

    what: str
    content: str
    reasoning: str
    calls: tuple[Call, ...]
    tools: list[dict[str, Any]] | None
    thinking: bool | None
    opening: str
    wire: str

    def shows(self) -> bool:
        """Whether all that was asked for is in the turn, each text once, names once or twice."""
        asked = [text.strip() for text in (self.content, self.reasoning) if text]
        counts = {self.wire.count(call.name) for call in self.calls}
        return all(self.wire.count(text) == 1 for text in asked) and counts in (set(), {1}, {2})

    def masked(self, closed: bool = False) -> Rendering:
        """The same, with one of two times that a call's name is there masked: with `CLOSED` the second one, if an
        argument comes before it (``closed``: in any case), else with `ADDRESSEE` the first one."""
        wire = self.wire
        for call in self.calls:
            if wire.count(call.name) == 2:
                first, _, second = wire.partition(call.name)
                arguments, _, after = second.partition(call.name)
                if closed or any(str(value) in arguments for value in call.arguments.values()):
                    wire = first + call.name + arguments + CLOSED + after
                else:
                    wire = first + ADDRESSEE + second
        return replace(self, wire=wire)


def tools_for(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """The tools that are called, their parameters typed as the values are."""
    found: dict[str, dict[str, Any]] = {}
    for call in calls:
        typed = {key: {**_schema(value), "description": "d"} for key, value in call.arguments.items()}
        found.setdefault(call.name, {}).update(typed)
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": "d",
                "parameters": {"type": "object", "properties": properties, "required": []},
            },
        }
        for name, properties in found.items()
    ]


def _schema(value: object) -> dict[str, Any]:
    """A schema for which the value is valid."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {key: _schema(inner) for key, inner in value.items()}}
    if isinstance(value, list):
        return {"type": "array", "items": {"anyOf": [_schema(item) for item in value]} if value else {}}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if value is None:
        return {"type": "null"}
    return {"type": "number" if isinstance(value, (int, float)) else "string"}


@dataclass
class Asker:
    """Asks one template each question once, and keeps the answers.

    ``after``: the closer of reasoning, if the template shows calls only after it. Then each call that is asked for
    follows a thought, which counts as written by the prompt. ``closed``: calls end with the tool's name.
    """

    template: Template
    after: str = ""
    closed: bool = False
    asked: dict[Any, Rendering | None] = field(default_factory=dict)

    def ask(
        self,
        what: str,
        *,
        content: str = "",
        reasoning: str = "",
        calls: Sequence[Call] = (),
        offered: Sequence[Call] = (),
        thinking: bool | None = None,
    ) -> Rendering | None:
        """The turn of this message; None if the template refuses it.

        ``offered``: calls that are not made. Their tools are in the conversation.
        """
        spelt = tuple((call.name, json.dumps(call.arguments), call.id) for call in calls)
        tools = tools_for([*calls, *offered]) or None
        key = (content, reasoning, spelt, bool(tools), thinking, bool(calls and self.after))
        if key in self.asked:
            return self.asked[key]
        self.asked[key] = None
        message: dict[str, Any] = {"role": "assistant", "content": content}
        thought = _THOUGHT if calls and self.after and not reasoning else ""
        if reasoning or thought:
            message["reasoning_content"] = reasoning or thought
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for call in calls
            ]
        try:
            _, opening, wire = self.template.exchange(
                message, history=_HISTORY, tools=tools, beside=tools and self._beside, thinking=thinking
            )
        except TemplateError:
            return None
        if thought:
            closed = wire.find(self.after, wire.find(thought) + len(thought)) if thought in wire else -1
            if closed < 0:
                return None
            said = wire[: closed + len(self.after)]
            wire = wire[len(said) :].lstrip()
            opening += said
        found = Rendering(what, content, reasoning, tuple(calls), tools, thinking, opening, wire)
        self.asked[key] = found
        return found

    @cached
    def _beside(self) -> list[dict[str, Any]] | None:
        """The tools of the renderings with which answers are compared: the stand-in's, whatever tools an answer needs.
        None if the template writes tools after a question, where other tools make another text."""
        try:
            asked = self.template.shown(_HISTORY, tools=TOOLS, add_generation_prompt=True)
            shown = [asked, self.template.shown(ending_in("assistant"), tools=TOOLS)]
        except TemplateError:
            return TOOLS
        ends = (max((span.end for span in trace.of(0)), default=0) for trace in shown)
        after = (trace.text[end:] for trace, end in zip(shown, ends, strict=True))
        return None if any(NAME in text for text in after) else TOOLS

    def shown(self, what: str, **question: Any) -> Rendering | None:
        """As `ask`, but also None if a part of the message is missing in the turn."""
        found = self.ask(what, **question)
        return found if found is not None and found.shows() else None

    def calling(self, what: str, **question: Any) -> Rendering | None:
        """As `ask`, each call's name once (`Rendering.masked`)."""
        found = self.ask(what, **question)
        return None if found is None else found.masked(self.closed)

    @property
    def answers(self) -> tuple[Rendering, ...]:
        """All answers so far."""
        return tuple(answer for answer in self.asked.values() if answer is not None)

    def opening(self, thinking: bool | None) -> str | None:
        """The generation prompt after a user's message; None if the template refuses."""
        try:
            return self.template.generation_prompt(_HISTORY, **self.template.thinking_kwargs(thinking))
        except TemplateError:
            return None

    def user_turn(self) -> tuple[str, str] | None:
        """The texts before and after a user's message at the end of a conversation."""
        try:
            text = self.template.probed(_HISTORY)
        except TemplateError:
            return None
        at = text.rfind(QUESTION)
        return (text[:at], text[at + len(QUESTION) :]) if at >= 0 else None

    def header(self) -> str:
        """The header of the assistant's turn: the part of the generation prompts that says whose turn it is.

        It is what all openings share, and no more than what a user's header has in the same places.
        """
        found = [text for thinking in (None, True, False) if (text := self.opening(thinking)) is not None]
        header = shared_start(*found) if found else ""
        for answer in self.answers:
            shared = shared_start(header, answer.opening)
            header = shared if shared.strip() else header
        user = self.user_turn()
        return header if user is None else _like(header, user)


def _like(header: str, user: tuple[str, str]) -> str:
    """The part of an assistant's header with the same units as the user's header, except for the role's name."""
    own, theirs = units(header), units(user[0])
    for count in range(min(len(theirs), len(own)), 0, -1):
        pairs = list(zip(own[:count], theirs[-count:], strict=True))
        differ = [pair for pair in pairs if pair[0] != pair[1]]
        if pairs[0] in differ and own[0] in theirs:
            continue
        if pairs[-1] not in differ:
            if 1 <= len(differ) <= 2:
                return "".join(own[:count])
        elif len(differ) == 1 and all(map(is_marker, differ[0])):
            return "".join(own[:count])
    return header
