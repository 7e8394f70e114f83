"""Judges the arguments of a call, or an answer in JSON, while they are written: whether they can still become valid.

Strategy: the reader of the arguments so far (values/so_far.py) keeps, for each value that is open, the cases that
it may still become, as the grammar's own judge gathers them. A value that begins or goes on strikes out cases of its
own; a whole value strikes out those of what it is in. Where none is left, no valid value is.

What no grammar enforces (`Case.unsaid`) is not judged. A number is judged when it is whole:
an exponent may yet come.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

from ...errors import SchemaError
from ...schema.document import Document
from ...schema.tools import Toolset
from ...values.so_far import Reader
from ..budget import Budget
from ..regular.automaton import State
from ..steps import run
from .cases import Case, Located, matcher
from .judge import Judge
from .written import Output

_KINDS = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}


class _Way(NamedTuple):
    """A case that a value may become, and the case around it."""

    case: Case
    of: int


_Ways = tuple[_Way, ...]


class Checks:
    """The readers of the calls and of the answer of a turn."""

    def __init__(self, turn: Any) -> None:
        self.tools: Toolset = turn.tools
        self.schema = turn.options.schema
        self.judges: dict[str, _Judge] = {}
        self.begun = ""
        """What the turn's prefix has of the answer."""
        if self.schema is not None and turn.prefix:
            self.begun = turn._replace(prefix="").parse(turn.prefix).content

    def answer(self) -> AnswerReader | None:
        """A reader of the answer; None if it is free text."""
        return None if self.schema is None else AnswerReader(_answer_judge(self.schema), self.begun)

    def reader(self, name: str) -> Reader:
        """A reader of the arguments of a call of this tool."""
        tool = self.tools.get(name)
        if tool is None:
            return Reader()
        if name not in self.judges:
            self.judges[name] = _Judge(tool.document, tool.parameters)
        return CheckedReader(self.judges[name])


class _Judge(Judge):
    """Judges the values of a schema in a document. Knows the cases of the schemas in it."""

    def __init__(self, document: Any, schema: Any) -> None:
        super().__init__(document, Output(budget=Budget()))
        self.unsaid = False
        self.asked = document, schema
        self.kept: dict[tuple[int, ...], tuple[list[Located], list[Case]]] = {}
        """The cases of schemas, by the identities of these, which it holds for that."""
        self.arguments = [replace(case, values=None) for case in self.of([(schema, "$")])]

    def of(self, schemas: list[Located]) -> list[Case]:
        """The cases of a value."""
        key = tuple(id(schema) for schema, _ in schemas)
        if key not in self.kept:
            self.kept[key] = schemas, self.gathered(schemas or [(True, "$")])
        return self.kept[key][1]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Judge, self.asked

    def refuses(self, value: Any, case: Case) -> bool:
        """Whether a whole value is not of this case."""
        self.verdicts = {}
        return run(self._within(value, case)) is False


