"""``check --templates``: a model's templates, version by version."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chatparsers.cli.main import main
from chatparsers.doctor.versions import versions
from chatparsers.errors import LoadError

OWN = Path(__file__).parents[1] / "templates_own"


def own(name: str) -> str:
    return (OWN / f"{name}.jinja").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three versions of one model, and a model of one."""
    (tmp_path / "acme").mkdir()
    for version, text in (("v2", own("qwen3")), ("v9", own("qwen3") + " "), ("v10", own("qwen3-coder"))):
        (tmp_path / "acme" / f"{version}.jinja").write_text(text, encoding="utf-8")
    (tmp_path / "single.jinja").write_text("{{ messages[", encoding="utf-8")
    return tmp_path


def test_versions_come_in_order_with_what_changed(folder: Path) -> None:
    broken, *acme = versions(str(folder))
    assert not broken and broken.model == "single" and "not valid Jinja2" in broken.error
    assert [row.version for row in acme] == ["v2", "v9", "v10"] and all(acme)
    assert [row.format for row in acme] == ["qwen3", "qwen3", "qwen3-coder"]
    assert not acme[0].changed and "format" not in acme[1].changed and "format" in acme[2].changed
    assert all(row.messages >= 4 and row.score == 1 for row in acme)


def test_a_file_of_histories_is_the_same(folder: Path, tmp_path: Path) -> None:
    texts = [own("qwen3"), {"version": "later", "template": own("qwen3-coder")}]
    file = tmp_path / "histories.json"
    file.write_text(json.dumps({"acme": texts}), encoding="utf-8")
    assert [(row.version, row.format) for row in versions(str(file))] == [
        ("1", "qwen3"),
        ("later", "qwen3-coder"),
    ]
    for wrong in ("[]", '{"acme": "x"}', '{"acme": [1]}', "{"):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(LoadError, match="expected"):
            list(versions(str(file)))


def test_a_message_that_is_lost_is_named(tmp_path: Path) -> None:
    """The row is wrong, and the command says so by its status."""
    padded = own("gpt-oss").replace("role + 'final<|message|>'", "'<|start|>assistant<|message|>'")
    (tmp_path / "acme.jinja").write_text(padded, encoding="utf-8")
    (row,) = versions(str(tmp_path))
    assert row.score < 1 and row.lost and not row and f"not read: {row.lost[0]}" in str(row)
    assert main(["check", "--templates", str(tmp_path)]) == 1


def test_prompts_are_compared_with_those_of_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in for its module, which adds a letter to prompts with tools."""
    (tmp_path / "acme.jinja").write_text(own("qwen3"), encoding="utf-8")
    from chatparsers.templates import Template

    def render(
        conversations: list[Any], *, chat_template: str, tools: Any, **options: Any
    ) -> tuple[list[str], list[Any]]:
        made = Template(chat_template, bos_token=options["bos_token"], eos_token=options["eos_token"])
        text = made.render(conversations[0], tools=tools, add_generation_prompt=True)
        return [text + ("x" if tools else "")], []

    fake = ModuleType("transformers.utils.chat_template_utils")
    fake.render_jinja_template = render  # type: ignore[attr-defined]
    for name in ("transformers", "transformers.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    (row,) = versions(str(tmp_path))
    assert row.differ == 2 and not row


def test_models_and_histories_do_not_go_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--templates", str(folder), "--as", "json"]) == 1
    assert len(json.loads(capsys.readouterr().out)) == 4
    assert main(["check", "model/", "--templates", str(folder)]) == 2
    assert main(["check"]) == 2
    assert "--templates DIR" in capsys.readouterr().err
