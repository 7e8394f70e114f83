"""Random tools in every format: the engines take and refuse the same texts, and generated texts are read back."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from engines import llguidance, xgrammar
from grammar_report import record
from samples import Walk, closers, tool, walk_bytes
from test_generated import byte_vocabulary, check
from test_matrix import DIALECTS, TOOL_FORMATS, compare, compiled, mutations

from chatparsers.errors import SchemaError

NAMES = ["a", "b", "c", "d", "long_name", "e"]
PATTERNS = ["^a", "b$", "^[ab]*$", "x|y", "^.{2}$"]
STRINGS = ["", "a", "ab", "xy", "\n", "ü", 'a"b', "x" * 70]
NUMBERS = [0, 1, -1, 2, 5, 10, -20, 100, 1.5, -0.5]


def value(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON value, not deep."""
    kind = chance.random()
    if depth < 3 and kind < 0.35:
        return {name: value(chance, depth + 1) for name in chance.sample(NAMES, chance.randint(0, 4))}
    if depth < 3 and kind < 0.5:
        return [value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if kind < 0.7:
        return chance.choice(STRINGS)
    return chance.choice(NUMBERS) if kind < 0.85 else chance.choice([True, False, None])


def schema(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    """A schema of any kind, not deep."""

    def some(**keywords: Any) -> dict[str, Any]:
        return {name: found for name, found in keywords.items() if chance.random() < 0.35}

    kind = chance.random()
    if depth < 3 and kind < 0.35:
        names = chance.sample(NAMES, chance.randint(0, 6))
        found: dict[str, Any] = {
            "type": "object",
            "properties": {name: schema(chance, depth + 1) for name in names},
            "required": [name for name in names if chance.random() < 0.4],
            **some(minProperties=chance.randint(0, 3), maxProperties=chance.randint(0, 4)),
        }
        others = chance.random()
        if others < 0.5:
            found["additionalProperties"] = others < 0.2 and schema(chance, depth + 1)
        return found | some(patternProperties={"^[ab]": schema(chance, depth + 1)})
    if depth < 3 and kind < 0.45:
        items = some(minItems=chance.randint(0, 2), maxItems=chance.randint(0, 3))
        return {"type": "array", "items": schema(chance, depth + 1), **items}
    if depth < 3 and kind < 0.6:
        parts = [schema(chance, depth + 1) for _ in range(chance.randint(1, 3))]
        return {chance.choice(["anyOf", "anyOf", "oneOf", "allOf"]): parts}
    if kind < 0.7:
        counts = some(minLength=chance.randint(0, 3), maxLength=chance.choice([0, 1, 2, 3, 70, 140]))
        return {"type": "string", **counts, **some(pattern=chance.choice(PATTERNS))}
    if kind < 0.8:
        bounds = some(minimum=chance.randint(-20, 20), maximum=chance.randint(-20, 120))
        return {
            "type": chance.choice(["integer", "number"]),
            **bounds,
            **some(multipleOf=chance.choice([2, 5])),
        }
    if kind < 0.9:
        return {"enum": [value(chance) for _ in range(chance.randint(1, 3))]}
    return chance.choice(
        [{}, {"type": "boolean"}, {"type": ["string", "null"]}, {"type": ["integer", "string"]}]
    )


def tools(chance: random.Random) -> list[dict[str, Any]]:
    """One to three tools."""
    found = []
    for number in range(chance.randint(1, 3)):
        names = chance.sample(NAMES, chance.randint(0, 5))
        required = [name for name in names if chance.random() < 0.5]
        found.append(tool(f"tool_{number}", {name: schema(chance, 1) for name in names}, required))
    return found


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_random_tools(name: str, pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> None:
    xgrammar(), llguidance()
    tokens, (_, end), _ = byte_vocabulary()
    counted: Counter[str] = Counter()
    different: list[str] = []
    failures: list[str] = []
    walks, wanted = 0, 40 if pytestconfig.getoption("--nightly") else 2
    for index in range(6 * wanted):  # of some no call is possible, and a walk may come to no end
        if walks == wanted:
            break
        chance = random.Random(f"{name} {index}")
        asked = {
            "tools": tools(chance),
            "tool_choice": "required",
            "parallel_tool_calls": chance.random() < 0.7,
        }
        try:
            made = {dialect: compiled(name, asked, dialect) for dialect in DIALECTS}
        except SchemaError:  # arguments that no call can give
            continue
        grammars = [grammar for grammar, _ in made.values()]
        walk = Walk("xgrammar", made["gbnf"][1].compiled, tokens, end)
        text = walk_bytes(walk, closers(name), seed=index, free=25, limit=1_500)
        if text is None:
            continue
        walks += 1
        weak = any(grammar.weakened for grammar in grammars)
        wrong = check(name, asked, text, chance)
        failures += [f"{index}: {text!r}: {what}" for what in wrong if not (weak and "invalid" in what)]
        if len({grammar.weakened for grammar in grammars}) == 1:
            judges = {dialect: judge for dialect, (_, judge) in made.items()}
            compare(mutations(text, chance, 4), judges, str(index), counted, different)
    record(request, "compared", format=name, mode="random tools", different=len(different), **counted)
    assert not different, "\n".join(different[:5])
    assert not failures, "\n".join(failures[:5])
    assert walks == wanted
