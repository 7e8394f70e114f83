"""What a template is given before it joins the matrix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import chatparsers
from chatparsers.testing import Entry

FORMAT = chatparsers.get_format("qwen3")


@pytest.mark.parametrize(
    ("end", "given", "used"),
    [
        ("{{ eos_token }}", None, "<|im_end|>"),
        ("<|im_end|>", None, "<|im_end|>"),
        ("<|im_end|>{{ eos_token }}", None, ""),
        ("<|im_end|>\n{{ eos_token }}", "</s>", "</s>"),
    ],
)
def test_the_end_of_turn_is_written_once(tmp_path: Path, end: str, given: str | None, used: str) -> None:
    path = tmp_path / "acme.jinja"
    path.write_text(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}" + end + "{% endfor %}", encoding="utf-8"
    )
    entry = Entry(FORMAT, path, given)
    assert entry.eos_token == used == entry.template().eos_token


@pytest.mark.parametrize(
    ("named", "status", "said"), [("FORMAT", 0, "mine "), ("'no-such'", 2, "matrix: no format")]
)
def test_the_matrix_of_a_format_that_is_not_registered(
    tmp_path: Path, named: str, status: int, said: str
) -> None:
    """Its table is printed; a name that nobody has is an error in a line."""
    own = Path(__file__).parents[1] / "templates_own" / "qwen3.jinja"
    (tmp_path / "test_mine.py").write_text(
        "from dataclasses import replace\n"
        "from chatparsers import get_format\n"
        "from chatparsers.testing import matrix\n"
        "FORMAT = replace(get_format('qwen3'), name='mine', aliases=())\n"
        f"test_matrix = matrix({named}, templates=[{str(own)!r}])\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "chatparsers.testing", "-p", "no:cacheprovider"]
    command += ["--chatparsers-scenario", "tool-auto-single", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == status and "Traceback" not in done.stdout + done.stderr, done.stdout
    assert said in done.stdout and not done.stderr
