"""The tree that a format is: immutable nodes, each with two readings.

The *parser* (core/compile.py) reads a tree once per format and option; tools are looked up while it runs, so what it
asks of a tool is "characters up to the next marker". The *grammar* (chatparsers.grammar) reads the same tree once per
tool: names become literals, arguments the rules of their schema. Each docstring below gives both as ``parses`` and
``generates``; where they differ, parsing is the lenient one.

Nodes are made with the builder (core/builder.py); strings stand for literals in every operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from .errors import DefinitionError
from .schema import Argument, Tool
from .values import Json, Syntax

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
    "JsonName",
    "JsonText",
    "JsonValue",
    "Lenient",
    "Literal",
    "Many",
    "Name",
    "Node",
    "Nodelike",
    "Not",
    "Peek",
    "Ref",
    "Rule",
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
]


class Tag(Enum):
    """What a stretch of the text is."""

    CONTENT = "content"
    REASONING = "reasoning"
    CALL = "call"
    NAME = "name"
    ID = "id"
    ARG_NAME = "argument name"
    THOUGHT = "thought"
    """Reasoning with its markers: with ``reasoning="inline"`` all of it is content."""


class Node:
    """One node of a format's tree; ``+`` is sequence, ``<<`` sequence with white space between, ``|`` ordered
    choice."""

    __slots__ = ()

    def __add__(self, other: Nodelike) -> Node:
        return Sequence.of(self, other)

    def __radd__(self, other: Nodelike) -> Node:
        return Sequence.of(other, self)

    def __lshift__(self, other: Nodelike) -> Node:
        return Sequence.of(self, Space(""), other)

    def __rlshift__(self, other: Nodelike) -> Node:
        return Sequence.of(other, Space(""), self)

    def __or__(self, other: Nodelike) -> Node:
        return Choice.of(self, other)

    def __ror__(self, other: Nodelike) -> Node:
        return Choice.of(other, self)

    def __bool__(self) -> bool:
        raise DefinitionError("a node has no truth value: write `a | b` for ordered choice, not `a or b`")


Nodelike: TypeAlias = Node | str


def as_node(value: Nodelike) -> Node:
    """``value``, a string as its literal."""
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, Node):
        return value
    raise DefinitionError(f"expected a node or a string, found {type(value).__name__}: {value!r}")


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """Parses and generates exactly ``text``."""

    text: str


@dataclass(frozen=True, slots=True)
class Token(Node):
    """A special token: parses one token where ids are fed and the tokenizer has it, else its text; generates its text
    (a token reference in dialects that have them)."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars(Node):
    """Parses and generates ``least`` to ``most`` (None: any number of) characters of a class such as ``"a-z0-9_"``,
    ``"^<"``."""

    ranges: str
    least: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Space(Node):
    """Parses any white space, none included; generates exactly ``text``, or where it is ``free`` (inside JSON)
    also what JSON allows there."""

    text: str
    free: bool = False


@dataclass(frozen=True, slots=True)
class AnyChar(Node):
    """Parses and generates one character."""


@dataclass(frozen=True, slots=True)
class End(Node):
    """Parses the end of the text; generates nothing."""


@dataclass(frozen=True, slots=True)
class Until(Node):
    """Parses text up to the first of ``stops`` or the end, streamed; generates text in which none of ``stops`` is.

    With no stops: the rest of the text.
    """

    stops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """``a b c``: one after the other."""

    items: tuple[Node, ...]

    @staticmethod
    def of(*items: Nodelike) -> Node:
        flat: list[Node] = []
        for item in map(as_node, items):
            if isinstance(item, Sequence):
                flat.extend(item.items)
            elif not (isinstance(item, Literal) and item.text == ""):
                flat.append(item)
        return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """``a / b / c``: the first that matches (PEG ordered choice); generates any of them."""

    options: tuple[Node, ...]

    @staticmethod
    def of(*options: Nodelike) -> Node:
        flat: list[Node] = []
        for option in map(as_node, options):
            flat.extend(option.options if isinstance(option, Choice) else (option,))
        return flat[0] if len(flat) == 1 else Choice(tuple(flat))


@dataclass(frozen=True, slots=True)
class Many(Node):
    """``a{least,most}``, greedy; ``most`` None: no bound. The parser takes as many as there are."""

    node: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Peek(Node):
    """``&a``: succeeds without reading if ``a`` follows. It has no grammar, so it stands in lenient halves alone."""

    node: Node


@dataclass(frozen=True, slots=True)
class Not(Node):
    """``!a``: succeeds without reading if ``a`` does not follow. It has no grammar, as `Peek`."""

    node: Node


@dataclass(frozen=True, slots=True)
class Rule(Node):
    """``name <- a``: a named rule, so that `Ref` can repeat or recur on it."""

    name: str
    node: Node


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """The rule of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Tagged(Node):
    """The node's text is of a kind: becomes events. Transparent in the grammar."""

    tag: Tag
    node: Node


