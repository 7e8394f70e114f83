"""Nodes that read a call and its parts: names, ids, arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from ....schema.tools import ANY_TOOL, Argument, Tool
from ....values import Json, Raw, Syntax
from ..wrong import check_regex, check_run, check_steps, spelt, wrong
from .control import Tag
from .node import Inner, Literal, Needed, Node, Opening, Reader, Silent, Unforeseen


class _Captured(Needed, family=True):
    """Kinds that read a run of text which the parser keeps. The grammar reads what they generate."""

    __slots__ = ()

    def generated(self) -> Node | None:
        """What is generated in place of the run."""
        raise NotImplementedError

    def parts(self, generated: bool) -> tuple[Node, ...]:
        found = self.generated()
        return () if found is None else (found,)


@dataclass(frozen=True, slots=True)
class Name(_Captured):
    """A name in a call's header. ``tag`` says whose: a tool's, an argument's, or the call's own (its id).

    Parses the longest run of ``chars`` (a regular expression for one character, at most `MAX_HEADER` of them).
    Generates ``generate``; None in the tree of `ANY_TOOL` or `ANY_ARGUMENT`, which is never generated. ``escapes``:
    pairs of a character and its spelling in the name, such as ``('"', "&quot;")``.
    """

    tag: Tag
    chars: str
    generate: Node | None
    escapes: tuple[tuple[str, str], ...] = ()

    def generated(self) -> Node | None:
        return self.generate

    def shown(self) -> str:
        return {Tag.NAME: "p.name(tool)", Tag.ARG_NAME: "p.arg_name(arg)"}.get(self.tag, "p.id(…)")

    def check(self, reader: Reader) -> None:
        check_run(self, self.chars)
        _check_named(self, reader)


@dataclass(frozen=True, slots=True)
class JsonName(_Captured):
    """As `Name`, for a name that is the inside of a JSON string. The parser resolves its escapes."""

    tag: Tag
    generate: Node | None

    def generated(self) -> Node | None:
        return self.generate

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
class SameName(Needed, shown="p.same_name(arg)"):
    """The argument's name once more, as in a closing tag. Parses the name that was read, exactly; generates the name of
    ``argument``."""

    argument: Argument

    def check(self, reader: Reader) -> None:
        if self.argument != reader.argument:
            wrong(self, "it is not given the argument that make(arg) was given", "pass that argument on")


@dataclass(frozen=True, slots=True)
class Header(_Captured):
    """A call's header. Parses a run of ``chars`` as `Name` does, and finds the named groups of ``pattern`` (``name``,
    ``id``) in it; generates ``generate``."""

    pattern: str
    chars: str
    generate: Node

    def generated(self) -> Node | None:
        return self.generate

    def shown(self) -> str:
        return f"p.header({self.pattern!r}, …)"

    def check(self, reader: Reader) -> None:
        check_run(self, self.chars)
        groups = check_regex(self, self.pattern).groupindex
        check_steps(self, self.pattern)
        if "name" not in groups:
            wrong(
                self,
                f"its pattern has the groups {', '.join(groups) or 'none'}",
                "name one of them (?P<name>…)",
            )
        if reader.generated and not any(
            isinstance(inner, (Name, JsonName))
            or (isinstance(inner, Literal) and reader.tool.name in inner.text)
            for inner in reader.walk(self.generate)
        ):
            wrong(
                self,
                "what it generates has no name of the tool",
                "write p.name(tool) into its second argument",
            )


@dataclass(frozen=True, slots=True)
class Implied(Silent, anywhere=True, commits=False):
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
class Declared(Silent, anywhere=False, commits=False, check=None):
    """Succeeds without reading if the name just read is a tool of the request, and if that tool has no argument called
    ``lacks`` (empty: whatever it has); fails otherwise. Generates nothing."""

    lacks: str = ""

    def shown(self) -> str:
        return f"p.declared(lacks={self.lacks!r})" if self.lacks else "p.declared()"


@dataclass(frozen=True, slots=True)
class EachTool(Inner, shown="p.each_tool(…)", check=None):
    """A call: parses ``any`` (= ``make(ANY_TOOL)``), whatever tool the model names; generates ``make(tool)`` as one
    alternative for each tool."""

    make: Callable[[Tool], Node]
    any: Node

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.any,)

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return ((self,),)

    def stands_for(self, generated: bool) -> Node | None:
        return self.any


class _Arguments(Unforeseen, family=True, anywhere=False, commits=True):
    """Kinds that read the arguments of a call, or one of them."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class EachArg(_Arguments, tokens=(), empty=True, shown="p.each_arg(…)"):
    """A call's arguments one by one. Parses any number of ``any`` (= ``make(ANY_ARGUMENT)``), or up to ``most``, with
    ``separator`` between. Generates each required argument of the tool once (in any order, if the grammar stays small
    enough) and each optional one at most once.

    ``positional``: the parser also takes values without names before the others, in this syntax, in the order of the
    tool's properties. Where no argument begins with a brace, it also takes all of them as one JSON object."""

    tool: Tool
    make: Callable[[Argument], Node]
    any: Node
    separator: Node | None = None
    most: int | None = None
    positional: Syntax | None = None

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.any,) if self.separator is None else (self.any, self.separator)

    def check(self, reader: Reader) -> None:
        _check_passed_on(self, self.tool, reader)
        if self.positional is not None:
            _check_syntax(self, self.positional)
            self.positional.value(lambda text: (text,))  # raises if the syntax cannot write values
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
class Args(_Arguments, empty=False, shown="p.args(tool)"):
    """A call's arguments as one object in a value syntax. Parses it verbatim or transcodes it to JSON, streamed;
    generates the tool's parameters in that syntax. ``commit``: the call's header is over (a cut)."""

    tool: Tool
    syntax: Syntax = field(default_factory=Json)
    commit: bool = True

    def tokens(self) -> tuple[str, ...]:
        return self.syntax.tokens

    def header(self, generated: bool) -> tuple[Node, bool]:
        return _Arguments.header(self, generated) if self.commit else (self, False)

    def check(self, reader: Reader) -> None:
        _check_syntax(self, self.syntax)
        self.syntax.object(lambda text: (text,))  # raises if the syntax cannot write objects
        _check_passed_on(self, self.tool, reader)


