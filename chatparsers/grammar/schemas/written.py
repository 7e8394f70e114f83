"""The values of a document's schemas that are written, and those that are being written.

Strategy: a value is known by the identities of the schemas that apply to it. A value that is met again inside itself
becomes a rule. If that rule has no finite text, the value is nothing; then the values in it that refer to it are
forgotten, so that they are written again when they are met again.
"""

from __future__ import annotations

from typing import Any

from ..ir import EMPTY, NOTHING, Alt, Ir, Ref, Seq, Shared, Text
from .bags import Where
from .ends import has_end

Key = tuple[int, ...]


class Written:
    """The values of one compiler. ``rules`` receives the rules that recursion needs."""

    def __init__(self, rules: dict[str, Ir], prefix: str) -> None:
        self.rules = rules
        self.prefix = prefix
        self.known: dict[Key, Ir] = {}
        self.begun: dict[Key, tuple[str, int]] = {}
        """The names of the values that are being written, and how many values were known before each."""
        self.alive: list[Any] = []
        """Keeps schemas alive whose id() is in a key, so that the id is not reused."""

    @staticmethod
    def key(wheres: list[Where], nested: bool) -> Key:
        """What a value is known by; ``nested``: whether it is inside of an object or array."""
        if len(wheres) == 1:
            return (int(nested), id(wheres[0][0]))
        return (int(nested), *sorted({id(schema) for schema, _ in wheres}))

    def get(self, key: Key) -> Ir | None:
        """A value that is written, or a reference to one that is being written."""
        if key not in self.begun:
            return self.known.get(key)
        name = self.begun[key][0]
        self.rules.setdefault(name, EMPTY)
        return Ref(name)

    def begin(self, key: Key, wheres: list[Where]) -> None:
        """A value is being written."""
        self.alive.extend(schema for schema, _ in wheres)
        self.begun[key] = f"{self.prefix}-{len(self.rules)}-{len(self.alive)}", len(self.known)

    def end(self, key: Key, node: Ir) -> Ir:
        """The value is written as ``node``; returns what stands for it."""
        name, before = self.begun.pop(key)
        if name in self.rules:
            self.rules[name] = node
            if has_end(name, self.rules, [other for other, _ in self.begun.values()]):
                node = Ref(name)
            else:
                node = NOTHING
                for inner in list(self.known)[before:]:
                    del self.known[inner]
        elif isinstance(node, Seq) or (isinstance(node, Alt) and not all(map(_short, node.options))):
            node = Shared("v", node)
        self.known[key] = node
        return node


def _short(node: Ir) -> bool:
    return isinstance(node, (Text, Shared))
