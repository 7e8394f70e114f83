"""Finds the polyfills that a template needs for a conversation, by rendering needles.

1. The conversation is reduced to its *outline*: the kinds of its messages, without repeated rounds and steps.
   Conversations of one outline need the same polyfills, so plans are kept by outline, and most requests find theirs.
2. The outline is written out as a conversation of needles and rendered with more and more polyfills, the cheapest
   first. The first rendering that shows every needle names the plan. Mostly it is the one without any polyfill.
3. If no rendering shows every needle, the plan says what is lost, so that the caller gets an error.

So no polyfill is chosen by a flag that could be wrong in some combination: the template was seen to show all of these
messages in this order.

One more question has needles: whether texts after a result (an agent's reminders) cost the running thought, or the
prompt that the engine holds. Then `round` joins the plan.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import lt
from typing import Any, NamedTuple

from ...errors import ChatParsersError
from ...kept import cached
from ..messages import reasoning_of
from ..probe.capabilities import probe_tools, shows
from .declared import ToolsAs
from .polyfills import POLYFILLS, Message, Syntax, apply, flat_tools

_KEPT = 32_768
"""The kinds in the outlines for which plans are kept, about 4 MB."""
_PROBED = ("needle_tool", "needle_word", "needledescribed")


class Kind(NamedTuple):
    """The kind of a message. ``calls`` counts only to two. ``ids``: whether the calls have ids. ``added``: a text that
    no answer parts from the result before it."""

    role: str
    text: bool = True
    calls: int = 0
    ids: bool = True
    reasoning: bool = False
    added: bool = False


Outline = tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The polyfills that a conversation needs. ``lost``: the places in the outline, and their parts that no polyfill
    could save."""

    names: tuple[str, ...]
    lost: tuple[tuple[Kind, str], ...] = ()


