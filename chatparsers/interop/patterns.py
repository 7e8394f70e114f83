"""Regular expressions as a format's author would write them: literals, white space, classes, named groups.

A regular expression says more than a format can generate. `read_pattern` takes the part that has one meaning for a
parser that streams and for a grammar, and refuses the rest by name: look-after, and repeats of anything but one class.
Only the group ``value`` may hold such a rest: what reads values knows their syntax. A look-ahead is read and not
generated. The standard library's own parser of regular expressions reads them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn, TypeAlias

from ..document.classes import escaped_char
from ..errors import DefinitionError

if sys.version_info >= (3, 11):
    from re import _constants as _op
    from re import _parser
else:
    import sre_constants as _op
    import sre_parse as _parser

_MOST_TEXTS = 64
"""The most literals to which one pattern is expanded."""
ANY = "."
"""The class of a run of any characters. Such a run ends at the literal that follows it."""
VALUE = "value"
"""The group of an argument's value."""


@dataclass(frozen=True, slots=True)
class White:
    """White space. ``least`` is 0 or 1."""

    least: int


@dataclass(frozen=True, slots=True)
class Run:
    """``least`` to ``most`` characters of a class. ``chars`` is the inside of the class, or `ANY`."""

    chars: str
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """A named group."""

    name: str
    parts: Parts


@dataclass(frozen=True, slots=True)
class Maybe:
    """Parts that may be missing."""

    parts: Parts


@dataclass(frozen=True, slots=True)
class OneOf:
    """The first alternative that matches."""

    options: tuple[Parts, ...]


@dataclass(frozen=True, slots=True)
class End:
    """The end of the text."""


@dataclass(frozen=True, slots=True)
class Again:
    """What the named group read, once more."""

    name: str


@dataclass(frozen=True, slots=True)
class Look:
    """Parts that must follow, or must not, and are not read."""

    parts: Parts
    follow: bool


Part: TypeAlias = "str | White | Run | Group | Maybe | OneOf | End | Again | Look"
Parts: TypeAlias = "tuple[Part, ...]"


def refuse(place: str, why: str, mend: str = "") -> NoReturn:
    """Raises `DefinitionError` for a part of a response template at ``place``."""
    raise DefinitionError(f"{place}: {why}" + (f": {mend}" if mend else ""))


def read_pattern(pattern: object, place: str) -> Parts:
    """The parts of a regular expression, in order. Raises `DefinitionError`, which names ``place``, if a part of it has
    no counterpart in a format."""
    if not isinstance(pattern, str):
        refuse(place, f"expected a regular expression, found {type(pattern).__name__}")
    try:
        parsed = _parser.parse(pattern, re.DOTALL)
    except (re.error, OverflowError, RecursionError) as error:
        refuse(place, f"no regular expression that Python's re reads: {error}")
    names = {number: name for name, number in parsed.state.groupdict.items()}
    return _parts(parsed, names, place)


def _parts(parsed: Any, names: dict[int, str], place: str) -> Parts:
    found: list[Part] = []
    for op, value in parsed:
        for part in _part(op, value, names, place):
            if isinstance(part, str) and found and isinstance(found[-1], str):
                found[-1] += part
            else:
                found.append(part)
    return tuple(found)


def _part(op: Any, value: Any, names: dict[int, str], place: str) -> Iterator[Part]:
    if op is _op.LITERAL:
        yield chr(value)
    elif op in (_op.ANY, _op.NOT_LITERAL, _op.IN):
        yield _run(op, value, 1, 1, place)
    elif op in (_op.MAX_REPEAT, _op.MIN_REPEAT):
        least, most, inside = value
        yield from _repeated(least, most, inside, names, place)
    elif op is _op.SUBPATTERN:
        number, flags, cleared, inside = value
        if flags or cleared:
            refuse(place, "flags inside a pattern have no counterpart in a format", "leave them out")
        if names.get(number) == VALUE:
            yield Group(VALUE, _value(inside, names, place))
            return
        parts = _parts(inside, names, place)
        if number in names:
            yield Group(names[number], parts)
        else:
            yield from parts
    elif op is _op.BRANCH:
        yield OneOf(tuple(_parts(option, names, place) for option in value[1]))
    elif op in (_op.ASSERT, _op.ASSERT_NOT) and value[0] > 0:
        yield Look(_parts(value[1], names, place), op is _op.ASSERT)
    elif op is _op.AT and value in (_op.AT_END, _op.AT_END_STRING):
        yield End()
    elif op is _op.GROUPREF and value in names:
        yield Again(names[value])
    else:
        refuse(
            place, f"{str(op).lower()} has no counterpart in a format", "write literals, classes and groups"
        )


