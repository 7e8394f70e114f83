"""Value syntaxes: records that say how a model writes a value, and that make the transcoder from it to JSON.

An author gives a record to ``p.value`` or ``p.args``. The parser asks the record for its transcoder. The grammar finds
the writer of the same syntax by the record's class (grammar/syntaxes.py), and a message's writer finds its function
(writer/turn.py), a document its name (document/parts.py). A new value syntax is a record here, a transcoder in this
package, and a row in each of the three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, Protocol, TypeVar, cast

from ..core.machine.stops import StopFinder
from ..core.machine.value import Transcoder
from ..errors import DefinitionError, did_you_mean
from ..schema.keywords import ANYTHING, TYPES
from ..schema.tools import Argument
from .closers import NAME, NOTHING, Closers, Look
from .json import AnswerScanner, JsonScanner, NoObject, ObjectScanner, StringScanner
from .raw import RawReader

__all__ = [
    "AnswerScanner",
    "Elements",
    "Gemma",
    "Json",
    "NoObject",
    "ObjectScanner",
    "Python",
    "Raw",
    "Spellings",
    "StopFinder",
    "StringScanner",
    "Syntax",
    "Transcoder",
    "of_every_syntax",
]


class Spellings(Protocol):
    """The forms that a marker may have in the parser's text: its characters, or the one character of its token; without
    ``own``, also its characters with other bars."""

    def __call__(self, text: str, own: bool = False) -> tuple[str, ...]: ...


Reader = Callable[[Argument, str], Transcoder]
"""Makes the transcoder of one value of the argument, which the text names so; "" if it has no name."""

ObjectReader = Callable[[Callable[[], "Mapping[str, Argument]"]], Transcoder]
"""Makes the transcoder of all arguments of a call. It is given what finds those that the tool declares."""

_WIRE_TYPES = {**{name: frozenset({name}) for name in (*TYPES, "integer")}, "json": ANYTHING - {"string"}}


def _is_text(given: object) -> bool:
    return isinstance(given, str)


def _are_texts(given: object) -> bool:
    return isinstance(given, tuple) and all(map(_is_text, given))


_FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "str": (_is_text, "a text"),
    "str | None": (lambda given: given is None or isinstance(given, str), "a text or None"),
    "str | tuple[str, ...]": (
        lambda given: _is_text(given) or _are_texts(given),
        'a text, or a tuple of texts such as ("</a>", "</b>"),',
    ),
    "bool": (lambda given: isinstance(given, bool), "True or False"),
    "tuple[tuple[str, str], ...]": (
        lambda given: isinstance(given, tuple) and all(_are_texts(pair) and len(pair) == 2 for pair in given),
        'pairs of texts, such as (("<", "&lt;"),)',
    ),
}
"""What the type of a record's field says: whether a value fits, and the expectation in words."""


class Syntax:
    """How a model writes a value. A field of a record that does not have its type is a `DefinitionError`."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        missing = [name for name in ("tokens", "closer") if getattr(cls, name) is getattr(Syntax, name)]
        if missing:
            raise DefinitionError(
                f"{cls.__name__}: a value syntax says its markers (tokens) and what ends a value (closer), and this "
                f"one lacks {' and '.join(missing)}; write the property"
            )

    def __post_init__(self) -> None:
        for field in fields(cast(Any, self)):
            fits, expected = _FIELDS[str(field.type)]
            given = getattr(self, field.name)
            if not fits(given):
                raise DefinitionError(
                    f"{type(self).__name__}: expected {expected} as {field.name}, found {type(given).__name__}: "
                    f"{given!r:.60}"
                )

    @property
    def tokens(self) -> tuple[str, ...]:
        """The markers that a value may hold."""
        raise NotImplementedError

    @property
    def closer(self) -> str:
        """The text that ends a value and is not part of it, for the author's errors; "" if a value ends by itself."""
        raise NotImplementedError

    def value(self, spellings: Spellings, markers: tuple[str, ...] = (), look: Look = NOTHING) -> Reader:
        """Makes the transcoders of values. ``markers``: those of calls, as the machine's text spells them. A value that
        holds one was not closed. ``look``: finds what may follow a closing tag. Raises `DefinitionError` if the syntax
        is only for whole objects."""
        raise DefinitionError(f"p.value: {type(self).__name__} is for p.args(), not for a single argument")

    def object(self, spellings: Spellings) -> ObjectReader:
        """Makes the transcoders of a call's arguments as one object. Raises `DefinitionError` if the syntax is only for
        single values."""
        raise DefinitionError(
            f"p.args: {type(self).__name__} is for p.value(), not for all arguments at once"
        )


