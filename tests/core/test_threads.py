"""Threads that share a chat, its format and the caches say what one thread says, with the GIL and without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HAMMER = Path(__file__).parent / "hammer.py"
ROOT = Path(__file__).parents[2]


def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh process of an interpreter, with the package of this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([python, *arguments], env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.nightly
def test_threads_say_what_one_says() -> None:
    done = run(sys.executable, "-W", "error", str(HAMMER), "3", "1", "8")
    assert done.returncode == 0, done.stdout + done.stderr


def test_so_they_do_without_the_gil() -> None:
    """$CHATPARSERS_FREE_THREADED names an interpreter that has the packages of the core."""
    found = os.environ.get("CHATPARSERS_FREE_THREADED") or shutil.which("python3.14t")
    if found is None:
        pytest.skip("no interpreter without GIL: $CHATPARSERS_FREE_THREADED names one")
    if run(found, "-c", "import chatparsers, jinja2, pluggy").returncode:
        pytest.skip(f"{found} does not have the packages of the core")
    without = run(found, "-c", "import chatparsers, sys; print(sys._is_gil_enabled(), chatparsers.CORE)")
    assert without.stdout.split() == ["False", "pure"], without.stderr
    done = run(found, "-W", "error", str(HAMMER), "6")
    assert done.returncode == 0, done.stdout + done.stderr