class CheckedReader(Reader):
    """Reads arguments, and tells in ``wrong`` the JSON path of the first value of which nothing valid is left.

    ``ways``: of each value that is open, what it may still become; None once that is not known any more. ``states``:
    how far the patterns of the open string have come, by their expressions.
    """

    __slots__ = ("judge", "states", "ways", "wrong")

    above = 0
    """How many steps of a path are not the model's."""

    def __init__(self, judge: _Judge) -> None:
        super().__init__()
        self.judge = judge
        self.states: dict[str, State] = {}
        self.wrong = ""
        self.ways: list[_Ways] | None = [tuple(_Way(case, 0) for case in judge.arguments)]

    def copy(self) -> CheckedReader:
        other = self._fresh()
        self._copy_to(other)
        other.wrong, other.states = self.wrong, self.states.copy()
        other.ways = None if self.ways is None else self.ways.copy()
        return other

    def _fresh(self) -> CheckedReader:
        return CheckedReader(self.judge)

    def _begins(self, char: str) -> None:
        if self.ways is None:
            return
        kind = _KINDS.get(char, "number")
        if self.keys and isinstance(self.keys[-1], int):
            self._inner(self.keys[-1])
        self.states = {}
        self._keep(lambda case: kind in case.types or (kind == "number" and "integer" in case.types))

    def _named(self, name: str) -> None:
        if self.ways is not None:
            self._inner(name)

    def _grows(self, text: str, more: str) -> None:
        self._keep(lambda case: self._may_become(text, case, more))

    def _ends(self, value: Any) -> None:
        self._keep(lambda case: not self.judge.refuses(value, case))
        if self.ways is not None and len(self.ways) > 1:
            left = {way.of for way in self.ways.pop()}
            self.ways[-1] = tuple(way for place, way in enumerate(self.ways[-1]) if place in left)

    def _inner(self, key: str | int) -> None:
        """Finds what a member or an item may become."""
        ways = self.ways
        assert ways is not None
        found: list[_Way] = []
        try:
            for place, (case, _) in enumerate(ways[-1]):
                if isinstance(key, int):
                    full = case.most_items is not None and key >= case.most_items
                    schemas = case.of_item(key)
                else:
                    most, given = case.most_members, self.open[-1]
                    full = most is not None and key not in given and len(given) >= most
                    full = full or not self._may_be_named(key, case)
                    schemas = case.of_member(key)[0]
                if not full:
                    found += [_Way(inner, place) for inner in self.judge.of(schemas)]
        except (SchemaError, RecursionError):  # a malformed keyword: nothing is known
            self.ways = None
            return
        ways.append(tuple(found))
        self._keep(lambda case: True)

    def _may_be_named(self, name: str, case: Case) -> bool:
        """Whether a member may have this name."""
        return not case.names or any(not self.judge.refuses(name, one) for one in self.judge.of(case.names))

    def _keep(self, holds: Any) -> None:
        """Keeps what the value may become, where that ``holds``."""
        ways = self.ways
        if ways is None:
            return
        try:
            ways[-1] = tuple(way for way in ways[-1] if holds(way.case))
        except (SchemaError, RecursionError):
            self.ways = None
            return
        if not ways[-1]:
            self._tell()

    def _tell(self) -> None:
        """Tells of the value that is being read."""
        steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path[self.above :])
        self.wrong, self.ways = "$" + "".join(steps), None

    def _may_become(self, text: str, case: Case, more: str) -> bool:
        """Whether more text can make a value of this case of a string. ``more``: what was added to it."""
        if case.most is not None and len(text) > case.most:
            return False
        if case.values is not None:
            listed = case.values.values()
            if not any(isinstance(one, str) and one.startswith(text) for one in listed):
                return False
        for expression, _, _ in case.patterns:
            found = matcher(expression)
            if found is not None:
                begun = self.states.get(expression) or found.start
                self.states[expression] = state = found.after(begun, more)
                if not state:
                    return False
        return True


def _answer_judge(schema: Any) -> _Judge:
    member = {"type": "object", "properties": {"": schema}, "required": [""], "additionalProperties": False}
    return _Judge(Document(schema), member)


class AnswerReader(CheckedReader):
    """Reads an answer, which may be any value, as the one member of an object."""

    __slots__ = ("begun",)

    above = 1

    def __init__(self, judge: _Judge, begun: str = "") -> None:
        super().__init__(judge)
        super().read('{"": ')
        self.begun = begun
        self.read(begun)

    def _fresh(self) -> AnswerReader:
        other = AnswerReader(self.judge)
        other.begun = self.begun
        return other

    def read(self, text: str) -> None:
        super().read(text)
        if (self.stuck or not self.open) and not self.wrong:  # no JSON, or text after the value
            self._tell()

    def finish(self, text: str) -> None:
        """The answer is over: ``text`` is what was written of it."""
        try:
            json.loads(self.begun + text)
        except (ValueError, RecursionError):
            self.wrong = self.wrong or "$"
        else:
            if not self.wrong:
                super().read("}")  # a number or a word ends here
