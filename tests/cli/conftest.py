"""Runs the command line, in this process and in a new one."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from making import tool

from chatparsers.cli.main import main

TOOLS = [tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"])]


class Ran(NamedTuple):
    """The output of a run, and its exit status."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """The printed JSON value. Asserts that the run succeeded."""
        assert self.status == 0, self.err
        return json.loads(self.out)

    def records(self) -> list[Any]:
        """The JSON value of each line."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in this process. ``stdin`` is its input."""

    def call(*argv: object, stdin: str | bytes = "") -> Ran:
        raw = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
        capsys.readouterr()
        return Ran(main([str(argument) for argument in argv]), *capsys.readouterr())

    return call


@pytest.fixture
def spawn() -> Run:
    """Runs ``python -m chatparsers`` in a new process, without a terminal."""

    def call(*argv: object, stdin: str | bytes = b"", **environment: str) -> Ran:
        raw = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "chatparsers", *map(str, argv)],
            input=raw,
            capture_output=True,
            timeout=120,
            env={**os.environ, **environment},
        )
        return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    return call


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A file of tools."""
    return put(tmp_path / "tools.json", TOOLS)


@pytest.fixture
def template() -> Path:
    """A chat template."""
    return Path(__file__).parents[1] / "templates_own" / "qwen3-coder.jinja"


def put(path: Path, value: object) -> Path:
    """Writes ``value``, as JSON unless it is text or bytes."""
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        path.write_text(text, encoding="utf-8", newline="")
    return path


def refused(ran: Ran, *words: str) -> str:
    """Asserts that the run failed as promised: status 2, nothing printed, one line that has these words."""
    assert ran.status == 2, (ran.out, ran.err)
    assert ran.out == ""
    assert ran.err.startswith("chatparsers: ") and ran.err.endswith("\n")
    line = ran.err[:-1]
    assert "\n" not in line and "Traceback" not in line and "an error of chatparsers itself" not in line, line
    for word in words:
        assert word in line, line
    return line
