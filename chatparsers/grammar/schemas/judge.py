"""Judges listed values and names by the schemas of a document: keyword by keyword, with the judges of their rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...kept import kept
from ...schema.document import Document, Unresolved, contradictory, type_of
from ...schema.tools import Tool
from ..budget import Budget
from ..regular.automaton import Matcher, TooLarge
from ..regular.regex import Unsupported, read_regex
from ..steps import Steps, run
from .keywords import RULES
from .listed import identities
from .verdicts import Verdict


@kept(64, 2_000)
def _matcher(expression: str) -> Matcher | None:
    try:
        return Matcher(read_regex(expression))
    except (Unsupported, TooLarge, ValueError):
        return None


def search(expression: Any, text: str) -> Verdict:
    """Whether a regular expression of JSON Schema finds a match in ``text``; None if no grammar can say it."""
    matcher = _matcher(expression) if isinstance(expression, str) else None
    return None if matcher is None else matcher.matches(text)


class Judge:
    """Judges values by the schemas of a document."""

    def __init__(self, document: Document, budget: Budget) -> None:
        self.document = document
        self.budget = budget
        self.lists: dict[int, frozenset[Any]] = {}
        self.known: dict[tuple[int, int], Verdict] = {}
        self.unsure: dict[str, str] = {}
        """The keywords that could not be judged, with the reasons."""

    def fits(self, value: Any, schemas: Iterable[Any]) -> tuple[bool, Mapping[str, str]]:
        """Whether no schema refuses ``value``; and the keywords on which that depends and that are not judged, with
        the reasons."""
        self.known, self.unsure = {}, {}
        sure = True
        for schema in schemas:
            verdict: Verdict = run(self.valid(value, schema))
            if verdict is False:
                return False, {}
            sure = sure and verdict is True
        return True, {} if sure else self.unsure

    def valid(self, value: Any, schema: Any) -> Steps[Verdict]:
        """Whether ``value`` is valid; None if that is not known."""
        if not isinstance(schema, Mapping):
            return schema is not False
        key = (id(schema), id(value))
        if key in self.known:
            return self.known[key]
        if self.budget.work < 0:
            self.unsure["*"] = "the grammar is past max_work: values are not judged"
            return None
        self.budget.work -= 1
        self.known[key] = True  # a schema that leads back to itself adds nothing
        found: Verdict = True
        if "enum" in schema and contradictory(schema):
            verdicts: list[Verdict] = []
            for option in self.document.meant(schema):
                verdicts.append((yield self.valid(value, option)))
            found = self.known[key] = True if True in verdicts else None if None in verdicts else False
            return found
        kind = type_of(value)
        for keyword, said in schema.items():
            rule = RULES.get(keyword)
            if rule is None or kind not in rule.row.types:
                continue
            if rule.judges is None:
                verdict: Verdict = None
                self.unsure[keyword] = rule.unsaid or "listed values are not judged by it"
            else:
                judged = rule.judges(self, said, value, schema)
                verdict = judged if judged is None or isinstance(judged, bool) else (yield judged)
            if verdict is False:
                found = False
                break
            if verdict is None and not (rule.row.schemas or rule.row.reference):
                self.unsure.setdefault(
                    keyword, "no grammar can say it, so listed values are not judged by it"
                )
            found = found and verdict
        self.known[key] = found
        return found

    # what the judges of the keywords ask

    def finds(self, expression: Any, text: str, keyword: str) -> Verdict:
        found = search(expression, text)
        if found is None:
            self.unsure[keyword] = f"no grammar can say the regular expression {expression!r}"
        return found

    def listed(self, values: Any, keyword: str) -> frozenset[Any]:
        found = self.lists.get(id(values))
        if found is None:
            found = self.lists[id(values)] = identities(values, "$", keyword)
        return found

    def target(self, reference: Any, schema: Mapping[str, Any], keyword: str) -> Any:
        try:
            return self.document.resolve(reference, schema, keyword)
        except Unresolved as reason:
            self.unsure[keyword] = reason.why
            return None


def fits(tool: Tool, arguments: Any) -> bool:
    """Whether the schema of a tool does not refuse ``arguments``. What no keyword judges is not refused."""
    return Judge(tool.document, Budget(work=_FEW)).fits(arguments, [tool.parameters])[0]


_FEW = 100_000
"""How much work the arguments of one call may take."""
