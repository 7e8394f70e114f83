"""Finds the polyfills that a template needs for a conversation, by rendering stand-ins.

1. The conversation is reduced to its `outline`. Conversations of one outline need the same polyfills, so plans are kept
   by outline, and most requests find theirs.
2. The outline is written out as a conversation of stand-ins and rendered with more and more polyfills, the cheapest
   first. The first rendering whose trace shows every text names the plan. Mostly it is the one without any polyfill.
3. A rendering that fails rules out others. Its trace says which part is lost: other polyfills are tried only if they
   may change how this part is shown. A refusal does not say why, so the beginning of the conversation is planned, and
   what fails there fails here.
4. If no rendering shows every text, the plan says what is lost, so that the caller gets an error.

So no polyfill is chosen by a flag that could be wrong in some combination: the template was seen to show all of these
messages in this order.

One more question has stand-ins: whether texts beside a result (an agent's reminders) cost the running thought, or the
prompt that the engine holds. Then `round` joins the plan. A user's own message after a result is a new question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, product
from operator import lt
from typing import Any, NamedTuple

from ...answers.format import Format
from ...errors import ChatParsersError
from ...kept import Kept, cached, cached_method
from ..probe.capabilities import PRINTED, shows, shows_call
from ..probe.edges import edges_of
from ..probe.stand_ins import (
    ANSWER,
    DESCRIPTION,
    FOREIGN_IDS,
    FOUND,
    KEY,
    NAME,
    QUESTION,
    SYSTEM,
    THOUGHT,
    TOOLS,
    VALUE,
    answer,
    call_of,
    question,
    results,
)
from ..probed import Rewrite
from ..render import Template
from ..trace import Trace
from .declared import ToolsAs
from .outline import BESIDE_RESULT, Kind, Message, Outline
from .polyfills import POLYFILLS, apply, flat_tools

_KEPT = 32_768
"""The kinds in the outlines for which plans are kept, about 4 MB; what was ruled out counts as eight."""
_BEGINNINGS = 4
"""How many beginnings of a conversation are planned where it is refused: a stranger's may have many."""
_SYSTEMS = frozenset({"developer_role", "several_systems", "late_system", "system_role"})
_CALLS = frozenset({"text_before_calls", "text_beside_calls", "parallel_calls", "tool_calls"})
_AROUND = frozenset({"round", "question_in_result", "alternation"})
_ROLE = "needlerole"
_CHANGES = {
    "tools": _SYSTEMS | {"tools", "flat"},
    "a call": _CALLS | {"tools", "flat", "alternation"},
    "system": _SYSTEMS | _AROUND | {"tools"},
    "developer": _SYSTEMS | _AROUND | {"tools"},
    "user": _SYSTEMS | _AROUND | {"tool_role"},
    "assistant": _CALLS | _AROUND,
    "tool": _CALLS | _AROUND | {"tool_role"},
}
"""The polyfills that may change how a part is shown: the tools, a call, or the text of a role."""

_Choice = tuple[int, tuple[str, ...]]
"""What some polyfills cost, and their names."""
Lost = Sequence[tuple[Kind, str]]
"""The kinds of messages of which a part is not shown, with the part."""
Ruled = tuple[frozenset[str], frozenset[str]]
"""Some polyfills, and those of them with which a rendering fails, whatever the other polyfills are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The polyfills that a conversation needs. ``lost``: the places in the outline, and their parts that no polyfill
    could save. ``out``: what was ruled out on the way."""

    names: tuple[str, ...]
    lost: Lost = ()
    out: tuple[Ruled, ...] = ()


class Way(NamedTuple):
    """A conversation as some polyfills write it. ``given``: what the template gets of the messages."""

    messages: Sequence[Message]
    given: Sequence[Message]
    tools: Sequence[Message] | None
    rewrite: Rewrite | None


