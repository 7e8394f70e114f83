"""Runs schemas and instances through the grammar writers and engines; counts what is right by keyword."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from json import dumps, loads
from pathlib import Path
from typing import Any

from engines import FULL, compile_for

from chatparsers.grammar.dialects.gbnf import write_gbnf
from chatparsers.grammar.dialects.lark import write_lark
from chatparsers.grammar.ir import Alt, Ir
from chatparsers.grammar.schemas import Output, SchemaCompiler, Weakened
from chatparsers.grammar.syntaxes import syntax_of
from chatparsers.grammar.target import TARGETS
from chatparsers.schema.document import Document
from chatparsers.schema.modern import modern
from chatparsers.values import Json

ENGINES = ("xgrammar", "llguidance")
TARGET_OF = {
    dialect: replace(next(iter(TARGETS[dialect].values())), open_objects=True) for dialect in ("gbnf", "lark")
}


def canonical(value: Any) -> Any:
    """``value`` with its numbers as the grammar writes them: an integer without a fraction."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return {name: canonical(item) for name, item in value.items()} if isinstance(value, dict) else value


def spell(value: Any) -> str:
    """The JSON text of an instance."""
    return dumps(canonical(value), ensure_ascii=False)


def compiled(schema: Any, dialect: str = "gbnf") -> tuple[Ir, dict[str, Ir], tuple[Weakened, ...]]:
    """A schema's grammar, read as a request's schemas are. Its objects are open, as JSON Schema says."""
    schema = modern(schema)
    target = TARGET_OF[dialect]
    output = Output(target=target)
    syntax = syntax_of(Json(), target=target)
    root = SchemaCompiler(Document(schema), syntax, output).value([(schema, "$")])
    return root, output.rules, tuple(output.weakened)


def judges(schema: Any) -> dict[str, Any]:
    """Each engine with the grammar in its dialect; empty for a grammar without any string."""
    found: dict[str, Any] = {}
    for engine, dialect, write in (("xgrammar", "gbnf", write_gbnf), ("llguidance", "lark", write_lark)):
        root, rules, _ = compiled(schema, dialect)
        if isinstance(root, Alt) and not root.options:
            return {}
        found[engine] = compile_for(engine, write(root, rules, target=TARGET_OF[dialect]), dialect)
    return found


@dataclass
class Score:
    """What came out, by keyword."""

    right: Counter[str] = field(default_factory=Counter)
    weak: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def case(self, keyword: str, name: str, schema: Any, tests: list[tuple[Any, bool]]) -> None:
        """One schema with its instances and whether each is valid."""
        weakened = compiled(schema)[2]
        engines = judges(schema)
        for value, valid in tests:
            text = spell(value)
            statuses = {engine: judge.status(text) for engine, judge in engines.items()}
            if len({str(status) for status in statuses.values()}) > 1:
                self.wrong.append(
                    f"{name}: the engines disagree on {text[:60]}: {statuses} under {dumps(schema)[:200]}"
                )
                continue
            accepted = FULL in statuses.values()
            if accepted == valid:
                self.right[keyword] += 1
            elif accepted and weakened:
                self.weak[keyword] += 1
            else:
                what = (
                    "accepted" if accepted else f"refused ({[str(status) for status in statuses.values()]})"
                )
                self.wrong.append(
                    f"{name}: {text[:80]} is {'valid' if valid else 'invalid'} but {what} under {dumps(schema)[:300]}"
                )


def official(folder: Path) -> Iterator[tuple[str, str, Any, list[tuple[Any, bool]]]]:
    """The cases of a folder of the official suite: keyword, name, schema, instances."""
    for path in sorted(folder.glob("*.json")):
        for group in loads(path.read_text(encoding="utf-8")):
            tests = [(test["data"], test["valid"]) for test in group["tests"]]
            yield path.stem, f"{path.stem}: {group['description']}", group["schema"], tests
