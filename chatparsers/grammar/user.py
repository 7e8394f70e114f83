"""Reads a user's own GBNF, as llama.cpp defines it, so that it can follow a format's reasoning in any dialect.

Strategy: gbnf_text.py makes nodes of ir.py. What the engines would refuse or loop on is refused with its place: rules
that are not defined or defined twice, left recursion, counts whose maximum is below the minimum. Rules keep their
names, after the prefix ``user-``. Rules that do not recur become plain nodes, so a regular grammar is one terminal in a
dialect that has terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ..errors import RequestError
from . import ir
from .misread import wrong
from .regular.regex import Invalid, Unsupported, read_regex

_DEEPEST_RULES = 16
"""The deepest nesting of rules that are put in place of their names."""


@dataclass(frozen=True)
class UserGrammar:
    """A user's grammar: its rules by name. It begins with the rule ``root``."""

    rules: dict[str, ir.Ir]

    def embed(self, rules: dict[str, ir.Ir]) -> ir.Ir:
        """The node of its root. Puts the rules that recur into ``rules``, with the prefix ``user-``."""
        made: dict[str, ir.Ir] = {}
        recurring = _recurring({name: ir.named(node) for name, node in self.rules.items()})
        todo: list[str] = []

        def place(node: ir.Ir, depth: int) -> ir.Ir:
            if isinstance(node, ir.Ref):
                name = node.name
                if name in recurring or depth == _DEEPEST_RULES:
                    if f"user-{name}" not in rules:
                        rules[f"user-{name}"] = node
                        todo.append(name)
                    return ir.Ref(f"user-{name}")
                if name not in made:
                    inner = place(self.rules[name], depth + 1)
                    made[name] = ir.Shared(f"user-{name}", inner, _regular(inner))
                return made[name]
            if isinstance(node, ir.Seq):
                return ir.seq(*(place(item, depth) for item in node.items))
            if isinstance(node, ir.Alt):
                return ir.alt(*(place(option, depth) for option in node.options))
            if isinstance(node, ir.Rep):
                return ir.Rep(place(node.node, depth), node.least, node.most)
            return node

        root = place(ir.Ref("root"), 0)
        while todo:
            name = todo.pop()
            rules[f"user-{name}"] = place(self.rules[name], 0)
        return root


def _regular(node: ir.Ir) -> bool:
    if isinstance(node, (ir.Text, ir.Chars)):
        return True
    return isinstance(node, (ir.Rep, ir.Shared, ir.Seq, ir.Alt)) and all(map(_regular, ir.children(node)))


def _recurring(graph: Mapping[str, set[str]]) -> set[str]:
    """The names that lead to a name that leads to itself."""
    order = TopologicalSorter(graph)
    with suppress(CycleError):
        order.prepare()
    left = set(graph)
    while ready := order.get_ready():  # those that lead only to names that were ready before
        left.difference_update(ready)
        order.done(*ready)
    return left


def _left(node: ir.Ir, empty: set[str]) -> Iterator[str]:
    """The rules that ``node`` can begin with."""
    if isinstance(node, ir.Ref):
        yield node.name
    elif isinstance(node, ir.Rep):
        yield from _left(node.node, empty)
    elif isinstance(node, ir.Alt):
        for option in node.options:
            yield from _left(option, empty)
    elif isinstance(node, ir.Seq):
        for item in node.items:
            yield from _left(item, empty)
            if not ir.nullable(item, empty):
                break


def _left_recursive(rules: dict[str, ir.Ir]) -> str | None:
    """The first rule of a circle in which each begins with the next; None if there is none."""
    users: dict[str, list[str]] = {}
    for name, node in rules.items():
        for other in ir.named(node):
            users.setdefault(other, []).append(name)
    empty: set[str] = set()
    todo = list(rules)
    while todo:
        name = todo.pop()
        if name not in empty and ir.nullable(rules[name], empty):
            empty.add(name)
            todo += users.get(name, ())
    try:
        TopologicalSorter({name: set(_left(node, empty)) for name, node in rules.items()}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return min(circle, key=[*rules].index)
    return None


def read_gbnf(text: str) -> UserGrammar:
    """Reads a GBNF grammar.

    Raises `RequestError` with the line, the column and what was expected.
    """
    from .gbnf_text import read_rules  # parsimonious is imported where such a grammar is read

    rules = read_rules(text)
    if "root" not in rules:
        raise wrong(text, "expected a rule named 'root', found none", 0)
    recursive = _left_recursive(rules)
    if recursive is not None:
        place = max(text.find(f"\n{recursive} ") + 1, 0)
        raise wrong(
            text, f"the rule {recursive!r} begins with itself (left recursion): llama.cpp refuses it", place
        )
    return UserGrammar(rules)


def read_choice(given: Any) -> ir.Ir:
    """One of the texts. Raises `RequestError` if they are no texts."""
    if not isinstance(given, (list, tuple)) or not given or not all(isinstance(text, str) for text in given):
        raise RequestError(f"response_format.choices: expected a list of texts, found {given!r:.60}")
    return ir.texts(given)


def read_pattern(given: Any) -> ir.Ir:
    """The texts that the regular expression matches as a whole. Raises `RequestError` for one that no grammar says."""
    if not isinstance(given, str):
        raise RequestError(
            f"response_format.pattern: expected a regular expression as text, found {type(given).__name__}"
        )
    try:
        return ir.Lang((ir.Part(read_regex(f"^(?:{given})$")),))
    except (Unsupported, Invalid) as reason:
        raise RequestError(
            "response_format.pattern: expected a regular expression that a grammar can say, found "
            f"{given!r:.60}: {reason}"
        ) from None
