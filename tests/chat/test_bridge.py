"""Bridges: what `Chat.bridge` says, over the real templates, and the page that shows it."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

import chatparsers

DOCS = Path(__file__).parents[2] / "docs"
OWN = Path(__file__).parents[1] / "templates_own"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("capabilities_page", DOCS / "_capabilities.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_bridge_is_a_text_with_its_proof_or_a_witness() -> None:
    bridges = chatparsers.load(OWN / "qwen3.jinja").bridge
    delta = "<|im_end|>\n<|im_start|>user\n永 third question<|im_end|>\n<|im_start|>assistant\n"
    assert bridges["answer", "user"].proved and bridges["answer", "user"].delta == delta
    dropped = bridges["thought and answer", "user"]
    assert not dropped.proved and dropped.reason == "thought"
    assert "proved" in str(bridges["call", "result"]) and "thought" in str(dropped)
    assert repr(bridges).startswith("<Bridges: ")


def test_most_templates_with_calls_have_their_bridges(
    real_templates: list[Path], amount: Callable[[int, int, int], int]
) -> None:
    count: Counter[Any] = Counter()
    wanted = ("answer", "user"), ("call", "result")
    for path in Random(7).sample(real_templates, amount(2, 5, len(real_templates))):
        chat = chatparsers.load(path, bos_token="<BOS>", eos_token="<EOS>")
        if chat.template().probe().tool_calls:
            count["templates"] += 1
            count.update(key for key in wanted if chat.bridge[key].proved)
    assert all(count[key] >= 0.95 * count["templates"] - 1 for key in wanted), count


@pytest.mark.skipif(not DOCS.is_dir(), reason="no docs: not a checkout")
def test_the_page_says_what_the_bridges_are(
    real_templates: list[Path], script: ModuleType, amount: Callable[[int, int, int], int]
) -> None:
    rows = script.rows_of((DOCS / "capabilities.md").read_text(encoding="utf-8"), script.BRIDGES_HEAD)
    for path in Random(11).sample(real_templates, amount(1, 3, len(real_templates))):
        chat = chatparsers.load(path, bos_token="<s>", eos_token="</s>")
        assert rows.get(path.stem) == script.bridges_row(chat), path.stem
