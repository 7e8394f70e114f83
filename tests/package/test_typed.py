"""The public signatures, as type checkers see them: typical code passes, each usual mistake is refused in its line."""

from __future__ import annotations

import inspect
import json
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
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-warn-unused-ignores"]
    command += [
        "--python-version",
        "3.10",
        "--cache-dir",
        str(folder / "cache"),
        "--config-file",
        str(ROOT / "pyproject.toml"),
    ]
    done = subprocess.run([*command, *map(str, paths)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert not done.stderr, done.stderr
    found = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    return {(Path(path).name, int(number)) for path, number, *_ in found}


def _pyright(paths: list[Path], folder: Path) -> set[tuple[str, int]]:
    beside = Path(sys.executable).with_name("basedpyright")
    command = beside if beside.exists() else shutil.which("basedpyright")
    if command is None:
        pytest.skip("basedpyright is not installed: pip install basedpyright")
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "pythonVersion": "3.10"})
    )
    for path in paths:
        shutil.copy(path, folder)
    done = subprocess.run(
        [str(command), "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
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
