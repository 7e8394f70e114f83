"""What engines make of everyday schemas of tools: ``engines.json`` and ``engines.md``.

    python docs/tables/_engines.py                  # writes the page from the data
    python docs/tables/_engines.py --check          # fails if the page is not that of the data
    python docs/tables/_engines.py --ours           # judges our dialects anew, and writes both
    python docs/tables/_engines.py --run            # judges the engines too
    python docs/tables/_engines.py --llama URL      # asks a llama-server for its grammars, and writes llama.json

Each schema of ``schemas.json`` has values that it takes and values that it does not. A value counts as taken if one of
its spellings is: with the white space that Python writes, without any, or with either kind alone. ``--run`` needs
xgrammar, llguidance and outlines_core; ``ENGINES`` names the versions of all engines as JSON. What llama.cpp made of
each schema, its grammar or its error, is in ``llama.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from _page import put

import chatparsers

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "grammar"))

PAGE = HERE / "engines.md"
DATA = HERE / "engines.json"
LLAMA = HERE / "llama.json"
SCHEMAS: list[dict[str, Any]] = json.loads((HERE / "schemas.json").read_text("utf-8"))
OURS = {"ours, Lark": "lark", "ours, GBNF": "gbnf", "ours, structural tag": "structural_tag"}
Takes = Callable[[str], bool]
"""Whether an engine takes a text, as JSON."""

__all__ = ["DATA", "ENGINES", "OURS", "PAGE", "SCHEMAS", "cell", "engine_cells", "main", "ours", "page"]


class _Refused(Exception):
    """The engine raises an error for the schema."""


def ours(dialect: str, schema: Mapping[str, Any]) -> tuple[Takes, str]:
    """Our grammar of an answer in an engine that reads the dialect, and the keywords that ``weakened`` names."""
    from engines import FULL, compile_for, engines_of  # type: ignore[import-not-found, unused-ignore]

    request = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    turn = chatparsers.get_format("qwen3").bind(response_format=request, thinking=False)
    engine = engines_of(dialect)[0]
    options = {"engine": engine} if dialect == "gbnf" else {}
    try:
        grammar = turn.grammar(dialect, additional_properties=True, **options)
    except chatparsers.ChatParsersError as error:
        raise _Refused(str(error)) from None
    compiled = compile_for(engine, str(grammar), dialect)
    told = dict.fromkeys(weakened.keyword for weakened in grammar.weakened)
    return lambda text: compiled.status(text) == FULL, ", ".join(told)


def _xgrammar(schema: Mapping[str, Any]) -> Takes:
    from engines import _xgrammar_bytes, xgrammar

    try:
        compiled = _xgrammar_bytes().compile_json_schema(json.dumps(schema))
    except RuntimeError as error:
        raise _Refused(re.sub(r"^\[[\d:]+\] \S+ ", "", str(error))) from None

    def takes(text: str) -> bool:
        matcher = xgrammar().GrammarMatcher(compiled)
        return all(map(matcher.accept_token, text.encode())) and bool(matcher.accept_token(256))

    return takes


def _llguidance(schema: Mapping[str, Any]) -> Takes:
    from engines import FULL, Llguidance

    try:
        compiled = Llguidance(json.dumps(schema), "json_schema")
    except ValueError as error:
        raise _Refused(str(error)) from None
    return lambda text: compiled.status(text) == FULL


def _outlines(schema: Mapping[str, Any]) -> Takes:
    from outlines_core.json_schema import (  # type: ignore[import-not-found, unused-ignore]
        build_regex_from_schema,
    )

    try:
        expression = re.compile(build_regex_from_schema(json.dumps(schema)))
    except (ValueError, TypeError, re.error) as error:
        raise _Refused(str(error)) from None
    return lambda text: expression.fullmatch(text) is not None


def _llama(schema: Mapping[str, Any]) -> Takes:
    """The grammar is llama.cpp's; what follows it is judged by xgrammar, which reads the same language but for empty
    alternatives."""
    from engines import FULL, Xgrammar

    name = next(case["name"] for case in SCHEMAS if case["schema"] == schema)
    made = json.loads(LLAMA.read_text("utf-8"))[name]
    if "raises" in made:
        raise _Refused(made["raises"].split('": ')[-1])
    compiled = Xgrammar(made["grammar"].replace("::= |", '::= "" |'), "gbnf")
    return lambda text: compiled.status(text) == FULL


def _llama_grammars(url: str) -> dict[str, dict[str, str]]:
    """What a llama-server makes of each schema: ``grammar``, or ``raises``."""
    made = {}
    for case in SCHEMAS:
        body = json.dumps({"prompt": "a", "n_predict": 1, "json_schema": case["schema"]}).encode()
        try:
            with urllib.request.urlopen(f"{url}/completion", body) as answer:
                made[case["name"]] = {"grammar": json.load(answer)["generation_settings"]["grammar"]}
        except urllib.error.HTTPError as error:
            made[case["name"]] = {"raises": json.loads(error.read())["error"]["message"]}
    return made


ENGINES: dict[str, Callable[[Mapping[str, Any]], Takes]] = {
    "xgrammar": _xgrammar,
    "llguidance": _llguidance,
    "outlines-core": _outlines,
    "llama.cpp": _llama,
}


def _taken(takes: Takes, value: Any) -> bool:
    spellings = {
        json.dumps(value, ensure_ascii=False, separators=(comma, colon))
        for comma in (", ", ",")
        for colon in (": ", ":")
    }
    return any(map(takes, spellings))


def cell(case: Mapping[str, Any], make: Callable[[Mapping[str, Any]], tuple[Takes, str]]) -> list[str]:
    """``[verdict, witness, keywords that are said]`` of a schema."""
    try:
        takes, told = make(case["schema"])
    except _Refused as error:
        return ["refused", " ".join(str(error).split())[:70], ""]
    for value in case["valid"]:
        if not _taken(takes, value):
            return ["wrong", json.dumps(value, ensure_ascii=False), told]
    for value in case["invalid"]:
        if _taken(takes, value):
            return ["ignored", json.dumps(value, ensure_ascii=False), told]
    return ["honoured", "", told]


def engine_cells(name: str) -> list[list[str]]:
    """The cells of an engine's own compiler."""
    make = ENGINES[name]
    return [cell(case, lambda schema: (make(schema), "")) for case in SCHEMAS]