class Planner:
    """Finds and keeps the plans of one template and one syntax of calls; its parameters are those of `Renderer`."""

    def __init__(self, template: Template, syntax: Format, tools_as: ToolsAs, calls_known: bool) -> None:
        self._template = template
        self._syntax = syntax
        self._tools_as = tools_as
        self._calls_known = calls_known
        self._plans: Kept[Plan] = Kept(_KEPT, largest=_KEPT)

    def plan(self, shape: Outline, tools: bool, allowed: frozenset[str]) -> Plan:
        """The plan for conversations of this outline, made only of ``allowed`` polyfills."""
        key = shape, tools, allowed
        found = self._plans.get(key)
        if found is None:
            found = self._find(shape, tools, allowed)
            self._plans.add(key, found, len(shape) + 8 * (1 + len(found.out)))
        return found

    def _find(self, shape: Outline, tools: bool, allowed: frozenset[str]) -> Plan:
        messages = written(shape)
        candidates = self._candidates(shape, tools, allowed)
        every = frozenset(name for names in candidates for name in names)
        best: Plan | None = None
        out: list[Ruled] = []
        first = True
        for guided in (True, False):  # if nothing saves all, the least loss is looked for everywhere
            for names in candidates:
                chosen = frozenset(names)
                if guided and any(chosen & some == same for some, same in out):
                    continue
                if "tool_calls" in names and not self._reads_back:
                    continue
                found = self._try(names, messages, tools)
                lost = None if found is None else self._lost(found, shape, tools)
                if first and lost != []:
                    out += self._ruled_before(shape, tools, allowed)
                first = False
                if lost is None:
                    out.append((every, chosen))
                    continue
                if not lost:
                    names = self._with_round(names, shape, tools, allowed)
                    return Plan(names, (), tuple(out) if guided else ())
                if not guided and (best is None or len(lost) < len(best.lost)):
                    best = Plan(names, tuple(lost))
                parts = (every & _changing(*part, names) for part in lost)
                out += ((some, chosen & some) for some in parts)
        return best or Plan(())  # refused in every way: the rendering itself says why

    def _ruled_before(self, shape: Outline, tools: bool, allowed: frozenset[str]) -> Iterable[Ruled]:
        """What is ruled out by beginnings of the conversation, each up to a question or a result that an answer
        follows. The shortest is planned first, as it helps to plan the next."""
        pairs = enumerate(pairwise(shape), 1)
        places = (place for place, (asked, said) in pairs if said.role == "assistant" != asked.role)
        out: Iterable[Ruled] = ()
        for place in islice(places, _BEGINNINGS):
            out = self.plan(shape[:place], tools, allowed).out
        return out

    def _with_round(
        self, names: tuple[str, ...], shape: Outline, tools: bool, allowed: frozenset[str]
    ) -> tuple[str, ...]:
        """The polyfills of a plan, with `round` if it keeps more of the round and loses nothing."""
        added = tuple(dict.fromkeys(kind for kind in shape if kind.in_round))
        wanted = added and "round" in allowed and "round" not in names
        if not wanted or not self._breaks_round(names, added, tools):
            return names
        together = tuple(name for name in POLYFILLS if name in {*names, "round"})
        found = self._try(together, written(shape), tools)
        return together if found is not None and not self._lost(found, shape, tools) else names

    @cached_method
    def _breaks_round(self, names: tuple[str, ...], added: Outline, tools: bool) -> bool:
        """Whether texts after results cost more of their round than they do with `round`."""
        kept = self._kept(names, (), tools)
        alone, together = (
            sum(map(lt, self._kept(way, added, tools), kept)) for way in (names, (*names, "round"))
        )
        return bool(together < alone)

    def _kept(self, names: tuple[str, ...], added: Outline, tools: bool) -> list[int]:
        """What stays in a round with these texts after its results, with thoughts as usual and switched on: how many
        of its thoughts are shown, and whether its earlier prompt is a prefix."""
        step = (Kind("assistant", text=False, calls=1, reasoning=True), Kind("tool"), *added)
        messages = written((Kind("user"), *step, *step))
        kept: list[int] = []
        for thinking in (None, True):
            earlier, later = (
                self._try(names, some, tools, thinking) for some in (messages[: -len(step)], messages)
            )
            thoughts = {span.message for span in later.spans if span.field == "reasoning"} if later else ()
            held = earlier is not None and later is not None and later.text.startswith(earlier.text)
            kept += [len(thoughts), held]
        return kept

    def _lost(self, found: Trace, shape: Outline, tools: bool) -> Lost:
        """The parts of an outline's messages that a rendering does not show as they are."""
        lost: list[tuple[Kind, str]] = []
        for place, kind in enumerate(shape):
            if kind.text and not shows(found, place, _words(kind)):
                lost.append((kind, "text"))
            calls = (shows_call(found, place, number, self._printed) for number in range(kind.calls))
            lost += ((kind, "a call") for shown in calls if not shown)
        if tools and not all(word in found.own for word in (NAME, KEY, DESCRIPTION)):
            lost.append((Kind("tools"), "tools"))
        return lost

    @cached
    def _printed(self) -> tuple[str, ...]:
        """What a printed dict has, and JSON within a JSON string. No format means it so, unless it writes so itself."""
        try:
            written = self._syntax.render(answer("", calls=1), TOOLS)
        except ChatParsersError:
            written = ""
        return tuple(text for text in PRINTED if text not in written)

    def way(self, names: Sequence[str], messages: Sequence[Message], tools: bool) -> Way:
        """The conversation that these polyfills write. Raises `ChatParsersError` if one of them cannot write it."""
        definitions: Sequence[Message] = TOOLS if tools else ()
        if "flat" in names:
            definitions = flat_tools(definitions)

        def rewrite(given: Sequence[Message]) -> Sequence[Message]:
            return apply(names, given, definitions, self._syntax, self._tools_as)

        shown = None if "tools" in names else definitions or None
        given = rewrite(messages)
        return Way(messages, given, shown, rewrite if given != messages else None)

    def rendered(self, way: Way, generate: bool = True, **variables: Any) -> Trace:
        """Its rendering, traced. Raises `TemplateError` if the template refuses it."""
        return self._template.shown(
            way.messages, tools=way.tools, add_generation_prompt=generate, rewrite=way.rewrite, **variables
        )

    def _try(
        self,
        names: tuple[str, ...],
        messages: list[Message],
        tools: bool,
        thinking: bool | None = None,
        generate: bool = True,
    ) -> Trace | None:
        """The rendering of messages that these polyfills write; None if one of them or the template refuses them."""
        try:
            variables = self._template.thinking_kwargs(thinking)
            return self.rendered(self.way(names, messages, tools), generate, **variables)
        except ChatParsersError:
            return None

    @cached
    def knows_results(self) -> bool:
        """Whether the template has a place for results, and does not just print any role's name."""
        if self._template.can.tools or self._template.can.tool_calls:
            return True
        history: list[Message] = [question(), answer()]
        result = results(1)[0]
        found = self._try((), [*history, result], False)
        if not shows(found, 2, FOUND):
            return False
        other = self._try((), [*history, {**result, "role": _ROLE}], False)
        named = "" if other is None else other.text
        for spelt in (str.lower, str.title, str.upper):
            named = named.replace(spelt(_ROLE), spelt("tool"))
        return found is not None and found.text != named

    @cached
    def _teaches(self) -> bool:
        """Whether nothing tells how the model would write a call: the template does as if there were none. Then the
        prompt tells tools and calls in the syntax, even if the template shows tools."""
        if self._calls_known:
            return False
        call = {**call_of(), **call_of()["function"]}
        messages: Iterator[list[Message]]
        messages = ([question(), {**answer(), **more}] for more in ({}, {"tool_calls": [call]}))
        without, with_call = (self._try((), each, True, generate=False) for each in messages)
        return with_call is None or (without is not None and with_call.text == without.text)

    @property
    def _reads_tools(self) -> bool:
        """Whether the template may show tools: one may do so beside a system message alone."""
        return not self._template.variables.isdisjoint(("tools", "functions"))

    @cached
    def _reads_back(self) -> bool:
        """Whether a call that is in the text of an assistant's message is read as that call."""
        tools = [TOOLS[0]["function"]]
        try:
            text = self._syntax.render(answer("", calls=1), tools)
            turn = self._template.exchange(answer(text), history=[question()])
            prefix = edges_of(self._syntax).opening(turn[1])
            found = self._syntax.bind(tools=tools, prefix=prefix).parse(turn[2])
        except ChatParsersError:
            return False
        return [call.name for call in found.tool_calls] == [NAME] and VALUE not in found.content

    def _candidates(self, shape: Outline, tools: bool, allowed: frozenset[str]) -> Sequence[tuple[str, ...]]:
        """Sets of polyfills, those first that change least."""
        roles = {kind.role for kind in shape}
        calls = any(kind.calls for kind in shape)
        choices: list[list[_Choice]] = [[(0, ()), (1, ("alternation",))]]
        if "developer" in roles:
            choices.append([(0, ()), (1, ("developer_role",))])
        if any(kind.in_round for kind in shape):
            choices.append([(0, ()), (1, ("round",))])
        if any(kind.added and not kind.in_round for kind in shape):
            choices.append([(0, ()), (1, ("question_in_result",))])
        if tools:
            untold = self._teaches or not self._reads_tools
            choices.append([(16 if untold else 0, ()), (8, ("tools",))])
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
            choices.append([(0 if self.knows_results else 3, ()), (2, ("tool_role",))])
        return _ranked(tuple(map(tuple, choices)), allowed)


