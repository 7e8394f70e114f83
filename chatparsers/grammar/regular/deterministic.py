"""The size of a pattern's automaton, told from the pattern's tree, without the automaton.

A pattern is deterministic if the next character always says which way a text goes through it. Then its automaton has no
more states than the pattern has characters. Most patterns that begin with ``^`` are so.
"""

from __future__ import annotations

from itertools import combinations

from ..ir import Alt, Chars, Ir, Lang, Ranges, Rep, Seq, Shared, Text, charset, nullable, overlap
from .listed import listed_texts


def deterministic_size(lang: Lang, limit: int) -> int | None:
    """How many states the automaton of a language has at most; 0 if the language is empty. None if it is not one
    deterministic pattern or a few excluded texts, or if there may be more than ``limit``."""
    if len(lang.parts) != 1 or lang.stops or lang.end:
        return None
    (part,) = lang.parts
    if not part.positive:
        excluded = None if lang.least or lang.most is not None else listed_texts(part)
        size = None if excluded is None else 2 + sum(map(len, excluded))
        return size if size and size <= limit else None
    shortest, count = _lengths(part.node)
    if shortest is None:
        return 0
    if part.divisor or shortest < lang.least or (lang.most is not None and shortest > lang.most):
        return None
    size = (1 + count) * (1 + (lang.most or lang.least))  # a state for each length
    return size if size <= limit and _deterministic(part.node, ()) else None


def _lengths(node: Ir) -> tuple[int | None, int]:
    """The length of a node's shortest text, None if it has no text; and its characters, each repetition anew."""
    if isinstance(node, Text):
        return len(node.text), len(node.text)
    if isinstance(node, Chars):
        return 1 if node.ranges else None, 1
    if isinstance(node, Shared):
        return _lengths(node.node)
    if isinstance(node, Rep):
        shortest, count = _lengths(node.node)
        count *= max(1, node.least) if node.most is None else node.most
        if not node.least:
            return 0, count
        return None if shortest is None else shortest * node.least, count
    if isinstance(node, (Seq, Alt)):
        parts = [_lengths(inner) for inner in (node.items if isinstance(node, Seq) else node.options)]
        lengths = [length for length, _ in parts if length is not None]
        count = sum(count for _, count in parts)
        if isinstance(node, Alt):
            return min(lengths, default=None), count
        return sum(lengths) if len(lengths) == len(parts) else None, count
    raise TypeError(f"not regular: {type(node).__name__}")


def _deterministic(node: Ir, after: Ranges) -> bool:
    """Whether each character says which way a text goes through a node. ``after``: the characters that may follow."""
    if isinstance(node, Shared):
        return _deterministic(node.node, after)
    if isinstance(node, Seq):
        for item in reversed(node.items):
            if not _deterministic(item, after):
                return False
            after = _begins(item, after)
        return True
    if isinstance(node, Rep):
        inner = node.node
        if nullable(inner):
            return False
        begins = _begins(inner, ())
        if node.least != node.most and overlap(begins, after):
            return False
        return _deterministic(inner, after if node.most == 1 else charset((*begins, *after)))
    if isinstance(node, Alt):
        if all(isinstance(option, Text) for option in node.options):
            return _deterministic_texts(
                [option.text for option in node.options if isinstance(option, Text)], after
            )
        ways = [_begins(option, after) for option in node.options]
        return not any(overlap(one, other) for one, other in combinations(ways, 2)) and all(
            _deterministic(option, after) for option in node.options
        )
    return True


def _deterministic_texts(texts: list[str], after: Ranges) -> bool:
    """Whether the next character says if a text goes on as a longer one, or ends."""
    listed = set(texts)
    return not any(
        text[:end] in listed and overlap(charset(text[end]), after)
        for text in listed
        for end in range(len(text))
    )


def _begins(node: Ir, after: Ranges) -> Ranges:
    """The characters with which a node and what follows it may begin."""
    if isinstance(node, Shared):
        return _begins(node.node, after)
    if isinstance(node, Text):
        return charset(node.text[0]) if node.text else after
    if isinstance(node, Chars):
        return node.ranges
    if isinstance(node, Seq):
        for item in reversed(node.items):
            after = _begins(item, after)
        return after
    if isinstance(node, Rep):
        begins = _begins(node.node, after)
        return begins if node.least else charset((*begins, *after))
    if isinstance(node, Alt):
        return charset(pair for option in node.options for pair in _begins(option, after))
    raise TypeError(f"not regular: {type(node).__name__}")
