"""Follows every path through a call and its arguments, to see which parts the parser reads.

Strategy: all paths are followed at once. A small state says which parts have been read so far. A choice gives the
states of all its options. A repetition is followed zero times, once and twice. A part that must come once is an error
if a path misses it or has it twice.

A call that is cut off must not pass for a whole one, nor half a name for the name. So a name, an id, and arguments
that are written one by one leave the state *open*, until text is read that ends them. The check refuses a call that
ends open.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from ..core.nodes.control import Look
from ..core.nodes.first import Paths, distinct
from ..core.wrong import wrong
from ..schema.tools import Tool
from ..values import Raw, Syntax
from . import nodes as n
from .nodes import Node, Tag
from .reading import PARTS_OF_A_CALL, Reading


def check_call(reading: Reading, node: n.Tagged) -> None:
    """Raises `DefinitionError` if a path through the call is wrong."""
    _Call(reading, node).check()


class _State(NamedTuple):
    """The parts of a call or of an argument that have been read. ``open`` names a part that could go on with the next
    character, so that text must be read after it; it is "" if no part could."""

    name: bool = False
    args: bool = False
    held: bool = False
    """The arguments came before the name, and no node has committed to the call yet."""
    open: str = ""


class _Call(Paths[_State]):
    """All paths through one call."""

    what = "a call"

    def __init__(self, reading: Reading, node: Node) -> None:
        self.reading = reading
        self.generated = reading.generated
        self.node = node
        self.rules: tuple[str, ...] = ()
        self.ruled_states: dict[tuple[str, tuple[_State, ...]], list[_State]] = {}
        """What each rule was followed to."""

    def check(self) -> None:
        node = self.node.node if isinstance(self.node, n.Tagged) else self.node
        states = self.after(node, [_State()])
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
        called = any(state.args and not state.held for state in left)
        if called and self.reading.within(node.node, (n.Name, n.JsonName)) is not None:
            left = [s._replace(open="what may be left out") if s.args and not s.held else s for s in left]
        return distinct([*left, *one, *two])

    def leaf(self, node: Node, paths: list[_State]) -> list[_State]:
        if isinstance(node, _READ):
            return distinct(self.read(node, state) for state in paths)
        if isinstance(node, n.Ref):
            return self.ruled(node, node.name, self.reading.rules[node.name], paths)
        if isinstance(node, (n.Think, n.Body)):
            self.stranger(node)
        if isinstance(node, n.End):
            return self.closed(paths)  # a turn that is cut off has none
        return paths if self.reading.empty(node) else self.closed(paths)

    def stranger(self, node: Node) -> NoReturn:
        wrong(node, f"it stands inside {self.what}", "write the calls one after the other, not in each other")

    def closed(self, states: list[_State]) -> list[_State]:
        return distinct(state._replace(open="") if state.open else state for state in states)

    def ruled(self, node: Node, name: str, inner: Node, states: list[_State]) -> list[_State]:
        if name in self.rules:
            if self.reading.within(inner, PARTS_OF_A_CALL) is not None:
                wrong(
                    node,
                    f"{self.what} is part of a rule that calls itself",
                    "write the name and the arguments outside it",
                )
            return states
        key = name, tuple(states)
        if key not in self.ruled_states:
            self.rules = (*self.rules, name)
            self.ruled_states[key] = self.after(inner, states)
            self.rules = self.rules[:-1]
        return self.ruled_states[key]

    def read(self, node: Node, state: _State) -> _State:
        """The state after ``node``, which is one of a call's parts or a cut."""
        if isinstance(node, (n.Cut, n.EachArg)) or (isinstance(node, n.Args) and node.commit):
            if state.open in _HEADER:
                self.unended(state.open)
            state = state._replace(held=False)
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
            return state._replace(open="p.id")
        if tag is not Tag.NAME:
            wrong(
                node, "it stands outside an argument", "put it into what make(arg) returns for p.each_arg()"
            )
        if state.name:
            wrong(node, "the call has a name already", "write the name once on each path through the call")
        if state.args and not state.held and not self.reading.generated:
            wrong(node, "the name stands after the arguments, which need it", "put it before them")
        return state._replace(name=True, open="" if isinstance(node, n.Implied) else "p.name")

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
            return state._replace(args=True, held=held, open="")
        argument = _Argument(self.reading, node)
        argument.check()
        return state._replace(args=True, open="" if argument.takes_the_rest else "p.each_arg")


_READ = (*PARTS_OF_A_CALL, n.Cut)
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
        for state in self.after(self.each, [_State()]):
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
            return state._replace(args=True, open=self.ends(node.syntax))
        if isinstance(node, n.SameName) and not isinstance(node.of, Tool):
            if not state.name:
                wrong(node, "the argument has no name yet", "put p.arg_name(arg) before p.same_name(arg)")
            return state._replace(open="")
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
        return state._replace(name=True, open="" if isinstance(node, n.Implied) else "p.arg_name")

    def ends(self, syntax: Syntax) -> str:
        """What must follow a value of ``syntax``."""
        self.takes_the_rest = self.takes_the_rest or (isinstance(syntax, Raw) and syntax.end)
        return syntax.closer
