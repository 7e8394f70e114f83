"""Every scenario of every format, on our own template and every real one of its family, in every way to cut it.

``python -m pytest tests/needle -q`` prints the matrix. templates.json says which real template belongs to which format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatparsers import FormatInfo, formats, get_format
from chatparsers.core.errors import UnknownFormat
from chatparsers.testing import Entry, matrix
from chatparsers.testing.plugin import TEMPLATES

_HERE = Path(__file__).parent
_OWN = _HERE.parent / "templates_own"
FAMILIES = json.loads((_HERE / "templates.json").read_text(encoding="utf-8"))


def _formats() -> list[FormatInfo]:
    return [info for info in formats() if info.origin == "chatparsers"]


def entries(config: pytest.Config) -> Iterator[Entry]:
    for info in _formats():
        path = _OWN / f"{info.name}.jinja"
        if path.is_file():
            yield Entry(info.load(), path)
    for path in config.stash[TEMPLATES]:
        family = FAMILIES.get(path.name, {})
        if family:
            try:
                format = get_format(family["format"])
            except UnknownFormat:
                continue
            yield Entry(format, path, family.get("eos"), family.get("bos", ""), real=True)


test_matrix = matrix(entries)


def test_every_format_has_a_template_of_ours() -> None:
    missing = [info.name for info in _formats() if not (_OWN / f"{info.name}.jinja").is_file()]
    assert not missing


def test_every_real_template_is_assigned(real_templates: list[Path]) -> None:
    """To a format that exists; those of other makers are passed over."""
    for path in real_templates:
        if path.name in FAMILIES:
            family = FAMILIES[path.name]
            assert get_format(family["format"])