def _ours_cells() -> dict[str, list[list[str]]]:
    return {
        name: [cell(case, lambda schema, dialect=dialect: ours(dialect, schema)) for case in SCHEMAS]  # type: ignore[misc]
        for name, dialect in OURS.items()
    }


_HEAD = """\
# Schemas in engines

What the JSON Schema compilers of engines, and our grammars, make of {count} everyday schemas of tool authors.

- ✓: the values that the schema takes can be written, and those that it does not take cannot.
- **wrong**: a valid value cannot be written.
- *ignored*: an invalid value can be written, and nothing says so.
- *said*: it can, and `Grammar.weakened` names the keyword.
- *refused*: the engine raises an error.

Each cell that is not ✓ has a witness. Run on {date} with {engines}, each with its defaults; so xgrammar closes objects
(`strict_mode`). The text of llama.cpp's grammars was read by xgrammar. Our Lark was run in llguidance, our GBNF and
structural tags in xgrammar, with `additional_properties=True`. `python docs/tables/_engines.py` makes the table, and a
test runs our columns."""


def _verdict(verdict: str, witness: str, told: str) -> str:
    return "said" if verdict == "ignored" and told else verdict


def _shown(verdict: str, witness: str, told: str) -> str:
    quoted = witness.replace("|", "\\|")
    if verdict == "honoured":
        return "✓"
    if verdict == "refused":
        return f"refused: {quoted}"
    if verdict == "ignored" and told:
        return f"said ({told}): takes `{quoted}`"
    return f"ignored: takes `{quoted}`" if verdict == "ignored" else f"**wrong**: refuses `{quoted}`"


def page(data: Mapping[str, Any]) -> str:
    """The page of the data."""
    columns: dict[str, list[list[str]]] = data["cells"]
    engines = ", ".join(f"{name} {version}" for name, version in data["engines"].items())
    lines = [
        *_HEAD.format(count=len(SCHEMAS), date=data["date"], engines=engines).splitlines(),
        "",
        "| | " + " | ".join(columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for verdict in ("honoured", "said", "ignored", "wrong", "refused"):
        counts = (sum(_verdict(*cell) == verdict for cell in cells) for cells in columns.values())
        lines.append(f"| {verdict} | " + " | ".join(map(str, counts)) + " |")
    lines += ["", "| Schema | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for index, case in enumerate(SCHEMAS):
        shown = (_shown(*cells[index]) for cells in columns.values())
        lines.append(f"| {case['name']} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Writes or checks the page, or makes the data anew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for flag in ("--check", "--ours", "--run"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--llama", metavar="URL")
    asked = parser.parse_args(argv)
    if asked.llama:
        made = _llama_grammars(asked.llama)
        LLAMA.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", "utf-8")
    if asked.ours or asked.run:
        data = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {"cells": {}}
        if asked.run:
            data = {
                "date": f"{datetime.now():%Y-%m-%d}",
                "engines": json.loads(os.environ["ENGINES"]),
            }
            data["cells"] = {name: engine_cells(name) for name in ENGINES}
        data["cells"].update(_ours_cells())
        lines = ",\n".join(
            f"  {json.dumps(name)}: [\n"
            + ",\n".join(f"   {json.dumps(cell, ensure_ascii=False)}" for cell in cells)
            + "\n  ]"
            for name, cells in data["cells"].items()
        )
        head = json.dumps({"date": data["date"], "engines": data["engines"]}, ensure_ascii=False)[:-1]
        DATA.write_text(f'{head},\n "cells": {{\n{lines}\n }}}}\n', "utf-8")
    return put(PAGE, page(json.loads(DATA.read_text("utf-8"))), asked.check)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
