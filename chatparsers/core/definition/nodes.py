"""The nodes of a format's tree. They are immutable, and each has two readings.

The *parser* (core/parser/compile.py) reads a tree once per format and option. It looks tools up while it runs, so
for it a tool's name is "characters up to the next marker". The *grammar* (chatparsers.grammar) reads the same tree once
per tool: names become literals, arguments become the rules of their schema. Each docstring gives both readings, as
``parses`` and ``generates``. If they differ, the parser accepts more.

Nodes are made with the builder (core/definition/builder.py); strings stand for literals in every operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from ..errors import DefinitionError
from ..schema.tools import Argument, Tool
from ..values import Json, Syntax

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
]


class Tag(Enum):
    """The kinds of a run of text."""

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
    (a token reference in dialects that have them).

    ``also``: its names in other checkpoints of the family. Parses any of the names. Generates the one that the
    tokenizer or the prompt has, else ``text``.
    """

    text: str
    also: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All its names."""
        return (self.text, *self.also)


@dataclass(frozen=True, slots=True)
class Chars(Node):
    """Parses and generates ``least`` to ``most`` (None: any number of) characters of a class such as ``"a-z0-9_"`` or
    ``"^<"``."""

    ranges: str
    least: int = 1
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Space(Node):
    """Parses any white space, which may be empty; generates exactly ``text``. If it is ``free`` (inside JSON), also
    generates the other white space that JSON allows there."""

    text: str
    free: bool = False


@dataclass(frozen=True, slots=True)
class AnyChar(Node):
    """Parses and generates one character."""


@dataclass(frozen=True, slots=True)
class End(Node):
    """Parses the end of the turn, which a turn that was cut off does not have; generates nothing."""


@dataclass(frozen=True, slots=True)
class Until(Node):
    """Parses text up to the first of ``stops`` or the end, streamed; generates text without any of ``stops``.

    Without stops, this is the rest of the text.
    """

    stops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """``a b c``: the nodes one after the other."""

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
    """``a{least,most}``; ``most`` None: no bound. The parser is greedy: it takes as many as follow."""

    node: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Peek(Node):
    """``&a``: succeeds without reading if ``a`` follows. It has no grammar, so it stands only in lenient halves."""

    node: Node


@dataclass(frozen=True, slots=True)
class Not(Node):
    """``!a``: succeeds without reading if ``a`` does not follow. Like `Peek`, it has no grammar."""

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
    """Gives the node's text a kind, so that it becomes events. The grammar reads only the node."""

    tag: Tag
    node: Node


@dataclass(frozen=True, slots=True)
class Atomic(Node):
    """Parses the node, and emits nothing of it until it is whole. The grammar reads only the node."""

    node: Node


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name in a call's header. ``tag`` says whose: a tool's, an argument's, or the call's own (its id).

    Parses the longest run of ``chars`` (a regular expression for one character, at most `MAX_HEADER` of them).
    Generates ``generate``; None in the tree of `ANY_TOOL` or `ANY_ARGUMENT`, which is never generated. ``escapes``:
    pairs of a character and its spelling in the name, such as ``('"', "&quot;")``.
    """

    tag: Tag
    chars: str
    generate: Node | None
    escapes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SameName(Node):
    """The argument's name once more, as in a closing tag. Parses the name that was read, exactly; generates the name of
    ``argument``."""

    argument: Argument


@dataclass(frozen=True, slots=True)
class JsonName(Node):
    """As `Name`, for a name that is the inside of a JSON string. The parser resolves its escapes."""

    tag: Tag
    generate: Node | None


@dataclass(frozen=True, slots=True)
class Header(Node):
    """A call's header. Parses a run of ``chars`` as `Name` does, and finds the named groups of ``pattern`` (``name``,
    ``id``) in it; generates ``generate``."""

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
    """Commits: the parser never goes back before this point, so it emits the held text. Generates nothing."""


@dataclass(frozen=True, slots=True)
class Declared(Node):
    """Succeeds without reading if the name just read is a tool of the request, and if that tool has no argument called
    ``lacks`` (empty: whatever it has); fails otherwise. Generates nothing."""

    lacks: str = ""


@dataclass(frozen=True, slots=True)
class EachTool(Node):
    """A call: parses ``any`` (= ``make(ANY_TOOL)``), whatever tool the model names; generates ``make(tool)`` as one
    alternative for each tool."""

    make: Callable[[Tool], Node]
    any: Node


@dataclass(frozen=True, slots=True)
class EachArg(Node):
    """A call's arguments one by one. Parses any number of ``any`` (= ``make(ANY_ARGUMENT)``), or up to ``most``, with
    ``separator`` between. Generates each required argument of the tool once (in any order, if the grammar stays small
    enough) and each optional one at most once."""

    tool: Tool
    make: Callable[[Argument], Node]
    any: Node
    separator: Node | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Args(Node):
    """A call's arguments as one object in a value syntax. Parses it verbatim or transcodes it to JSON, streamed;
    generates the tool's parameters in that syntax. ``commit``: the call's header is over (a cut)."""

    tool: Tool
    syntax: Syntax = field(default_factory=Json)
    commit: bool = True


@dataclass(frozen=True, slots=True)
class Value(Node):
    """An argument's value in a value syntax. Parses it to JSON, typed by the argument's schema in the request;
    generates the argument's schema in that syntax."""

    argument: Argument
    syntax: Syntax


@dataclass(frozen=True, slots=True)
class JsonValue(Node):
    """Parses any JSON value, verbatim, as part of its region; generates any JSON value."""


@dataclass(frozen=True, slots=True)
class JsonText(Node):
    """Parses a JSON string whose text is content, or any other JSON value, which is content unchanged; generates a
    JSON string."""


@dataclass(frozen=True, slots=True)
class Lenient(Node):
    """Two readings: parses ``lenient``, which takes all that models write, and generates only ``strict``."""

    strict: Node
    lenient: Node


@dataclass(frozen=True, slots=True)
class Calls(Node):
    """One call or several with ``separator`` between; generates only one if parallel calls are not allowed."""

    item: Node
    separator: Node
    parallel: bool


@dataclass(frozen=True, slots=True)
class Span:
    """Text between two markers. If ``close`` is None, the text goes up to the next section or the end of the turn. If
    ``close`` is missing at the end of the turn, the text was cut off, unless it is ``optional``. Generates the text
    with both markers."""

    open: Node
    close: Node | None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Think(Node):
    """Reasoning at the start of the turn: parses an optional ``span.open`` (or several), text, ``span.close``.

    ``always``: reasoning begins without its opener. ``until``: a call that ends open reasoning, for a model that is
    known to write so. Generates an optional thought, or nothing if the request wants no reasoning.
    """

    span: Span
    always: bool = False
    until: Node | None = None


@dataclass(frozen=True, slots=True)
class Body(Node):
    """What follows the reasoning: content, calls and further thoughts in any order, until the end of the turn.

    Parses ``start`` once at the beginning, then a loop of ``calls``, ``reasoning`` and ``content`` (text inside the
    span). Any other text is content, up to the next of them. ``lead`` is the white space that the template writes
    before a call. ``marks`` is other markup in running text. A special token of the format that begins none of these is
    markup too, with a diagnostic. The request's options decide what is generated: content and calls (in a lazy grammar,
    only the calls), only calls (after reasoning), only content, or content of a JSON Schema.
    """

    calls: Node | None
    start: Node | None = None
    reasoning: Span | None = None
    content: Span | None = None
    lead: str = ""
    marks: Node | None = None
