"""Spells a node in the words of the builder, and raises the error that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..errors import DefinitionError
from ..values import Syntax
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
    Tag,
    Tagged,
    Think,
    Token,
    Until,
    Value,
)

__all__ = ["spelt", "wrong"]

_SHOWN = 60
"""The most characters of a node that an error shows."""


def wrong(node: Node | str, what: str, mend: str) -> NoReturn:
    """Raises `DefinitionError`. ``what`` says what is wrong with ``node``, ``mend`` what to do about it."""
    raise DefinitionError(f"{node if isinstance(node, str) else spelt(node)}: {what}; {mend}")


def spelt(node: Node) -> str:
    """The builder's calls that make ``node``, shortened."""
    spell = _SPELT.get(type(node))
    text = spell(node) if spell is not None else type(node).__name__
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _joined(nodes: Iterable[Node], by: str) -> str:
    return by.join(spelt(node) for node in nodes)


def _spelt_many(node: Many) -> str:
    if (node.least, node.most) == (0, 1):
        return f"p.optional({spelt(node.node)})"
    if node.most is None:
        return f"p.many({spelt(node.node)}{f', {node.least}' if node.least else ''})"
    return f"p.repeat({spelt(node.node)}, {node.least}, {node.most})"


def _spelt_syntax(syntax: object) -> str:
    return f"{type(syntax).__name__}(…)" if isinstance(syntax, Syntax) else repr(syntax)


_SPELT: dict[type[Node], Any] = {
    Literal: lambda node: repr(node.text),
    Token: lambda node: f"p.token({', '.join(map(repr, node.names))})",
    Chars: lambda node: f"p.chars({node.ranges!r})",
    Space: lambda node: f"p.space({node.text!r})" if node.text else "p.space()",
    AnyChar: lambda node: "p.any()",
    End: lambda node: "p.end()",
    Until: lambda node: f"p.until({', '.join(map(repr, node.stops))})",
    Sequence: lambda node: _joined(node.items, " + "),
    Choice: lambda node: _joined(node.options, " | "),
    Many: _spelt_many,
    Peek: lambda node: f"p.peek({spelt(node.node)})",
    Not: lambda node: f"p.negate({spelt(node.node)})",
    Rule: lambda node: f"p.rule({node.name!r}, {spelt(node.node)})",
    Ref: lambda node: f"p.ref({node.name!r})",
    Tagged: lambda node: (
        spelt(node.node) if node.tag is Tag.CALL else f"p.tag({node.tag}, {spelt(node.node)})"
    ),
    Name: lambda node: {Tag.NAME: "p.name(tool)", Tag.ARG_NAME: "p.arg_name(arg)"}.get(node.tag, "p.id(…)"),
    SameName: lambda node: "p.same_name(arg)",
    JsonName: lambda node: "p.json_name(tool)" if node.tag is Tag.NAME else "p.id(…)",
    Header: lambda node: f"p.header({node.pattern!r}, …)",
    Implied: lambda node: f"p.implied({node.tag}, {node.value!r})",
    Atomic: lambda node: f"p.atomic({spelt(node.node)})",
    Cut: lambda node: "p.cut()",
    Declared: lambda node: f"p.declared(lacks={node.lacks!r})" if node.lacks else "p.declared()",
    EachTool: lambda node: "p.each_tool(…)",
    EachArg: lambda node: "p.each_arg(…)",
    Args: lambda node: "p.args(tool)",
    Value: lambda node: f"p.value(arg, {_spelt_syntax(node.syntax)})",
    JsonText: lambda node: "p.json_text()",
    JsonValue: lambda node: "a JSON value",
    Lenient: lambda node: f"p.reads({spelt(node.strict)}, …)",
    Calls: lambda node: f"p.calls({spelt(node.item)})",
    Think: lambda node: "p.think(…)",
    Body: lambda node: "p.body(…)",
}
