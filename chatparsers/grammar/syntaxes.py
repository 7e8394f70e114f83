"""The value syntaxes: how the schema compiler writes objects, arrays, strings and words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from .. import values
from ..errors import DefinitionError
from ..kept import kept
from ..values.gemma import gemma_key
from ..values.raw import raw_transcoder
from ..values.stops import StopFinder
from . import ir
from .arrange import Member, arrange
from .ir import EMPTY, NOTHING, Ir, alt, charset, never, seq
from .regular.regex import read_regex

quoted = json.JSONEncoder(ensure_ascii=False).encode
"""A text in JSON. `json.dumps` would make an encoder for each."""


@kept(4096, 256)
def _json_key(name: str) -> Ir:
    return ir.Seq((ir.Text(quoted(name)), ir.Blank(), ir.Text(":"), ir.Blank()))


class JsonSyntax:
    """JSON, with the white space that models write."""

    name = "json"
    stops: tuple[str, ...] = ()
    """The texts that end a string that is written as raw text."""
    true, false, null = ir.Text("true"), ir.Text("false"), ir.Text("null")
    no_members, no_items = ir.Text("}"), ir.Text("]")
    """What closes an object without members, an array without items."""
    bare: tuple[ir.Part, ...] = ()
    """The constraint on names that the schema does not list, if not every name can be written."""

    def __init__(self) -> None:
        blank = ir.Blank()
        self.open_object, self.close_object = seq(ir.Text("{"), blank), seq(blank, ir.Text("}"))
        self.open_array, self.close_array = seq(ir.Text("["), blank), seq(blank, ir.Text("]"))
        self.comma = seq(ir.Text(","), blank)

    def string(self, parts: tuple[ir.Part, ...], least: int, most: int | None, nested: bool) -> Ir:
        """A string with these constraints on its characters; ``nested``: in an object or array."""
        return ir.Lang(parts, least, most, "json", nested=nested)

    def text(self, value: str) -> Ir:
        """That string."""
        return ir.Text(quoted(value))

    def key(self, name: str) -> Ir:
        """A member's name and colon."""
        return _json_key(name)

    def member(self, name: str, node: Ir) -> Ir:
        """A member of that name, whose value is ``node``."""
        key = self.key(name)
        if type(key) is ir.Seq and type(node) in (ir.Shared, ir.Ref):  # nothing to join
            return ir.Seq((*key.items, node))
        return seq(key, node)

    def other(self, parts: tuple[ir.Part, ...], least: int, most: int | None, node: Ir) -> Ir:
        """A member whose name has these constraints; nothing if the syntax cannot write any such name."""
        return seq(ir.Lang(parts, least, most, "json"), ir.Blank(), ir.Text(":"), ir.Blank(), node)

    def item(self, node: Ir) -> Ir:
        """An item of an array, whose value is ``node``."""
        return node

    def raw(self, types: frozenset[str]) -> RawText | None:
        """How a value in an object or array is written if it is raw text there; None if it is not.

        ``types``: the types that its reader may take it for.
        """
        return None

    def literal(self, value: Any) -> Ir:
        """Exactly this value."""
        if value is None or isinstance(value, bool):
            return self.null if value is None else self.true if value else self.false
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (int, float)):
            return ir.Text(
                json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
            )
        if isinstance(value, Mapping):
            members = [
                Member(name, seq(self.key(name), self.literal(part)), True) for name, part in value.items()
            ]
            return seq(
                self.open_object,
                *((arrange(members, self.comma)[0], self.close_object) if members else (self.no_members,)),
            )
        items: list[Ir] = []
        for item in value:
            items += [*([self.comma] if items else []), self.literal(item)]
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

    def __init__(self, quote: str) -> None:
        super().__init__()
        self.quote = quote
        self.stops = (quote,)
        self.name = "gemma" + quote
        self.open_object, self.close_object = ir.Text("{"), ir.Text("}")
        self.open_array, self.close_array = ir.Text("["), ir.Text("]")
        self.comma = ir.Text(",")

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

    def __init__(self, prefix: str, item: str, markers: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.item_name = item
        self.stops = tuple(dict.fromkeys((prefix, *markers)))
        self.name = "elements" + prefix
        self.open_object = self.close_object = self.open_array = self.close_array = self.comma = EMPTY

    def raw(self, types: frozenset[str]) -> RawText:
        found = RawText(values.Raw(until=self.stops), types, ())
        found.marked = True
        return found

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


@lru_cache(maxsize=256)
def _raw(
    syntax: values.Raw, markers: tuple[str, ...], names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[ir.Part, ...], Callable[[str], object]]:
    """The stops of raw text, the constraints on all its strings, and whether a string may be written in this way."""
    char = syntax.chars
    if syntax.escapes:
        spelt = "|".join(re.escape(spelling) for _, spelling in syntax.escapes)
        char = f"{_unescaped(syntax)}|{spelt}"
    only = (ir.Part(read_regex(f"^(?:{char})*$")),) if char else ()
    # Where a tag of another argument, or another call, ends a value for the parser, no value holds its beginning.
    # A beginning without a word, such as ``<``, is one only with a name.
    wordless = wordless_openers(syntax)
    named = [text.lstrip() + name + end for text, end in wordless for name in names]
    begun = [text.lstrip() for text, end in (*syntax.named, *syntax.seams) if (text, end) not in wordless]
    openers = dict.fromkeys((*begun, *named))
    ends = (*syntax.stops, *openers)
    quoted = [text for text in openers if not any(end in text for end in ends if end != text)]
    may = re.compile(f"(?:{syntax.chars or '.'})*", re.DOTALL).fullmatch
    return tuple(dict.fromkeys((*syntax.stops, *quoted, *markers))), only, may


def wordless_openers(syntax: values.Raw) -> list[tuple[str, str]]:
    """What comes before and after the name of another argument, where no word before it tells a tag from text."""
    return [(text, end) for text, end in syntax.named if not re.search(r"\w", text)]


def _unescaped(syntax: values.Raw) -> str:
    """A regular expression for one character that is spelt as it is."""
    begin = {char for char, _ in syntax.escapes} | {spelling[0] for _, spelling in syntax.escapes}
    return f"[^{''.join(map(re.escape, sorted(begin)))}]"


class RawText:
    """A value as raw text up to one of the syntax's stops: strings are written verbatim (and kept in ``written``), all
    other values as JSON.

    ``types``: the types that its reader may take it for. ``markers``: the markers that the stream takes by id. Such a
    marker inside the value would end the call, so no value holds one. ``said``: the model's text says the value's type,
    so only values of ``types`` are written, and none can be taken for another. ``names``: of the tool's arguments.
    """

    marked = False
    """Whether a marker begins each object and array, so that no text is taken for one."""

    def __init__(
        self,
        syntax: values.Raw,
        types: frozenset[str],
        markers: tuple[str, ...],
        names: tuple[str, ...] = (),
    ) -> None:
        said = syntax.types
        self.stops, self.only, self.may = _raw(syntax, markers, names)
        self.said = said is not None
        self.types = said or types
        self.python = syntax.python
        self.escapes = syntax.escapes
        self.verbatim = (
            (ir.Part(read_regex(f"^(?:{_unescaped(syntax)})*$")),) if syntax.escapes else self.only
        )
        """The constraints on strings of which more is said than their type. They hold no escaped character."""
        self.written: list[ir.Lang] = []
        self.apart: tuple[Ir, ...] = ()
        """Values that no text can be taken for, because a marker begins them."""
        self.words: Mapping[str, tuple[str, ...]] = _WORDS
        """All spellings of booleans and null that the reader knows."""

    def read(self, text: str) -> Any:
        """The value that the reader makes of ``text``."""
        if self.types == {"string"} and not self.escapes:
            return text
        reader = raw_transcoder(StopFinder((), True), self.types, self.python, self.escapes)
        reader.scan(text, 0, True)
        return json.loads(reader.out)

    def spelt(self, value: str) -> str:
        """How a string is written."""
        return "".join([dict(self.escapes).get(char, char) for char in value])

    def word(self, node: Ir) -> Ir:
        """A value that may be one or several of the words true, false and null."""
        if not self.python:
            return node
        words = node.options if isinstance(node, ir.Alt) else (node,)
        return alt(node, *(_PRINTED[w.text] for w in words if isinstance(w, ir.Text) and w.text in _PRINTED))

    def write(self, parts: tuple[ir.Part, ...], least: int, most: int | None) -> Ir:
        """A string with these constraints on its characters."""
        self.written.append(ir.Lang(parts, least, most, "raw", self.stops))
        return self.written[-1]


_PRINTED = {
    JsonSyntax.true.text: PythonSyntax.true,
    JsonSyntax.false.text: PythonSyntax.false,
    JsonSyntax.null.text: PythonSyntax.null,
}

_WORDS = {"boolean": ("true", "false", "True", "False"), "null": ("null", "None")}

Syntax = JsonSyntax

_JSON, _PYTHON = JsonSyntax(), PythonSyntax()
_WRITERS: Mapping[type[values.Syntax], Callable[[Any, tuple[str, ...]], Syntax]] = values.of_every_syntax(
    "grammar/syntaxes.py",
    {
        values.Json: lambda syntax, markers: _JSON,
        values.Python: lambda syntax, markers: _PYTHON,
        values.Gemma: lambda syntax, markers: GemmaSyntax(syntax.quote),
        values.Elements: lambda syntax, markers: ElementsSyntax(syntax.prefix, syntax.item, markers),
    },
    values.Raw,  # its strings are text (`RawText`), its other values JSON
)


def syntax_of(syntax: values.Syntax, markers: tuple[str, ...] = ()) -> Syntax:
    """How the grammar writes a value syntax. ``markers``: those that the stream takes by id. Raises `DefinitionError`
    for a syntax that it cannot write."""
    write = _WRITERS.get(type(syntax))
    if write is None:
        raise DefinitionError(f"the grammar cannot write the value syntax {syntax!r}")
    return write(syntax, markers)
