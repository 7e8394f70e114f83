"""Checks a format's tree when it is made, and reports its author's mistakes.

Strategy: a tree has two readings, the parser's and the grammar's. Both are checked, the grammar's for a probe tool. In
each reading, the check looks at every node by itself (``_ALONE``), and follows all paths through every call
(core/definition/paths.py).

Every error names the node in the words of the builder, says what is wrong with it, and what to write instead. A tree
that passes compiles without an error. The stream that reads it never raises and never hangs, and the arguments of
a complete call are a JSON object.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable
from typing import Any

from ..errors import DefinitionError, did_you_mean
from ..schema.tools import ANY_TOOL, Tool
from ..values import Raw, Syntax
from .nodes import (
    Args,
    Atomic,
    Body,
    Calls,
    Chars,
    Choice,
    Cut,
    EachArg,
    Header,
    Implied,
    JsonName,
    Lenient,
    Literal,
    Many,
    Name,
    Node,
    Not,
    Peek,
    Ref,
    SameName,
    Sequence,
    Space,
    Span,
    Tag,
    Tagged,
    Think,
    Token,
    Until,
    Value,
)
from .paths import check_call
from .reading import PARTS_OF_A_CALL, PROBE, Reading
from .spelling import spelt, wrong
from .tree import first, head, through

__all__ = ["check", "check_model", "check_texts"]

_COMMITS = (Cut, Args, EachArg, Value, Think, Body)


def check(tree: Node) -> None:
    """Raises `DefinitionError` for a tree that cannot be compiled, parsed or generated as its author means it."""
    if not isinstance(tree, Node):
        wrong(
            "build",
            f"expected it to return a node, found {tree!r}",
            "return what it made, such as p.body(calls)",
        )
    for tool in (ANY_TOOL, PROBE):
        _Checker(tree, tool).check()


def check_texts(what: str, given: object) -> None:
    """Raises `DefinitionError` if ``given`` is not a tuple of texts, or holds an empty text."""
    if isinstance(given, str):
        wrong(what, f"expected a tuple of texts, found the text {given!r}", f"write ({given!r},)")
    if not isinstance(given, tuple) or not all(isinstance(text, str) and text for text in given):
        wrong(what, f"expected a tuple of texts that are not empty, found {given!r}", 'write ("…",)')


def check_model(what: str, pattern: str) -> None:
    """Raises `DefinitionError` if ``pattern`` is no regular expression for a model's name."""
    try:
        empty = re.match(pattern, "") is not None
    except (re.error, RecursionError, OverflowError) as error:
        wrong(what, f"expected a regular expression, found {pattern!r}: {error}", "escape its special signs")
    if empty:
        wrong(what, f"{pattern!r} fits every name", 'write a part of the model\'s name, such as "acme-2"')
    if re.search("[A-Z_ ]", re.sub(r"\\.|\(\?P", "", pattern)):
        said = "fits no name, as names are compared in lower case, with - for every run of other signs"
        wrong(what, f"{pattern!r} {said}", "write acme-2-5 for Acme 2.5")


