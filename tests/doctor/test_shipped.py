"""The response_template that a model's folder can ship, proved on the turns of its chat template."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import chatparsers
from chatparsers.cli.main import main

TEMPLATES = Path(__file__).parents[1] / "templates_own"
CONFIG = '{\n  "bos_token": null,\n  "eos_token": "<|im_start|>",\n  "model_max_length": 1e30\n}\n'


def model(folder: Path, template: str, config: str = CONFIG) -> Path:
    folder.mkdir()
    shutil.copy(TEMPLATES / template, folder / "chat_template.jinja")
    (folder / "tokenizer_config.json").write_text(config, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("readers", "thought"), [("servers", "thinking"), ("transformers", "reasoning_content")]
)
def test_a_folder_gets_one(
    readers: str, thought: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, fixed = model(tmp_path / "model", "qwen3.jinja"), tmp_path / "fixed"
    main(["check", str(folder), "--only", "format", "--fix", str(fixed), "--response-template", readers])
    said = capsys.readouterr().err
    text = (fixed / "tokenizer_config.json").read_text(encoding="utf-8")
    assert "a response_template, proved on 5 turns: an answer, an answer after reasoning" in said
    assert "the response_template loses: " in said and text.startswith(CONFIG.rstrip("}\n"))
    assert sorted(json.loads(text)["response_template"]["fields"]) == sorted(
        ["content", "tool_calls", thought]
    )
    shutil.copy(fixed / "tokenizer_config.json", folder)
    assert chatparsers.load(folder).files.response_template is not None
    assert main(["check", str(folder), "--fix", str(tmp_path / "again"), "--response-template", readers]) == 2
    assert "it has a response_template; take it out first" in capsys.readouterr().err


def test_what_it_could_not_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, given = model(tmp_path / "model", "apertus.jinja"), ["--fix", str(tmp_path / "fixed")]
    assert main(["check", str(folder), *given, "--only", "format", "--response-template", "servers"]) == 2
    said = capsys.readouterr().err
    assert "no response_template is written, as it would read otherwise: a call" in said
    assert "the name is a key of the JSON around the arguments" in said and not (tmp_path / "fixed").exists()
    assert main(["check", str(TEMPLATES / "qwen3.jinja"), *given, "--response-template", "servers"]) == 2
    assert "expected a model's folder with tokenizer_config.json" in capsys.readouterr().err
    assert main(["check", str(folder), "--response-template", "servers"]) == 2
    assert "--response-template goes with --fix" in capsys.readouterr().err
