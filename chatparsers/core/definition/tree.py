"""Walks over a format's tree, shared by the parser's compiler, the grammar and all code that asks what a format has.

Strategy: two places say how a node is made of others: `through` (a node that stands in place of another) and ``_PARTS``
(all nodes below a node). A kind of node that is missing from ``_PARTS`` is an error, never a leaf by default.

A function for which the two readings differ takes ``generated``: False for the parser's, True for the grammar's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import DefinitionError
from .nodes import (
    AnyChar,
    Args,
    Atomic,
    Body,
    Calls,
    Chars,
    Choice,
    Cut,
    Declared,
    EachArg,
    EachTool,
    End,
    Header,
    Implied,
    JsonName,
    JsonText,
    JsonValue,
    Lenient,
    Literal,
    Many,
    Name,
    Node,
    Not,
    Peek,
    Ref,
    Rule,
    SameName,
    Sequence,
    Space,
    Span,
    Tagged,
    Think,
    Token,
    Until,
    Value,
)

__all__ = ["children", "first", "head", "nullable", "through", "tokens", "walk"]


def through(node: Node, generated: bool = False) -> Node | None:
    """The node whose beginning is the beginning of ``node``: the one that ``node`` names, tags, holds, gives two
    readings or repeats as a call. None if ``node`` stands for itself."""
    if isinstance(node, (Rule, Tagged, Atomic)):
        return node.node
    if isinstance(node, Lenient):
        return node.strict if generated else node.lenient
    if isinstance(node, EachTool):
        return node.any
    return node.item if isinstance(node, Calls) else None


def children(node: Node, generated: bool = False) -> Iterator[Node]:
    """The nodes directly below ``node``."""
    parts = _PARTS.get(type(node))
    if parts is None:
        raise DefinitionError(f"{type(node).__name__} is no kind of node: use what the builder makes")
    for part in parts(node, generated):
        if isinstance(part, Span):
            yield part.open
            if part.close is not None:
                yield part.close
        elif part is not None:
            yield part


def walk(node: Node, generated: bool = False) -> Iterator[Node]:
    """``node`` and all below it, parents first."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left += [*children(node, generated)][::-1]


def tokens(node: Node) -> tuple[str, ...]:
    """The texts of the special tokens in the tree, also of those in values, each once, in order."""
    found: dict[str, None] = {}
    for n in walk(node):
        if isinstance(n, Token):
            found.update(dict.fromkeys(n.names))
        elif isinstance(n, (Args, Value)):
            found.update(dict.fromkeys(n.syntax.tokens))
    return tuple(found)


def nullable(node: Node, rules: Mapping[str, Node] | None = None) -> bool:
    """Whether the parser can match ``node`` without reading a character. ``rules``: the nodes that `Ref` nodes name."""
    if isinstance(node, Ref):
        left = dict(rules or {})
        target = left.pop(node.name, None)
        return target is not None and nullable(target, left)  # read again within itself, it adds nothing
    inner = through(node)
    if inner is not None:
        return nullable(inner, rules)
    if isinstance(node, Sequence):
        return all(nullable(item, rules) for item in node.items)
    if isinstance(node, Choice):
        return any(nullable(option, rules) for option in node.options)
    if isinstance(node, Many):
        return node.least == 0 or nullable(node.node, rules)
    if isinstance(node, (Literal, Token)):
        return not node.text
    if isinstance(node, Chars):
        return node.least == 0
    return isinstance(node, (Until, EachArg, Value, Think, Body, *_SILENT))


