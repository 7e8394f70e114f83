"""The rest of a grammar when the prompt has already written the beginning: its derivative by a text.

Strategy: `_advance` walks a node along the text and yields every way to do so. Either the node is over at some place,
or the text ends inside it and a rest of the node remains. All ways are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import ir
from ..ir import EMPTY, NOTHING, Ir, alt, seq
from ..regular.automaton import nullable

__all__ = ["residual"]


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
    if at == len(text) and items:
        yield ir.Seq(items), at
        return
    if not items:
        yield None, at
        return
    for rest, end in _advance(items[0], text, at):
        if rest is not None:
            yield seq(rest, *items[1:]), end
        else:
            yield from _sequence(items[1:], text, end)


def _repeat(node: ir.Rep, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    if node.most == 0:
        yield None, at
        return
    if at == len(text):
        yield node, at
        return
    if node.least == 0 or nullable(node.node):
        yield None, at
    again = ir.Rep(node.node, max(0, node.least - 1), None if node.most is None else node.most - 1)
    for rest, end in _advance(node.node, text, at):
        if rest is not None:
            yield (rest if again.most == 0 else seq(rest, again)), end
        elif end > at:
            yield from _repeat(again, text, end)


def _language(node: ir.Lang, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    if node.encoding != "raw":
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


def _constrained(node: ir.Lang, text: str, at: int) -> Iterator[tuple[Ir | None, int]]:
    """The rest of a language with constraints, when it holds all of the text."""
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
