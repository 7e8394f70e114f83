"""Equal schemas: the tools of one server repeat them, so each is compiled once for a grammar.

An equal schema gives an equal value only if it says all that there is to say: it has no reference, nothing was reported
with its path, and no rule was made for it. What it cost of the budget's size is spent again, because a grammar may
write the value again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from marshal import dumps
from typing import Any

from ...schema.keywords import KEYWORDS, NOTES
from ..ir import Ir
from .output import Output

_REFERENCES = tuple(row.name.encode() for row in KEYWORDS.values() if row.reference)


def content(schema: Any) -> bytes | None:
    """A key of what a schema says, without notes for readers; None if it refers to schemas, or is not plain JSON."""
    if type(schema) is not dict:
        return None
    try:
        said = dumps([item for item in schema.items() if item[0] not in NOTES], 2)
    except ValueError:
        return None
    return None if any(reference in said for reference in _REFERENCES) else said


class Equal:
    """The values of one grammar's schemas, by their content. The grammar's output shows what a value adds."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.known: dict[Hashable, tuple[Ir, int]] = {}

    def get(self, key: Hashable) -> Ir | None:
        """The value of an equal schema."""
        found = self.known.get(key)
        if found is None:
            return None
        self.output.budget.size -= found[1]
        return found[0]

    def watch(self, key: Hashable) -> Callable[[Ir], Ir]:
        """Call it before a value is made, and call the result with the value, which is then known."""
        output = self.output
        rules, weakened, size = len(output.rules), len(output.weakened), output.budget.size

        def made(value: Ir) -> Ir:
            if (len(output.rules), len(output.weakened)) == (rules, weakened):
                self.known[key] = value, size - output.budget.size
            return value

        return made
