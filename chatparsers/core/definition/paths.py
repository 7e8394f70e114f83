"""Follows every path through a call and its arguments, to see which parts the parser reads.

Strategy: all paths are followed at once. A small state says which parts have been read so far. A choice gives the
states of all its options. A repetition is followed zero times, once and twice. A part that must come once is an error
if a path misses it or has it twice.

A call that is cut off must not pass for a whole one, nor half a name for the name. So a name, an id, and arguments
that are written one by one leave the state *open*, until text is read that ends them. The check refuses a call that
ends open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import DefinitionError
from ...schema.tools import Tool
from ...values import Raw, Syntax
from . import nodes as n
from .nodes import Node, Tag, of_every_kind
from .reading import PARTS_OF_A_CALL, Reading
from .wrong import wrong


def check_call(reading: Reading, node: n.Tagged) -> None:
    """Raises `DefinitionError` if a path through the call is wrong."""
    _Call(reading, node).check()


@dataclass(frozen=True, slots=True)
class _State:
    """The parts of a call or of an argument that have been read. ``open`` names a part that could go on with the next
    character, so that text must be read after it; it is "" if no part could."""

    name: bool = False
    args: bool = False
    held: bool = False
    """The arguments came before the name, and no node has committed to the call yet."""
    open: str = ""


_States = tuple[_State, ...]
"""Each state once, in the order of the paths."""


def _once(states: Iterable[_State]) -> _States:
    return tuple(dict.fromkeys(states))


class _Call:
    """All paths through one call."""

    what = "a call"

    def __init__(self, reading: Reading, node: Node) -> None:
        self.reading = reading
        self.node = node
        self.rules: tuple[str, ...] = ()
        self.ruled_states: dict[tuple[str, _States], _States] = {}
        """What each rule was followed to."""

    def check(self) -> None:
        node = self.node.node if isinstance(self.node, n.Tagged) else self.node
        states = self.after(node, (_State(),))
        for state in states:
            self.ended(state)
        whole = all if self.reading.generated else any
        if not whole(state.args for state in states):
            wrong(node, "the call has no arguments", "write p.args(tool) or p.each_arg(tool, …) into it")

    def ended(self, state: _State) -> None:
        """Checks the state at the end of the call."""
        if not state.name:
            wrong(
                self.node, "the call has no name on one of the paths through it", "write p.name(tool) there"
            )
        if state.open == "p.each_arg" and not self.reading.generated:
            what = "the call ends with its arguments, so a call that is cut off would pass for a whole one"
            mend = "put the closer into the call, after p.each_arg, and not after p.each_tool; if there is none, "
            wrong(self.node, what, mend + """what must follow: p.reads("", p.peek("…"))""")
        if state.open or state.held:
            self.unended(state.open or "p.name")

    def unended(self, what: str) -> None:
        """Refuses a call in which half of ``what`` would pass for the whole. Only the parser can meet half of it,
        because the grammar writes all of it."""
        if not self.reading.generated:
            mend = (
                """put a marker after it; where none is written, what must follow: p.reads("", p.peek("{"))"""
            )
            wrong(self.node, f"nothing ends {what}, so a half of it would pass for the whole", mend)

    def after(self, node: Node, states: _States) -> _States:
        """The states that are possible after ``node``, if ``states`` are possible before it."""
        follow = _FOLLOWED.get(type(node))
        if follow is None:
            raise DefinitionError(f"{type(node).__name__} is no kind of node: use what the builder makes")
        return follow(self, node, states)

    def sequence(self, node: n.Sequence, states: _States) -> _States:
        for item in node.items:
            states = self.after(item, states)
        return states

    def choice(self, node: n.Choice, states: _States) -> _States:
        return _once(state for option in node.options for state in self.after(option, states))

    def ref(self, node: n.Ref, states: _States) -> _States:
        return self.ruled(node, node.name, self.reading.rules[node.name], states)

    def rule(self, node: n.Rule, states: _States) -> _States:
        return self.ruled(node, node.name, node.node, states)

    def peek(self, node: n.Peek, states: _States) -> _States:
        return states if self.reading.empty(node.node) else self.closed(states)

    def negate(self, node: n.Not, states: _States) -> _States:
        return states

    def stranger(self, node: Node, states: _States) -> _States:
        wrong(
            node,
            f"it stands inside {self.what}",
            "write the calls one after the other, not in each other",
        )

    def tagged(self, node: n.Tagged, states: _States) -> _States:
        return self.stranger(node, states) if node.tag is Tag.CALL else self.after(node.node, states)

    def inner(self, node: n.Atomic | n.Inner, states: _States) -> _States:
        return self.after(node.inner(self.reading.generated), states)

    def part(self, node: Node, states: _States) -> _States:
        return _once(self.read(node, state) for state in states)

    def text(self, node: Node, states: _States) -> _States:
        return states if self.reading.empty(node) else self.closed(states)

    def closed(self, states: _States) -> _States:
        return _once(replace(state, open="") for state in states)

    def repeated(self, node: n.Many, states: _States) -> _States:
        once = self.after(node.node, states)
        twice = once if node.most == 1 else self.after(node.node, once)
        left = states if node.least == 0 else ()
        if self.reading.within(node.node, (n.Name, n.JsonName)) is not None:
            left = tuple(
                replace(s, open="what may be left out") if s.args and not s.held else s for s in left
            )
        return _once((*left, *once, *twice))

    def ruled(self, node: Node, name: str, inner: Node, states: _States) -> _States:
        if name in self.rules:
            if self.reading.within(inner, PARTS_OF_A_CALL) is not None:
                wrong(
                    node,
                    f"{self.what} is part of a rule that calls itself",
                    "write the name and the arguments outside it",
                )
            return states
        if (name, states) not in self.ruled_states:
            self.rules = (*self.rules, name)
            self.ruled_states[name, states] = self.after(inner, states)
            self.rules = self.rules[:-1]
        return self.ruled_states[name, states]

    def read(self, node: Node, state: _State) -> _State:
        """The state after ``node``, which is one of a call's parts or a cut."""
        if isinstance(node, (n.Cut, n.EachArg)) or (isinstance(node, n.Args) and node.commit):
            if state.open in _HEADER:
                self.unended(state.open)
            state = replace(state, held=False)
        if isinstance(node, n.Declared) and not state.name:
            wrong(node, "no name has been read before it", "put it after p.name(tool)")
        if isinstance(node, (n.Args, n.EachArg)):
            return self.arguments(node, state)
        if isinstance(node, (n.Cut, n.Declared)) or (
            isinstance(node, n.SameName) and isinstance(node.of, Tool)
        ):
            return state
        tag = getattr(node, "tag", Tag.NAME if isinstance(node, n.Header) else None)
        if tag is Tag.ID:
            return replace(state, open="p.id")
        if tag is not Tag.NAME:
            wrong(
                node, "it stands outside an argument", "put it into what make(arg) returns for p.each_arg()"
            )
        if state.name:
            wrong(node, "the call has a name already", "write the name once on each path through the call")
        if state.args and not state.held and not self.reading.generated:
            wrong(node, "the name stands after the arguments, which need it", "put it before them")
        return replace(state, name=True, open="" if isinstance(node, n.Implied) else "p.name")

    def arguments(self, node: n.Args | n.EachArg, state: _State) -> _State:
        if state.args:
            wrong(
                node,
                "the call has its arguments already",
                "write p.args or p.each_arg once on each path through it",
            )
        held = isinstance(node, n.Args) and not node.commit
        if not (state.name or held or self.reading.generated):
            wrong(node, "the call has no name yet, and the arguments need it", "put p.name(tool) before them")
        if isinstance(node, n.Args):
            return replace(state, args=True, held=held, open="")
        argument = _Argument(self.reading, node)
        argument.check()
        return replace(state, args=True, open="" if argument.takes_the_rest else "p.each_arg")