class Survey:
    """The kinds of a conversation's messages.

    Conversations are long and requests many. So each kind is a character, and repetitions are found by patterns.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._signs: list[str] = []
        self._own: dict[Kind, str] = {}
        self._parts: list[int] = []
        self.add(messages)

    def add(self, messages: Iterable[Message]) -> None:
        """Looks at more messages. Raises `TypeError` if one of them is no object with a role."""
        signs = self._signs
        for message in messages:
            if type(message) is not dict and not isinstance(message, Mapping):
                raise TypeError
            role, content = message.get("role"), message.get("content")
            if type(content) is not str and content is not None:
                self._parts.append(len(signs))
            if role == "tool":
                sign = _WITH_ID if message.get("tool_call_id") else _WITHOUT_ID
            elif len(message) == 2 and type(role) is str and role in _TEXTS:
                sign = _TEXTS[role] if content else _NO_TEXTS[role]
            elif not isinstance(role, str):
                raise TypeError
            else:
                calls, ids = _calls(message)
                thought = reasoning_of(message) != ""
                if role == "assistant":
                    sign = _ASSISTANT[bool(content)][calls][ids][thought]
                else:
                    kind = Kind(role, bool(content), calls, ids, thought)
                    sign = _SIGNS.get(kind) or self._own.setdefault(kind, chr(_OTHERS + len(self._own)))
            if signs and signs[-1] in _ROUND_GOES_ON:
                sign = _ADDED.get(sign, sign)
            signs.append(sign)

    def keep(self, number: int) -> None:
        """Forgets all messages but that many first ones."""
        del self._signs[number:]
        self._parts = [place for place in self._parts if place < number]

    @property
    def parts(self) -> bool:
        """Whether some content is no text."""
        return bool(self._parts)

    def outline(self) -> Outline:
        """The kinds, without repeated rounds and steps.

        A step is a message with the results that answer it. Two results stand for more, and two steps that are alike
        stand for more. A user message after an assistant's begins a round, and texts after results belong to theirs.
        Rounds are shown once, and the last one at the end. The system's messages at the start belong to no round, as
        later ones are something else.
        """
        signs = _MORE_ADDED.sub(r"\1\1", _RESULTS.sub(r"\1", "".join(self._signs)))
        start = len(signs) - len(signs.lstrip(_SYSTEMS))
        rounds = _ROUND.findall(signs[start:])
        told = {round: _STEPS.sub(r"\1\1", round) for round in dict.fromkeys(rounds)}
        kept = list(dict.fromkeys(told.values()))
        if kept and kept[-1] != told[rounds[-1]]:
            kept.append(told[rounds[-1]])
        kinds = {sign: kind for kind, sign in self._own.items()}
        return tuple(_KINDS.get(sign) or kinds[sign] for sign in signs[:start] + "".join(kept))


def _calls(message: Message) -> tuple[int, bool]:
    """The number of calls, counted to two, and whether they have ids."""
    calls = message.get("tool_calls")
    if not calls:
        return 0, True
    if not isinstance(calls, (list, tuple)):
        return 1, False
    for call in calls:
        if isinstance(call, Mapping) and call.get("id"):
            return min(len(calls), 2), True
    return min(len(calls), 2), False


_ASSISTANTS, _TOOLS, _AFTER, _OTHERS = 0xE000, 0xE100, 0xE200, 0xE300
_WITH_ID, _WITHOUT_ID = chr(_TOOLS), chr(_TOOLS + 1)
_BOTH = (False, True)
_KINDS = {
    **{
        chr(_ASSISTANTS + number): Kind("assistant", *fields)
        for number, fields in enumerate(product(_BOTH, range(3), _BOTH, _BOTH))
    },
    _WITH_ID: Kind("tool"),
    _WITHOUT_ID: Kind("tool", ids=False),
    **{
        sign: Kind(role, text)
        for role, both in {"user": "uU", "system": "sS", "developer": "dD"}.items()
        for text, sign in zip(_BOTH, both, strict=True)
    },
    **{
        chr(_AFTER + number): Kind(role, text, added=True)
        for number, (role, text) in enumerate(product(("user", "system", "developer"), _BOTH))
    },
}
"""The signs of the usual kinds. All others get signs of their own in each outline, from ``_OTHERS`` on."""
_SIGNS = {kind: sign for sign, kind in _KINDS.items()}
_NO_TEXTS, _TEXTS = (
    {role: _SIGNS[Kind(role, text)] for role in ("user", "assistant", "system", "developer")}
    for text in _BOTH
)
_ASSISTANT = [
    [
        [[_SIGNS[Kind("assistant", text, calls, ids, thought)] for thought in _BOTH] for ids in _BOTH]
        for calls in range(3)
    ]
    for text in _BOTH
]
_ADDED = {_SIGNS[kind._replace(added=False)]: sign for sign, kind in _KINDS.items() if kind.added}
_ROUND_GOES_ON = frozenset((_WITH_ID, _WITHOUT_ID, *_ADDED.values()))
_SYSTEMS = "".join(_SIGNS[Kind(role, text)] for role in ("system", "developer") for text in _BOTH)
_A, _T, _X = (f"{chr(first)}-{chr(first + 0xFF)}" for first in (_ASSISTANTS, _TOOLS, _AFTER))
_RESULTS = re.compile(f"([{_T}]{{2}})[{_T}]+")
_MORE_ADDED = re.compile(rf"([{_X}])\1{{2,}}")
_ROUND = re.compile(f"[^{_A}{_T}{_X}]*[{_A}{_T}{_X}]+|[^{_A}{_T}{_X}]+")
_STEPS = re.compile(rf"([^{_T}{_X}][{_T}]{{0,2}}[{_X}]*)(?:\1){{2,}}(?![{_T}{_X}])")


Render = Callable[[Sequence[Message], "list[dict[str, Any]] | None"], str]
"""Renders messages with tools. Raises `TemplateError`."""


class Planner:
    """Finds and keeps the plans of one template and one syntax of calls.

    ``render`` renders with the template. ``knows_results``: whether the template shows results on purpose; if not, it
    prints their role by accident. ``reads_back``: whether a call written as text is read back from a rendering.
    ``teaches``: whether the prompt tells tools and calls in the syntax even if the template shows tools. ``thinking``:
    as ``render``, with thoughts switched on.
    """

    def __init__(
        self,
        render: Render,
        syntax: Syntax,
        *,
        thinking: Render,
        knows_results: Callable[[], bool],
        reads_back: Callable[[], bool],
        tools_as: ToolsAs = "json",
        teaches: Callable[[], bool] = lambda: False,
    ) -> None:
        self._render = render
        self._thinking = thinking
        self._syntax = syntax
        self._knows_results = knows_results
        self._reads_back = reads_back
        self._tools_as = tools_as
        self._teaches = teaches
        self._plans: dict[tuple[Outline, bool, frozenset[str]], Plan] = {}
        self._rounds: dict[tuple[tuple[str, ...], Outline, bool], bool] = {}
        self._kinds = 0  # in the outlines of the plans

    def plan(self, shape: Outline, tools: bool, allowed: frozenset[str]) -> Plan:
        """The plan for conversations of this outline, made only of ``allowed`` polyfills."""
        key = shape, tools, allowed
        found = self._plans.get(key)
        if found is None:
            found = self._find(shape, tools, allowed)
            self._kinds += len(shape) + 8
            if self._kinds > _KEPT:
                self._plans, self._kinds = {}, len(shape) + 8
            self._plans[key] = found
        return found

    def _find(self, shape: Outline, tools: bool, allowed: frozenset[str]) -> Plan:
        messages, needles = _written(shape)
        best: Plan | None = None
        seen: set[bytes] = set()
        for names in self._candidates(shape, tools, allowed):
            if "tool_calls" in names and not self._reads_back():
                continue
            text = self._try(names, messages, tools, seen)
            if text is None:
                continue
            printed = self._printed
            lost = [(kind, what) for kind, what, words in needles if not _all_there(text, words, printed)]
            if tools and not shows(text, *_PROBED):
                lost.append((Kind("tools"), "tools"))
            if not lost:
                if "round" not in names and self._breaks_round(names, shape, tools, allowed):
                    together = tuple(name for name in POLYFILLS if name in {*names, "round"})
                    text = self._try(together, messages, tools, set())
                    if text is not None and all(_all_there(text, words, printed) for *_, words in needles):
                        return Plan(together)
                return Plan(names)
            if best is None or len(lost) < len(best.lost):
                best = Plan(names, tuple(lost))
        return best or Plan(())  # refused in every way: the rendering itself says why

    def _breaks_round(
        self, names: tuple[str, ...], shape: Outline, tools: bool, allowed: frozenset[str]
    ) -> bool:
        """Whether texts after results cost more of their round than they do with `round`."""
        added = tuple(dict.fromkeys(kind for kind in shape if kind.added))
        if not added or "round" not in allowed:
            return False
        key = names, added, tools
        if key not in self._rounds:
            kept = self._kept(names, (), tools)
            alone, together = (
                sum(map(lt, self._kept(way, added, tools), kept)) for way in (names, (*names, "round"))
            )
            self._rounds[key] = together < alone
        return self._rounds[key]

    def _kept(self, names: tuple[str, ...], added: Outline, tools: bool) -> list[int]:
        """What stays in a round with these texts after its results, with thoughts as usual and switched on: how many
        of its thoughts are shown, and whether its earlier prompt is a prefix."""
        step = (Kind("assistant", text=False, calls=1, reasoning=True), Kind("tool"), *added)
        messages, _ = _written((Kind("user"), *step, *step))
        kept: list[int] = []
        for render in (self._render, self._thinking):
            earlier, later = (
                self._try(names, some, tools, set(), render) or ""
                for some in (messages[: -len(step)], messages)
            )
            kept += [later.count("thoughtneedle"), bool(earlier) and later.startswith(earlier)]
        return kept

    @cached
    def _printed(self) -> tuple[str, ...]:
        """What stands before a word in a printed dict, or in JSON within a JSON string. No format means it so, unless
        it writes so itself."""
        call = {"role": "assistant", "content": "", "tool_calls": [_call("needle", 0, True)]}
        try:
            written = self._syntax.render(call)
        except ChatParsersError:
            written = ""
        return tuple(form for form in ('\\"', "{'") if f"{form}needle" not in written)

    def _try(
        self,
        names: tuple[str, ...],
        messages: list[Message],
        tools: bool,
        seen: set[bytes],
        render: Render | None = None,
    ) -> str | None:
        """The rendering with these polyfills; None if the template refuses it, or if other polyfills wrote the same
        conversation before (``seen``)."""
        definitions: list[Any] = _described() if tools else []
        if "flat" in names:
            definitions = flat_tools(definitions)
        try:
            given = apply(names, messages, definitions, self._syntax, self._tools_as)
            shown = None if "tools" in names else definitions or None
            key = marshal.dumps((given, shown), 2)
            if key in seen:
                return None
            seen.add(key)
            return (render or self._render)(given, shown)
        except ChatParsersError:
            return None

    def _candidates(self, shape: Outline, tools: bool, allowed: frozenset[str]) -> Iterable[tuple[str, ...]]:
        """Sets of polyfills, those first that change least."""
        roles = {kind.role for kind in shape}
        calls = any(kind.calls for kind in shape)
        choices: list[list[tuple[int, tuple[str, ...]]]] = [[(0, ()), (1, ("alternation",))]]
        if "developer" in roles:
            choices.append([(0, ()), (1, ("developer_role",))])
        if any(kind.added for kind in shape):
            choices.append([(0, ()), (1, ("round",))])
        if tools:
            choices.append([(16 if self._teaches() else 0, ()), (8, ("tools",))])
        if tools or calls:
            choices.append([(0, ()), (1, ("flat",))])
        if tools or roles & {"system", "developer"}:
            several, late = "several_systems", "late_system"
            ways = [(0, ()), (1, (several,)), (1, (late,)), (2, (several, late)), (2, ("system_role",))]
            choices.append(ways)
        if calls:
            before, apart, single = "text_before_calls", "text_beside_calls", "parallel_calls"
            split = [(0, ()), (3, (single,)), (4, (apart,)), (5, (apart, single))]
            as_text = [(cost + 2, ("tool_calls", *names)) for cost, names in split]
            choices.append([*split, (1, (before,)), (3, (before, single)), *as_text])
        if "tool" in roles:
            by_accident = not self._knows_results()
            choices.append([(3 if by_accident else 0, ()), (2, ("tool_role",))])
        ranked = sorted(
            (sum(cost for cost, _ in ways), tuple(name for _, names in ways for name in names))
            for ways in product(*choices)
        )
        for _, names in ranked:
            if allowed.issuperset(names):
                yield tuple(name for name in POLYFILLS if name in names)


def _described() -> list[dict[str, Any]]:
    """The probe's tool, with a needle in each of its fields."""
    tool = probe_tools()[0]
    function = {**tool["function"], "description": "needledescribed"}
    schema = {"type": "string", "description": "w"}
    function["parameters"] = {
        "type": "object",
        "properties": {"needle_word": schema},
        "required": ["needle_word"],
    }
    return [{**tool, "function": function}]