@dataclass(frozen=True, slots=True)
class Json(Syntax):
    """JSON, passed on byte for byte. A mistake is mended, with a diagnostic, or breaks the call."""

    @property
    def tokens(self) -> tuple[str, ...]:
        return ()

    @property
    def closer(self) -> str:
        return ""

    def value(self, spellings: Spellings, markers: tuple[str, ...] = (), look: Look = NOTHING) -> Reader:
        return lambda argument, name: JsonScanner()

    def object(self, spellings: Spellings) -> ObjectReader:
        return lambda declared: ObjectScanner()


@dataclass(frozen=True, slots=True)
class Python(Syntax):
    """Python literals: strings in single or double quotes, ``True``, ``None``, lists, tuples, sets, dictionaries."""

    @property
    def tokens(self) -> tuple[str, ...]:
        return ()

    @property
    def closer(self) -> str:
        return ""

    def value(self, spellings: Spellings, markers: tuple[str, ...] = (), look: Look = NOTHING) -> Reader:
        from .python import PythonScanner

        closers, in_parentheses = Closers(look, (")",)), look.reaches(")")
        return lambda argument, name: PythonScanner(in_parentheses and bool(name), closers)


@dataclass(frozen=True, slots=True)
class Gemma(Syntax):
    """Gemma's objects: keys without quotes, and strings verbatim between two equal markers, ``quote``.

    ``closer``: the marker that ends the call, and with it a string without its second quote or a text without quotes.
    ``opener``: the marker that begins the next call, which ends these too.
    """

    quote: str
    closer: str = ""
    opener: str = ""

    def __post_init__(self) -> None:
        Syntax.__post_init__(self)
        if not self.quote:
            raise DefinitionError("Gemma: expected the marker around strings, found '': give e.g. '<escape>'")

    @property
    def tokens(self) -> tuple[str, ...]:
        return (self.quote,)

    def object(self, spellings: Spellings) -> ObjectReader:
        from .gemma import GemmaScanner

        quote = spellings(self.quote)[0]
        closers = spellings(self.closer) if self.closer else ()
        openers = spellings(self.opener) if self.opener else ()
        return lambda declared: GemmaScanner(quote, "{", closers, openers, declared())


@dataclass(frozen=True, slots=True)
class Elements(Syntax):
    """Nested elements, each tag after the marker ``prefix``. An object is written as elements that are named after its
    members (a member that is null is left out), an array as elements of the name ``item``, any other value as raw text.

    The value of an argument is in an element too, which the format writes: ``prefix + "<" + p.arg_name(arg) + ">"``
    before it and ``prefix + "</" + p.same_name(arg) + ">"`` after it. That closing tag ends the value.
    """

    prefix: str
    item: str = "item"

    def __post_init__(self) -> None:
        Syntax.__post_init__(self)
        if not self.prefix:
            raise DefinitionError("Elements: expected the marker before each tag, found ''")

    @property
    def tokens(self) -> tuple[str, ...]:
        return (self.prefix,)

    @property
    def closer(self) -> str:
        return repr(f"{self.prefix}</…>")

    def value(self, spellings: Spellings, markers: tuple[str, ...] = (), look: Look = NOTHING) -> Reader:
        from .elements import ElementScanner

        prefixes, shown, item = spellings(self.prefix), self.prefix, self.item
        after = look.near(f"{prefixes[0]}</{NAME}>")

        def read(argument: Argument, name: str) -> Transcoder:
            return ElementScanner(
                prefixes, shown, markers, argument.document, argument.schema, name, item, after
            )

        return read


