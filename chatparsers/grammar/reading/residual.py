"""The rest of a grammar when the prompt has already written the beginning: its derivative by a text.

Strategy: `_advance` walks a node along the text and yields every way to do so. Either the node is over at some place,
or the text ends inside it and a rest of the node remains. All ways are kept; but from a place that several ways reach,
what follows is walked once, so the work grows with the text and not with the ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from .. import ir
from ..ir import EMPTY, NOTHING, Ir, alt, nullable, seq
from ..regular.regex import read_regex

HEX = "[0-9a-fA-F]"
PAIR = rf"[dD](?:[0-7]{HEX}{{2}}|[89abAB]{HEX}{{2}}\\u[dD][c-fC-F]{HEX}{{2}})"
CHARACTER = rf'(?:[^"\\\x00-\x1F]|\\(?:["\\\/bfnrt]|u(?:[0-9a-cA-CefEF]{HEX}{{3}}|{PAIR})))'
"""A character of a JSON string, as the dialects write it: a surrogate stands in a pair alone."""

_whole_characters = re.compile(f"{CHARACTER}*").match
_CHARACTER = read_regex(f"^{CHARACTER}$")
_REST = ir.Shared("rest", seq(ir.Rep(_CHARACTER, 0, None), ir.Text('"')), lexeme=True)


def residual(node: Ir, text: str) -> Ir | None:
    """The rest of ``node`` after ``text``; None if ``node`` cannot begin with ``text``."""
    if not text:
        return node
    rests: list[Ir] = []
    for rest, at in _advance(node, text, 0):
        if rest is not None:
            rests.append(rest)
        elif at == len(text):
            rests.append(EMPTY)
    return alt(*rests) if rests else None


def _advance(node: Ir, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    """Ways to read ``text`` from ``at``, which is not its end: (None, the place at which the node is over), or (the
    rest of the node, the end of the text)."""
    if isinstance(node, (ir.Text, ir.TokenRef)):
        shown = text[at : at + len(node.text)]
        if shown == node.text:
            yield None, at + len(node.text)
        elif node.text.startswith(shown):
            yield ir.Text(node.text[len(shown) :]), len(text)
    elif isinstance(node, ir.Chars):
        if any(low <= ord(text[at]) <= high for low, high in node.ranges):
            yield None, at + 1
    elif isinstance(node, ir.Seq):
        yield from _sequence(node.items, text, at)
    elif isinstance(node, ir.Alt):
        for option in node.options:
            yield from _advance(option, text, at)
    elif isinstance(node, ir.Rep):
        yield from _repeat(node, text, at)
    elif isinstance(node, ir.Shared):
        yield from _advance(node.node, text, at)
    elif isinstance(node, ir.Order):
        yield from _advance(node.unfold(), text, at)
    elif isinstance(node, ir.Lang):
        yield from _language(node, text, at)
    elif isinstance(node, ir.Free):
        if node.start is None and not any(stop in text[at:] for stop in (*node.triggers, *node.excludes)):
            yield node, len(text)
        else:
            yield from ((rest, end) for rest, end in _advance(node.calls, text, at) if rest is not None)
    elif isinstance(node, ir.Blank):
        yield None, len(text) - len(text[at:].lstrip(" \r\n\t"))


def _sequence(items: tuple[Ir, ...], text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    places = [at]
    said = 0
    """From which item on the rest is known, if the items from there up to the current one may be empty."""
    for index, item in enumerate(items):
        after: dict[int, None] = {}
        for place in places:
            if place == len(text):
                if not said or not all(map(nullable, items[said - 1 : index])):
                    yield ir.Seq(items[index:]), place
                    said = index + 1
                continue
            for rest, end in _advance(item, text, place):
                if rest is None:
                    after[end] = None
                else:
                    yield seq(rest, *items[index + 1 :]), end
        places = list(after)
    yield from ((None, place) for place in places)


def _repeat(node: ir.Rep, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    left = [(at, node.least, node.most)]
    seen = set(left)
    for place, least, most in left:  # grows
        if most == 0:
            yield None, place
            continue
        if place == len(text):
            yield ir.Rep(node.node, least, most), place
            continue
        if least == 0 or nullable(node.node):
            yield None, place
        least, most = max(0, least - 1), None if most is None else most - 1
        for rest, end in _advance(node.node, text, place):
            if rest is not None:
                yield (rest if most == 0 else seq(rest, ir.Rep(node.node, least, most))), end
            elif end > place and (end, least, most) not in seen:
                seen.add((end, least, most))
                left.append((end, least, most))


def _language(node: ir.Lang, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    if node.encoding != "raw":
        yield from _string(node, text, at)
        return
    if node.parts or node.least or node.most is not None or not (node.stops or node.end):
        yield from _constrained(node, text, at)
        return
    end = node.end_text
    for place in range(at, len(text)):
        for stop in (end, *node.stops) if end else node.stops:
            if stop and text.endswith(stop, at, place + 1):
                if stop == end:
                    yield None, place + 1
                elif not end:
                    yield None, place + 1 - len(stop)
                return
    yield node, len(text)
    if end:
        for begun in range(1, min(len(end), len(text) - at + 1)):
            if text.endswith(end[:begun], at):
                yield _rest(node, begun), len(text)


def _string(node: ir.Lang, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    """The rest of a string literal. One with constraints has none while it is open."""
    if text[at] != '"':
        return
    found = _whole_characters(text, at + 1)
    end = found.end() if found else at + 1
    if text.startswith('"', end):
        if _holds(node, json.loads(text[at : end + 1], strict=False)):
            yield from _sequence(node.end, text, end + 1)
    elif not node.parts and not node.least and node.most is None:
        if end == len(text):
            yield seq(_REST, *node.end), end
        else:
            for rest, _ in _advance(_CHARACTER, text, end):
                if rest is not None:
                    yield seq(rest, _REST, *node.end), len(text)


def _holds(node: ir.Lang, text: str) -> bool:
    """Whether the constraints of a language hold for the whole text. What it divides is not looked at."""
    if len(text) < node.least or (node.most is not None and len(text) > node.most):
        return False
    for part in node.parts:
        if not part.divisor:
            left = residual(part.node, text)
            if (left is not None and nullable(left)) != part.positive:
                return False
    return True


def _constrained(node: ir.Lang, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    """The rest of a language with constraints: when the text ends inside it, or in its end."""
    for place in range(at, len(text) if node.end else at):
        shown = text[place : place + len(node.end_text)]
        whole = shown == node.end_text
        if node.end_text.startswith(shown) and _holds(node, text[at:place]):
            yield None if whole else _rest(node, len(shown)), place + len(shown)
        if whole:
            return
    written = len(text) - at
    if node.most is not None and node.most < written:
        return
    if any(stop in text[at:] for stop in node.stops):
        return
    parts: list[ir.Part] = []
    for part in node.parts:
        left = NOTHING if part.divisor else residual(part.node, text[at:])
        if left is not None:
            parts.append(ir.Part(left, part.positive))
        elif part.positive:
            return
    most = None if node.most is None else node.most - written
    yield ir.Lang(tuple(parts), max(0, node.least - written), most, "raw", node.stops, node.end), len(text)


def _rest(node: ir.Lang, begun: int) -> Ir:
    """The rest of a text after its first ``begun`` characters."""
    items: list[Ir] = []
    for item in node.end:
        if begun >= len(item.text):
            begun -= len(item.text)
        elif begun:
            items.append(ir.Text(item.text[begun:]))
            begun = 0
        else:
            items.append(item)
    return seq(*items)