def _written(shape: Outline) -> tuple[list[Message], list[tuple[Kind, str, tuple[str, ...]]]]:
    """The outline as messages, each with its description and the needles that must come out."""
    messages: list[Message] = []
    needles: list[tuple[Kind, str, tuple[str, ...]]] = []
    open_calls: list[dict[str, Any]] = []
    for place, kind in enumerate(shape):
        word = f"needle{_letters(place)}"
        message: dict[str, Any] = {"role": kind.role, "content": f"{word}text" if kind.text else ""}
        if kind.text:
            needles.append((kind, "text", (f"{word}text",)))
        if kind.reasoning:
            message["reasoning_content"] = f"thought{word}"
        if kind.calls:
            message["tool_calls"] = open_calls = [_call(word, n, kind.ids) for n in range(kind.calls)]
            open_calls = list(open_calls)
            for call in message["tool_calls"]:
                (key, value), name = (
                    next(iter(call["function"]["arguments"].items())),
                    call["function"]["name"],
                )
                needles.append((kind, "a call", (name, key, value)))
        elif kind.role == "tool" and open_calls:
            call = open_calls.pop(0)
            message["name"] = call["function"]["name"]
        messages.append(message)
    return messages, needles


def _call(word: str, number: int, id: bool) -> dict[str, Any]:
    letter = "pq"[number]
    function = {
        "name": f"{word}_{letter}_called",
        "arguments": {f"{word}_{letter}_key": f"{word}{letter}value"},
    }
    call: dict[str, Any] = {"type": "function", "function": function}
    return {"id": f"call-of-some-form-{word}{letter}", **call} if id else call


def _all_there(text: str, words: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Whether all words come out, and none of them ``printed``."""
    return shows(text, *words) and not any(form + word in text for word in words for form in printed)


def _letters(number: int) -> str:
    """A word for a number that no other number's word begins with."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number)) + "x"
