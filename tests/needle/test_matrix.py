"""Every scenario of every format, on our own template and every real one of its family, in every way to cut it.

``python -m pytest tests/needle -q`` prints the matrix. templates.json says which real template belongs to which format,
cells.json says which scenarios each template shows. ``pytest tests/needle/test_matrix.py --update-goldens`` writes
cells.json anew; it needs the folder of real templates. Then read the diff: a lost scenario is a promise without a test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatparsers import FormatInfo, list_formats
from chatparsers.testing import Entry, matrix
from chatparsers.testing.plugin import TEMPLATES, Cells, exists

_HERE = Path(__file__).parent
_OWN = _HERE.parent / "templates_own"
_CELLS = _HERE / "cells.json"
FAMILIES = json.loads((_HERE / "templates.json").read_text(encoding="utf-8"))


def _formats() -> list[FormatInfo]:
    return [info for info in list_formats() if info.origin == "chatparsers"]


def entries(config: pytest.Config) -> Iterator[Entry]:
    known = {info.name: info.format() for info in _formats()}  # not checked yet: that takes seconds
    for name, format in known.items():
        path = _OWN / f"{name}.jinja"
        if path.is_file():
            yield Entry(format, path)
    for path in config.stash[TEMPLATES]:
        family = FAMILIES.get(path.name)
        if family:
            eos, bos = family.get("eos"), family.get("bos", "")
            yield Entry(known[family["format"]], path, eos, bos, real=True)


test_matrix = pytest.mark.of_the_folder(matrix(entries, cells=_CELLS.name))


@pytest.mark.of_the_folder
@pytest.mark.one_in(8, quick=64)
@pytest.mark.parametrize("name", [info.name for info in _formats()])
def test_the_cells_are_those_that_exist(pytestconfig: pytest.Config, name: str) -> None:
    """Each template shows the scenarios that it is said to show, and texts that are alike are the same."""
    cells = exists(entry for entry in entries(pytestconfig) if entry.format.name == name)
    pinned: Cells = json.loads(_CELLS.read_text(encoding="utf-8"))
    if pytestconfig.getoption("--update-goldens"):
        others = {key: found for key, found in pinned.items() if key.partition(" ")[0] != name}
        pinned = {**(others if pytestconfig.stash[TEMPLATES] else pinned), **cells}
        _CELLS.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    wrong = [
        f"{key}, {name}: expected {pinned.get(key, {}).get(name)!r}, found {found.get(name)!r}"
        for key, found in cells.items()
        for name in sorted({*found, *pinned.get(key, {})})
        if found.get(name) != pinned.get(key, {}).get(name)
    ]
    assert not wrong, "cells.json is not what is rendered (--update-goldens writes it):\n" + "\n".join(wrong)


def test_every_format_has_a_template_of_ours() -> None:
    """And no cells are pinned of a format that is no more."""
    names = {info.name for info in _formats()}
    assert not [name for name in names if not (_OWN / f"{name}.jinja").is_file()]
    assert {key.partition(" ")[0] for key in json.loads(_CELLS.read_text(encoding="utf-8"))} <= names


def test_every_real_template_is_assigned(real_templates: list[Path]) -> None:
    """To a format that exists."""
    missing = [path.name for path in real_templates if path.name not in FAMILIES]
    assert not missing, "templates.json: expected a line for each template"
    assert {FAMILIES[path.name]["format"] for path in real_templates} <= {info.name for info in _formats()}
