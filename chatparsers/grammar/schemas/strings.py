"""Strings: patterns and lengths, as far as engines bear them, in quotes or as raw text."""

from __future__ import annotations

from ..ir import ANYTHING, NOTHING, SPACES, Chars, Ir, Lang, Part, charset, seq, texts
from ..regular.numbers import ANY_INTEGER, ANY_NUMBER
from ..regular.regex import Unsupported, read_regex
from ..syntaxes import RawText, Syntax
from .bags import Bag
from .output import Output

Parts = tuple[Part, ...]

_MOST_COUNTED = 256
"""The most states for counting the characters of text up to a marker."""


def regex(expression: str, path: str, keyword: str, output: Output) -> Ir | None:
    """The strings in which the regular expression finds a match. If a grammar cannot say them, reports it and returns
    None."""
    try:
        return read_regex(expression)
    except Unsupported as reason:
        output.tell(path, keyword, f"the regular expression has {reason}")
        return None


def string_parts(bag: Bag, output: Output) -> Parts:
    """The patterns of a string."""
    nodes = (regex(expression, path, keyword, output) for expression, path, keyword in bag.patterns)
    return tuple(Part(node) for node in nodes if node is not None)


def string(bag: Bag, raw: RawText | None, nested: bool, syntax: Syntax, output: Output) -> Ir:
    """The strings of a bag. ``raw``: how they are written, if not in the syntax's own way."""
    if bag.most is not None and bag.most < bag.least:
        return NOTHING
    parts = string_parts(bag, output)
    least, most = bag.least, bag.most
    if raw:
        parts = _raw_parts(parts, bag, raw, output)
    stops = (raw or syntax).stops
    if stops and output.target.counts_text:
        least, most = _count(
            bag, output.target.counts_text, "before a marker take the engine too many states", output
        )
    if parts:
        size = output.states(Lang(parts, least, most, stops=stops))
        if size == 0:
            return NOTHING
        if size is None:
            _, path, keyword = bag.patterns[-1] if bag.patterns else ("", bag.path, "maxLength")
            if least or most is not None:
                counted = "maxLength" if most is not None else "minLength"
                output.tell(path, counted, "beside a pattern it takes too many states")
                least, most = 0, None
            parts = _few(parts, stops, path, keyword, output)
    elif stops and not output.target.counts_text:
        least, most = _count_to_stop(bag, stops, output)
    elif not raw and output.target.most_counted is not None:
        why = "are not counted: each character takes the engine 30 ms to compile"
        least, most = _count(bag, output.target.most_counted, why, output)
    return raw.write(parts, least, most) if raw else syntax.string(parts, least, most, nested)


def _raw_parts(parts: Parts, bag: Bag, raw: RawText, output: Output) -> Parts:
    """The constraints on a string that is written as raw text."""
    if not parts and not bag.least and bag.most is None:
        return raw.only
    parts += _no_other(bag, raw, output)
    if raw.escapes:
        spelt = ", ".join(repr(char) for char, _ in raw.escapes)
        output.tell(bag.path, "type", f"no string with {spelt} is generated: it is spelt in another way")
    return raw.verbatim + parts


def _no_other(bag: Bag, raw: RawText, output: Output) -> Parts:
    """The constraints that keep raw text from being read as another type."""
    found: list[Part] = []
    if "number" in raw.types or "integer" in raw.types:
        number = ANY_NUMBER if "number" in raw.types else ANY_INTEGER
        found.append(Part(seq(SPACES, number, SPACES), False))
    words = [word for kind in ("boolean", "null") if kind in raw.types for word in raw.words[kind]]
    if words:
        found.append(Part(seq(SPACES, texts(words), SPACES), False))
    opening = "".join(char for kind, char in (("object", "{"), ("array", "[")) if kind in raw.types)
    if opening:
        found.append(Part(seq(SPACES, Chars(charset(opening)), ANYTHING), False))
        begins = " or ".join(opening)
        why = f"no string that begins with {begins} is generated: it may be read as another type"
        output.tell(bag.path, "type", why)
    return tuple(found)


def _few(parts: Parts, stops: tuple[str, ...], path: str, keyword: str, output: Output) -> Parts:
    """As many of the constraints as fit into an automaton of limited size."""
    while parts and output.states(Lang(parts, stops=stops)) is None:
        output.tell(path, keyword, "the regular expression takes too many states")
        parts = parts[:-1]
    return parts


def _count_to_stop(bag: Bag, stops: tuple[str, ...], output: Output) -> tuple[int, int | None]:
    """The lengths of text up to a stop that are counted.

    Each count has one state for each beginning of a stop that fits into it. A state costs some engines 12 ms.
    """
    why = "text up to a marker is not counted: it takes too many states"
    least, most = bag.least, bag.most
    if most is not None and most * _begun(stops, most) > _MOST_COUNTED:
        output.tell(bag.path, "maxLength", why)
        most = None
    if least * _begun(stops, least if most is None else most) > _MOST_COUNTED:
        output.tell(bag.path, "minLength", why)
        least = 0
    return least, most


def _begun(stops: tuple[str, ...], most: int) -> int:
    """How many beginnings of the stops, and none, stand in ``most`` characters."""
    return len({stop[:end] for stop in stops for end in range(min(most + 1, len(stop)))})


def _count(bag: Bag, limit: int, why: str, output: Output) -> tuple[int, int | None]:
    """The lengths of a string that are counted, if lengths over ``limit`` are not."""
    least, most = bag.least, bag.most
    why = f"lengths over {limit} {why}"
    if most is not None and most > limit:
        output.tell(bag.path, "maxLength", why)
        most = None
    if least > limit:
        output.tell(bag.path, "minLength", why)
        least = limit
    return least, most
