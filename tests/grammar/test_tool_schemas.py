"""Tools' schemas as people write them: the grammar takes what jsonschema takes, and says where it takes more.

With --whole, the two engines' own compilers of JSON Schema are judged beside ours, for the report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from json import dumps
from typing import Any

import jsonschema
import pytest
from engines import FULL, own_compiler
from grammar_report import record
from schema_suite import canonical, compiled, judges, spell
from tool_schemas import TOOL_SCHEMAS, variants

WIDER = {"contains", "lookahead", "pydantic set", "unique"}
"""The schemas with a keyword that no grammar of ours enforces."""

FORMATS = jsonschema.FormatChecker()
FORMATS.checks("uri")(
    lambda value: not isinstance(value, str) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S*\Z", value)
)


def test_tool_schemas(request: pytest.FixtureRequest, amount: Callable[[int, int, int], int]) -> None:
    """No valid call is refused, and no schema is wider in silence."""
    wrong: list[str] = []
    wider: set[str] = set()
    instances = 0
    table: dict[str, Counter[str]] = {"ours": Counter(), "xgrammar": Counter(), "llguidance": Counter()}
    for name, (schema, first) in TOOL_SCHEMAS.items():
        judge = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        validator = judge(schema, format_checker=FORMATS)
        assert validator.is_valid(first), name
        weakened = compiled(schema)[2]
        ours = judges(schema)
        engines = ("xgrammar", "llguidance")[: amount(0, 2, 2)]
        own = {engine: own_compiler(engine, dumps(schema)) for engine in engines}
        for engine, found in own.items():
            table[engine]["not compiled"] += found is None
        for value in variants(first):
            instances += 1
            text, valid = spell(value), validator.is_valid(canonical(value))
            statuses = {str(one.status(text)) for one in ours.values()}
            taken = {"ours": str(FULL) in statuses} | {
                engine: found.status(text) == FULL for engine, found in own.items() if found is not None
            }
            for who, accepted in taken.items():
                table[who]["valid refused"] += valid and not accepted
                table[who]["invalid accepted"] += accepted and not valid
            table["ours"]["silent"] += taken["ours"] and not valid and not weakened
            wider |= {name} if taken["ours"] and not valid else set()
            if (
                len(statuses) > 1
                or (valid and not taken["ours"])
                or (taken["ours"] and not (valid or weakened))
            ):
                wrong.append(f"{name}: {text}, {valid=}: {statuses}, {weakened}")
    counted = {"schemas": len(TOOL_SCHEMAS), "instances": instances}
    record(request, "tools' schemas", **counted, table={who: dict(c) for who, c in table.items()})
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:8])
    assert wider == WIDER


def test_variants_are_of_both_kinds() -> None:
    """Values of every kind stand in every place, so a grammar that takes all or nothing fails."""
    schema: Any = TOOL_SCHEMAS["weather"][0]
    validator = jsonschema.Draft202012Validator(schema)
    kinds = Counter(validator.is_valid(value) for value in variants(TOOL_SCHEMAS["weather"][1]))
    assert kinds[True] > 4 and kinds[False] > 20
