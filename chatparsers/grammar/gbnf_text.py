"""Reads GBNF, the text of a grammar as llama.cpp defines it: a grammar of grammars, read by parsimonious.

Strategy: `_GRAMMAR` says what GBNF is, and each expression of it that can be missed has a name in `_WANTED`. Of a text
that does not match, parsimonious knows the furthest place and the expression that was missed there. What no PEG says
(a rule that is defined twice, a range that ends before it begins) is judged where the nodes of ir.py are made. Groups
are counted before anything is parsed, as parsimonious reads them by recursion.

Elements of a rule stand in one line. In a group, and around ``|``, lines may end: hence two kinds of sequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from parsimonious import Grammar, NodeVisitor, ParseError
from parsimonious.nodes import Node

from ..errors import RequestError
from . import ir
from .misread import wrong

__all__ = ["read_rules"]

_DEEPEST = 30
"""The deepest nesting of groups."""
_LONGEST = 1_000_000
"""Characters of a grammar."""
_CONTROLS = {"n": 10, "r": 13, "t": 9, "b": 8, "f": 12}
_ESCAPE = r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^xuU0-9])"
_CHAR = re.compile(rf"{_ESCAPE}|[^\\]", re.DOTALL)
_NAME = r"[A-Za-z0-9_.-]+"
_COMMENT = r"#[^\r\n]*(?=[\r\n]|\Z)"
_IN_LINE, _GAP = rf"(?:[ \t]|{_COMMENT})*", rf"(?:[ \t\r\n]|{_COMMENT})*"
_COUNT = r"[*+?]|\{[ \t]*[0-9]{1,9}[ \t]*(?:,[ \t]*[0-9]{0,9}[ \t]*)?\}"
_NOT_A_GROUP = re.compile(rf'"(?:\\.|[^"\\])*"?|\[(?:\\.|[^\]\\])*\]?|{_COMMENT}', re.DOTALL)

_GRAMMAR = Grammar(
    rf"""
    grammar      = gap rule+ end
    rule         = name in_line defines gap in_line_alts line_end
    in_line_alts = in_line_seq (bar in_line_seq)*
    in_line_seq  = (item in_line)*
    group_alts   = group_seq (bar group_seq)*
    group_seq    = (item gap)*
    item         = element count? count? count? count? no_count
    element      = literal / class / any / group / token / reference
    literal      = '"' ~r'(?:{_ESCAPE}|[^\\"])*'s quote
    class        = "[" ~r'\^?' ~r'(?:{_ESCAPE}|[^\\\]])*'s bracket
    any          = "."
    group        = "(" gap group_alts parenthesis
    token        = ~r'!?<[^>\n]+>'
    reference    = ~r'(?!{_NAME}{_IN_LINE}::=){_NAME}'
    count        = ~r'{_COUNT}'
    bar          = ~r'{_GAP}\|{_GAP}'
    name         = ~r'{_NAME}'
    defines      = "::="
    in_line      = ~r'{_IN_LINE}'
    gap          = ~r'{_GAP}'
    line_end     = ~r'(?:\r?\n|\Z){_GAP}'
    end          = ~r'\Z'
    quote        = '"'
    bracket      = "]"
    parenthesis  = ")"
    no_count     = ~r'(?![*+?{{])'
    """
)
_WANTED = {
    "defines": "'::='",
    "line_end": "the end of the line",
    "quote": "the end of the literal: '\"'",
    "bracket": "the end of the class: ']'",
    "parenthesis": "')' or an element",
    "no_count": "a count of up to nine digits: {m}, {m,} or {m,n}",
}


def read_rules(text: str) -> dict[str, ir.Ir]:
    """The rules of a grammar by their names, of which there is at least one.

    Raises `RequestError` with the line, the column and what was expected.
    """
    if len(text) > _LONGEST:
        raise RequestError(f"grammar: expected at most {_LONGEST:,} characters, found {len(text):,}")
    depth = 0
    for found in re.finditer(r"[()]", _NOT_A_GROUP.sub(lambda other: " " * len(other[0]), text)):
        depth += 1 if found[0] == "(" else -1
        if depth > _DEEPEST:
            raise wrong(text, f"groups are nested deeper than {_DEEPEST}: make rules of them", found.start())
    try:
        tree = _GRAMMAR.parse(text)
    except ParseError as error:
        raise _missed(text, error.pos, error.expr.name) from None
    reader = _Reader(text)
    rules: dict[str, ir.Ir] = reader.visit(tree)
    for name, at in reader.used:
        if name not in rules:
            raise wrong(text, f"no rule is named {name!r}", at)
    return rules


def _missed(text: str, at: int, name: str) -> RequestError:
    """The error of a text in which the expression ``name`` was missed at a place."""
    rest = text[at : at + 12]
    if name == "no_count" and re.compile(_COUNT).match(text, at):
        return wrong(text, "more than 4 counts of one element: repeats of repeats", at)
    found = repr(rest.split("\n")[0] or rest[:1]) if rest else "the end"
    wanted = (
        "an escape"
        if name in ("quote", "bracket") and rest.startswith("\\")
        else _WANTED.get(name, "a rule: `name ::= …`")
    )
    return wrong(text, f"expected {wanted}, found {found}", at)


class _Reader(NodeVisitor):  # type: ignore[misc]
    """Makes the nodes of ir.py of what was parsed."""

    unwrapped_exceptions = (RequestError,)

    def __init__(self, text: str) -> None:
        self.text = text
        self.used: list[tuple[str, int]] = []
        """The names that stand for rules, with their places."""

    def generic_visit(self, node: Node, visited: Sequence[Any]) -> Any:
        return visited or node

    def visit_grammar(self, node: Node, visited: Sequence[Any]) -> dict[str, ir.Ir]:
        _, rules, _ = visited
        found: dict[str, ir.Ir] = {}
        for name, at, body in rules:
            if name in found:
                raise wrong(self.text, f"the rule {name!r} is defined twice: rename or drop one", at)
            found[name] = body
        return found

    def visit_rule(self, node: Node, visited: Sequence[Any]) -> tuple[str, int, ir.Ir]:
        name, _, _, _, body, _ = visited
        return name.text, node.start, body

    def _alternatives(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        first, more = visited
        return ir.alt(first, *(option for _, option in _each(more)))

    def _sequence(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        return ir.seq(*(item for item, _ in _each(visited)))

    visit_in_line_alts = visit_group_alts = _alternatives
    visit_in_line_seq = visit_group_seq = _sequence

    def visit_item(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        made: ir.Ir = visited[0]
        for count in visited[1:-1]:
            for least, most in _each(count):
                made = ir.Rep(made, least, most)
        return made

    def visit_count(self, node: Node, visited: Sequence[Any]) -> tuple[int, int | None]:
        count = node.text
        if count in "*+?":
            return int(count == "+"), 1 if count == "?" else None
        low, comma, high = count[1:-1].partition(",")
        least = int(low)
        most = (int(high) if high.strip() else None) if comma else least
        if most is not None and most < least:
            raise wrong(self.text, f"the count {count} ends before it begins", node.start)
        return least, most

    def visit_element(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        made: ir.Ir = visited[0]
        return made

    def visit_literal(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        return ir.Text("".join(chr(code) for code, _, _ in self._characters(node.children[1])))

    def visit_class(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        _, negated, body, _ = node.children
        found: list[int | tuple[int, int]] = []
        characters = list(self._characters(body))
        at = 0
        while at < len(characters):
            low, begin, end = characters[at]
            at += 1
            if self.text[end : end + 1] == "-" and at + 1 < len(characters):
                high, _, end = characters[at + 1]
                at += 2
                if high < low:
                    written = self.text[begin:end]
                    raise wrong(self.text, f"the range {written} ends before it begins", begin)
                found.append((low, high))
            else:
                found.append(low)
        if not found:
            raise wrong(self.text, "an empty class: engines disagree on what it is", node.start)
        ranges = ir.charset(found)
        return ir.Chars(ir.complement(ranges) if negated.text else ranges)

    def visit_any(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        return ir.Chars(ir.ANY)

    def visit_group(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        made: ir.Ir = visited[2]
        return made

    def visit_token(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        if node.text.startswith(("!", "<[")):
            why = f"token references by number cannot be embedded: found {node.text}"
            raise wrong(self.text, why, node.start)
        return ir.TokenRef(node.text)

    def visit_reference(self, node: Node, visited: Sequence[Any]) -> ir.Ir:
        self.used.append((node.text, node.start))
        return ir.Ref(node.text)

    def _characters(self, node: Node) -> Iterator[tuple[int, int, int]]:
        """The characters, spelt or escaped, each with its place."""
        for found in _CHAR.finditer(self.text, node.start, node.end):
            written = found[0]
            if len(written) == 1:
                code = ord(written)
            elif written[1] in "xuU":
                code = int(written[2:], 16)
                if code > ir.LAST:
                    why = f"{written} is no character: the last one is \\U{ir.LAST:08X}"
                    raise wrong(self.text, why, found.start())
            else:
                code = _CONTROLS.get(written[1], ord(written[1]))
            yield code, found.start(), found.end()


def _each(visited: Any) -> Sequence[Any]:
    """What was made of an expression that may be there, or may be there more often; of none, a bare node is left."""
    return () if isinstance(visited, Node) else visited
