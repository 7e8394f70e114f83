"""The core's own door: rules become a program, and a machine reads text by it, in pieces of any size.

docs/core.md writes a parser of JSON so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from .builder import Primitives
from .machine import instructions as m
from .machine.alphabet import Alphabet
from .machine.code import BrokenEnds, Code, Place
from .machine.compile import ROWS, Compiler
from .machine.machine import Machine as _Reader
from .nodes import Choice, Cut, End, Inner, Many, Node, Nodelike, Ref, Rule, Sequence, as_node
from .nodes.control import Wrapper
from .rules import check_left, least, rules_of
from .tree import nullable, once
from .wrong import described, wrong

_FIRST = 64
"""The first region of a name; those below are the machine's own."""


@dataclass(frozen=True, slots=True)
class Named(Wrapper, check=None):
    """The node, whose text has a name."""

    name: str
    node: Node

    def shown(self) -> str:
        return f"p.tag({self.name!r}, {described(self.node)})"


class Rules(Primitives):
    """Makes the rules of a language."""

    def tag(self, name: str, node: Nodelike) -> Node:
        """The node's text is given with ``name``."""
        return Named(name, as_node(node))


class Program(NamedTuple):
    """What `compile` makes; many machines may read by it."""

    code: m.Program
    names: tuple[str, ...]


class Failed(NamedTuple):
    """The text leaves the rules at ``position``, where ``expected`` could come. Nothing after it is given."""

    position: int
    expected: str


Found: TypeAlias = "tuple[str, str] | Failed"


def compile(tree: Nodelike) -> Program:
    """The program that reads ``tree`` and then the end of the text.

    Raises `DefinitionError` for rules that come to no end, and for a repetition of which nothing is given before all of
    it is certain: write ``p.cut()`` where the text cannot be read in another way.
    """
    whole = Sequence.of(as_node(tree), End())
    _check_silence(whole, _rules(whole), False, set())
    code = Code(Alphabet())
    fallback = code.here()
    code.emit(m.AFTER)
    start = code.here()
    compiler = _Compiler(whole, code)
    compiler.node(whole, Place(m.MARKUP, m.MARKUP, BrokenEnds()))
    code.emit(m.AFTER)
    return Program(m.Program(code.linked(), start.at, fallback.at, False, False), tuple(compiler.names))


class _Compiler(Compiler):
    def __init__(self, tree: Node, code: Code) -> None:
        super().__init__("rules", code, (tree,))
        self.names: dict[str, int] = {}
        self.rows = {**ROWS, Named: _Compiler.named}

    def named(self, node: Named, at: Place) -> None:
        region = self.names.setdefault(node.name, _FIRST + len(self.names))
        self.node(node.node, at._replace(region=region))


def _rules(tree: Node) -> dict[str, Node]:
    """The rules by their names. Refuses what repeats without reading a character, and a name without a rule."""
    nodes = [*once(tree)]
    rules = rules_of(nodes)
    blank = least(rules)
    check_left(rules, lambda node: nullable(node, blank))
    for node in nodes:
        if isinstance(node, Many) and node.most is None and nullable(node.node, blank):
            wrong(node, "what it repeats can be empty, so it has no end", "let it begin with a text")
    return rules


def _check_silence(node: Node, rules: dict[str, Node], live: bool, seen: set[tuple[str, bool]]) -> bool:
    """Whether the machine may still go back after ``node``; ``live``: whether it may before."""
    if isinstance(node, Cut):
        return False
    if isinstance(node, Sequence):
        for item in node.items:
            live = _check_silence(item, rules, live, seen)
        return live
    if isinstance(node, Choice):
        last = len(node.options) - 1
        return any(
            [
                _check_silence(one, rules, live or at < last, seen) and live
                for at, one in enumerate(node.options)
            ]
        )
    if isinstance(node, Many):
        silent = _check_silence(node.node, rules, True, seen)
        if live and silent and node.most is None:
            what = "nothing of it is told before all of it is certain"
            wrong(node, what, "commit in it, or before, with p.cut()")
        return live
    if isinstance(node, (Ref, Rule)):
        if (node.name, live) not in seen:
            seen.add((node.name, live))
            _check_silence(rules[node.name], rules, live, seen)
        return live
    if isinstance(node, Inner):
        return _check_silence(node.inner(False), rules, live, seen)
    return live


class Machine:
    """Reads one text, in pieces of any size: each cut gives the same, joined."""

    def __init__(self, program: Program) -> None:
        nothing: Any = {}
        self._names = program.names
        self._machine = _Reader(program.code, nothing)

    def feed(self, piece: str) -> list[Found]:
        """What is certain now: each text that has a name, with it; or a `Failed`."""
        return list(self._found(self._machine.feed(piece)))

    def finish(self) -> list[Found]:
        """What is left, as the text is over."""
        return list(self._found(self._machine.finish()))

    def _found(self, items: list[m.Item]) -> Iterator[Found]:
        name, text = "", ""
        for kind, raw, value in items:
            own = self._names[kind - _FIRST] if kind >= _FIRST else ""
            if own != name:
                if name and text:
                    yield name, text
                name, text = own, ""
            text += raw
            if kind == m.NOTE:
                yield Failed(value[1], value[2])
        if name and text:
            yield name, text
