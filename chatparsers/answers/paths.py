"""Follows every path through a call and its arguments, to see which parts the parser reads.

Strategy: all paths are followed at once. A small state says which parts have been read so far. A choice gives the
states of all its options. A repetition is followed zero times, once and twice. A part that must come once is an error
if a path misses it or has it twice.

A call that is cut off must not pass for a whole one, nor half a name for the name. So a name, an id, and arguments
that are written one by one leave the state *open*, until text is read that ends them. The check refuses a call that
ends open.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, NoReturn

from ..core.nodes.control import Look
from ..core.nodes.first import Paths, distinct
from ..core.wrong import wrong
from ..schema.tools import Tool
from ..values import Raw
from . import nodes as n
from .nodes import Node, Tag
from .reading import PARTS_OF_A_CALL, Reading


def check_call(reading: Reading, node: n.Tagged) -> None:
    """Raises `DefinitionError` if a path through the call is wrong."""
    call = _Call(reading, node)
    states = call.after(node.node, [_State()])
    for state in states:
        call.ended(state)
    whole = all if reading.generated else any
    if not whole(state.value for state in states):
        wrong(node.node, "the call has no arguments", "write p.args(tool) or p.each_arg(tool, …) into it")


class _State(NamedTuple):
    """The parts of a call, or of an argument, that have been read. ``open`` names a part that could go on with the next
    character, so that text must be read after it; it is "" if no part could."""

    name: bool = False
    value: bool = False
    """Of a call: its arguments."""
    held: bool = False
    """The arguments came before the name, and no node has committed to the call yet."""
    open: str = ""


class _Named(Paths[_State]):
    """All paths through a call or an argument: a name, then its value."""

    what = holds = name = value = ""
    """What it is, what it holds, and how authors write its name and that."""

    def __init__(self, reading: Reading, node: Node) -> None:
        self.reading = reading
        self.generated = reading.generated
        self.node = node
        self.rules: tuple[str, ...] = ()
        self.ruled_states: dict[tuple[str, tuple[_State, ...]], list[_State]] = {}
        """What each rule was followed to."""

    @abstractmethod
    def read(self, node: Node, state: _State) -> _State:
        """The state after ``node``, which is a part of a call or a cut."""

    def named(self, node: Node, state: _State, late: bool = False) -> _State:
        """The state after the name. ``late``: the value may come before it."""
        if state.name:
            wrong(node, f"{self.what} has a name already", f"write {self.name} once on each path through it")
        if state.value and not late:
            wrong(node, f"the name stands after the {self.holds}", f"put it before {self.value}")
        return state._replace(name=True, open="" if isinstance(node, n.Implied) else self.name)

    def valued(self, node: Node, state: _State, late: bool = False) -> _State:
        """The state after the value. ``late``: the name may come after it."""
        if state.value:
            what = f"{self.what} has its {self.holds} already"
            wrong(node, what, f"write {self.value} once on each path through it")
        if not (state.name or late):
            wrong(node, f"{self.what} has no name yet, and needs it here", f"put {self.name} before it")
        return state._replace(value=True)

    def committed(self, state: _State) -> _State:
        """The state after a commitment: what comes then is no prose, so the name must be whole."""
        if state.open in _HEADER:
            self.unended(state.open)
        return state._replace(held=False)

    def ended(self, state: _State) -> None:
        """Checks the state at the end."""
        if not state.name:
            what = f"{self.what} has no name on one of the paths through it"
            wrong(self.node, what, f"write {self.name} there")

    def unended(self, what: str) -> None:
        """Refuses a call in which half of ``what`` would pass for the whole. Only the parser can meet half of it,
        because the grammar writes all of it."""
        if not self.generated:
            mend = (
                """put a marker after it; where none is written, what must follow: p.reads("", p.peek("{"))"""
            )
            wrong(self.node, f"nothing ends {what}, so a half of it would pass for the whole", mend)

    def inner(self, node: n.Inner, paths: list[_State]) -> list[_State]:
        if isinstance(node, (n.EachTool, n.Calls)) or (isinstance(node, n.Tagged) and node.tag is Tag.CALL):
            self.stranger(node)
        if isinstance(node, n.Rule):
            return self.ruled(node, node.name, node.node, paths)
        return super().inner(node, paths)

    def look(self, node: Look, paths: list[_State]) -> list[_State]:
        return paths if isinstance(node, n.Not) else self.after(node.node, paths)

    def repeat(self, node: n.Many, paths: list[_State]) -> list[_State]:
        one = self.after(node.node, paths)
        two = one if node.most == 1 else self.after(node.node, one)
        left = [] if node.least else paths
        called = any(state.value and not state.held for state in left)
        if called and self.reading.within(node.node, (n.Name, n.JsonName)) is not None:
            left = [s._replace(open="what may be left out") if s.value and not s.held else s for s in left]
        return distinct([*left, *one, *two])

    def leaf(self, node: Node, paths: list[_State]) -> list[_State]:
        if isinstance(node, (*PARTS_OF_A_CALL, n.Cut)):
            return distinct(self.read(node, state) for state in paths)
        if isinstance(node, n.Ref):
            return self.ruled(node, node.name, self.reading.rules[node.name], paths)
        if isinstance(node, (n.Think, n.Body)):
            self.stranger(node)
        if self.reading.empty(node) and not isinstance(node, n.End):  # a turn that is cut off has no end
            return paths
        return distinct(state._replace(open="") for state in paths)

    def stranger(self, node: Node) -> NoReturn:
        what = f"it stands inside {self.what}"
        wrong(node, what, "write the calls one after the other, not in each other")

    def ruled(self, node: Node, name: str, inner: Node, states: list[_State]) -> list[_State]:
        if name in self.rules:
            if self.reading.within(inner, PARTS_OF_A_CALL) is not None:
                what = f"{self.what} is part of a rule that calls itself"
                wrong(node, what, "write the name and the arguments outside it")
            return states
        key = name, tuple(states)
        if key not in self.ruled_states:
            self.rules = (*self.rules, name)
            self.ruled_states[key] = self.after(inner, states)
            self.rules = self.rules[:-1]
        return self.ruled_states[key]


class _Call(_Named):
    what, holds, name, value = "the call", "arguments", "p.name(tool)", "p.args or p.each_arg"

    def read(self, node: Node, state: _State) -> _State:
        if isinstance(node, n.Cut):
            return self.committed(state)
        if isinstance(node, n.Args):
            state = self.committed(state) if node.commit else state._replace(held=True)
            state = self.valued(node, state, self.generated or not node.commit)
            return state._replace(open="")
        if isinstance(node, n.EachArg):
            state = self.valued(node, self.committed(state), self.generated)
            argument = _Argument(self.reading, node)
            for each in argument.after(argument.each, [_State()]):
                argument.ended(each)
            return state._replace(open="" if argument.takes_the_rest else "p.each_arg")
        if isinstance(node, n.Declared) and not state.name:
            wrong(node, "no name has been read before it", f"put it after {self.name}")
        if isinstance(node, n.Declared) or (isinstance(node, n.SameName) and isinstance(node.of, Tool)):
            return state
        tag = getattr(node, "tag", Tag.NAME if isinstance(node, n.Header) else None)
        if tag is Tag.ID:
            return state._replace(open="p.id")
        if tag is not Tag.NAME:
            mend = "put it into what make(arg) returns for p.each_arg()"
            wrong(node, "it stands outside an argument", mend)
        return self.named(node, state, state.held or self.generated)

    def ended(self, state: _State) -> None:
        super().ended(state)
        if state.open == "p.each_arg" and not self.generated:
            what = "the call ends with its arguments, so a call that is cut off would pass for a whole one"
            mend = "put the closer into the call, after p.each_arg, and not after p.each_tool; if there is none, "
            wrong(self.node, what, mend + """what must follow: p.reads("", p.peek("…"))""")
        if state.open or state.held:
            self.unended(state.open or self.name)


class _Argument(_Named):
    what, holds, name, value = "the argument", "value", "p.arg_name(arg)", "p.value(arg, …)"
    takes_the_rest = False

    def __init__(self, reading: Reading, node: n.EachArg) -> None:
        super().__init__(reading, node)
        self.separated = node.separator is not None and not reading.empty(node.separator)
        self.each = reading.each(node)
        if node.separator is not None and reading.within(node.separator, PARTS_OF_A_CALL) is not None:
            wrong(node, "a part of a call stands in its separator", "put it into what make(arg) returns")

    def read(self, node: Node, state: _State) -> _State:
        if isinstance(node, n.Cut):
            return state
        if isinstance(node, n.Value):
            self.takes_the_rest = self.takes_the_rest or (isinstance(node.syntax, Raw) and node.syntax.end)
            return self.valued(node, self.committed(state))._replace(open=node.syntax.closer)
        if isinstance(node, n.SameName) and not isinstance(node.of, Tool):
            if not state.name:
                wrong(node, "the argument has no name yet", f"put {self.name} before it")
            return state._replace(open="")
        if isinstance(node, (n.Name, n.JsonName, n.Implied)) and node.tag is Tag.ARG_NAME:
            return self.named(node, state)
        wrong(node, f"it stands inside {self.what}", f"keep to {self.name}, {self.value} and markers there")

    def ended(self, state: _State) -> None:
        if not (state.name or state.value or self.generated):
            return  # the parser reads over it
        super().ended(state)
        if not state.value:
            what = f"{self.what} has no {self.holds} on one of the paths through it"
            wrong(self.node, what, f"write {self.value} after its name")
        if state.open and not self.separated:
            what = f"the text that ends the value, {state.open}, is not read after it"
            wrong(self.node, what, f"write it after {self.value}")


_HEADER = (_Call.name, "p.id", _Argument.name)
"""The parts of which half would pass for the whole where something commits."""
