"""docs/tables/renderers.md: the page is that of its data, `check` names a row, and we render as Jinja2."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import _renderers as TABLE
import pytest
from faults import source

import chatparsers
from chatparsers.doctor import otherwise
from chatparsers.doctor.report import Finding
from chatparsers.errors import TemplateError
from chatparsers.templates import Template
from chatparsers.templates.probe.turns import common

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROOT = Path(__file__).parents[2]

DATA: dict[str, Any] = json.loads(TABLE.DATA.read_text("utf-8"))


def test_the_page_is_written_from_the_data() -> None:
    assert TABLE.main(["--check"]) == 0, "run python docs/tables/_renderers.py"


def test_check_names_what_a_row_says(monkeypatch: pytest.MonkeyPatch) -> None:
    text = source("qwen3-coder")
    seen = {"float": ["1.0", "1"], "null": ["no filter"]}
    row = {"sha256": otherwise.digest(text), "a": seen, "b": {}}
    table = {"renderers": {"a": "1.2", "b": "3"}, "templates": {"own": row}}
    monkeypatch.setattr(otherwise, "_table", lambda: table)
    for known in (text, text.removesuffix("\n")):
        (finding,) = chatparsers.check(known, only=["renderers"]).findings
        assert finding.code == "renders-otherwise" and finding.severity == "note"
        assert finding.message == "a 1.2 gives other text for float and an error for null"
        assert finding.witness == "float: '1.0' is '1'"
    assert not chatparsers.check(text + " ", only=["renderers"]).findings


def test_each_cell_has_its_witness() -> None:
    """Either what the renderer raises; or what Jinja2 and it write, which begins alike and goes on otherwise."""
    for name, row in DATA["templates"].items():
        assert len(bytes.fromhex(row["sha256"])) == 32
        assert list(row) == ["sha256", *DATA["renderers"]], name
        for renderer in DATA["renderers"]:
            assert row[renderer].keys() <= TABLE.CONVERSATIONS.keys(), (name, renderer)
            for kind, witness in row[renderer].items():
                assert len(witness) in (1, 2) and any(witness), (name, renderer, kind)
        for kind in TABLE.CONVERSATIONS:
            for renderer, (one, other) in _differing(row, kind):
                alike = common(one, other)
                assert one != other and alike <= TABLE.BEFORE, (name, renderer, kind)


def _differing(row: Mapping[str, Any], kind: str) -> Iterator[tuple[str, list[str]]]:
    """The renderers that give another text, with the witness."""
    for renderer in DATA["renderers"]:
        witness = row[renderer].get(kind, ())
        if len(witness) == 2:
            yield renderer, witness


def test_we_render_as_jinja2_and_name_the_row(shared_dir: Path) -> None:
    rows = {row["sha256"]: row for row in DATA["templates"].values()}
    texts = [path.read_text("utf-8") for path in sorted(shared_dir.glob("templates*/*.jinja"))]
    known = {text: rows[otherwise.digest(text)] for text in texts if otherwise.digest(text) in rows}
    if not known:
        pytest.skip("no template in the shared folder has a row")
    for text, row in known.items():
        template = Template(text, bos_token="<s>", eos_token="</s>")
        for kind in TABLE.CONVERSATIONS:
            expected = TABLE.reference(text, TABLE.context(kind))
            if "text" in expected:  # where Jinja2 refuses, we may write what it lacks
                assert _ours(template, TABLE.context(kind)) == expected["text"], kind
            for renderer, (one, *_) in _differing(row, kind):
                asked = {**TABLE.context(kind), "enable_thinking": True}
                thought = TABLE.reference(text, asked).get("text", "") if renderer == "llama.cpp" else ""
                assert one in expected["text"] or one in thought, (row, renderer, kind)
        model: Any = SimpleNamespace(template=template)
        found = [one for one in otherwise.renderers(model) if isinstance(one, Finding)]
        named = {finding.message.split(" ")[0]: finding.message for finding in found}
        assert set(named) == {renderer for renderer in DATA["renderers"] if row[renderer]}
        for renderer, message in named.items():
            assert all(kind in message for kind in row[renderer])


def _ours(template: Template, given: dict[str, Any]) -> str | None:
    """What we render; None if the template refuses it."""
    try:
        return template.render_unshaped(
            given["messages"], tools=given.get("tools"), add_generation_prompt=True
        )
    except TemplateError:
        return None
