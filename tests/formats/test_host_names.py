"""The names that vLLM and SGLang have for their parsers: docs/models.md answers each, and most are aliases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chatparsers import FormatRef, UnknownFormat, get_format, list_formats
from chatparsers.formats._generate import host_table

pytestmark = pytest.mark.one_in(1, quick=64)
_DOCS = Path(__file__).parents[2] / "docs"
_DATA = json.loads((_DOCS / "_host_names.json").read_text(encoding="utf-8"))
_NAMES = sorted({name for host in _DATA["hosts"].values() for names in host.values() for name in names})
_ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<hosts>.*) \| (?P<formats>[^|]*) \|$", re.MULTILINE)

# They read a template's own response schema.
_NONE = {"hf", "response_template"}


def rows() -> dict[str, tuple[str, list[str]]]:
    """What the page says of each name: the hosts that have it, and our formats."""
    page = (_DOCS / "models.md").read_text(encoding="utf-8")
    table = page.partition("<!-- hosts: begin -->")[2].partition("<!-- hosts: end -->")[0]
    return {
        row["name"]: (row["hosts"], re.findall("`([^`]+)`", row["formats"].partition(":")[0]))
        for row in _ROW.finditer(table)
    }


def test_the_page_answers_every_name_of_the_hosts() -> None:
    """A name has a format, or the page says why it has none."""
    shown = rows()
    assert sorted(shown) == _NAMES and len(_NAMES) == 96
    known = {info.name for info in list_formats()}
    assert {one for _, found in shown.values() for one in found} <= known
    assert {name for name, (_, found) in shown.items() if not found} == _NONE
    assert set(_DATA["meant"]) | set(_DATA["notes"]) <= set(_NAMES)
    for name in _NAMES:
        told = [option in cell for cell in shown[name][0].split(" | ") for option in ("calls", "reasoning")]
        assert told == [name in names for host in _DATA["hosts"].values() for names in host.values()], name


@pytest.mark.parametrize("name", _NAMES)
def test_a_name_that_means_one_format_is_its_alias(name: str) -> None:
    (_, found) = rows()[name]
    try:
        format = get_format(name)
    except UnknownFormat:
        assert name in _DATA["meant"] or not found
        return
    assert format.name in found
    assert len(found) == 1 or found[0] == format.name  # the first of several


def test_a_name_of_several_formats_is_no_alias() -> None:
    with pytest.raises(UnknownFormat):
        get_format("mistral")
    assert rows()["mistral"][1] == ["mistral-nemo", "mistral-small-3-2", "ministral-3", "magistral"]


def test_the_table_of_the_hosts() -> None:
    entries = [FormatRef("hermes-2-pro", "m:F", "Hermes", "https://example.org", ("hermes",), ())]
    hosts = {"A 1": {"calls": ["hermes", "x_y"], "reasoning": ["x_y"]}, "B 2": {"calls": ["hermes"]}}
    text = host_table({"hosts": hosts, "meant": {"x_y": ["gone"]}, "notes": {"x_y": "why"}}, entries)
    assert text.splitlines() == [
        "| Name | A 1 | B 2 | Format |",
        "|---|---|---|---|",
        "| `hermes` | calls | calls | `hermes-2-pro` |",
        "| `x_y` | calls, reasoning | – | –: why |",
    ]