@dataclass(frozen=True, slots=True)
class Atomic(Node):
    """Parses the node, and emits nothing of it until it is whole. Transparent in the grammar."""

    node: Node


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name in a call's header: of a tool, an argument or the call itself (its id), which ``tag`` says.

    Parses the longest run of ``chars`` (a regular expression for one character, at most `MAX_HEADER` of them).
    Generates ``generate``; None in the tree of `ANY_TOOL` or `ANY_ARGUMENT`, which is never generated.
    """

    tag: Tag
    chars: str
    generate: Node | None


@dataclass(frozen=True, slots=True)
class JsonName(Node):
    """A name as the inside of a JSON string, unescaped; else as `Name`."""

    tag: Tag
    generate: Node | None


@dataclass(frozen=True, slots=True)
class Header(Node):
    """A call's header. Parses a run of ``chars`` as `Name` does, in which the named groups of ``pattern`` (``name``,
    ``id``) are then found; generates ``generate``."""

    pattern: str
    chars: str
    generate: Node


@dataclass(frozen=True, slots=True)
class Implied(Node):
    """Parses nothing and says that ``tag`` (a tool's or an argument's name) is ``value``; generates nothing.

    For formats that imply a name, such as a code interpreter's.
    """

    tag: Tag
    value: str


@dataclass(frozen=True, slots=True)
class Cut(Node):
    """Commits: the parser never goes back before this point, so it emits what it held. Generates nothing."""


@dataclass(frozen=True, slots=True)
class Declared(Node):
    """Succeeds without reading if the name just read is a tool of the request; fails otherwise. Generates nothing."""


@dataclass(frozen=True, slots=True)
class EachTool(Node):
    """A call: parses ``any`` (= ``make(ANY_TOOL)``) for whatever tool is named; generates one alternative
    ``make(tool)`` a tool."""

    make: Callable[[Tool], Node]
    any: Node


@dataclass(frozen=True, slots=True)
class EachArg(Node):
    """A call's arguments one by one: parses any number of ``any`` (= ``make(ANY_ARGUMENT)``) with ``separator``
    between; generates the tool's required arguments (in any order where the engine can bear it) and its
    optional ones at most once each. ``most``: the parser takes no more of them."""

    tool: Tool
    make: Callable[[Argument], Node]
    any: Node
    separator: Node | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Args(Node):
    """A call's arguments as one object in a value syntax: parsed verbatim or transcoded to JSON, streamed; generates
    the tool's parameters in that syntax. ``commit``: the call's header is over (a cut)."""

    tool: Tool
    syntax: Syntax = field(default_factory=Json)
    commit: bool = True


@dataclass(frozen=True, slots=True)
class Value(Node):
    """An argument's value in a value syntax. Parsed to JSON, typed by the schema that the environment has for it;
    generates the argument's schema in that syntax."""

    argument: Argument
    syntax: Syntax


@dataclass(frozen=True, slots=True)
class JsonValue(Node):
    """Parses any JSON value, verbatim, as part of its region; generates any JSON value."""


@dataclass(frozen=True, slots=True)
class JsonText(Node):
    """Parses a JSON string whose text is content, or any other JSON value, which is content as it stands; generates a
    JSON string."""


@dataclass(frozen=True, slots=True)
class Lenient(Node):
    """Two readings: parses ``lenient``, which takes all that models write, and generates ``strict`` alone."""

    strict: Node
    lenient: Node


@dataclass(frozen=True, slots=True)
class Calls(Node):
    """One call or several with ``separator`` between; generates one alone where parallel calls are not allowed."""

    item: Node
    separator: Node
    parallel: bool


@dataclass(frozen=True, slots=True)
class Span:
    """Text between two markers; ``close`` None: up to the next section or the end of the turn. Where ``close``
    is missing at the end of the turn, the text has been cut off, unless it is ``optional``. Generates the text
    with both markers."""

    open: Node
    close: Node | None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Think(Node):
    """Reasoning at the start of the turn: parses an optional ``span.open`` (or several), text, ``span.close``.

    ``always``: it begins without its opener. ``until``: a call that ends open reasoning, where the model is known to
    do so. Generates an optional thought, none where the request wants none.
    """

    span: Span
    always: bool = False
    until: Node | None = None


@dataclass(frozen=True, slots=True)
class Body(Node):
    """What follows the reasoning: content, calls and further thoughts in any order, until the end of the turn.

    Parses ``start`` once at the beginning, then a loop of ``calls``, ``reasoning``, ``content`` (text inside
    the span), and otherwise text as content up to the next of them; ``lead`` is the white space that the
    template writes before a call; ``marks`` is markup in running text that is neither. A special token of the
    format that is none of these is markup too, but diagnosed. Generates what the request's options say: content and
    calls (lazily: calls alone), calls alone (after reasoning), content alone, or content of a JSON Schema.
    """

    calls: Node | None
    start: Node | None = None
    reasoning: Span | None = None
    content: Span | None = None
    lead: str = ""
    marks: Node | None = None