def _value(inside: Any, names: dict[int, str], place: str) -> Parts:
    """The parts of a value; none if they nest, as a pattern of literals in brackets does."""
    try:
        return _parts(inside, names, place)
    except DefinitionError:
        return ()


def _repeated(least: int, most: Any, inside: Any, names: dict[int, str], place: str) -> Iterator[Part]:
    bound = None if most is _op.MAXREPEAT else int(most)
    op, value = inside[0] if len(inside) == 1 else (None, None)
    if op in (_op.ANY, _op.NOT_LITERAL, _op.IN):
        run = _run(op, value, least, bound, place)
        white = {" ", "\\t", "\\n", "\\r", "\\s"}
        if set(re.findall(r"\\.|.", run.chars)) <= white and least < 2 and bound is None:
            yield White(least)
        else:
            yield run
    elif (least, bound) == (0, 1) and op is _op.LITERAL and chr(value or 0).isspace():
        yield White(0)
    elif (least, bound) == (0, 1):
        yield Maybe(_parts(inside, names, place))
    else:
        refuse(place, "only one class of characters can be repeated", "write the parts one after the other")


_CATEGORIES = {"CATEGORY_WORD": r"\w", "CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s"}
_OTHERS = {"CATEGORY_NOT_WORD": r"\w", "CATEGORY_NOT_DIGIT": r"\d", "CATEGORY_NOT_SPACE": r"\s"}


def _run(op: Any, value: Any, least: int, most: int | None, place: str) -> Run:
    if op is _op.ANY:
        return Run(ANY, least, most)
    if op is _op.NOT_LITERAL:
        return Run("^" + escaped_char(chr(value)), least, most)
    others = [_OTHERS[str(item)] for kind, item in value if kind is _op.CATEGORY and str(item) in _OTHERS]
    if others:
        return Run(_outside(others, value, place), least, most)
    chars = ""
    for kind, item in value:
        if kind is _op.NEGATE:
            chars += "^"
        elif kind is _op.LITERAL:
            chars += escaped_char(chr(item))
        elif kind is _op.RANGE:
            chars += "-".join(escaped_char(chr(one)) for one in item)
        elif str(item) in _CATEGORIES:
            chars += _CATEGORIES[str(item)]
        else:
            refuse(place, f"the class has {str(item).lower()}, which has no counterpart in a format")
    return Run(chars, least, most)


def _outside(others: list[str], value: Any, place: str) -> str:
    """A class with ``\\S``, ``\\W`` or ``\\D``: alone, negated, or beside the category that makes it any character."""
    (other,) = others if len(others) == 1 else ("",)
    kinds = [str(kind) for kind, _ in value]
    if other and len(value) == 1:
        return "^" + other
    if other and kinds == ["NEGATE", "CATEGORY"]:
        return other
    if other in [_CATEGORIES.get(str(item)) for _, item in value] and "NEGATE" not in kinds:
        return ANY
    refuse(place, "the class has a negated category beside others, which has no counterpart in a format")


def texts(parts: Parts, place: str) -> tuple[str, ...]:
    """The literals that the parts may spell, the longest first. White space is one line break, or none. Raises
    `DefinitionError` if the parts spell too many texts, or texts without a bound."""
    options: list[tuple[str, ...]] = []
    for part in parts:
        if isinstance(part, str):
            options.append((part,))
        elif isinstance(part, White):
            options.append(("\n",) if part.least else ("\n", ""))
        elif isinstance(part, Maybe):
            options.append((*texts(part.parts, place), ""))
        elif isinstance(part, OneOf):
            options.append(tuple(text for option in part.options for text in texts(option, place)))
        elif isinstance(part, Group):
            options.append(texts(part.parts, place))
        elif isinstance(part, (Look, End)):
            options.append(("",))
        else:
            refuse(place, "expected a pattern of literals, found a class of characters")
        if len(options[-1]) > _MOST_TEXTS:
            break
    size = 1
    for choice in options:
        size *= len(choice)
    if size > _MOST_TEXTS:
        refuse(place, f"the pattern stands for more than {_MOST_TEXTS} literals", "list the literals")
    found = {"".join(choice) for choice in product(*options)}
    return tuple(sorted(filter(None, found), key=lambda text: (-len(text), text)))
