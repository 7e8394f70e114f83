"""Cases of the Berkeley Function Calling Leaderboard as requests, and the leaderboard's own checker of answers.

The folder is what the package ``bfcl-eval`` unpacks to; none of its dependencies is needed.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

_LONGEST = 1500
"""Cases whose functions have more characters are left out: a prompt is read by one core."""


@dataclass(frozen=True)
class Case:
    """A question with its tools. ``truth``: the calls that are right; None where no call is."""

    id: str
    kind: str
    messages: list[dict[str, Any]]
    functions: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    truth: list[dict[str, Any]] | None

    @property
    def single(self) -> bool:
        """Whether exactly one call is right."""
        return self.truth is not None and "parallel" not in self.kind

    @property
    def name(self) -> str:
        """The tool of the first right call, as the request names it."""
        assert self.truth
        return next(iter(self.truth[0])).replace(".", "_")


class Leaderboard:
    """The data and the checker in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "bfcl_eval" / "data"
        self._check, self._types = _checker(str(folder))

    def cases(self, counts: Mapping[str, int]) -> list[Case]:
        """So many cases of each kind, the same in each run; more of them begin with fewer."""
        return [case for kind, count in counts.items() for case in self._of(kind)[:count]]

    def _of(self, kind: str) -> list[Case]:
        answers = self._data / "possible_answer" / f"BFCL_v4_{kind}.json"
        truths = {row["id"]: row["ground_truth"] for row in _lines(answers)} if answers.exists() else {}
        rows = [row for row in _lines(self._data / f"BFCL_v4_{kind}.json") if len(row["question"]) == 1]
        rows = [row for row in rows if len(json.dumps(row["function"])) < _LONGEST]
        random.Random(4).shuffle(rows)
        return [
            Case(
                row["id"],
                kind,
                row["question"][0],
                row["function"],
                [self._tool(function) for function in row["function"]],
                truths.get(row["id"]),
            )
            for row in rows
        ]

    def wrong(self, case: Case, calls: Sequence[tuple[str, str]]) -> str:
        """What is wrong with an answer's calls, in the checker's words; empty if they are right."""
        if case.truth is None:
            return "a call, where none fits" if calls else ""
        if not calls:
            return "no call"
        try:
            made = [{name: json.loads(arguments)} for name, arguments in calls]
        except ValueError:
            return "arguments that are no JSON"
        try:
            found = self._check(copy.deepcopy(case.functions), made, case.truth, case.kind)
        except (
            AttributeError,
            KeyError,
            TypeError,
        ) as error:  # the checker expects values of the right types
            return f"the checker cannot read it: {error!r}"
        return "" if found["valid"] else f"{found['error_type']}: {found['error']}"[:200]

    def _tool(self, function: Mapping[str, Any]) -> dict[str, Any]:
        name = function["name"].replace(".", "_")
        described = {
            **copy.deepcopy(dict(function)),
            "name": name,
            "parameters": self._schema(function["parameters"]),
        }
        return {"type": "function", "function": described}

    def _schema(self, schema: Any) -> Any:
        """A schema of the leaderboard as JSON Schema: its types have names of their own."""
        if isinstance(schema, list):
            return [self._schema(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        made = {key: self._schema(value) for key, value in schema.items()}
        if isinstance(schema.get("type"), str):
            made["type"] = self._types.get(schema["type"], "string")
        return made


@cache
def _checker(folder: str) -> tuple[Callable[..., dict[str, Any]], dict[str, str]]:
    """The checker, and its names of types in those of JSON Schema. Its table of models would import a client for each
    of them, so that table is ours: all models write ``_`` for a dot in a tool's name."""
    table: Any = ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = {"ours": SimpleNamespace(underscore_to_dot=True)}
    sys.modules[table.__name__] = table
    sys.path.insert(0, folder)
    types: dict[str, str] = import_module("bfcl_eval.constants.type_mappings").GORILLA_TO_OPENAPI
    python = import_module("bfcl_eval.constants.enums").Language.PYTHON
    check = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    return lambda functions, made, truth, kind: check(functions, made, truth, python, kind, "ours"), types


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
