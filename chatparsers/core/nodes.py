"""The tree that a format is: immutable nodes, each with two readings.

The *parser* (core/compile.py) reads a tree once per format and option; tools are looked up while it runs, so what it
asks of a tool is "characters up to the next marker". The *grammar* (chatparsers.grammar) reads the same tree once per
tool: names become literals, arguments the rules of their schema. Each docstring below gives both as ``parses`` and
``generates``; where they differ, parsing is the lenient one.

Nodes are made with the builder (core/builder.py); strings stand for literals in every operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any as AnyType
from typing import TypeAlias

from .errors import DefinitionError
from .schema import Argument, Tool

__all__ = [
    "AnyChar",
    "Args",
    "Body",
    "Calls",
    "Capture",
    "Chars",
    "Choice",
    "Cut",
    "Declared",
    "EachArg",
    "EachTool",
    "End",
    "Json",
    "Known",
    "Lenient",
    "Literal",
    "Many",
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
    "children",
    "first",
    "head",
    "tokens",
    "walk",
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
    """``&a``: parses nothing where ``a`` follows. No grammar: allowed in the lenient half alone."""

    node: Node


@dataclass(frozen=True, slots=True)
class Not(Node):
    """``!a``: parses nothing where ``a`` does not follow. No grammar: allowed in the lenient half alone."""

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
class Capture(Node):
    """A short header value (a tool's name, an id, an argument's name).

    Parses the longest run of ``chars`` (a regular expression for one run, at most `MAX_HEADER` characters) in which
    the named groups of ``pattern`` (``name``, ``id``, ``arg``) are then found; ``pattern`` None: the run is the value
    of ``tag``. ``json``: the run is the inside of a JSON string and unescaped. Generates ``generate``.
    """

    tag: Tag
    chars: str
    generate: Node
    pattern: str | None = None
    json: bool = False


@dataclass(frozen=True, slots=True)
class Known(Node):
    """Parses nothing and says that ``tag`` (a tool's or an argument's name) is ``value``; generates nothing.

    For formats that imply a name, such as a code interpreter's.
    """

    tag: Tag
    value: str


@dataclass(frozen=True, slots=True)
class Cut(Node):
    """Commits: there is no way back behind this point, so what was held is emitted. Generates nothing."""


@dataclass(frozen=True, slots=True)
class Declared(Node):
    """Parses nothing where the name just read is a tool of the request; generates nothing."""


@dataclass(frozen=True, slots=True)
class EachTool(Node):
    """A call: parses ``any`` (= ``make(None)``) for whatever tool is named; generates one alternative
    ``make(tool)`` a tool."""

    make: Callable[[Tool | None], Node]
    any: Node


@dataclass(frozen=True, slots=True)
class EachArg(Node):
    """A call's arguments one by one: parses any number of ``any`` (= ``make(None)``) with ``separator``
    between; generates the tool's required arguments (in any order where the engine can bear it) and its
    optional ones at most once each. ``most``: the parser takes no more of them."""

    tool: Tool | None
    make: Callable[[Argument | None], Node]
    any: Node
    separator: Node | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Args(Node):
    """A call's arguments as one object in a value syntax (``json``, ``gemma``): parsed verbatim or transcoded to JSON,
    streamed; generates the tool's parameters in that syntax. ``commit``: the call's header is over (a cut). ``quote``:
    the marker around strings in syntaxes that have one."""

    tool: Tool | None
    syntax: str = "json"
    commit: bool = True
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Value(Node):
    """An argument's value in a value syntax (``json``, ``raw``, ``python``), up to ``stops`` where it is raw.

    Parsed to JSON, typed by the schema that the environment has for it; ``also`` are stops that only the parser
    knows. Generates the argument's schema in that syntax. ``string``: None, or True/False where the text itself
    (an attribute) says whether the value is a string. ``ends``: the end of the turn ends it as well.
    ``python``: what is no string is spelt as Python's ``str`` does (``True``, ``None``), besides JSON, where it
    is raw.
    """

    argument: Argument | None
    syntax: str
    stops: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    string: bool | None = None
    quote: str = ""
    ends: bool = False
    python: bool = False


@dataclass(frozen=True, slots=True)
class Json(Node):
    """Any JSON value: parsed verbatim as part of its region (``content``: a string's inside is unescaped to content);
    generates the rules of ``schema``."""

    schema: AnyType = True
    content: bool = False


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
    do so. Generates an optional thought, none where ``allowed`` is False.
    """

    span: Span
    allowed: bool
    always: bool = False
    until: Node | None = None


@dataclass(frozen=True, slots=True)
class Body(Node):
    """What follows the reasoning: content, calls and further thoughts in any order, until the end of the turn.

    Parses ``start`` once at the beginning, then a loop of ``calls``, ``reasoning``, ``content`` (text inside
    the span), and otherwise text as content up to the next of them; ``lead`` is the white space that the
    template writes before a call; ``marks`` is markup in running text that is neither. A special token of the
    format that is none of these is markup too, but diagnosed. Generates by ``mode``: ``auto`` content and calls
    (lazily: calls alone), ``required`` calls alone (behind reasoning), ``none`` content alone; ``schema`` (not
    None) content of that JSON Schema.
    """

    calls: Node | None
    start: Node | None
    reasoning: Span | None
    content: Span | None
    lead: str
    mode: str
    schema: AnyType = None
    stops: tuple[str, ...] = ()
    marks: Node | None = None


def children(node: Node, generated: bool = False) -> Iterator[Node]:
    """The nodes directly below ``node``, in the parser's reading; ``generated``: in the grammar's, of `Lenient`
    nodes."""
    if isinstance(node, Sequence):
        yield from node.items
    elif isinstance(node, Choice):
        yield from node.options
    elif isinstance(node, (Many, Peek, Not, Rule, Tagged)):
        yield node.node
    elif isinstance(node, EachTool):
        yield node.any
    elif isinstance(node, EachArg):
        yield node.any
        if node.separator is not None:
            yield node.separator
    elif isinstance(node, Capture):
        yield node.generate
    elif isinstance(node, Lenient):
        yield node.strict if generated else node.lenient
    elif isinstance(node, Calls):
        yield node.item
        yield node.separator
    elif isinstance(node, Think):
        yield from _markers(node.span)
    elif isinstance(node, Body):
        for part in (node.start, node.calls, node.marks):
            if part is not None:
                yield part
        for span in (node.reasoning, node.content):
            if span is not None:
                yield from _markers(span)


def _markers(span: Span) -> Iterator[Node]:
    yield span.open
    if span.close is not None:
        yield span.close


def walk(node: Node, generated: bool = False) -> Iterator[Node]:
    """``node`` and all below it, parents first; ``generated`` as in `children`."""
    yield node
    for child in children(node, generated):
        yield from walk(child, generated)


def tokens(node: Node) -> tuple[str, ...]:
    """The texts of the special tokens in the tree, the quotes of values among them, each once, in order."""
    found: dict[str, None] = {}
    for n in walk(node):
        if isinstance(n, Token):
            found[n.text] = None
        elif isinstance(n, (Args, Value)) and n.quote:
            found[n.quote] = None
    return tuple(found)


def nullable(node: Node) -> bool:
    """Whether the parser can match ``node`` without reading a character."""
    if isinstance(node, Sequence):
        return all(map(nullable, node.items))
    if isinstance(node, Choice):
        return any(map(nullable, node.options))
    if isinstance(node, Many):
        return node.least == 0 or nullable(node.node)
    if isinstance(node, (Rule, Tagged)):
        return nullable(node.node)
    if isinstance(node, Lenient):
        return nullable(node.lenient)
    if isinstance(node, Calls):
        return nullable(node.item)
    if isinstance(node, EachTool):
        return nullable(node.any)
    if isinstance(node, Chars):
        return node.least == 0
    return isinstance(node, (Space, End, Cut, Declared, Known, Peek, Not, Until, Think, Body))


def first(node: Node) -> tuple[str, ...]:
    """The texts that ``node`` can begin with, each extended until it is more than white space; longest first.

    What the parser looks for in running text to know that the node may begin here. Any white space (`Space`) in front
    is left out: the text that follows it is what is looked for.
    """
    found: set[str] = set()

    def enough(text: str) -> bool:
        return bool(text.strip())

    def extend(prefixes: set[str], item: Node) -> tuple[set[str], set[str]]:
        """What ``item`` makes of texts that are not yet enough: (those that now are, those that still are not)."""
        done: set[str] = set()
        short: set[str] = set()
        if isinstance(item, (Literal, Token)):
            for prefix in prefixes:
                (done if enough(prefix + item.text) else short).add(prefix + item.text)
        elif isinstance(item, Sequence):
            short = prefixes
            for part in item.items:
                now, short = extend(short, part)
                done |= now
                if not short:
                    break
        elif isinstance(item, Lenient):
            done, short = extend(prefixes, item.lenient)
        elif isinstance(item, Choice):
            for option in item.options:
                now, rest = extend(prefixes, option)
                done |= now
                short |= rest
        elif isinstance(item, Many):
            done, short = extend(prefixes, item.node)
            if item.least == 0:
                short |= prefixes
        elif isinstance(item, (Rule, Tagged)):
            done, short = extend(prefixes, item.node)
        elif isinstance(item, EachTool):
            done, short = extend(prefixes, item.any)
        elif isinstance(item, Calls):
            done, short = extend(prefixes, item.item)
        elif isinstance(item, (Space, Cut, Declared, Known, Peek, Not)):
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


def head(node: Node, strict: bool = False) -> Node:
    """The part of ``node`` before its first commitment: what must follow for it to be taken as begun; ``strict``: of
    what is generated, in lenient nodes."""

    def cut(item: Node) -> tuple[Node, bool]:
        if isinstance(item, (Cut, Args, EachArg, Value)):
            return Sequence(()), not (isinstance(item, Args) and not item.commit)
        if isinstance(item, Sequence):
            kept: list[Node] = []
            for part in item.items:
                shortened, ended = cut(part)
                kept.append(shortened)
                if ended:
                    return Sequence.of(*kept), True
            return item, False
        if isinstance(item, Lenient):
            return cut(item.strict if strict else item.lenient)
        if isinstance(item, Choice):
            parts = [cut(option) for option in item.options]
            return Choice.of(*(part for part, _ in parts)), any(ended for _, ended in parts)
        if isinstance(item, (Rule, Tagged, Many)):
            shortened, ended = cut(item.node)
            return (shortened, True) if ended else (item, False)
        if isinstance(item, EachTool):
            return cut(item.any)
        if isinstance(item, Calls):
            return cut(item.item)
        return item, False

    return cut(node)[0]
