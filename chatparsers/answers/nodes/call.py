"""Nodes that read a call and its parts: names, ids, arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from ...core.nodes.control import Many, Tag
from ...core.nodes.node import (
    ALWAYS,
    NEVER,
    SOMETIMES,
    Choice,
    Inner,
    Leaf,
    Literal,
    Needed,
    Node,
    Reader,
    Sequence,
    Silent,
)
from ...core.nodes.text import Chars
from ...core.wrong import check_regex, check_texts, described, matches_any, wrong
from ...schema.tools import ANY_TOOL, Argument, Tool
from ...values import Json, Raw, Syntax


class _Captured(Needed, family=True):
    """Kinds that read a run of text which the parser keeps. The grammar reads what they generate."""

    __slots__ = ()
    generate: Node | None
    """What is generated in place of the run."""

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.generate,) if generated and self.generate is not None else ()


@dataclass(frozen=True, slots=True)
class Name(_Captured):
    """A name in a call's header. ``tag`` says whose: a tool's, an argument's, or the call's own (its id).

    Parses the longest run of ``chars`` (a regular expression for one character, at most `MAX_HEADER` of them).
    Generates ``generate``; None in the tree of `ANY_TOOL` or `ANY_ARGUMENT`, which is never generated. ``escapes``:
    pairs of a character and its spelling in the name, such as ``('"', "&quot;")``. ``parted``: a text in place of a `_`
    or a dot of a declared name; "": none.
    """

    tag: Tag
    chars: str
    generate: Node | None
    escapes: tuple[tuple[str, str], ...] = ()
    parted: str = ""

    def shown(self) -> str:
        return {Tag.NAME: "p.name(tool)", Tag.ARG_NAME: "p.arg_name(arg)"}.get(self.tag, "p.id(…)")

    def check(self, reader: Reader) -> None:
        _check_run(self, self.chars)
        _check_named(self, reader)


@dataclass(frozen=True, slots=True)
class JsonName(_Captured):
    """As `Name`, for a name that is the inside of a JSON string. The parser resolves its escapes."""

    tag: Tag
    generate: Node | None

    def shown(self) -> str:
        return "p.json_name(tool)" if self.tag is Tag.NAME else "p.id(…)"

    def check(self, reader: Reader) -> None:
        _check_named(self, reader)


def _check_named(node: Name | JsonName, reader: Reader) -> None:
    """Checks, in the grammar's reading, that the written name is the tool's or the argument's."""
    if not reader.generated or node.tag is Tag.ID:
        return
    name = reader.tool.name if node.tag is Tag.NAME else reader.argument.name
    if node.generate is None or node.generate != Literal(json.dumps(name)[1:-1]):
        given, make = ("tool", "make(tool)") if node.tag is Tag.NAME else ("arg", "make(arg)")
        what = f"it does not write the name of the {given} that {make} was given"
        wrong(node, what, f"pass that {given} on")


@dataclass(frozen=True, slots=True)
class SameName(Needed):
    """A name once more, ``of`` the argument, as in a closing tag, or of the tool, as in an address before its call.
    Parses the name that was read, exactly; generates the name. That of a tool is parsed only in a `Header`."""

    of: Argument | Tool

    def shown(self) -> str:
        return "p.same_name(tool)" if isinstance(self.of, Tool) else "p.same_name(arg)"

    def check(self, reader: Reader) -> None:
        if not isinstance(self.of, Tool):
            if self.of != reader.argument:
                wrong(self, "it is not given the argument that make(arg) was given", "pass that argument on")
            return
        _check_passed_on(self, self.of, reader)
        if not reader.generated:
            wrong(self, "the parser has no name to compare it with", "write p.reads(p.same_name(tool), …)")


@dataclass(frozen=True, slots=True)
class Header(_Captured, shown="p.header(…)"):
    """A call's header. Parses a run of ``chars`` as `Name` does, all of which ``parsed`` must match, and finds the name
    in it; generates ``generate``. ``id``: the run is the call's id. ``unless``: the runs that are no header."""

    parsed: Node
    chars: str
    generate: Node
    id: bool = False
    unless: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """What it parses, as regular expressions with a group ``name``; the first that matches the run counts."""
        return tuple(self._run(way, {}).regex for way in _ways(self.parsed))

    def check(self, reader: Reader) -> None:
        _check_run(self, self.chars)
        if self.unless:
            check_texts("p.header: unless", self.unless)
        if reader.generated:
            self._check_generated(reader)
            return
        kept: dict[int, _Run] = {}
        self._run(self.parsed, kept)
        for node in reader.walk(self.parsed):
            if isinstance(node, (Chars, Name)):
                node.check(reader)
        for way in _ways(self.parsed):
            items = way.items if isinstance(way, Sequence) else (way,)
            if self._run(way, kept).names != 1 or not any(isinstance(item, Name) for item in items):
                mend = "write p.name(tool) once into each way"
                wrong(self, f"{described(way)}, a way to parse it, has not one name of the tool", mend)

    def _check_generated(self, reader: Reader) -> None:
        if not any(
            isinstance(inner, (Name, JsonName))
            or (isinstance(inner, Literal) and reader.tool.name in inner.text)
            for inner in reader.walk(self.generate)
        ):
            what = "what it generates has no name of the tool"
            wrong(self, what, "write p.name(tool) into its second argument")

    def _run(self, node: Node, kept: dict[int, _Run]) -> _Run:
        """How a part of what it parses is read. ``kept``: what was found of each node."""
        if id(node) not in kept:
            found = kept[id(node)] = _read(node, [self._run(part, kept) for part in node.parts(False)])
            if found.ways > _MOST_DIVIDED or len(found.regex) > _LARGEST:
                what = f"what it parses may divide a header in more than {_MOST_DIVIDED:,} ways"
                wrong(self, what, "give p.chars() a bound, such as p.chars('0-9', 1, 4)")
        return kept[id(node)]