@dataclass(frozen=True, slots=True)
class Raw(Syntax):
    """The text between two tags. By the argument's schema it is a verbatim string, or JSON of another type.

    ``until``: the text (or texts) that ends the value. White space at its beginning is the white space that the
    template writes between a value and its tag; it is left out of the value as far as it is there. ``also``: texts that
    end the value for the parser only, for careless models. ``python``: values that are not strings are written as
    Python's ``str`` writes them (``True``, ``None``, ``{'a': 1}``). ``type``: the value's JSON type if the wire says it
    and not the schema (``"json"``: any type but a string); it is generated only for values of this type. ``chars``: a
    regular expression for one character, if the model writes only such strings in this way. ``escapes``: pairs of a
    character and its spelling in strings, such as ``("<", "&lt;")``. ``end``: the end of the turn ends the value too.
    ``named``: pairs of the texts around the name of an argument, such as ``("<parameter=", ">")``. For the parser only,
    they end the value with a name between them that the tool declares and the call has not given yet, where a value may
    begin after them: text that goes on there quotes the tag. White space at their outer ends is what the format writes
    there; that at the beginning is as in ``until``, and that at the end counts only with all of it. If the first text
    begins with ``</``, the name is the value's own; if the second is empty, what follows is any name, a quote or ``>``.
    ``seams``: such pairs around the name of a tool that the request declares; the second text goes on to the first tag
    in the call.
    """

    until: str | tuple[str, ...] = ()
    also: str | tuple[str, ...] = ()
    python: bool = False
    type: str | None = None
    chars: str = ""
    escapes: tuple[tuple[str, str], ...] = ()
    end: bool = False
    named: tuple[tuple[str, str], ...] = ()
    seams: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        Syntax.__post_init__(self)
        until = _texts(self.until)
        if not (all(until) and (until or self.end)):
            raise DefinitionError(
                "Raw: expected until=, the text that ends the value, found none: the value would take the rest of "
                "the turn. Give the closing tag, or end=True if the turn's end is what ends it"
            )
        if not all(_texts(self.also)):
            raise DefinitionError("Raw: expected also=, other texts that end the value, found an empty one")
        for field, pairs in (("named", self.named), ("seams", self.seams)):
            if not all(before.strip() for before, _ in pairs):
                raise DefinitionError(
                    f"Raw: expected {field}=, pairs of the texts around a name, found {pairs!r}: give the first text"
                )
        for char, spelling in self.escapes:
            if len(char) != 1 or not spelling:
                raise DefinitionError(
                    f"Raw: expected escapes=, pairs of one character and its spelling, found {(char, spelling)!r}"
                )
        if self.type is not None and self.type not in _WIRE_TYPES:
            raise DefinitionError(
                f"Raw: there is no type {self.type!r}: {did_you_mean(str(self.type), _WIRE_TYPES)}"
            )

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end a value: ``until``, also with less white space at its beginning, and ``also``."""
        found = [text for stop in _texts(self.until) for text in _with_less_space(stop)]
        return tuple(dict.fromkeys((*found, *_texts(self.also))))

    @property
    def types(self) -> frozenset[str] | None:
        """The JSON types of a value if the wire says them; None if the schema does."""
        return None if self.type is None else _WIRE_TYPES[self.type]

    @property
    def tokens(self) -> tuple[str, ...]:
        return ()

    @property
    def closer(self) -> str:
        return "" if self.end else " or ".join(map(repr, self.stops[:1]))

    def value(self, spellings: Spellings, markers: tuple[str, ...] = (), look: Look = NOTHING) -> Reader:
        stops = self.stops
        spelt = [spelling for stop in stops for spelling in spellings(stop)]
        named, seams = _around(self.named, spellings), _around(self.seams, spellings)
        finder = StopFinder(spelt, self.end, stops, markers, named, seams)
        loose = {spelling for stop in _texts(self.also) for spelling in spellings(stop)}
        return RawReader(finder, self.types, self.python, self.escapes, Closers(look, spelt, loose))


def _texts(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _around(pairs: tuple[tuple[str, str], ...], spellings: Spellings) -> Iterable[tuple[str, str]]:
    """Pairs of texts as the format writes them, also with less white space at their beginning and then none at their
    end."""
    found = [
        pair
        for before, after in pairs
        for less in _with_less_space(before)
        for end in ((after, after.rstrip()) if less == before else (after.rstrip(),))
        for pair in product(spellings(less, own=True), spellings(end, own=True))
    ]
    return dict.fromkeys(found)


def _with_less_space(text: str) -> list[str]:
    """The text, and what is left of it without a part of the white space at its beginning."""
    space = len(text) - len(text.lstrip()) if text.strip() else 0
    return [text[start:] for start in range(space + 1)]


_Row = TypeVar("_Row")


def of_every_syntax(
    reader: str, rows: Mapping[type[Syntax], _Row], *without: type[Syntax]
) -> Mapping[type[Syntax], _Row]:
    """``rows``, a table of all value syntaxes but ``without``. Raises `DefinitionError` if one is missing."""
    for kind in globals().values():
        if isinstance(kind, type) and issubclass(kind, Syntax) and kind not in (Syntax, *rows, *without):
            raise DefinitionError(
                f"{reader}: expected a row for each value syntax, and that of {kind.__name__} is missing: write it"
            )
    return rows
