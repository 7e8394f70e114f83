"""The texts generated from the format modules are up to date, and the generator survives broken modules."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import pytest

from chatparsers.formats import FormatRef, _generate
from chatparsers.formats._generate import catalog_text, collect, main

HEADER = """\
from chatparsers.answers.format import Format

def build(p):
    return p.body()

def made(name, **more):
    return Format(name=name, title="Made | up", url="https://example.org", build=build, **more)

"""


@pytest.fixture
def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., str]:
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "made_" + "".join(c if c.isalnum() else "_" for c in request.node.name)

    def make(**modules: str) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        for module, text in modules.items():
            (tmp_path / name / f"{module}.py").write_text(HEADER + text, encoding="utf-8")
        return name

    return make


def test_the_generated_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_collecting(package: Callable[..., str]) -> None:
    name = package(
        b="FORMAT = made('b', aliases=('bee',), markers=('<｜x｜>', '\"'))",
        a="FORMATS = (made('z'), made('a'))",
    )
    entries, problems = collect(["b", "a"], package=name)
    assert problems == []
    assert [(entry.name, entry.target) for entry in entries] == [
        ("a", f"{name}.a:FORMATS"),
        ("b", f"{name}.b:FORMAT"),
        ("z", f"{name}.a:FORMATS"),
    ]
    assert entries[1].aliases == ("bee",) and entries[1].markers == ("<｜x｜>", '"')
    written = ast.parse(catalog_text(entries)).body[-1]
    assert isinstance(written, ast.AnnAssign) and written.value is not None
    assert ast.literal_eval(written.value) == tuple(astuple(entry) for entry in entries)


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "nothing": (
        {"one": ""},
        "one.py: .*expected FORMAT, a Format, or FORMATS, a tuple of them; found FORMAT = None",
    ),
    "no format": ({"one": "FORMATS = ()"}, "one.py: .*found FORMATS = ()"),
    "a name in capitals": (
        {"one": "FORMAT = made('Upper')"},
        "one.py: .*expected a name like 'qwen3-coder' (lower case, digits, - and .), found 'Upper'",
    ),
    "an alias with a low line": ({"one": "FORMAT = made('a', aliases=('b_c',))"}, "one.py: .*found 'b_c'"),
    "no title": (
        {"one": "FORMAT = Format('a', '', '', build)"},
        "one.py: .*format 'a' needs a title and a url",
    ),
    "a module that does not load": ({"broken": "FORMAT = made("}, "broken.py: SyntaxError:"),
    "a name of two formats": (
        {"one": "FORMAT = made('one')", "two": "FORMAT = made('two', aliases=('one',))"},
        "'one' is a name of both PACKAGE.one:FORMAT and PACKAGE.two:FORMAT: change one",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_module_is_said(package: Callable[..., str], case: str) -> None:
    """A module that does not load keeps the lines that it had, and hinders no other."""
    modules, said = WRONG[case]
    name = package(**modules, good="FORMAT = made('good')")
    before = FormatRef("broken", f"{name}.broken:FORMAT", "Title", "https://example.org", (), ())
    entries, problems = collect([*modules, "good"], [before], package=name)
    assert "good" in [entry.name for entry in entries]
    assert (before in entries) == ("broken" in modules)
    (problem,) = problems
    words = said.replace("PACKAGE", name).split(".*")
    assert problem.startswith(words[0]) and words[-1] in problem


def test_checking_says_what_is_stale_and_writing_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "chatparsers" / "formats"
    here.mkdir(parents=True)
    (here / "hermes_2_pro.py").touch()  # its name alone is read here; the module is the package's
    page = tmp_path / "docs" / "tables" / "formats.md"
    page.parent.mkdir(parents=True)
    thoughts = tmp_path / "chatparsers" / "answers" / "thoughts.py"
    thoughts.parent.mkdir(parents=True)
    page.write_text("<!-- formats: begin -->\n<!-- formats: end -->\n", encoding="utf-8")
    monkeypatch.setattr(_generate, "_HERE", here)
    assert main(["--check"]) == 1
    err = capsys.readouterr().err
    assert "_catalog.py is stale: run `python -m chatparsers.formats`" in err and "formats.md is stale" in err
    assert not (here / "_catalog.py").exists()
    assert main([]) == 0
    assert "hermes-2-pro" in (here / "_catalog.py").read_text(encoding="utf-8")
    assert "`hermes-2-pro`" in page.read_text(encoding="utf-8")
    assert "THOUGHTS" in thoughts.read_text(encoding="utf-8")
    assert main(["--check"]) == 0
