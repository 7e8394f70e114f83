"""Reads a user's own GBNF, as llama.cpp defines it, so that it can follow a format's reasoning in any dialect.

Strategy: a parsimonious grammar of GBNF gives the syntax tree. If it fails, it gives the line, the column and what was
expected. A visitor makes the nodes of ir.py. The reader refuses, with the place, what the engines would refuse or loop
on: rules that are not defined or defined twice, left recursion, counts whose maximum is below the minimum. Rules keep
their names, after the prefix ``user-``. Rules that do not recur become plain nodes, so a regular grammar is one
terminal in a dialect that has terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from parsimonious.exceptions import ParseError, VisitationError
from parsimonious.grammar import Grammar as Peg
from parsimonious.nodes import Node, NodeVisitor

from ..errors import ChatParsersError, RequestError
from . import ir

if TYPE_CHECKING:
    _NodeVisitor = NodeVisitor[Any]
else:  # generic only in its stubs
    _NodeVisitor = NodeVisitor

_PEG = Peg(
    r"""
    grammar     = gap rule+ eof
    eof         = !~"."s
    rule        = name blank "::=" gap alternates end
    alternates  = sequence (bar sequence)*
    sequence    = element*
    bar         = gap "|" gap
    element     = atom count* blank
    nested      = gap inner (inner_bar inner)* gap
    inner       = inner_item*
    inner_item  = atom count* gap
    inner_bar   = "|" gap
    atom        = literal / class / any / group / token / reference
    group       = "(" nested close
    close       = ")"
    reference   = name !(blank "::=")
    token       = ~"!?<[^>\n]+>"
    any         = "."
    literal     = '"' literal_char* quote
    quote       = '"'
    class       = "[" "^"? class_item* bracket
    bracket     = "]"
    literal_char = ~r'[^"\\]' / escape
    class_item  = class_char (~"-(?!\\])" class_char)?
    class_char  = ~r"[^\]\\]" / escape
    escape      = ~r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^xuU0-9])"s
    count       = "*" / "+" / "?" / braces
    braces      = "{" spaces number spaces more? "}"
    more        = "," spaces number? spaces
    number      = ~"[0-9]+"
    name        = ~"[A-Za-z0-9_.-]+"
    spaces      = ~"[ \t]*"
    blank       = ~"(?:[ \t]|#[^\r\n]*)*"
    gap         = ~"(?:[ \t\r\n]|#[^\r\n]*)*"
    end         = ~"(?:\r?\n|\\Z)(?:[ \t\r\n]|#[^\r\n]*)*"
    """
)
_DEEPEST = 30
"""The deepest nesting of groups."""
_DEEPEST_RULES = 16
"""The deepest nesting of rules that are put in place of their names."""
_MOST_COUNTS = 4
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|#[^\n]*|[()]', re.DOTALL)
_CONTROLS = {"n": 10, "r": 13, "t": 9, "b": 8, "f": 12}
_EXPECTED = {
    "rule": "a rule: `name ::= …`",
    "name": "a rule's name",
    "end": "the end of the line",
    "eof": "a rule: `name ::= …`",
    "bar": "'|'",
    "atom": "a literal, a class, a group or a rule's name",
    "quote": "the end of the literal: '\"'",
    "bracket": "the end of the class: ']'",
    "close": "')' or an element",
    "number": "a number",
    "more": "'}'",
    "braces": "a count: {m}, {m,} or {m,n}",
    "escape": "an escape",
}


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


class _Failure(ChatParsersError):
    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


class _Visitor(_NodeVisitor):
    unwrapped_exceptions = (_Failure, RecursionError)

    def __init__(self) -> None:
        self.used: list[tuple[str, int]] = []

    def generic_visit(self, node: Node, visited_children: Sequence[Any]) -> Any:
        return visited_children or node

    def visit_grammar(self, node: Node, visited: list[Any]) -> dict[str, ir.Ir]:
        found: dict[str, ir.Ir] = {}
        for name, at, body in visited[1] if isinstance(visited[1], list) else ():
            if name in found:
                raise _Failure(at, f"the rule {name!r} is defined twice: rename or drop one")
            found[name] = body
        for name, at in self.used:
            if name not in found:
                raise _Failure(at, f"no rule is named {name!r}")
        return found

    def visit_rule(self, node: Node, visited: list[Any]) -> tuple[str, int, ir.Ir]:
        return visited[0], node.start, visited[4]

    def visit_alternates(self, node: Node, visited: list[Any]) -> ir.Ir:
        rest = visited[1] if isinstance(visited[1], list) else []
        return ir.alt(visited[0], *(option for _, option in rest))

    def visit_nested(self, node: Node, visited: list[Any]) -> ir.Ir:
        rest = visited[2] if isinstance(visited[2], list) else []
        return ir.alt(visited[1], *(option for _, option in rest))

    def visit_sequence(self, node: Node, visited: list[Any]) -> ir.Ir:
        return ir.seq(*(visited if isinstance(visited, list) else ()))

    visit_inner = visit_sequence

    def visit_element(self, node: Node, visited: list[Any]) -> ir.Ir:
        made: ir.Ir = visited[0]
        counts = visited[1] if isinstance(visited[1], list) else ()
        if len(counts) > _MOST_COUNTS:
            raise _Failure(node.start, f"more than {_MOST_COUNTS} counts of one element: repeats of repeats")
        for least, most in counts:
            made = ir.Rep(made, least, most)
        return made

    visit_inner_item = visit_element

    def visit_atom(self, node: Node, visited: list[Any]) -> ir.Ir:
        found: ir.Ir = visited[0]
        return found

    def visit_group(self, node: Node, visited: list[Any]) -> ir.Ir:
        found: ir.Ir = visited[1]
        return found

    def visit_reference(self, node: Node, visited: list[Any]) -> ir.Ir:
        self.used.append((visited[0], node.start))
        return ir.Ref(visited[0])

    def visit_token(self, node: Node, visited: list[Any]) -> ir.Ir:
        if node.text.startswith(("!", "<[")):
            raise _Failure(node.start, f"token references by number cannot be embedded: found {node.text}")
        return ir.TokenRef(node.text)

    def visit_any(self, node: Node, visited: list[Any]) -> ir.Ir:
        return ir.Chars(ir.ANY)

    def visit_literal(self, node: Node, visited: list[Any]) -> ir.Ir:
        return ir.Text("".join(map(chr, visited[1] if isinstance(visited[1], list) else ())))

    def visit_literal_char(self, node: Node, visited: list[Any]) -> int:
        return _code(node.text)

    visit_class_char = visit_literal_char

    def visit_class(self, node: Node, visited: list[Any]) -> ir.Ir:
        ranges = ir.charset(visited[2] if isinstance(visited[2], list) else ())
        negated = node.children[1].text == "^"
        if not ranges:
            raise _Failure(node.start, "an empty class: engines disagree on what it is")
        return ir.Chars(ir.complement(ranges) if negated else ranges)

    def visit_class_item(self, node: Node, visited: list[Any]) -> tuple[int, int]:
        low = visited[0]
        high = visited[1][0][1] if isinstance(visited[1], list) else low
        if high < low:
            raise _Failure(node.start, f"the range {node.text} ends before it begins")
        return low, high

    def visit_count(self, node: Node, visited: list[Any]) -> tuple[int, int | None]:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if node.text in simple:
            return simple[node.text]
        low, comma, high = node.text[1:-1].partition(",")
        least = int(low)
        most = (int(high) if high.strip() else None) if comma else least
        if most is not None and most < least:
            raise _Failure(node.start, f"the count {node.text} ends before it begins")
        return least, most

    def visit_name(self, node: Node, visited: list[Any]) -> str:
        return str(node.text)


def _code(text: str) -> int:
    if not text.startswith("\\"):
        return ord(text)
    if text[1] in "xuU":
        return int(text[2:], 16)
    return _CONTROLS.get(text[1], ord(text[1]))


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


def _check_depth(text: str) -> None:
    """Refuses groups that are nested too deeply."""
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth > _DEEPEST:
            raise RequestError(
                f"grammar: {_place(text, found.start())}: groups are nested deeper than {_DEEPEST}: "
                "make rules of them"
            )


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


def read_gbnf(text: str) -> UserGrammar:
    """Reads a GBNF grammar.

    Raises `RequestError` with the line, the column and what was expected.
    """
    _check_depth(text)
    try:
        tree = _PEG.parse(text)
        rules: dict[str, ir.Ir] = _Visitor().visit(tree)
    except ParseError as error:
        expected = _EXPECTED.get(getattr(error.expr, "name", "") or "", "")
        at = error.pos
        if not expected:
            literal = getattr(error.expr, "literal", "")
            expected = (
                repr(literal)
                if literal
                else "a rule: `name ::= …`"
                if at == 0
                else "an element or the end of the line"
            )
        found = repr(text[at : at + 12].split("\n")[0] or text[at : at + 1]) if at < len(text) else "the end"
        raise RequestError(f"grammar: {_place(text, at)}: expected {expected}, found {found}") from None
    except _Failure as failure:
        raise RequestError(f"grammar: {_place(text, failure.at)}: {failure}") from None
    except RecursionError:
        raise RequestError("grammar: groups are nested too deeply: make rules of them") from None
    except VisitationError as error:
        raise RequestError(f"grammar: {error}") from None
    if "root" not in rules:
        raise RequestError("grammar: line 1, column 1: expected a rule named 'root', found none")
    recursive = _left_recursive(rules)
    if recursive is not None:
        at = max(text.find(f"\n{recursive} ") + 1, 0)
        raise RequestError(
            f"grammar: {_place(text, at)}: the rule {recursive!r} begins with itself (left recursion): "
            "llama.cpp refuses it"
        )
    return UserGrammar(rules)
