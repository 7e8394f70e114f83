"""The public signatures, as type checkers see them: typical code passes, each usual mistake is refused in its line."""

from __future__ import annotations

import inspect
import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers.chat.options import BindOptions, PrepareOptions

HERE = Path(__file__).parent / "typed"
ROOT = Path(chatparsers.__file__).parents[1]


def _mypy(paths: list[Path], folder: Path) -> set[tuple[str, int]]:
    return {(name, number) for name, number, _ in _by_mypy(paths, "--cache-dir", str(folder / "cache"))}


def _by_mypy(paths: list[Path], *options: str) -> set[tuple[str, int, str]]:
    """The file, line and text of each error."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-warn-unused-ignores"]
    command += ["--config-file", str(ROOT / "pyproject.toml"), *options]
    done = subprocess.run([*command, *map(str, paths)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert not done.stderr, done.stderr
    found = [line.split(":", 2) for line in done.stdout.splitlines() if ": error:" in line]
    return {(Path(path).name, int(number), text) for path, number, text in found}


def _pyright(paths: list[Path], folder: Path) -> set[tuple[str, int]]:
    return {(name, number) for name, number, _ in _by_pyright(paths, folder)}


def _by_pyright(paths: list[Path], folder: Path, **rules: str) -> set[tuple[str, int, str]]:
    beside = Path(sys.executable).with_name("basedpyright")
    command = beside if beside.exists() else shutil.which("basedpyright")
    if command is None:
        pytest.skip("basedpyright is not installed: pip install basedpyright")
    (folder / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "typeCheckingMode": "standard",
                "extraPaths": [str(ROOT)],
                "pythonVersion": "3.10",
                **rules,
            }
        )
    )
    for path in paths:
        if path.parent != folder:
            shutil.copy(path, folder)
    done = subprocess.run(
        [str(command), "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in found
        if each["severity"] == "error"
    }


@pytest.mark.parametrize("check", [_pyright, _mypy])
@pytest.mark.nightly
def test_type_checkers_refuse_the_mistakes_and_nothing_else(check: Any, tmp_path: Path) -> None:
    """Both find the same mistakes in the same lines."""
    paths = [HERE / "user.py", HERE / "mistakes.py"]
    lines = [
        (path.name, number, line)
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]
    wrong = {(name, number) for name, number, line in lines if line.endswith("# wrong")}
    assert wrong and check(paths, tmp_path) == wrong


@pytest.mark.parametrize(
    ("options", "function"),
    [(PrepareOptions, chatparsers.Chat.prepare), (BindOptions, chatparsers.Format.bind)],
)
def test_passed_on_keywords_are_those_of_the_function(options: Any, function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    keywords = {each.name: each.annotation for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert {name: hint.__forward_arg__ for name, hint in options.__annotations__.items()} == keywords


_PAGE = """# mypy: check-untyped-defs, no-strict-optional, allow-redefinition
# mypy: no-disallow-untyped-defs, no-disallow-untyped-calls, no-disallow-incomplete-defs, no-disallow-any-generics
# mypy: no-disallow-untyped-decorators, no-disallow-subclassing-any, no-warn-return-any, no-strict-equality
# mypy: disable-error-code="no-redef,import-not-found,import-untyped"
"""
"""An example has no annotations that its reader does not need, and its blocks take the same names again. That a grammar
may be none, it need not say."""
_RAY = "Gateways.bind"
"""Ray's decorator of a class has no types."""


def _page_examples(folder: Path) -> list[Path]:
    """The Python of each page, in the lines of the page after those of `_PAGE`; and the files that it has."""
    script = ROOT / "docs" / "_examples.py"
    if not script.exists():
        pytest.skip("no docs: not a checkout")
    known = runpy.run_path(str(script))
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = page.read_text(encoding="utf-8")
        name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_").lower()
        lines = [""] * (text.count("\n") + 1)
        for block in known["_BLOCK"].finditer(text):
            code = [
                f"{line}  # type: ignore" if _RAY in line else line for line in block["code"].splitlines()
            ]
            if block["language"] != "python":
                continue
            if block["file"]:
                found.append(folder / f"{name}_{Path(block['file']).name}")
                found[-1].write_text(_PAGE + "\n".join(code) + "\n", encoding="utf-8")
            else:
                at = text.count("\n", 0, block.start("code"))
                lines[at : at + len(code)] = code
        if any(lines):
            found.append(folder / f"{name}_page.py")
            found[-1].write_text(_PAGE + "\n".join(lines) + "\n", encoding="utf-8")
    return found


def test_mypy_reads_the_examples_of_all_pages(tmp_path: Path) -> None:
    """With the package's own cache, as the package's types were checked before."""
    found = _by_mypy(_page_examples(tmp_path))
    assert not found, _wrong(found)


_LOOSE = ("OptionalMemberAccess", "OptionalSubscript", "OptionalOperand", "OptionalIterable", "Redeclaration")
_LOOSE += (
    "TypedDictNotRequiredAccess",
    "MissingImports",
    "MissingModuleSource",
    "AttributeAccessIssue",
    "FunctionMemberAccess",
)


def test_pyright_reads_the_examples_of_all_pages(tmp_path: Path) -> None:
    rules = {f"report{rule}": "none" for rule in _LOOSE}
    found = _by_pyright(_page_examples(tmp_path), tmp_path, **rules)
    assert not found, _wrong(found)


def _wrong(found: set[tuple[str, int, str]]) -> str:
    before = _PAGE.count("\n")
    lines = [f"{name}, line {number - before}: {text}" for name, number, text in sorted(found)]
    return "an example of a page does not fit the types, by its name:\n" + "\n".join(lines)
