"""Judges given values (those that a schema lists, names, a call's arguments) by what is gathered for the grammar.

So a keyword means the same for a value that is generated and for one that is given. A keyword that no grammar enforces
may still say whether it holds for one value (`Case.weaken`). A verdict is True, False, or None: not known. ``not`` and
the like turn verdicts round, so what is not known must not count as satisfied before the end.
"""

from __future__ import annotations

from typing import Any

from ...errors import SchemaError
from ...schema.document import Document
from ...schema.tools import Tool
from ..budget import Budget
from ..steps import Steps, run
from .cases import Case, Located, Verdict, Weakened
from .gather import Gatherer
from .written import Output


class Judge(Gatherer):
    """Judges values by the schemas of a document."""

    def __init__(self, document: Document, output: Output) -> None:
        super().__init__(document, output)
        self.verdicts: dict[tuple[int, ...], Verdict] = {}
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
        cases = self.gathered(schemas)
        for case in cases:
            if case.values is not None:
                listed = case.values.items()
                case.values = {key: one for key, one in listed if self._reported(self._within(one, case))}
        return cases

    def _reported(self, steps: Steps[Verdict]) -> bool:
        self.verdicts.clear()
        self.unsure.clear()
        verdict = run(steps)
        if verdict is None:
            self.output.weakened.update(self.unsure)
        return verdict is not False

    def accepts(self, value: Any, schemas: list[Located]) -> Steps[Verdict]:
        """Whether the schemas accept a value."""
        key = (id(value), *sorted(id(schema) for schema, _ in schemas))
        if key in self.verdicts:
            return self.verdicts[key]
        self.verdicts[key] = None  # until it is known: a schema may ask for itself
        if self.output.budget.work < 0:
            why = "the grammar is past max_work: values are not judged"
            self.unsure[Weakened(schemas[0][1], "*", why)] = None
            return None
        found: Verdict = False
        for case in self.gathered(schemas):
            verdict: Verdict = yield self._within(value, case)
            if verdict:
                found = True
                break
            found = None if verdict is None else found
        self.verdicts[key] = found
        return found

    def _within(self, value: Any, case: Case) -> Steps[Verdict]:
        """Whether all constraints of a case hold for a value."""
        self.output.budget.work -= 1
        return case.holds(value, self.accepts, self.unsure, self.unsaid)


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
