"""The nodes of a format's tree. They are immutable, and each has two readings.

The *parser* (core/parser/compile.py) reads a tree once per format and option. It looks tools up while it runs, so
for it a tool's name is "characters up to the next marker". The *grammar* (chatparsers.grammar) reads the same tree once
per tool: names become literals, arguments become the rules of their schema. Each docstring gives both readings, as
``parses`` and ``generates``. If they differ, the parser accepts more.

Nodes are made with the builder (core/definition/builder.py); strings stand for literals in every operator.
"""

from __future__ import annotations

from .call import (
    Args,
    Calls,
    Declared,
    EachArg,
    EachTool,
    Header,
    Implied,
    JsonName,
    JsonText,
    JsonValue,
    Name,
    SameName,
    Value,
)
from .control import Atomic, Cut, Lenient, Many, Not, Peek, Ref, Rule, Tag, Tagged
from .node import (
    Choice,
    Inner,
    Leaf,
    Literal,
    Node,
    Nodelike,
    Reader,
    Sequence,
    Space,
    Token,
    as_node,
    kinds,
    of_every_kind,
)
from .text import AnyChar, Chars, End, LineStart, Until
from .turn import Body, Span, Think

__all__ = [
    "AnyChar",
    "Args",
    "Atomic",
    "Body",
    "Calls",
    "Chars",
    "Choice",
    "Cut",
    "Declared",
    "EachArg",
    "EachTool",
    "End",
    "Header",
    "Implied",
    "Inner",
    "JsonName",
    "JsonText",
    "JsonValue",
    "Leaf",
    "Lenient",
    "LineStart",
    "Literal",
    "Many",
    "Name",
    "Node",
    "Nodelike",
    "Not",
    "Peek",
    "Reader",
    "Ref",
    "Rule",
    "SameName",
    "Sequence",
    "Space",
    "Span",
    "Tag",
    "Tagged",
    "Think",
    "Token",
    "Until",
    "Value",
    "as_node",
    "kinds",
    "of_every_kind",
]
