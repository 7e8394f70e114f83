"""The public signatures, as type checkers see them: typical code passes, each usual mistake is refused in its line."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any

import pytest

import chatparsers
from chatparsers.chat.options import BindOptions, PrepareOptions

HERE = Path(__file__).parent / "typed"
ROOT = Path(chatparsers.__file__).parents[1]


def _mypy(path: Path, folder: Path) -> set[int]:
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
    done = subprocess.run([*command, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert not done.stderr, done.stderr
    return {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}


def _pyright(path: Path, folder: Path) -> set[int]:
    command = Path(sys.executable).with_name("basedpyright")
    if not command.exists() and which("basedpyright") is None:
        pytest.skip("basedpyright is not installed: pip install basedpyright")
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "pythonVersion": "3.10"})
    )
    copied = folder / path.name
    copied.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [str(command), "--outputjson", "--pythonpath", sys.executable, "--project", str(folder), str(copied)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}


@pytest.mark.parametrize("check", [_mypy, _pyright])
@pytest.mark.parametrize("name", ["user.py", "mistakes.py"])
def test_type_checkers_refuse_the_mistakes_and_nothing_else(check: Any, name: str, tmp_path: Path) -> None:
    path = HERE / name
    lines = path.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert check(path, tmp_path) == wrong


@pytest.mark.parametrize(
    ("options", "function"),
    [(PrepareOptions, chatparsers.Chat.prepare), (BindOptions, chatparsers.Format.bind)],
)
def test_passed_on_keywords_are_those_of_the_function(options: Any, function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    keywords = {each.name: each.annotation for each in parameters if each.kind is each.KEYWORD_ONLY}
    assert {name: hint.__forward_arg__ for name, hint in options.__annotations__.items()} == keywords
