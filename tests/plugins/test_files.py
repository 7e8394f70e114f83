"""Formats in files: a plugin's, those of the folders that CHATPARSERS_FORMATS names, and one that the caller names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import chatparsers
from chatparsers import DefinitionError, FormatRef
from chatparsers.cli.main import main
from chatparsers.formats._files import FOLDERS

MINE = {
    "chat_format": 1,
    "name": "mine",
    "title": "Mine",
    "aliases": ["my-own"],
    "models": ["mine-[12]"],
    "markers": ["<mine>"],
    "tree": {"body": {"calls": {"call": ["<mine>", {"name": "tool"}, " ", {"object": "json"}, "</mine>"]}}},
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
CALL = '<mine>get_weather {"city": "Oslo"}</mine>'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.json").write_text(json.dumps(MINE), encoding="utf-8")
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    return tmp_path


def test_a_folder_of_documents_ranks_as_plugins_do(folder: Path) -> None:
    assert chatparsers.get_format("my-own").parse(CALL, tools=TOOLS).tool_calls[0].name == "get_weather"
    (info,) = [info for info in chatparsers.list_formats() if info.name == "mine"]
    assert (info.origin, info.models) == (f"{FOLDERS}: mine.json", ("mine-[12]",))
    template = (
        "{{ tools | tojson }}{% for m in messages %}\n{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}<mine>"
        "{{ c.function.name }} {{ c.function.arguments | tojson }}</mine>{% endfor %}{% endfor %}"
        "{% if add_generation_prompt %}\nassistant: {% endif %}"
    )
    assert chatparsers.detect(template).name == "mine"
    (folder / "mine.json").write_text(json.dumps({**MINE, "name": "hermes-2-pro"}), encoding="utf-8")
    assert chatparsers.get_format("hermes-2-pro").title != "Mine", "a built-in format comes first"


def test_a_broken_file_or_a_missing_folder_is_left_out_with_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {**MINE, "name": "other", "tree": {"body": 5}}
    (folder / "other.json").write_text(json.dumps(broken), encoding="utf-8")
    said = r"other.json: \$.tree.body: expected an object, found 5; mend the file"
    with pytest.warns(UserWarning, match=said):
        assert [info.name for info in chatparsers.list_formats() if "mine" in info.name] == ["mine"]
    monkeypatch.setenv(FOLDERS, str(folder / "nowhere"))
    with pytest.warns(UserWarning, match=f"{FOLDERS}: .*nowhere: No such file or directory; name a folder"):
        chatparsers.list_formats()


def test_a_document_in_a_package_is_a_format(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "acme_documents").mkdir()
    (folder / "acme_documents" / "__init__.py").write_text("")
    (folder / "mine.json").rename(folder / "acme_documents" / "mine.json")
    monkeypatch.syspath_prepend(str(folder))
    try:
        assert FormatRef("mine", "acme_documents:mine.json").load().title == "Mine"
        with pytest.raises(
            DefinitionError, match=r"cannot be loaded from 'acme_documents:no.json': FileNotF"
        ):
            FormatRef("mine", "acme_documents:no.json").load()
    finally:
        sys.modules.pop("acme_documents", None)


def test_the_caller_names_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "mine.json"
    chat = chatparsers.load("{{ messages[0].content }}", format=str(path))
    assert (chat.format.name, chat.bind().parse(CALL).content) == ("mine", CALL)
    (folder / "answer.txt").write_text(CALL, encoding="utf-8")
    assert main(["parse", str(folder / "answer.txt"), "--format", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["content"] == CALL
    path.write_text("{")
    assert main(["parse", str(folder / "answer.txt"), "--format", str(path)]) == 2
    assert "mine.json: $: expected JSON" in capsys.readouterr().err
    with pytest.raises(DefinitionError, match=r"no.json: No such file or directory; name a document's file"):
        chatparsers.load("{{ messages[0].content }}", format=str(folder / "no.json"))


def test_a_models_file_is_not_used_by_itself(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever audits weights and a template does not audit a third file."""
    monkeypatch.delenv(FOLDERS)
    (folder / "mine.json").rename(folder / "chat_format.json")
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    )
    assert chatparsers.load(folder).format.name == "content-only"
    assert chatparsers.load(folder, format=str(folder / "chat_format.json")).format.name == "mine"
