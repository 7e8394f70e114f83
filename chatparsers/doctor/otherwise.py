"""Whether other renderers than Jinja2 show this template otherwise: a row of docs/tables/renderers.md, by its text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from .report import Fact, Finding
from .subject import Subject


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_name("renderers.json").read_text(encoding="utf-8"))
    return table


def digest(source: str) -> str:
    """What a template is known by: Jinja2 leaves out one line's end at its end."""
    return sha256(source.removesuffix("\n").encode()).hexdigest()


def renderers(model: Subject) -> Iterator[Finding | Fact]:
    """What llama.cpp, minijinja and JavaScript make of the template, if it was rendered there."""
    own = digest(model.template.source)
    table = _table()
    row = next((row for row in table["templates"].values() if row["sha256"] == own), None)
    if row is None:
        yield Fact("the template is none of those that were rendered elsewhere")
        return
    for renderer, version in table["renderers"].items():
        differ = [kind for kind, witness in row[renderer].items() if len(witness) == 2]
        raised = [kind for kind, witness in row[renderer].items() if len(witness) == 1]
        if not differ and not raised:
            continue
        said = [f"other text for {', '.join(differ)}"] if differ else []
        said += [f"an error for {', '.join(raised)}"] if raised else []
        kind, witness = next(iter(row[renderer].items()))
        shown = f"{witness[0]!r} is {witness[1]!r}" if len(witness) == 2 else witness[0]
        message = f"{renderer} {version} gives {' and '.join(said)}"
        yield Finding(
            "renders-otherwise",
            "note",
            message,
            f"{kind}: {shown}",
            "render with Jinja2, and send the text or ids",
        )
