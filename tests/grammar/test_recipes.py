"""The recipes of docs/grammar-engines.md run where their engines are, and print what the page says. Blocks marked
``run`` are for tests/package/test_docs.py."""

from __future__ import annotations

import importlib
import os
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from engines import xgrammar
from toy import toy_tokenizer

import chatparsers

PAGE = Path(__file__).parents[2] / "docs" / "grammar-engines.md"
BLOCK = re.compile(
    r"^<!-- (?:run|engine: (?P<engine>\w+)) -->\n+```python\n(?P<code>.*?)^```\n\n*(?:```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


def load(engine: str, folder: Path) -> None:
    """Imports the engine, or skips; writes the files that its recipes open."""
    if engine == "xgrammar":
        xgrammar()
        toy_tokenizer(chatparsers.get_format("qwen3"), True).save(str(folder / "tokenizer.json"))
        return
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    if engine == "llama_cpp":
        tiny = importlib.import_module("chatparsers.testing.tiny")
        tiny.tiny_model("qwen3").write_gguf(folder / "model.gguf")


@pytest.mark.parametrize("engine", ["xgrammar", "vllm", "llama_cpp"])
def test_recipes(engine: str, tmp_path: Path) -> None:
    load(engine, tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    first, *others = BLOCK.finditer(text)
    namespace: dict[str, Any] = {"__name__": "recipe"}
    mine = [block for block in others if block["engine"] == engine]
    assert mine, f"the page has no recipe for {engine}"
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        for block in (first, *mine):
            printed = StringIO()
            code = "\n" * text.count("\n", 0, block.start("code")) + block["code"]
            with redirect_stdout(printed):
                exec(compile(code, str(PAGE), "exec"), namespace)
            assert printed.getvalue() == (block["output"] or ""), (
                f"the page shows something else for {engine}"
            )
    finally:
        os.chdir(before)