_HEADER = ("p.name", "p.id", "p.arg_name")


class _Argument(_Call):
    """All paths through one argument: its name, then its value."""

    what = "an argument"
    takes_the_rest = False

    def __init__(self, reading: Reading, node: n.EachArg) -> None:
        super().__init__(reading, node)
        self.separated = node.separator is not None and not reading.empty(node.separator)
        self.each = reading.each(node)
        if node.separator is not None and reading.within(node.separator, PARTS_OF_A_CALL) is not None:
            wrong(node, "a part of a call stands in its separator", "put it into what make(arg) returns")

    def check(self) -> None:
        for state in self.after(self.each, (_State(),)):
            if not (state.name or state.args or self.reading.generated):
                continue  # the parser reads over it
            if not state.name:
                wrong(
                    self.node,
                    "the argument has no name on one of the paths through it",
                    "write p.arg_name(arg) before its value",
                )
            if not state.args:
                wrong(
                    self.node,
                    "the argument has no value on one of the paths through it",
                    "write p.value(arg, …) after its name",
                )
            if state.open and not self.separated:
                what = f"the text that ends the value, {state.open}, is not read after it"
                wrong(self.node, what, "write it after p.value(…)")

    def read(self, node: Node, state: _State) -> _State:
        if isinstance(node, n.Cut):
            return state
        if isinstance(node, n.Value):
            if not state.name:
                wrong(node, "the argument has no name yet", "put p.arg_name(arg) before p.value(…)")
            if state.args:
                wrong(node, "the argument has a value already", "write p.value(arg, …) once")
            if state.open in _HEADER:
                self.unended(state.open)
            return replace(state, args=True, open=self.ends(node.syntax))
        if isinstance(node, n.SameName) and not isinstance(node.of, Tool):
            if not state.name:
                wrong(node, "the argument has no name yet", "put p.arg_name(arg) before p.same_name(arg)")
            return replace(state, open="")
        if not isinstance(node, (n.Name, n.JsonName, n.Implied)) or node.tag is not Tag.ARG_NAME:
            wrong(
                node,
                "it stands inside an argument",
                "keep to p.arg_name(arg), p.value(arg, …) and markers there",
            )
        if state.args:
            wrong(node, "the name stands after the value", "put it before p.value(…)")
        if state.name:
            wrong(node, "the argument has a name already", "write p.arg_name(arg) once")
        return replace(state, name=True, open="" if isinstance(node, n.Implied) else "p.arg_name")

    def ends(self, syntax: Syntax) -> str:
        """What must follow a value of ``syntax``."""
        self.takes_the_rest = self.takes_the_rest or (isinstance(syntax, Raw) and syntax.end)
        return syntax.closer


_FOLLOWED: Mapping[type[Node], Callable[[_Call, Any, _States], _States]] = of_every_kind(
    "core/definition/paths.py",
    {
        n.Leaf: _Call.text,
        **dict.fromkeys((*PARTS_OF_A_CALL, n.Cut), _Call.part),
        **dict.fromkeys((n.EachTool, n.Calls, n.Think, n.Body), _Call.stranger),
        **dict.fromkeys((n.Atomic, n.Inner), _Call.inner),
        n.Sequence: _Call.sequence,
        n.Choice: _Call.choice,
        n.Many: _Call.repeated,
        n.Ref: _Call.ref,
        n.Rule: _Call.rule,
        n.Peek: _Call.peek,
        n.Not: _Call.negate,
        n.Tagged: _Call.tagged,
    },
)
"""How each kind of node is followed."""
