"""Real models on this machine: what ``tests/real/install`` made. They run nightly alone, and are skipped without it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

INSTALL = "tests/real/install puts real models together, and CHATPARSERS_REAL names another folder of it"
MODEL = "qwen05"
"""The model of the tests that need one: the smallest whose calls are right more often than not."""


@pytest.fixture(scope="session")
def real(pytestconfig: pytest.Config) -> Path:
    """The folder with ``models/``, ``bfcl/`` and ``bin/llama-server``; skips the test if there is none."""
    folder = Path(os.environ.get("CHATPARSERS_REAL") or Path(__file__).parents[2] / ".hosts" / "real")
    if not (folder / "models").is_dir():
        pytest.skip(f"no real models: {INSTALL}")
    if not pytestconfig.getoption("--nightly"):
        pytest.skip("real models run nightly alone: --nightly")
    return folder


@pytest.fixture(scope="session")
def gguf_of(real: Path) -> Callable[[str], Path]:
    """``gguf_of(name)``: the file of a model; skips the test if it is not there."""

    def find(name: str) -> Path:
        path = real / "models" / f"{name}.gguf"
        if not path.exists():
            pytest.skip(f"{name} is not there: tests/real/install FOLDER {name}")
        return path

    return find


@pytest.fixture(scope="session")
def gguf(gguf_of: Callable[[str], Path]) -> Path:
    return gguf_of(MODEL)


@pytest.fixture(scope="session")
def running(real: Path, gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A llama-server with the model, and gateways before it."""
    pytest.importorskip("starlette", reason="the package starlette is not installed")
    from processes import servers

    with servers(real, gguf, tmp_path_factory.mktemp("logs")) as found:
        yield found


@pytest.fixture(scope="session")
def explained() -> dict[str, str]:
    """Answers that are wrong where llama-server's is right, and why."""
    found: dict[str, str] = json.loads((Path(__file__).parent / "explained.json").read_text(encoding="utf-8"))
    return found
