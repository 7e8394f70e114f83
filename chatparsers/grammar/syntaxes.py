"""The value syntaxes: how the schema compiler writes objects, arrays, strings and words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from .. import values
from ..errors import DefinitionError
from ..kept import kept
from ..values.gemma import gemma_key
from . import ir
from .arrange import Member, arrange
from .ir import EMPTY, NOTHING, Ir, alt, charset, never, seq
from .target import PLAIN, Target

COLON = ir.Text(":")
"""What follows the name of a member of JSON."""
quoted = json.JSONEncoder(ensure_ascii=False).encode
"""A text in JSON. `json.dumps` would make an encoder for each."""


@kept(4096, 256)
def _json_key(name: str) -> ir.Seq:
    return ir.Seq((ir.Text(quoted(name)), ir.Blank(), COLON, ir.Blank()))


@kept(4096, 256)
def _spaced_key(name: str) -> ir.Seq:
    return ir.Seq((ir.Blank(), *_json_key(name).items))


class JsonSyntax:
    """JSON, with the white space that models write. ``blank_in_names``: that before a member belongs to its name,
    not to the brace or comma before it. ``bits``: of the parameter that rules may have (both: `Target`)."""

    name = "json"
    stops: tuple[str, ...] = ()
    """The texts that end a string that is written as raw text."""
    true, false, null = ir.Text("true"), ir.Text("false"), ir.Text("null")
    no_members: Ir
    no_items = ir.Text("]")
    """What closes an object without members, an array without items."""
    bare: tuple[ir.Part, ...] = ()
    """The constraint on names that the schema does not list, if not every name can be written."""
    as_text = False
    """Whether values in an object or array are raw text, as far as their types allow (`RawText`)."""

    def __init__(self, blank_in_names: bool = False, bits: int = 0) -> None:
        self.bits = bits
        blank = ir.Blank()
        self.before_name: Ir = blank if blank_in_names else EMPTY
        after: Ir = EMPTY if blank_in_names else blank
        self.open_object, self.close_object = seq(ir.Text("{"), after), seq(blank, ir.Text("}"))
        self.open_array, self.close_array = seq(ir.Text("["), blank), seq(blank, ir.Text("]"))
        self.no_members = seq(self.before_name, ir.Text("}"))
        self.between_members, self.between_items = seq(ir.Text(","), after), seq(ir.Text(","), blank)

    def string(self, parts: tuple[ir.Part, ...], least: int, most: int | None, nested: bool) -> Ir:
        """A string with these constraints on its characters; ``nested``: in an object or array."""
        return ir.Lang(parts, least, most, "json", nested=nested)

    def text(self, value: str) -> Ir:
        """That string."""
        return ir.Text(quoted(value))

    def key(self, name: str) -> Ir:
        """A member's name and colon."""
        return _json_key(name) if self.before_name is EMPTY else _spaced_key(name)

    def member(self, name: str, node: Ir) -> Ir:
        """A member of that name, whose value is ``node``."""
        key = self.key(name)
        if type(key) is ir.Seq:  # it ends in white space, with which nothing joins
            return ir.Seq((*key.items, *(node.items if type(node) is ir.Seq else (node,))))
        return seq(key, node)

    def other(self, parts: tuple[ir.Part, ...], least: int, most: int | None, node: Ir) -> Ir:
        """A member whose name has these constraints; nothing if the syntax cannot write any such name."""
        name = ir.Lang(parts, least, most, "json")
        items = (name, ir.Blank(), COLON, ir.Blank(), *(node.items if type(node) is ir.Seq else (node,)))
        return ir.Seq(items if self.before_name is EMPTY else (self.before_name, *items))

    def item(self, node: Ir) -> Ir:
        """An item of an array, whose value is ``node``."""
        return node

    def literal(self, value: Any) -> Ir:
        """Exactly this value. A whole number that the schema writes as a float is written with its point or without."""
        if value is None or isinstance(value, bool):
            return self.null if value is None else self.true if value else self.false
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float) and value.is_integer():  # templates print 1.0, readers of JSON see 1
            return alt(ir.Text(json.dumps(int(value))), ir.Text(json.dumps(value)))
        if isinstance(value, (int, float)):
            return ir.Text(json.dumps(value))
        if isinstance(value, Mapping):
            members = [
                Member(name, seq(self.key(name), self.literal(part)), True) for name, part in value.items()
            ]
            return seq(
                self.open_object,
                *(
                    (arrange(members, self.between_members, bits=self.bits)[0], self.close_object)
                    if members
                    else (self.no_members,)
                ),
            )
        items: list[Ir] = []
        for item in value:
            items += [*([self.between_items] if items else []), self.literal(item)]
        return (
            seq(self.open_array, *items, self.close_array) if items else seq(self.open_array, self.no_items)
        )


