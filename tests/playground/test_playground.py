"""The playground's sections in any Python; tests/browser opens the page itself."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from chatparsers.cli.main import main
from chatparsers.display.looks import STYLE
from chatparsers.errors import LoadError
from chatparsers.playground import build as building
from chatparsers.playground.examples import examples
from chatparsers.playground.reading import SECTIONS, Asked, answer, sections

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e' onload='x\ud800 {{ 1/0 }}"
FIELDS = ("template", "format", "messages", "tools", "thinking", "choice", "output")


SHOWN = {
    "thought-and-call": ("format", "parsed back exactly"),
    "unknown-template": ("format", "found by analysis"),
    "channels": ("strip", "functions.get_weather"),
    "broken-call": ("strip", "truncated"),
}
"""What some examples are for."""


@pytest.mark.parametrize("example", examples(), ids=lambda example: str(example.name))
def test_every_example_has_every_section(example: object) -> None:
    posted: dict[str, str] = {}
    answer(json.dumps(example.asked), posted.__setitem__)  # type: ignore[attr-defined]
    assert [*posted] == [*SECTIONS] and all(posted.values())
    wrong = [name for name, html in posted.items() if 'class="note"' in html]
    assert wrong == (["strip"] if example.name == "broken-call" else [])  # type: ignore[attr-defined]
    assert "tool_use" in posted["message"] and "tool_calls" in posted["message"]
    assert posted["timeline"].count("<tr data-n") > 10
    section, said = SHOWN.get(str(example.name), ("timeline", ""))  # type: ignore[attr-defined]
    assert said in posted[section] and {*SHOWN} <= {one.name for one in examples()}


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_breaks_another_or_writes_markup(field: str) -> None:
    """A mistake in one field is said in the sections that need it; no section is lost, and nothing is raised."""
    assert "expected a template or a format" in dict(sections({}))["strip"]
    asked: Asked = {**examples()[0].asked, field: HOSTILE}  # type: ignore[misc]
    html = dict(sections(asked))
    assert [*html] == [*SECTIONS]
    for name, each in html.items():
        assert "<script" not in each and "<img" not in each and "\x1b" not in each, name
    if field in ("messages", "tools", "format"):
        assert f"{field}: expected" in html["strip"] or "no format is named" in html["strip"]
    elif field == "output":
        assert "&lt;script&gt;" in html["strip"]


def test_the_page_holds_the_first_example() -> None:
    html = building._index()
    assert STYLE in html
    assert all(f'id="s-{name}"' in html for name in SECTIONS) and 'data-n="0"' in html
    data = re.search(r'<script type="application/json" id="examples">(.*?)</script>', html, re.S)
    assert data is not None and json.loads(data[1]) == [example.asked for example in examples()]


@pytest.mark.nightly
def test_the_archive_is_all_that_a_browser_needs(tmp_path: Path) -> None:
    """A bare interpreter with the archive alone makes the same sections, without tokenizers."""
    with zipfile.ZipFile(io.BytesIO(building._archive())) as archive:
        archive.extractall(tmp_path)
    asked = examples()[0].asked
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from chatparsers.playground.reading import answer\n"
        "found = {}; answer(sys.stdin.read(), found.__setitem__); print(json.dumps(found))\n"
        "assert 'tokenizers' not in sys.modules"
    )
    run = [sys.executable, "-I", "-S", "-c", code, str(tmp_path)]
    done = subprocess.run(run, input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, here = json.loads(done.stdout), dict(sections(asked))
    assert "get_weather" in found.pop("message") and here.pop("message")  # the APIs' own ids are random
    assert found == here


def test_a_build_that_cannot_be_made_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LoadError, match="expected the npm package pyodide"):
        building.build(tmp_path / "out", tmp_path)
    monkeypatch.setenv("PATH", "")
    assert main(["playground", "--build", str(tmp_path / "out")]) == 2
    assert "install Node.js" in capsys.readouterr().err
    assert main(["playground", "--dir", str(tmp_path)]) == 2
    assert "expected a built playground" in capsys.readouterr().err