@lru_cache(maxsize=32)  # of some hundred sets each
def _ranked(choices: tuple[tuple[_Choice, ...], ...], allowed: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    """Every way to choose one of each, by what it costs all together, of those that take ``allowed`` polyfills only."""
    ranked = sorted(
        (sum(cost for cost, _ in ways), tuple(name for _, names in ways for name in names))
        for ways in product(*([way for way in some if allowed.issuperset(way[1])] for some in choices))
    )
    return tuple(tuple(name for name in POLYFILLS if name in names) for _, names in ranked)


def _changing(kind: Kind, what: str, names: tuple[str, ...]) -> frozenset[str]:
    """The polyfills that may change how a part is shown, which a rendering with ``names`` has lost."""
    if what == "tools" and "tools" in names:  # a system message describes them
        return _CHANGES["system"]
    return _CHANGES.get(kind.role if what == "text" else what, frozenset(POLYFILLS))


def _words(kind: Kind) -> str:
    return {"user": QUESTION, "assistant": ANSWER, "tool": FOUND}.get(kind.role, SYSTEM)


def written(shape: Outline) -> list[Message]:
    """The outline as messages."""
    messages: list[Message] = []
    waiting = 0  # calls without a result
    for kind in shape:
        message: dict[str, Any] = {"role": kind.role, "content": _words(kind) if kind.text else ""}
        if kind.reasoning:
            message["reasoning_content"] = THOUGHT
        if kind.calls:
            waiting = kind.calls
            message["tool_calls"] = answer(calls=waiting, ids=FOREIGN_IDS if kind.ids else ())["tool_calls"]
        elif kind.role == "tool" and waiting:
            waiting -= 1
            message["name"] = NAME
        if kind.beside:
            message[BESIDE_RESULT] = True
        messages.append(message)
    return messages