class _Checker:
    """Checks one reading of a tree."""

    def __init__(self, tree: Node, tool: Tool) -> None:
        self.tree = tree
        self.reading = Reading(tree, tool)

    def check(self) -> None:
        reading = self.reading
        for node in reading.nodes:
            if isinstance(node, Ref) and node.name not in reading.rules:
                wrong(node, "there is no such rule", did_you_mean(node.name, reading.rules))
        for name in reading.rules:
            self.left_recursion(name, (name,))
        for node in reading.nodes:
            look = _ALONE.get(type(node))
            if look is not None:
                look(self, node)
        self.outside(self.tree)

    def left_recursion(self, name: str, path: tuple[str, ...]) -> None:
        for other in self.reading.lefts(self.reading.rules[name]):
            if other == path[0]:
                way = " → ".join((*path, other))
                what = f"it calls itself before it reads a character ({way})"
                wrong(f"p.rule({path[0]!r})", what, "put what it always begins with first, or use p.many()")
            if other not in path:
                self.left_recursion(other, (*path, other))

    # nodes by themselves

    def token(self, node: Token) -> None:
        if not all(node.names):
            wrong(node, "a token has a text", "give the token's text, or leave it out")

    def until(self, node: Until) -> None:
        check_texts("p.until", node.stops)

    def chars(self, node: Chars) -> None:
        ranges = node.ranges
        if ranges.startswith("[") and ranges.endswith("]"):
            wrong(node, "the brackets are part of the class", f"leave them out: p.chars({ranges[1:-1]!r})")
        if not re.fullmatch(r"\^?(?:[^\]\\]|\\.)+", ranges, re.DOTALL):
            wrong(
                node, "expected the inside of a class, such as 'a-z0-9_'", "write ] and \\ with a backslash"
            )
        _regex(node, f"[{ranges}]")
        self.bounds(node)

    def bounds(self, node: Chars | Many) -> None:
        if node.least < 0 or (node.most is not None and (node.most < node.least or not node.most)):
            wrong(
                node,
                f"it cannot come {node.least} to {node.most} times",
                "give a least that is 0 or more, and a larger most",
            )

    def many(self, node: Many) -> None:
        self.bounds(node)
        if node.most is None and self.reading.empty(node.node):
            wrong(
                node,
                "the repeated part can be empty, so the loop would never end",
                "let it begin with a text",
            )

    def calls(self, node: Calls) -> None:
        if self.reading.empty(node.item) and self.reading.empty(node.separator):
            wrong(node, "a call can be empty, so the loop would never end", "let it begin with a marker")

    def choice(self, node: Choice) -> None:
        if self.reading.generated:
            return
        for option in node.options[:-1]:
            if _always(option):
                what = f"the alternatives after {spelt(option)} are never tried, as it always matches"
                wrong(node, what, "put it last, or use p.optional()")
        parts = [_parts(option) for option in node.options]
        for index, begun in enumerate(parts):
            for later, whole in enumerate(parts[index + 1 :], index + 1):
                if len(begun) < len(whole) and whole[: len(begun)] == begun:
                    shown = spelt(node.options[index]), spelt(node.options[later])
                    what = f"{shown[1]} is never tried, as {shown[0]} before it is how it begins"
                    wrong(node, what, "put the longer alternative first")

    def look_ahead(self, node: Peek | Not) -> None:
        if self.reading.generated:
            wrong(
                node,
                "a grammar cannot look ahead",
                "use it in what is parsed alone: p.reads(generated, parsed)",
            )
        found = self.reading.within(node.node, _COMMITS)
        if found is not None:
            wrong(
                node,
                f"{spelt(found)} commits to a call, and this only looks ahead",
                "look for what stands before it",
            )

    def atomic(self, node: Atomic) -> None:
        found = self.reading.within(node.node, _COMMITS)
        if found is not None:
            wrong(node, f"{spelt(found)} commits, so nothing can be held", "leave it out of p.atomic()")

    def tagged(self, node: Tagged) -> None:
        if node.tag in (Tag.NAME, Tag.ID, Tag.ARG_NAME):
            wrong(node, "a name is not tagged text", "use p.name(tool), p.arg_name(arg) or p.id(…)")

    def implied(self, node: Implied) -> None:
        if node.tag not in (Tag.NAME, Tag.ARG_NAME):
            wrong(node, f"{node.tag} cannot be implied", "give Tag.NAME or Tag.ARG_NAME")

    def name(self, node: Name) -> None:
        _run(node, node.chars)
        self.named(node)

    def named(self, node: Name | JsonName) -> None:
        """Checks, in the grammar's reading, that the written name is the tool's or the argument's."""
        if not self.reading.generated or node.tag is Tag.ID:
            return
        name = self.reading.tool.name if node.tag is Tag.NAME else self.reading.argument.name
        if node.generate is None or node.generate != Literal(json.dumps(name)[1:-1]):
            given, make = ("tool", "make(tool)") if node.tag is Tag.NAME else ("arg", "make(arg)")
            wrong(
                node,
                f"it does not write the name of the {given} that {make} was given",
                f"pass that {given} on",
            )

    def same_name(self, node: SameName) -> None:
        if node.argument != self.reading.argument:
            wrong(node, "it is not given the argument that make(arg) was given", "pass that argument on")

    def header(self, node: Header) -> None:
        _run(node, node.chars)
        groups = _regex(node, node.pattern).groupindex
        if "name" not in groups:
            wrong(
                node,
                f"its pattern has the groups {', '.join(groups) or 'none'}",
                "name one of them (?P<name>…)",
            )
        if self.reading.generated and not any(
            isinstance(inner, (Name, JsonName))
            or (isinstance(inner, Literal) and self.reading.tool.name in inner.text)
            for inner in self.reading.walk(node.generate)
        ):
            wrong(
                node,
                "what it generates has no name of the tool",
                "write p.name(tool) into its second argument",
            )

    def value(self, node: Value) -> None:
        self.syntax(node, node.syntax, "p.value")
        if node.argument != self.reading.argument:
            wrong(node, "it is not given the argument that make(arg) was given", "pass that argument on")

    def args(self, node: Args) -> None:
        self.syntax(node, node.syntax, "p.args")
        self.passed_on(node, node.tool)

    def syntax(self, node: Node, syntax: object, where: str) -> None:
        if not isinstance(syntax, Syntax):
            wrong(
                node,
                f"expected a value syntax, found {syntax!r}",
                "import Json, Raw, Python or Gemma from chatparsers.core",
            )
        if isinstance(syntax, Raw):
            for option, texts in (("until", syntax.until), ("also", syntax.also)):
                check_texts(f"Raw({option}=…)", (texts,) if isinstance(texts, str) else texts)
        make = syntax.value if where == "p.value" else syntax.object
        make(lambda text: (text,))  # raises if the syntax cannot write this

    def each_arg(self, node: EachArg) -> None:
        self.passed_on(node, node.tool)
        if (
            node.most is None
            and self.reading.empty(node.any)
            and (node.separator is None or self.reading.empty(node.separator))
        ):
            wrong(
                node,
                "an argument can be empty, so the loop would never end",
                "let it begin with a marker or p.arg_name(arg)",
            )

    def passed_on(self, node: Node, tool: Tool) -> None:
        if tool is not self.reading.tool:
            given = "ANY_TOOL" if tool is ANY_TOOL else f"the tool {tool.name!r}"
            wrong(node, f"it is given {given}, not the tool that make(tool) was given", "pass that one on")

    def body(self, node: Body) -> None:
        parts = (("calls", node.calls), ("marks", node.marks))
        spans = (("reasoning", node.reasoning), ("content", node.content))
        self.found("p.body", parts, spans)

    def think(self, node: Think) -> None:
        if node.span.close is None:
            wrong(node, "reasoning at the start of the turn needs a closer", "give the text that ends it")
        self.found("p.think", (("until", node.until),), (("…", node.span),))

    def found(
        self, where: str, parts: Iterable[tuple[str, Node | None]], spans: Iterable[tuple[str, Span | None]]
    ) -> None:
        """Checks that a node in running text begins with a text, so that the parser can find it."""
        ends = [
            (option, end) for option, span in spans if span is not None for end in (span.open, span.close)
        ]
        for option, part in (*parts, *ends):
            if part is not None:
                try:
                    first(head(part))
                except DefinitionError as error:
                    raise DefinitionError(f"{where}({option}={spelt(part)}): {error}") from None

    # calls

    def outside(self, node: Node, last: bool = True) -> None:
        """Checks that parts of a call stand only in calls, that each call is sound, and that the body comes last.

        ``last``: nothing is read after ``node``.
        """
        if isinstance(node, Tagged) and node.tag is Tag.CALL:
            check_call(self.reading, node)
            return
        if isinstance(node, PARTS_OF_A_CALL):
            wrong(
                node,
                "it stands outside a call, so what it reads is lost",
                "put it into what make(tool) returns for p.each_tool()",
            )
        if isinstance(node, Body) and not last:
            wrong(node, "nothing is read after it, as it takes the rest of the turn", "put it last")
        parts = tuple(self.reading.parts(node))
        for part in parts:
            self.outside(part, last and (part is parts[-1] or not isinstance(node, Sequence)))


