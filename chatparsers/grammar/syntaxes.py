"""The value syntaxes: how the schema compiler writes objects, arrays, strings and words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ..core import values
from ..core.errors import DefinitionError
from ..core.values.raw import StopFinder, raw_transcoder
from .arrange import Member, arrange
from .ir import Alt, Blank, Chars, Ir, Lang, Part, Rep, Seq, Text, TokenRef, alt, charset, seq

__all__ = ["GemmaSyntax", "JsonSyntax", "PythonSyntax", "RawText", "Syntax", "syntax_of"]


@lru_cache(maxsize=4096)
def _json_key(name: str) -> Ir:
    return Seq((Text(json.dumps(name, ensure_ascii=False) + ":"), Blank()))


class JsonSyntax:
    """JSON, with the white space that models write."""

    name = "json"
    stops: tuple[str, ...] = ()
    """The texts that end a string that is written as raw text."""
    true, false, null = Text("true"), Text("false"), Text("null")

    def __init__(self) -> None:
        blank = Blank()
        self.open_object, self.close_object = seq(Text("{"), blank), seq(blank, Text("}"))
        self.open_array, self.close_array = seq(Text("["), blank), seq(blank, Text("]"))
        self.comma = seq(Text(","), blank)

    def string(self, parts: tuple[Part, ...], least: int, most: int | None, nested: bool) -> Ir:
        """A string with these constraints on its characters; ``nested``: in an object or array."""
        return Lang(parts, least, most, "json", nested=nested)

    def text(self, value: str) -> Ir:
        """That string."""
        return Text(json.dumps(value, ensure_ascii=False))

    def key(self, name: str) -> Ir:
        """A member's name and colon."""
        return _json_key(name)

    def any_key(self, parts: tuple[Part, ...], least: int, most: int | None) -> Ir:
        """The name and colon of a member whose name has these constraints."""
        return seq(Lang(parts, least, most, "json", (), (Text(":"),)), Blank())

    def literal(self, value: Any) -> Ir:
        """Exactly this value."""
        if value is None or isinstance(value, bool):
            return self.null if value is None else self.true if value else self.false
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (int, float)):
            return Text(json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value))
        if isinstance(value, Mapping):
            members = [
                Member(name, seq(self.key(name), self.literal(part)), True) for name, part in value.items()
            ]
            return seq(
                self.open_object,
                *((arrange(members, self.comma)[0], self.close_object) if members else (Text("}"),)),
            )
        items: list[Ir] = []
        for item in value:
            items += [*([self.comma] if items else []), self.literal(item)]
        return seq(self.open_array, *items, self.close_array) if items else seq(self.open_array, Text("]"))


class PythonSyntax(JsonSyntax):
    """Python literals: JSON except for its three words. Only strings that mean the same in both are written."""

    name = "python"
    true, false, null = Text("True"), Text("False"), Text("None")


class GemmaSyntax(JsonSyntax):
    """Gemma's syntax: keys without quotes, strings verbatim between two ``quote`` markers, no white space."""

    name = "gemma"

    def __init__(self, quote: str) -> None:
        super().__init__()
        self.quote = quote
        self.stops = (quote,)
        self.name = "gemma" + quote
        self.open_object, self.close_object = Text("{"), Text("}")
        self.open_array, self.close_array = Text("["), Text("]")
        self.comma = Text(",")

    def string(self, parts: tuple[Part, ...], least: int, most: int | None, nested: bool) -> Ir:
        return seq(TokenRef(self.quote), Lang(parts, least, most, "raw", self.stops), TokenRef(self.quote))

    def text(self, value: str) -> Ir:
        return seq(TokenRef(self.quote), Text(value), TokenRef(self.quote))

    def key(self, name: str) -> Ir:
        bare = (
            name and not any(char in ':,{}[]"' or char.isspace() for char in name) and self.quote not in name
        )
        return Text((name if bare else json.dumps(name, ensure_ascii=False)) + ":")

    def any_key(self, parts: tuple[Part, ...], least: int, most: int | None) -> Ir:
        plain = Chars(charset([(48, 57), (65, 90), "_", "-", (97, 122)]))
        return seq(Lang((*parts, Part(Rep(plain, 1, None))), least, most), Text(":"))


class RawText:
    """A value as raw text up to one of the syntax's stops: strings are written verbatim (and kept in ``written``), all
    other values as JSON.

    ``types``: the types that its reader may take it for. ``markers``: the markers that the stream takes by id. Such a
    marker inside the value would end the call, so no value holds one.
    """

    def __init__(self, syntax: values.Raw, types: frozenset[str], markers: tuple[str, ...]) -> None:
        self.stops = tuple(dict.fromkeys((*syntax.stops, *markers)))
        self.string = syntax.string
        """Whether the value is a string; None if the model's text does not say so itself."""
        self.types = syntax.types or types
        self.python = syntax.python
        self.written: list[Lang] = []
        self.words: Mapping[str, tuple[str, ...]] = _WORDS
        """All spellings of booleans and null that the reader knows."""

    def read(self, text: str) -> Any:
        """The value that the reader makes of ``text``."""
        if self.types == {"string"}:
            return text
        reader = raw_transcoder(StopFinder((), True), self.types, self.python)
        reader.scan(text, 0, True)
        return json.loads(reader.out)

    def word(self, node: Ir) -> Ir:
        """A value that may be one or several of the words true, false and null."""
        if not self.python:
            return node
        words = node.options if isinstance(node, Alt) else (node,)
        return alt(node, *(_PRINTED[w.text] for w in words if isinstance(w, Text) and w.text in _PRINTED))

    def write(self, parts: tuple[Part, ...], least: int, most: int | None) -> Ir:
        """A string with these constraints on its characters."""
        self.written.append(Lang(parts, least, most, "raw", self.stops))
        return self.written[-1]


_PRINTED = {
    JsonSyntax.true.text: PythonSyntax.true,
    JsonSyntax.false.text: PythonSyntax.false,
    JsonSyntax.null.text: PythonSyntax.null,
}

_WORDS = {"boolean": ("true", "false", "True", "False"), "null": ("null", "None")}

Syntax = JsonSyntax

_JSON, _PYTHON = JsonSyntax(), PythonSyntax()
_WRITERS: Mapping[type[values.Syntax], Callable[[Any], Syntax]] = {
    values.Json: lambda syntax: _JSON,
    values.Python: lambda syntax: _PYTHON,
    values.Gemma: lambda syntax: GemmaSyntax(syntax.quote),
}


def syntax_of(syntax: values.Syntax) -> Syntax:
    """How the grammar writes a value syntax. Raises `DefinitionError` for a syntax that it cannot write."""
    write = _WRITERS.get(type(syntax))
    if write is None:
        raise DefinitionError(f"the grammar cannot write the value syntax {syntax!r}")
    return write(syntax)