@dataclass(frozen=True, slots=True)
class Value(_Arguments, empty=True):
    """An argument's value in a value syntax. Parses it to JSON, typed by the argument's schema in the request;
    generates the argument's schema in that syntax."""

    argument: Argument
    syntax: Syntax

    def tokens(self) -> tuple[str, ...]:
        return self.syntax.tokens

    def shown(self) -> str:
        syntax = self.syntax
        said = f"{type(syntax).__name__}(…)" if isinstance(syntax, Syntax) else repr(syntax)
        return f"p.value(arg, {said})"

    def check(self, reader: Reader) -> None:
        _check_syntax(self, self.syntax)
        self.syntax.value(lambda text: (text,))  # raises if the syntax cannot write values
        if isinstance(self.syntax, Raw) and self.syntax.chars:
            check_run(self, self.syntax.chars)
        if self.argument != reader.argument:
            wrong(self, "it is not given the argument that make(arg) was given", "pass that argument on")


def _check_syntax(node: Node, syntax: object) -> None:
    if not isinstance(syntax, Syntax):
        wrong(
            node,
            f"expected a value syntax, found {syntax!r}",
            "import Json, Raw, Python or Gemma from chatparsers.core",
        )


def _check_passed_on(node: Node, tool: Tool, reader: Reader) -> None:
    if tool is not reader.tool:
        given = "ANY_TOOL" if tool is ANY_TOOL else f"the tool {tool.name!r}"
        wrong(node, f"it is given {given}, not the tool that make(tool) was given", "pass that one on")


class _Data(Needed, family=True, check=None):
    """Kinds that read JSON outside the arguments of a call."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class JsonValue(_Data, shown="a JSON value"):
    """Parses any JSON value, verbatim, as part of its region; generates any JSON value."""


@dataclass(frozen=True, slots=True)
class JsonText(_Data, shown="p.json_text()"):
    """Parses a JSON string whose text is content, or any other JSON value, which is content unchanged; generates a
    JSON string."""


@dataclass(frozen=True, slots=True)
class Calls(Inner):
    """One call or several with ``separator`` between; generates only one if parallel calls are not allowed."""

    item: Node
    separator: Node
    parallel: bool

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.item, self.separator)

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return ((self,),)

    def stands_for(self, generated: bool) -> Node | None:
        return self.item

    def opens(self) -> list[Opening]:
        return [(begin, False) for begin, _ in self.item.opens()]

    def shown(self) -> str:
        return f"p.calls({spelt(self.item)})"

    def check(self, reader: Reader) -> None:
        if reader.empty(self.item) and reader.empty(self.separator):
            wrong(self, "a call can be empty, so the loop would never end", "let it begin with a marker")