def _always(node: Node) -> bool:
    """Whether the parser can match ``node`` at any place."""
    inner = through(node)
    if inner is not None:
        return _always(inner)
    if isinstance(node, Sequence):
        return all(map(_always, node.items))
    if isinstance(node, Choice):
        return any(map(_always, node.options))
    if isinstance(node, (Literal, Token)):
        return not node.text
    if isinstance(node, Many):
        return node.least == 0 or _always(node.node)
    return isinstance(node, (Space, Until, Cut, Implied)) or (isinstance(node, Chars) and node.least == 0)


def _parts(node: Node) -> tuple[Node | str, ...]:
    """What the parser reads one after the other: the characters of literals, and other nodes."""
    while isinstance(node, Lenient):
        node = node.lenient
    if isinstance(node, Sequence):
        return tuple(part for item in node.items for part in _parts(item))
    return tuple(node.text) if isinstance(node, Literal) else (node,)


def _regex(node: Node, pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return re.compile(pattern)
        except (re.error, Warning, TypeError) as error:
            wrong(
                node,
                f"{pattern!r} is no regular expression: {error}",
                "write one that Python's re reads, with a backslash before what is meant as text",
            )


def _run(node: Node, chars: str) -> None:
    """Checks that ``chars`` is a regular expression for one character of a name."""
    one = _regex(node, chars)
    if one.fullmatch(""):
        wrong(
            node,
            f"chars={chars!r} also matches no character",
            "leave out what repeats it: the parser does that",
        )
    if not any(one.fullmatch(chr(code)) for code in range(0x20, 0x250)):
        wrong(
            node,
            f"chars={chars!r} matches no single character",
            f"write a class in brackets: chars={f'[{chars}]'!r}",
        )


_ALONE: dict[type[Node], Any] = {
    Token: _Checker.token,
    Until: _Checker.until,
    Chars: _Checker.chars,
    Many: _Checker.many,
    Calls: _Checker.calls,
    Choice: _Checker.choice,
    Peek: _Checker.look_ahead,
    Not: _Checker.look_ahead,
    Atomic: _Checker.atomic,
    Tagged: _Checker.tagged,
    Implied: _Checker.implied,
    Name: _Checker.name,
    JsonName: _Checker.named,
    SameName: _Checker.same_name,
    Header: _Checker.header,
    Value: _Checker.value,
    Args: _Checker.args,
    EachArg: _Checker.each_arg,
    Body: _Checker.body,
    Think: _Checker.think,
}
