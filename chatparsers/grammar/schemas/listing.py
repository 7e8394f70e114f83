"""Listed values (``enum``, ``const``): those that all schemas admit, as they are written."""

from __future__ import annotations

from ...schema.document import is_of
from ..ir import Ir, Part, texts
from ..syntaxes import RawText, Syntax
from .bags import Bag, Where
from .judge import Judge
from .output import Output


class Listing:
    """Writes listed values in one syntax."""

    def __init__(self, judge: Judge, syntax: Syntax, output: Output) -> None:
        self.judge = judge
        self.syntax = syntax
        self.output = output

    def write(self, bags: list[Bag], wheres: list[Where], raw: RawText | None) -> list[Ir] | None:
        """The listed values of these bags that the bags allow; None if the grammar has no room for them."""
        listed = [(key, value, bag) for bag in bags for key, value in (bag.values or {}).items()]
        room = {key: len(value) + 6 if isinstance(value, str) else 12 for key, value, _ in listed}
        size = sum(room.values())
        if size > self.output.budget.size:
            self.output.tell(bags[0].path, "*", "the grammar would be past max_size: any value is generated")
            return None
        self.output.budget.size -= size
        values = {key: value for key, value, bag in listed if self.judge.within(value, bag)}
        found: list[Ir] = []
        plain: list[str] = []
        for value in values.values():
            if raw is not None and raw.said and not is_of(value, raw.types):
                continue
            if isinstance(value, str) and raw is not None:
                if raw.may(value) and self._reads_back(value, bags[0].path, wheres, raw):
                    plain.append(raw.spelt(value))
            else:
                literal = self.syntax.literal(value)
                found.append(raw.word(literal) if raw else literal)
        if plain and raw is not None:
            found.append(raw.write((Part(texts(plain)),), 0, None))
        return found

    def _reads_back(self, text: str, path: str, wheres: list[Where], raw: RawText) -> bool:
        """Whether a listed text, written as raw text, is read as itself or as another valid value."""
        spelt = raw.spelt(text)
        if any(stop in spelt for stop in raw.stops):
            self.output.tell(path, "enum", f"{text!r} holds what ends a value: it is not generated")
            return False
        read = raw.read(spelt)
        if read == text or self.judge.fits(read, wheres):
            return True
        self.output.tell(path, "enum", f"{text!r} would be read as no string: it is not generated")
        return False