def _ways(parsed: Node) -> tuple[Node, ...]:
    return parsed.options if isinstance(parsed, Choice) else (parsed,)


class _Run(NamedTuple):
    """A part of what a header parses: its regular expression, in how many ways it may take from the header, and how
    many names it has."""

    regex: str
    ways: int
    names: int = 0


def _read(node: Node, parts: list[_Run]) -> _Run:
    """Raises `DefinitionError` for a kind of node that is in no header."""
    names = sum(part.names for part in parts)
    if isinstance(node, Literal):
        return _Run(re.escape(node.text), 1)
    if isinstance(node, Chars):
        most = "" if node.most is None else node.most
        ways = _LONGEST if node.most is None else node.most - node.least + 1
        return _Run(f"[{node.ranges}]{{{node.least},{most}}}", ways)
    if isinstance(node, Name) and node.tag is Tag.NAME:
        return _Run("(?P<name>.+?)", _LONGEST, 1)  # of what the header is made of
    if isinstance(node, SameName) and isinstance(node.of, Tool):
        return _Run("(?P=name)", 1)
    if isinstance(node, Many) and (node.least, node.most) == (0, 1):
        return _Run(f"(?:{parts[0].regex})?", 1 + parts[0].ways, names)
    if isinstance(node, Sequence):
        return _Run("".join(part.regex for part in parts), prod(part.ways for part in parts), names)
    if isinstance(node, Choice):
        regex = "|".join(part.regex for part in parts)
        return _Run(f"(?:{regex})", sum(part.ways for part in parts), names)
    what = "it stands in what a header parses"
    wrong(node, what, "write texts, p.chars, p.optional, p.choice, p.name(tool) and p.same_name(tool)")


_LONGEST = 1024
"""The most characters of a header: `MAX_HEADER` of the machine."""
_MOST_DIVIDED = 10_000_000
"""So many are tried in a second."""
_LARGEST = 100_000
"""The most characters of what it parses, as a regular expression."""


@dataclass(frozen=True, slots=True)
class Implied(Silent, empty=ALWAYS, commits=False):
    """Parses nothing and says that ``tag`` (a tool's or an argument's name) is ``value``; generates nothing.

    For formats that imply a name, such as a code interpreter's.
    """

    tag: Tag
    value: str

    def shown(self) -> str:
        return f"p.implied({self.tag}, {self.value!r})"

    def check(self, reader: Reader) -> None:
        if self.tag not in (Tag.NAME, Tag.ARG_NAME):
            wrong(self, f"{self.tag} cannot be implied", "give Tag.NAME or Tag.ARG_NAME")


@dataclass(frozen=True, slots=True)
class Declared(Silent, empty=SOMETIMES, commits=False, check=None):
    """Succeeds without reading if the name just read is a tool of the request, and if that tool has no argument called
    ``lacks`` (empty: whatever it has); fails otherwise. Generates nothing."""

    lacks: str = ""

    def shown(self) -> str:
        return f"p.declared(lacks={self.lacks!r})" if self.lacks else "p.declared()"


@dataclass(frozen=True, slots=True)
class EachTool(Inner, shown="p.each_tool(…)", check=None):
    """A call: parses ``any`` (= ``make(ANY_TOOL)``), whatever tool the model names; generates ``make(tool)`` as one
    alternative for each tool. ``own``: what makes it for the tools of these names."""

    make: Callable[[Tool], Node]
    any: Node = field(hash=False)
    own: tuple[tuple[str, Callable[[Tool], Node]], ...] = ()

    def call(self, tool: Tool) -> Node:
        """What is generated for ``tool``."""
        return next((make for name, make in self.own if name == tool.name), self.make)(tool)

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.any,)


