"""Judges given values (those that a schema lists, names, a call's arguments) by what is gathered for the grammar.

So a keyword means the same for a value that is generated and for one that is given. A keyword that no grammar enforces
may still say whether it holds for one value (`Case.weaken`). A verdict is True, False, or None: not known. ``not`` and
the like turn verdicts round, so what is not known must not count as satisfied before the end.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction
from typing import Any

from ...errors import SchemaError
from ...schema.document import Document, is_of, type_of
from ...schema.tools import Tool
from ..budget import Budget
from ..steps import Steps, run
from .cases import Case, Located, Verdict, Weakened, finds, identity, no_match
from .gather import Gatherer
from .keywords import UNEVALUATED
from .written import Output


class Judge:
    """Judges values by the schemas of a document."""

    def __init__(self, document: Document, output: Output) -> None:
        self.gatherer = Gatherer(document, output)
        self.output = output
        self.known: dict[tuple[int, ...], Verdict] = {}
        """The verdicts on a value and its parts, by the identities of the part and its schemas."""
        self.unsure: dict[Weakened, None] = {}
        """What would have to be known to judge the value."""
        self.unsaid = True
        """Whether keywords count that no grammar enforces."""

    def fits(self, value: Any, schemas: list[Located]) -> bool:
        """Whether no schema refuses ``value``. Reports the keywords on which that depends and that are not known."""
        return not schemas or self._reported(self.accepts(value, schemas))

    def cases(self, schemas: list[Located]) -> list[Case]:
        """The cases of a value. If a case lists values, only those that it admits are left."""
        cases = self.gatherer.cases(schemas)
        for case in cases:
            if case.values is not None:
                listed = case.values.items()
                case.values = {key: one for key, one in listed if self._reported(self._within(one, case))}
        return cases

    def _reported(self, steps: Steps[Verdict]) -> bool:
        self.known, self.unsure = {}, {}
        verdict = run(steps)
        if verdict is None:
            self.output.weakened.update(self.unsure)
        return verdict is not False

    def accepts(self, value: Any, schemas: list[Located]) -> Steps[Verdict]:
        """Whether the schemas accept a value."""
        key = (id(value), *sorted(id(schema) for schema, _ in schemas))
        if key in self.known:
            return self.known[key]
        self.known[key] = None  # until it is known: a schema may ask for itself
        if self.output.budget.work < 0:
            why = "the grammar is past max_work: values are not judged"
            self.unsure[Weakened(schemas[0][1], "*", why)] = None
            return None
        found: Verdict = False
        for case in self.gatherer.cases(schemas):
            verdict: Verdict = yield self._within(value, case)
            if verdict:
                found = True
                break
            found = None if verdict is None else found
        self.known[key] = found
        return found

    def _within(self, value: Any, case: Case) -> Steps[Verdict]:
        """Whether all constraints of a case hold for a value."""
        self.output.budget.work -= 1
        if not is_of(value, case.types) or (case.values is not None and identity(value) not in case.values):
            return False
        kind = type_of(value)
        found: Verdict = True
        if kind == "string":
            found = self._string(value, case)
        elif kind == "number":
            found = _number(value, case)
        elif kind == "array":
            found = yield self._array(value, case)
        elif kind == "object":
            found = yield self._object(value, case)
        if found is False:
            return False
        for weak, holds in case.unsaid_of(kind) if self.unsaid else ():
            said = None if holds is None else holds(self.accepts, value)
            verdict: Verdict = (yield said) if isinstance(said, Generator) else said
            if verdict is False:
                return False
            if verdict is None:
                self.unsure[weak] = None
            found = found and verdict
        return found

    def _string(self, text: str, case: Case) -> Verdict:
        if not _between(len(text), case.least, case.most):
            return False
        found: Verdict = True
        for expression, path, keyword in case.patterns:
            matches = finds(expression, text)
            if matches is False:
                return False
            if matches is None:
                self.unsure[no_match(expression, path, keyword)] = None
            found = found and matches
        return found

    def _array(self, items: list[Any], case: Case) -> Steps[Verdict]:
        if not _between(len(items), case.least_items, case.most_items):
            return False
        found: Verdict = True
        for index, item in enumerate(items if case.prefix else ()):
            verdict: Verdict = yield self.accepts(item, case.of_item(index))
            if verdict is False:
                return False
            found = found and verdict
        return found

    def _object(self, members: dict[str, Any], case: Case) -> Steps[Verdict]:
        if not _between(len(members), case.least_members, case.most_members):
            return False
        wanted = [
            *case.required,
            *(other for name, needed, _ in case.dependent if name in members for other in needed),
        ]
        if not all(name in members for name in wanted):
            return False
        unknown = [Weakened(path, "unevaluatedProperties", UNEVALUATED) for _, path in case.sealed]
        found: Verdict = True
        for name, part in members.items():
            schemas, _, patterns = case.of_member(name)
            unknown += patterns
            for value, applied in ((name, case.names), (part, schemas)):
                verdict: Verdict = True
                if applied:
                    verdict = yield self.accepts(value, applied)
                if verdict is False:
                    return False
                found = found and verdict
        self.unsure.update(dict.fromkeys(unknown))
        return None if unknown else found


def _between(size: int, least: int, most: int | None) -> bool:
    return size >= least and (most is None or size <= most)


def _number(value: float, case: Case) -> bool:
    exact = Fraction(value) if isinstance(value, int) else Fraction(repr(value))
    for bound, sign in ((case.low, 1), (case.high, -1)):
        if bound is not None:
            above = (exact - Fraction(bound[0])) * sign
            if above < 0 or (bound[1] and not above):
                return False
    return all((exact / Fraction(step)).denominator == 1 for step, _ in case.divisors)


def fits(tool: Tool, arguments: Any) -> bool:
    """Whether the schema of a tool does not refuse ``arguments``. What no keyword judges is not refused."""
    output = Output(budget=Budget(work=_FEW))
    judge = Judge(tool.document, output)
    try:
        return judge.fits(arguments, [(tool.parameters, "$")])
    except (
        SchemaError,
        RecursionError,
    ):  # a malformed keyword, or arguments too deep to be compared: unknown
        return True


_FEW = 100_000
"""How much work the arguments of one call may take."""
