"""Values as raw text: a string is verbatim, any other value is JSON or as Python prints it.

The reader of the text goes by the types that it may take the value for. So nothing is written that it would take for
another value, and where it cannot tell two values apart, that is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ... import values
from ...core.machine.stops import StopFinder
from ...schema.document import is_of
from ...values.raw import raw_maker
from .. import ir
from ..ir import Alt, Ir, Part, alt, texts
from ..regular import numbers as n
from ..regular.regex import read_regex
from ..syntaxes import Syntax
from .cases import Case, narrow
from .scalars import Parts, borne, string_parts
from .written import Output


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
    ``marked``: a marker begins each object and array, so that no text is taken for one.
    """

    def __init__(
        self,
        output: Output,
        syntax: values.Raw,
        types: frozenset[str],
        markers: tuple[str, ...] = (),
        names: tuple[str, ...] = (),
        marked: bool = False,
    ) -> None:
        self.output = output
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
        self.marked = marked
        self.apart: tuple[Ir, ...] = ()
        """Values that no text can be taken for, because a marker begins them."""

    def read(self, text: str) -> Any:
        """The value that the reader makes of ``text``."""
        if self.types == {"string"} and not self.escapes:
            return text
        reader = raw_maker(StopFinder((), True), self.types, self.python, self.escapes)()
        reader.scan(text, 0, True)
        return json.loads(reader.out)

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

    def listed(self, values: list[Any], cases: list[Case], syntax: Syntax) -> list[Ir]:
        """Listed values, as far as the reader takes them for what they are."""
        found: list[Ir] = []
        plain: list[str] = []
        for value in values:
            if self.said and not is_of(value, self.types):
                continue
            if not isinstance(value, str):
                found.append(self.word(syntax.literal(value)))
            elif self.may(value):
                spelt = "".join([dict(self.escapes).get(char, char) for char in value])
                why = ""
                if any(stop in spelt for stop in self.stops):
                    why = f"{value!r} holds what ends a value: it is not generated"
                elif self.read(spelt) != value:
                    why = f"{value!r} would be read as no string: it is not generated"
                if why:
                    self.output.tell(cases[0].path, "enum", why)
                else:
                    plain.append(spelt)
        return [*found, self.write((Part(texts(plain)),), 0, None)] if plain else found

    def kinds(self, case: Case) -> frozenset[str]:
        """The types of a case that the reader may take a value for."""
        kinds = narrow(case.types, self.types)
        if kinds != case.types and not self.said:
            types = " or ".join(sorted(self.types))
            why = f"no type is given, and the other keywords mean {types}: no other is generated"
            self.output.tell(case.path, "type", why)
        return kinds

    def strings(self, case: Case) -> ir.Ir:
        """The strings of a case."""
        parts = string_parts(case, self.output)
        if not parts and not case.least and case.most is None:
            parts = self.only
        else:
            parts += self._read_as_text(case)
            if self.escapes:
                spelt = ", ".join(repr(char) for char, _ in self.escapes)
                self.output.tell(
                    case.path, "type", f"no string with {spelt} is generated: it is spelt in another way"
                )
            parts = self.verbatim + parts
        found = borne(case, parts, self.stops, self.output)
        return ir.NOTHING if found is None else self.write(found.parts, found.least, found.most)

    def _read_as_text(self, case: Case) -> Parts:
        """The constraints that keep raw text from being read as another type."""
        found: list[ir.Part] = []
        if "number" in self.types or "integer" in self.types:
            number = n.ANY_NUMBER if "number" in self.types else n.ANY_INTEGER
            found.append(ir.Part(ir.seq(ir.SPACES, number, ir.SPACES), False))
        words = [word for kind in ("boolean", "null") if kind in self.types for word in _WORDS[kind]]
        if words:
            found.append(ir.Part(ir.seq(ir.SPACES, ir.texts(words), ir.SPACES), False))
        opening = "".join(char for kind, char in (("object", "{"), ("array", "[")) if kind in self.types)
        if opening:
            found.append(ir.Part(ir.seq(ir.SPACES, ir.Chars(ir.charset(opening)), ir.ANYTHING), False))
            begins = " or ".join(opening)
            why = f"no string that begins with {begins} is generated: it may be read as another type"
            self.output.tell(case.path, "type", why)
        return tuple(found)

    def told_apart(self, node: Ir, cases: list[Case], path: str) -> Ir:
        """The alternatives of a value, as far as the reader tells them apart: if any text may be the value, only
        text is written."""
        if self.said or not self.written:
            return node
        options = node.options if isinstance(node, Alt) else (node,)
        others = [option for option in options if option not in self.written and option not in self.apart]
        free = next(
            (
                text
                for text in self.written
                if text.parts == self.only and not text.least and text.most is None
            ),
            None,
        )
        if free is None or (not others and self.types == {"string"}):
            return node
        if not (others or self.apart) or not all(case.of_strings() for case in cases):
            why = "text is also generated that reads as another type, without that type's constraints"
            self.output.tell(path, "type", why)
        return alt(free, *self.apart)


_PRINTED = {word.lower(): ir.Text(word) for word in ("True", "False")} | {"null": ir.Text("None")}
"""How Python prints the words of JSON."""

_WORDS = {"boolean": ("true", "false", "True", "False"), "null": ("null", "None")}