@dataclass(frozen=True, slots=True)
class EachArg(Leaf, tokens=(), empty=SOMETIMES, commits=True, shown="p.each_arg(…)"):
    """A call's arguments one by one. Parses any number of ``any`` (= ``make(ANY_ARGUMENT)``), or up to ``most``, with
    ``separator`` between. Generates each required argument of the tool once (in any order, if the grammar stays small
    enough) and each optional one at most once.

    ``positional``: the parser also takes values without names before the others, in this syntax, in the order of the
    tool's properties. Where no argument begins with a brace, it also takes all of them as one JSON object."""

    tool: Tool
    make: Callable[[Argument], Node]
    any: Node = field(hash=False)
    separator: Node | None = None
    most: int | None = None
    positional: Syntax | None = None

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.any,) if self.separator is None else (self.any, self.separator)

    def check(self, reader: Reader) -> None:
        _check_passed_on(self, self.tool, reader)
        if self.positional is not None:
            self.positional.value(_as_it_is)  # raises if the syntax cannot write values
        if (
            self.most is None
            and reader.empty(self.any)
            and (self.separator is None or reader.empty(self.separator))
        ):
            wrong(
                self,
                "an argument can be empty, so the loop would never end",
                "let it begin with a marker or p.arg_name(arg)",
            )


@dataclass(frozen=True, slots=True)
class Args(Leaf, empty=NEVER, shown="p.args(tool)"):
    """A call's arguments as one object in a value syntax. Parses it verbatim or transcodes it to JSON, streamed;
    generates the tool's parameters in that syntax. ``commit``: the call's header is over (a cut)."""

    tool: Tool
    syntax: Syntax = field(default_factory=Json)
    commit: bool = True

    def tokens(self) -> tuple[str, ...]:
        return self.syntax.tokens

    def commits(self) -> bool:
        return self.commit

    def check(self, reader: Reader) -> None:
        self.syntax.object(_as_it_is)  # raises if the syntax cannot write objects
        _check_passed_on(self, self.tool, reader)


@dataclass(frozen=True, slots=True)
class Value(Leaf, empty=SOMETIMES, commits=True):
    """An argument's value in a value syntax. Parses it to JSON, typed by the argument's schema in the request;
    generates the argument's schema in that syntax."""

    argument: Argument
    syntax: Syntax

    def tokens(self) -> tuple[str, ...]:
        return self.syntax.tokens

    def shown(self) -> str:
        return f"p.value(arg, {type(self.syntax).__name__}(…))"

    def check(self, reader: Reader) -> None:
        self.syntax.value(_as_it_is)  # raises if the syntax cannot write values
        if isinstance(self.syntax, Raw) and self.syntax.chars:
            _check_run(self, self.syntax.chars)
        if self.argument != reader.argument:
            wrong(self, "it is not given the argument that make(arg) was given", "pass that argument on")


def _as_it_is(text: str, own: bool = False) -> tuple[str, ...]:
    return (text,)


def _check_passed_on(node: Node, tool: Tool, reader: Reader) -> None:
    if tool is not reader.tool:
        given = "ANY_TOOL" if tool is ANY_TOOL else f"the tool {tool.name!r}"
        wrong(node, f"it is given {given}, not the tool that make(tool) was given", "pass that one on")


@dataclass(frozen=True, slots=True)
class JsonValue(Needed, shown="a JSON value", check=None):
    """Parses any JSON value, verbatim, as part of its region; generates any JSON value."""


@dataclass(frozen=True, slots=True)
class JsonText(Needed, shown="p.json_text()", check=None):
    """Parses a JSON string whose text is content, or any other JSON value, which is content unchanged; generates a
    JSON string."""


@dataclass(frozen=True, slots=True)
class Calls(Inner):
    """One call or several with ``separator`` between; generates only one if parallel calls are not allowed."""

    item: Node
    separator: Node
    parallel: bool
    repeats = in_order = True

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.item, self.separator)

    def shown(self) -> str:
        return f"p.calls({described(self.item)})"

    def check(self, reader: Reader) -> None:
        if reader.empty(self.item) and reader.empty(self.separator):
            wrong(self, "a call can be empty, so the loop would never end", "let it begin with a marker")


_CLASS = r"\[\^?\]?(?:[^\]\\]|\\.)*\]|\\.|[^\\]"
"""A regular expression for one character."""


def _check_run(node: Node, chars: str) -> None:
    """Checks that ``chars`` is a regular expression for one character of a name."""
    one = check_regex(node, chars)
    if one.fullmatch(""):
        what = f"chars={chars!r} also matches no character"
        wrong(node, what, "leave out what repeats it: the parser does that")
    if not matches_any(one):
        what = f"chars={chars!r} matches no single character"
        wrong(node, what, f"write a class in brackets: chars={f'[{chars}]'!r}")
    if not re.fullmatch(_CLASS, chars, re.DOTALL):
        what = f"chars={chars!r} is more than a class of characters"
        wrong(node, what, "write one class in brackets, such as chars='[^<>]'")
