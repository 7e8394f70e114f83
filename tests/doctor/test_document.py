"""The checks of a document: its samples, the turns of a model, and lies, which prove themselves by turns."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers import Format, list_formats
from chatparsers.cli.main import main
from chatparsers.doctor.document import document_report, samples_of
from chatparsers.document import dumps

TEMPLATE = Path(__file__).parents[1] / "templates_own" / "qwen3.jinja"
Edit = Callable[[dict[str, Any]], None]


def qwen3() -> dict[str, Any]:
    format = chatparsers.get_format("qwen3")
    return {**format.to_data(), "samples": samples_of(format)}


def body(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["tree"][-1]["body"]
    return found


def prose_calls(document: dict[str, Any]) -> None:
    calls = body(document)["calls"]
    value = {"value": {"syntax": "raw", "until": ".", "type": "string", "end": True}}
    code = [{"implied": "x", "of": "argument"}, value]
    lie = {"as": "call", "is": ["Sure", {"implied": "rm", "of": "tool"}, {"arguments": code, "max": 1}, "."]}
    body(document)["calls"] = {"write": calls, "read": {"first_of": [calls, lie]}}


def prose_is_hidden(document: dict[str, Any]) -> None:
    hidden = ["Sure. ", {"commit": True}, {"until": ["\n\n\n\n"]}]
    body(document)["marks"] = {"write": "", "read": hidden}


def prose_is_a_thought(document: dict[str, Any]) -> None:
    body(document)["reasoning"] = {"open": {"write": {"token": "<think>"}, "read": "Well, "}, "close": "."}


def no_token(document: dict[str, Any]) -> None:
    text = json.dumps(document).replace('{"token": "<tool_call>"}', '"<tool_call>"')
    document.clear()
    document.update(json.loads(text))


LIES: dict[str, tuple[Edit, list[str]]] = {
    "prose opens a call": (prose_calls, ["opener-not-shown", "implied-call"]),
    "prose is hidden": (prose_is_hidden, ["opener-not-shown"]),
    "prose opens a thought": (prose_is_a_thought, ["opener-not-shown"]),
    "a marker is a text": (no_token, ["marker-as-text"]),
}


@pytest.mark.parametrize("lie", [None, *LIES], ids=str)
def test_a_lie_is_found(lie: str | None, tmp_path: Path) -> None:
    document = qwen3()
    edit, codes = LIES[lie] if lie else (lambda document: None, [])
    edit(document)
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    tokenizer.add_tokens(["<tool_call>", "</tool_call>", "<think>", "</think>"])
    chat = chatparsers.load(TEMPLATE, tokenizer=tokenizer)
    report = document_report("qwen3.json", Format.from_data(document), document["samples"], chat)
    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert list(dict.fromkeys(finding.code for finding in errors)) == codes, str(report)
    assert not any(finding.code.startswith("turn-") for finding in report.findings), "the turns prove no lie"


@pytest.mark.parametrize("name", [info.name for info in list_formats()])
def test_the_samples_of_a_format_are_read(name: str) -> None:
    format = chatparsers.get_format(name)
    samples = samples_of(format)
    report = document_report("", format, [*samples, *samples, *samples])
    assert samples and not report.findings, str(report)


def test_every_code_has_its_section_in_the_page() -> None:
    from chatparsers.doctor import document

    page = (Path(__file__).parents[2] / "docs/tables/document-nodes.md").read_text(encoding="utf-8")
    codes = set(re.findall(r'Finding\(\s*"([a-z-]+)"', Path(document.__file__).read_text(encoding="utf-8")))
    assert len(codes) == 9 and all(f"| `{code}` |" in page for code in codes)


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    assert main(["export", "qwen3", "-o", str(path)]) == 0
    assert main(["formats", "check", str(path), "--model", str(TEMPLATE)]) == 0
    assert "samples, each read whole and in 80 cuts" in capsys.readouterr().out
    document = json.loads(path.read_text(encoding="utf-8"))
    wrong = copy.deepcopy(document["samples"])
    wrong[0]["expect"] = {"content": "Rain."}
    wrong[1] = {"txt": "a"}
    path.write_text(dumps({**document, "samples": wrong}), encoding="utf-8")
    assert main(["formats", "check", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [one["code"] for one in found] == ["sample-differs", "sample-malformed"]
    path.write_text(dumps({**document, "samples": [], "tree": {"body": 5}}), encoding="utf-8")
    assert main(["formats", "check", str(path)]) == 2
    assert "mine.json: $.tree.body: expected an object, found 5" in capsys.readouterr().err


def test_a_models_format_is_exported_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for command in (["export"], ["inspect", "--data"], ["detect", "--emit", "data"]):
        assert main([*command, str(TEMPLATE)]) == 0
        shown.append(json.loads(capsys.readouterr().out))
    assert {one["name"] for one in shown} == {"qwen3"} and shown[0]["samples"]
    assert Format.from_data(shown[2]).to_data() == chatparsers.get_format("qwen3").to_data()
    assert main(["export", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "chat_format"
    assert main(["export", "qwen33"]) == 2
    assert "did you mean" in capsys.readouterr().err
