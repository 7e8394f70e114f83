"""The pages, word for word, with a real model as ``model.gguf``."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")

from processes import process

pytestmark = pytest.mark.usefixtures("openai", "anthropic")

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


def blocks(page: str, heading: str | None = None) -> Iterator[tuple[str, str, str]]:
    """The code blocks of a page, or of a section: the comment before each, its language and its text."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    if heading is not None:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for block in _BLOCK.finditer(text):
        yield block["mark"] or "", block["language"], block["code"]


@pytest.fixture
def folder(tmp_path: Path, gguf: Path, real: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader's folder: the model, and the programs of the environment on PATH."""
    (tmp_path / "model.gguf").symlink_to(gguf)
    places = [Path(sys.executable).parent, real / "bin"]
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, places), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # what the page installs is there
    return tmp_path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=1800)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("way", [0, 1], ids=["in the process", "before llama-server"])
def test_the_first_page_of_the_gateway(way: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first commands start a model in one of two ways; with each, its clients get the answers that it shows."""
    if way == 0:
        pytest.importorskip("llama_cpp", reason="the package llama-cpp-python is not installed")
    code = [
        (language, text)
        for mark, language, text in blocks("gateway.md", "Start")
        if not mark.startswith("run")
    ]
    starts, shown = code[:2], code[2:]
    assert [language for language, _ in shown] == ["sh", "json", "python", "text"]
    monkeypatch.chdir(folder)
    with ExitStack() as stack:
        for line in starts[way][1].splitlines():
            words = shlex.split(line)
            if words[0] == "pip":
                run(folder, sys.executable, "-m", *words)
                continue
            port = 8080 if words[0] == "llama-server" else 8000
            path = "health" if words[0] == "llama-server" else "ready"
            stack.enter_context(process(words, f"http://127.0.0.1:{port}/{path}", folder / f"{port}.log"))
        answer = run(folder, "bash", "-c", shown[0][1])
        assert constant(json.loads(answer)) == constant(json.loads(shown[1][1]))
        assert run(folder, sys.executable, "-c", shown[2][1]) == shown[3][1]


def constant(answer: Any) -> Any:
    """An answer without its ids, its time, and what depends on the engine."""
    choices = json.loads(json.dumps(answer["choices"]))
    for choice in choices:
        for call in choice["message"]["tool_calls"]:
            del call["id"]
    usage = {name: answer["usage"][name] for name in ("prompt_tokens", "completion_tokens")}
    return choices, usage


def test_the_page_of_llama_cpp_python(folder: Path) -> None:
    pytest.importorskip("llama_cpp", reason="the package llama-cpp-python is not installed")
    found = list(blocks("hosts/llama-cpp-python.md"))
    for mark, _, text in found:
        if mark.startswith("file: "):
            (folder / mark.removeprefix("file: ")).write_text(text, encoding="utf-8")
    (commands,) = [text for mark, _, text in found if mark == "run"]
    (shown,) = [text for _, language, text in found if language == "text"]
    printed = run(folder, "bash", "-c", commands.splitlines()[-1])
    assert printed == shown.splitlines(keepends=True)[-1]