class PythonSyntax(JsonSyntax):
    """Python literals: JSON except for its three words. Only strings that mean the same in both are written."""

    name = "python"
    true, false, null = ir.Text("True"), ir.Text("False"), ir.Text("None")


class GemmaSyntax(JsonSyntax):
    """Gemma's syntax: keys without quotes, strings verbatim between two ``quote`` markers, no white space."""

    name = "gemma"
    bare = (ir.Part(ir.Rep(ir.Chars(charset([(48, 57), (65, 90), "_", "-", (97, 122)])), 1, None)),)

    def __init__(self, quote: str, bits: int) -> None:
        super().__init__(bits=bits)
        self.quote = quote
        self.stops = (quote,)
        self.name = "gemma" + quote
        self.open_object, self.close_object = ir.Text("{"), ir.Text("}")
        self.open_array, self.close_array = ir.Text("["), ir.Text("]")
        self.between_members = self.between_items = ir.Text(",")

    def string(self, parts: tuple[ir.Part, ...], least: int, most: int | None, nested: bool) -> Ir:
        return seq(
            ir.TokenRef(self.quote), ir.Lang(parts, least, most, "raw", self.stops), ir.TokenRef(self.quote)
        )

    def text(self, value: str) -> Ir:
        return seq(ir.TokenRef(self.quote), ir.Text(value), ir.TokenRef(self.quote))

    def key(self, name: str) -> Ir:
        return ir.Text(gemma_key(name, self.quote) + ":")

    def other(self, parts: tuple[ir.Part, ...], least: int, most: int | None, node: Ir) -> Ir:
        return seq(ir.Lang((*parts, *self.bare), least, most), ir.Text(":"), node)


class ElementsSyntax(JsonSyntax):
    """Nested elements, with ``prefix`` before each tag. Strings and other scalars are raw text, without ``prefix`` and
    ``markers``."""

    no_members = no_items = ir.Text("")
    as_text = True

    def __init__(self, prefix: str, item: str, markers: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.item_name = item
        self.stops = tuple(dict.fromkeys((prefix, *markers)))
        self.name = "elements" + prefix
        self.open_object = self.close_object = self.open_array = self.close_array = EMPTY
        self.between_members = self.between_items = EMPTY

    def string(self, parts: tuple[ir.Part, ...], least: int, most: int | None, nested: bool) -> Ir:
        return ir.Lang(parts, least, most, "raw", self.stops)

    def text(self, value: str) -> Ir:
        return ir.Text(value)

    def member(self, name: str, node: Ir) -> Ir:
        return seq(
            ir.TokenRef(self.prefix),
            ir.Text(f"<{name}>"),
            node,
            ir.TokenRef(self.prefix),
            ir.Text(f"</{name}>"),
        )

    def other(self, parts: tuple[ir.Part, ...], least: int, most: int | None, node: Ir) -> Ir:
        return NOTHING

    def item(self, node: Ir) -> Ir:
        return node if never(node) else self.member(self.item_name, node)

    def literal(self, value: Any) -> Ir:
        if isinstance(value, Mapping):
            return seq(*(self.member(name, self.literal(part)) for name, part in value.items()))
        if isinstance(value, (list, tuple)):
            return seq(*(self.item(self.literal(part)) for part in value))
        return super().literal(value)


Syntax = JsonSyntax


@lru_cache(maxsize=8)
def _plain(kind: type[JsonSyntax], blank_in_names: bool, bits: int) -> Syntax:
    return kind(blank_in_names, bits)


_Write = Callable[[Any, tuple[str, ...], Target], Syntax]
_WRITERS: Mapping[type[values.Syntax], _Write] = values.of_every_syntax(
    "grammar/syntaxes.py",
    {
        values.Json: lambda syntax, markers, target: _plain(JsonSyntax, target.blank_in_names, target.bits),
        values.Python: lambda syntax, markers, target: _plain(
            PythonSyntax, target.blank_in_names, target.bits
        ),
        values.Gemma: lambda syntax, markers, target: GemmaSyntax(syntax.quote, target.bits),
        values.Elements: lambda syntax, markers, target: ElementsSyntax(syntax.prefix, syntax.item, markers),
    },
    values.Raw,  # its strings are text (`RawText`), its other values JSON
)


def syntax_of(syntax: values.Syntax, markers: tuple[str, ...] = (), target: Target = PLAIN) -> Syntax:
    """How the grammar for a target writes a value syntax. ``markers``: those that the stream takes by id. Raises
    `DefinitionError` for a syntax that it cannot write."""
    write = _WRITERS.get(type(syntax))
    if write is None:
        raise DefinitionError(f"the grammar cannot write the value syntax {syntax!r}")
    return write(syntax, markers, target)
