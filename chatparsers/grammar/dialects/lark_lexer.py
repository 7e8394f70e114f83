"""What a greedy lexer asks of the parts of a choice or a sequence.

llguidance's lexer takes the longest text that a terminal allows and does not go back. So what could be the beginning of
two terminals is cut where they part, a number ends in one terminal with the marker after it, and white space is in one
terminal with the literal beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from .. import ir
from ..ir import Ir

_MARKS = frozenset(":,]}")
"""The white space before them is part of their terminal."""


def told_apart(options: tuple[Ir, ...]) -> tuple[Ir, ...]:
    """The options of a choice. If one begins with a literal that also begins another's longer literal, the longer one
    is cut there. Otherwise the lexer would wait for the longer literal and not go back."""
    first = [option.items[0] if isinstance(option, ir.Seq) and option.items else option for option in options]
    texts = sorted({item.text for item in first if isinstance(item, ir.Text) and item.text})
    if not any(longer.startswith(text) for text, longer in pairwise(texts)):
        return options
    listed = set(texts)
    found: list[Ir] = []
    for option, item in zip(options, first, strict=True):
        if isinstance(item, ir.Text):
            cuts = [size for size in range(1, len(item.text)) if item.text[:size] in listed]
            ends = [0, *cuts, len(item.text)]
            pieces = [ir.Text(item.text[begin:end]) for begin, end in pairwise(ends) if end > begin]
            option = ir.Seq((*pieces, *(option.items[1:] if isinstance(option, ir.Seq) else ())))
        found.append(option)
    return tuple(found)


def closed_number(option: Ir, ends: Iterable[str]) -> Ir:
    """A number or a word, and the marker after it, as one terminal, if the marker begins with one of ``ends``."""
    if not isinstance(option, ir.Seq) or len(option.items) < 2:
        return option
    number, marker, *rest = option.items
    text = marker.text if isinstance(marker, (ir.Text, ir.TokenRef)) else ""
    end = next((end for end in ends if text.startswith(end)), "")
    if end and isinstance(number, ir.Shared) and number.lexeme and not isinstance(number.node, ir.Lang):
        number, end = ir.Shared(number.hint, ir.Seq((number.node, ir.Text(end))), True), text[len(end) :]
    elif end and isinstance(number, ir.Text):
        end = text
    else:
        return option
    return ir.seq(number, ir.Text(end), *rest)


def cut_after_repeats(items: tuple[Ir, ...]) -> tuple[Ir, ...]:
    """A sequence with the same cut: in the literal after a repeated part that begins with a shorter literal."""
    found: list[Ir] = []
    for item in items:
        before = found[-1].node if found and isinstance(found[-1], ir.Rep) else None
        first = before.items[0] if isinstance(before, ir.Seq) and before.items else before
        if (
            type(item) is ir.Text
            and type(first) is ir.Text
            and first.text
            and item.text.startswith(first.text)
            and item.text != first.text
        ):
            found.append(first)
            item = ir.Text(item.text[len(first.text) :])
        found.append(item)
    return tuple(found)


OTHER, SPACE, NAME, TAKES_AFTER, MARK = range(5)
TAKE_BEFORE = (NAME, MARK)
QUOTE = ir.Text('"')


def kinds_of(items: tuple[Ir, ...]) -> list[int]:
    """What each node of a sequence is to the white space beside it: a mark takes that before it, and so does the
    opening quote of a name, which a colon follows. A mark, another literal or text with an end takes that after it, if
    neither a mark nor a name follows. ``SPACE``: the node is white space, of which nothing was written."""
    kinds: list[int] = []
    for index, item in enumerate(items):
        kind = _kind(item)
        if kind == MARK and type(item) is ir.Text and item.text.startswith(":"):
            before = index - 2 if index and kinds[-1] == SPACE else index - 1
            if before >= 0 and _quoted(items[before]):
                kinds[before] = NAME
        kinds.append(kind)
    return kinds


def _kind(node: Ir) -> int:
    if type(node) is ir.Text:
        return MARK if node.text[:1] in _MARKS else TAKES_AFTER
    if type(node) is ir.Blank:
        return SPACE if node.written < 0 else OTHER
    return TAKES_AFTER if type(node) is ir.Lang and node.end else OTHER


def _quoted(node: Ir) -> bool:
    """Whether a node is a string in JSON, or one of several."""
    if type(node) is ir.Text:
        return node.text.startswith('"')
    if type(node) is ir.Alt:
        return all(map(_quoted, node.options))
    return type(node) is ir.Lang and node.encoding == "json" and not node.opened


def after_quote(node: Ir) -> Ir:
    """A name without its opening quote."""
    if isinstance(node, ir.Text):
        return ir.Text(node.text[1:])
    if isinstance(node, ir.Alt):
        return ir.Alt(tuple(map(after_quote, node.options)))
    assert isinstance(node, ir.Lang)
    return replace(node, opened=True)


def one_character(node: Ir) -> bool:
    """Whether a node is one character of a set. Repeated, such a node is one terminal. With a longer node, the lexer
    could begin one repetition too many, and it does not go back."""
    if isinstance(node, ir.Shared):
        return one_character(node.node)
    if isinstance(node, ir.Alt):
        return all(map(one_character, node.options))
    return isinstance(node, ir.Chars) or (isinstance(node, ir.Text) and len(node.text) == 1)
