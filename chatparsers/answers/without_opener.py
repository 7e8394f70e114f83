"""Calls whose opener is missing: the name of a declared tool, then a marker that is inside calls alone."""

from __future__ import annotations

from collections.abc import Collection

from ..core.tree import begins, nullable, through
from .nodes import Choice, Declared, Header, Many, Name, Node, Peek, Sequence, Space, Tag, Tagged, Token

_DECLARED_NAME = Name(Tag.NAME, "(?!)", None)
"""A name of no characters that a class has: only declared names are read."""


def without_opener(section: Node, inner: Collection[str]) -> Node | None:
    """A section of calls from the first call's name on. None if no token of ``inner`` comes after the name."""
    if isinstance(section, Choice):
        found = [part for option in section.options if (part := without_opener(option, inner)) is not None]
        return Choice.of(*dict.fromkeys(found)) if found else None
    if not isinstance(section, Sequence):
        below = through(section)
        part = None if below is None else without_opener(below, inner)
        called = isinstance(section, Tagged) and section.tag is Tag.CALL
        return part if part is None or not called else Tagged(Tag.CALL, part)
    for index, item in enumerate(section.items, 1):
        after = section.items[index:]
        if isinstance(item, Header) or (isinstance(item, Name) and item.tag is Tag.NAME):
            marks = [text for text in begins(*after) if text in inner]
            if not marks:
                return None
            name = _DECLARED_NAME if isinstance(item, Name) else item
            follows = Peek(Sequence.of(Space(""), Choice.of(*map(Token, marks))))
            return Sequence.of(name, Declared(), follows, *after)
        found_part = without_opener(item, inner)
        if found_part is not None:
            return Sequence.of(found_part, *after)
    return None


def ending(node: Node) -> set[str]:
    """The special tokens that ``node`` may end with."""
    if isinstance(node, Token):
        return set(node.names)
    if isinstance(node, Choice):
        return set().union(*map(ending, node.options))
    if isinstance(node, Sequence):
        found: set[str] = set()
        for item in reversed(node.items):
            found |= ending(item)
            if not nullable(item):
                break
        return found
    below = node.node if isinstance(node, Many) else through(node)
    return set() if below is None else ending(below)
