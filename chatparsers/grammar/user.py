"""Reads a user's own GBNF, as llama.cpp defines it, so that it can follow a format's reasoning in any dialect.

Strategy: recursive descent to the nodes of ir.py. The reader refuses, with the place, what the engines would refuse or
loop on: rules that are not defined or defined twice, left recursion, counts whose maximum is below the minimum. Rules
keep their names, after the prefix ``user-``. Rules that do not recur become plain nodes, so a regular grammar is one
terminal in a dialect that has terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ..errors import RequestError
from . import ir
from .regular.regex import Invalid, Unsupported, read_regex

_DEEPEST = 30
"""The deepest nesting of groups."""
_DEEPEST_RULES = 16
"""The deepest nesting of rules that are put in place of their names."""
_MOST_COUNTS = 4
_CONTROLS = {"n": 10, "r": 13, "t": 9, "b": 8, "f": 12}
_COMMENT = r"#[^\r\n]*(?=[\r\n]|\Z)"
_IN_LINE, _GAP = rf"(?:[ \t]|{_COMMENT})*", rf"(?:[ \t\r\n]|{_COMMENT})*"
_LINE_END = rf"(?:\r?\n|\Z){_GAP}"
_NAME = r"[A-Za-z0-9_.-]+"
_TOKEN = r"!?<[^>\n]+>"
_CHAR = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^xuU0-9])|[^\\]"
_COUNT = r"[*+?]|\{[ \t]*[0-9]{1,9}[ \t]*(?:,[ \t]*[0-9]{0,9}[ \t]*)?\}"


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


class _Reader:
    """Reads ``text`` from the place ``at`` on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.used: list[tuple[str, int]] = []
        """The names that stand for rules, with their places."""

    def wrong(self, why: str, at: int) -> RequestError:
        line, before = self.text.count("\n", 0, at) + 1, self.text.rfind("\n", 0, at)
        return RequestError(f"grammar: line {line}, column {at - before}: {why}")

    def expected(self, what: str) -> RequestError:
        rest = self.text[self.at : self.at + 12]
        found = repr(rest.split("\n")[0] or rest[:1]) if rest else "the end"
        return self.wrong(f"expected {what}, found {found}", self.at)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, expression: str) -> str | None:
        """The text here that matches, which is read by that; None if none does."""
        found = re.compile(expression, re.DOTALL).match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def rules(self) -> dict[str, ir.Ir]:
        found: dict[str, ir.Ir] = {}
        self.take(_GAP)
        while not found or self.at < len(self.text):
            begin, name = self.at, self.take(_NAME)
            if name is None:
                raise self.expected("a rule: `name ::= …`")
            if self.take(f"{_IN_LINE}::={_GAP}") is None:
                self.take(_IN_LINE)
                raise self.expected("'::='")
            body = self.alternatives(_IN_LINE)
            if self.take(_LINE_END) is None:
                raise self.expected("the end of the line")
            if name in found:
                raise self.wrong(f"the rule {name!r} is defined twice: rename or drop one", begin)
            found[name] = body
        for name, at in self.used:
            if name not in found:
                raise self.wrong(f"no rule is named {name!r}", at)
        return found

    def alternatives(self, space: str) -> ir.Ir:
        """Sequences with ``|`` between them. ``space``: what may be between two elements."""
        options = [self.sequence(space)]
        while self.take(rf"{_GAP}\|{_GAP}") is not None:
            options.append(self.sequence(space))
        return ir.alt(*options)

    def sequence(self, space: str) -> ir.Ir:
        items: list[ir.Ir] = []
        begin = self.at
        while (item := self.atom()) is not None:
            for _ in range(_MOST_COUNTS):
                item = self.counted(item)
            if self.peek() and self.peek() in "*+?{":
                why = f"more than {_MOST_COUNTS} counts of one element: repeats of repeats"
                raise self.wrong(why, begin)
            items.append(item)
            self.take(space)
            begin = self.at
        return ir.seq(*items)

    def counted(self, node: ir.Ir) -> ir.Ir:
        """The node as often as the count here says, if there is one."""
        begin, count = self.at, self.take(_COUNT)
        if count is None:
            if self.peek() == "{":
                raise self.expected("a count of up to nine digits: {m}, {m,} or {m,n}")
            return node
        if count in "*+?":
            return ir.Rep(node, int(count == "+"), 1 if count == "?" else None)
        low, comma, high = count[1:-1].partition(",")
        least = int(low)
        most = (int(high) if high.strip() else None) if comma else least
        if most is not None and most < least:
            raise self.wrong(f"the count {count} ends before it begins", begin)
        return ir.Rep(node, least, most)

    def atom(self) -> ir.Ir | None:
        """A literal, a class, a group, a token or a rule's name; None if none of them is here."""
        begin = self.at
        if self.take('"') is not None:
            return ir.Text("".join(map(chr, self.characters('"', "the end of the literal"))))
        if self.take(r"\[") is not None:
            return self.char_class(begin)
        if self.take(r"\.") is not None:
            return ir.Chars(ir.ANY)
        if self.take(r"\(") is not None:
            return self.group(begin)
        token = self.take(_TOKEN)
        if token is not None:
            if token.startswith(("!", "<[")):
                raise self.wrong(f"token references by number cannot be embedded: found {token}", begin)
            return ir.TokenRef(token)
        name = self.take(_NAME)
        if name is None:
            return None
        if self.take(f"(?={_IN_LINE}::=)") is not None:  # the next rule
            self.at = begin
            return None
        self.used.append((name, begin))
        return ir.Ref(name)

    def group(self, begin: int) -> ir.Ir:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.wrong(f"groups are nested deeper than {_DEEPEST}: make rules of them", begin)
        self.take(_GAP)
        found = self.alternatives(_GAP)
        if self.take(r"\)") is None:
            raise self.expected("')' or an element")
        self.depth -= 1
        return found

    def characters(self, end: str, what: str) -> Iterator[int]:
        """The characters up to ``end``, which is ``what``."""
        while self.peek() != end:
            yield self.character(what, end)
        self.at += 1

    def character(self, what: str, end: str) -> int:
        """One character, or its escape. At the text's end, ``what`` is missing."""
        if not self.peek():
            raise self.expected(f"{what}: {end!r}")
        found = self.take(_CHAR)
        if found is None:
            raise self.expected("an escape")
        if len(found) == 1:
            return ord(found)
        if found[1] not in "xuU":
            return _CONTROLS.get(found[1], ord(found[1]))
        code = int(found[2:], 16)
        if code > ir.LAST:
            raise self.wrong(
                f"{found} is no character: the last one is \\U{ir.LAST:08X}", self.at - len(found)
            )
        return code

    def char_class(self, begin: int) -> ir.Ir:
        negated = self.take(r"\^") is not None
        found: list[int | tuple[int, int]] = []
        place = self.at
        for low in self.characters("]", "the end of the class"):
            high = low
            if self.take(r"-(?!\]|\Z)") is not None:
                high = self.character("the end of the class", "]")
            if high < low:
                raise self.wrong(f"the range {self.text[place : self.at]} ends before it begins", place)
            found.append((low, high))
            place = self.at
        if not found:
            raise self.wrong("an empty class: engines disagree on what it is", begin)
        ranges = ir.charset(found)
        return ir.Chars(ir.complement(ranges) if negated else ranges)


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
    reader = _Reader(text)
    rules = reader.rules()
    if "root" not in rules:
        raise reader.wrong("expected a rule named 'root', found none", 0)
    recursive = _left_recursive(rules)
    if recursive is not None:
        raise reader.wrong(
            f"the rule {recursive!r} begins with itself (left recursion): llama.cpp refuses it",
            max(text.find(f"\n{recursive} ") + 1, 0),
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
