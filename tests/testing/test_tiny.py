"""The tiny model's file is a real model's: `load` reads it, and every marker is one token in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import chatparsers
from chatparsers.testing.tiny import TinyModel, main, tiny_model

FORMATS = [info.name for info in chatparsers.list_formats() if info.origin == "chatparsers"]
TEXT = '{"name": "get_weather"} is the weather é\n\n\t12 <|im_start|>"}}</'


@pytest.mark.parametrize("name", FORMATS)
def test_the_file_holds_the_vocabulary_and_the_template(name: str, tmp_path: Path) -> None:
    model = tiny_model(name)
    chat = chatparsers.load(model.write_gguf(tmp_path / "tiny.gguf"), format=name)
    assert chat.template().source == model.template
    assert chat.files.eos_token == model.eos_token
    text = TEXT + "".join(model.format.preserved_tokens)
    assert chat.tokenizer.encode(text).ids == model.tokenizer.encode(text).ids
    for made in (chat, model.chat):
        turn = made.prepare([{"role": "user", "content": "Hello"}])
        assert set(model.format.preserved_tokens) <= set(turn.marker_ids)
        assert set(model.eos_ids[:2]) <= set(turn.stop_ids)
        assert turn.tokenizer.encode(turn.prompt).ids == model.tokenizer.encode(turn.prompt).ids


def test_words_are_merged_and_markers_keep_their_flag() -> None:
    plain = TinyModel(chatparsers.get_format("qwen3"), "{{ messages }}", special=False).tokenizer
    assert plain.encode(" the weather in Oslo").tokens == ["Ġthe", "Ġ", "weather", "Ġin", "Ġ", "Oslo"]
    flags = {token.content: token.special for token in plain.get_added_tokens_decoder().values()}
    assert (flags["<tool_call>"], flags["<|im_end|>"]) == (False, True)


def test_the_command_writes_the_same_file_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        main(["hermes-2-pro", str(tmp_path / f"{name}.gguf"), "--seed", str(seed)])
    one, same, other = (tmp_path.joinpath(f"{name}.gguf").read_bytes() for name in ("one", "same", "other"))
    assert one == same != other


@pytest.mark.nightly
def test_a_user_needs_no_pytest(tmp_path: Path) -> None:
    """``pip install 'chatparsers[gateway]' gguf`` is enough for a model to try; what is missing is said in one line."""
    without = "import sys, importlib.util as u\nfind = u.find_spec\n"
    without += "u.find_spec = lambda name, *more: None if name == 'pytest' else find(name, *more)\n"
    code = without + "from chatparsers.testing.tiny import main\nassert 'pytest' not in sys.modules\n"
    run = "main(['qwen3', sys.argv[1]])"
    for more, said, status in (("", "tiny.gguf", 0), ("sys.modules['gguf'] = None\n", "pip install gguf", 2)):
        command = [sys.executable, "-c", code + more + run, str(tmp_path / "tiny.gguf")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == status and said in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
