"""What a template is given before it joins the matrix."""

from __future__ import annotations

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