def first(node: Node) -> tuple[str, ...]:
    """The texts that ``node`` can begin with, each extended until it is more than white space; longest first.

    The parser looks for these texts in running text to know that the node may begin there. They leave out white space
    (`Space`) in front: the parser looks for the text after it. Raises `DefinitionError` for a node that does not begin
    with text.
    """

    def enough(text: str) -> bool:
        return bool(text.strip())

    def extend(prefixes: set[str], item: Node) -> tuple[set[str], set[str]]:
        """``prefixes`` are texts that are not yet enough. Extends them by ``item``; returns the texts that now are
        enough, and those that still are not."""
        done: set[str] = set()
        short: set[str] = set()
        inner = through(item)
        if inner is not None:
            return extend(prefixes, inner)
        if isinstance(item, (Literal, Token)):
            for text in item.names if isinstance(item, Token) else (item.text,):
                for prefix in prefixes:
                    (done if enough(prefix + text) else short).add(prefix + text)
        elif isinstance(item, Sequence):
            short = prefixes
            for part in item.items:
                now, short = extend(short, part)
                done |= now
                if not short:
                    break
        elif isinstance(item, Choice):
            for option in item.options:
                now, rest = extend(prefixes, option)
                done |= now
                short |= rest
        elif isinstance(item, Many):
            done, short = extend(prefixes, item.node)
            if item.least == 0:
                short |= prefixes
        elif isinstance(item, Peek):
            done, short = extend(prefixes, item.node)
        elif isinstance(item, _SILENT) and not isinstance(item, End):
            short = prefixes
        else:
            raise DefinitionError(
                f"a section must begin with a literal or a token to be found in running text, not {type(item).__name__}"
            )
        return done, short

    found, rest = extend({""}, node)
    if rest:
        raise DefinitionError(
            "a section in running text must begin with a literal or a token, not with white space alone"
        )
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def head(node: Node, generated: bool = False) -> Node:
    """The part of ``node`` before its first commitment. If it follows, the node counts as begun."""

    def cut(item: Node) -> tuple[Node, bool]:
        """``item`` up to its commitment, and whether it has one."""
        if isinstance(item, Args) and not item.commit:
            return item, False
        if isinstance(item, (Cut, Args, EachArg, Value)):
            return Sequence(()), True
        if isinstance(item, Sequence):
            kept: list[Node] = []
            for part in item.items:
                shortened, ended = cut(part)
                kept.append(shortened)
                if ended:
                    return Sequence.of(*kept), True
            return item, False
        if isinstance(item, Choice):
            parts = [cut(option) for option in item.options]
            return Choice.of(*(part for part, _ in parts)), any(ended for _, ended in parts)
        inner = item.node if isinstance(item, Many) else through(item, generated)
        if inner is None:
            return item, False
        shortened, ended = cut(inner)
        wrapper = isinstance(item, (Rule, Tagged, Atomic, Many))
        return (item, False) if wrapper and not ended else (shortened, ended)

    return cut(node)[0]


_SILENT = (Space, End, Cut, Declared, Implied, Peek, Not)
"""Nodes that can match without reading a character, and that give no text to look for."""


def _none(node: Node, generated: bool) -> tuple[()]:
    return ()


_LEAVES: tuple[type[Node], ...] = (
    AnyChar,
    Args,
    Chars,
    Cut,
    Declared,
    End,
    Implied,
    JsonText,
    JsonValue,
    Literal,
    Ref,
    SameName,
    Space,
    Token,
    Until,
    Value,
)

_PARTS: Mapping[type[Node], Callable[[Any, bool], tuple[Node | Span | None, ...]]] = {
    **dict.fromkeys(_LEAVES, _none),
    Sequence: lambda node, generated: node.items,
    Choice: lambda node, generated: node.options,
    Lenient: lambda node, generated: (node.strict if generated else node.lenient,),
    EachTool: lambda node, generated: (node.any,),
    EachArg: lambda node, generated: (node.any, node.separator),
    Calls: lambda node, generated: (node.item, node.separator),
    Think: lambda node, generated: (node.span,),
    Body: lambda node, generated: (node.start, node.calls, node.marks, node.reasoning, node.content),
    **dict.fromkeys((Many, Peek, Not, Rule, Tagged, Atomic), lambda node, generated: (node.node,)),
    **dict.fromkeys((Name, JsonName, Header), lambda node, generated: (node.generate,)),
}
"""The parts below each kind of node: nodes, spans, or None for a missing part."""
