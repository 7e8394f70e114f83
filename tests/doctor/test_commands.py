"""``chatparsers check`` and ``chatparsers report``: exit codes, forms, mends, and what is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from faults import MARKERS, OWN, files, source, written

import chatparsers
from chatparsers.cli.main import main
from chatparsers.doctor.subject import user
from chatparsers.testing.cases import load_cases, run_case

QWEN, HERMES = str(OWN / "qwen3.jinja"), str(OWN / "hermes-2-pro.jinja")
_GIVEN = {"api_key": {"type": "string", "default": "hidden", "examples": ["hidden"]}, "a": {"type": "string"}}
_ABOUT = {"headers": {"Authorization": ["hidden"], "needs_key": True}, "credentials": {"user": "hidden"}}
_PARAMETERS = {"type": "object", "properties": _GIVEN, "required": ["api_key"], "api_key": "hidden", **_ABOUT}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": _PARAMETERS}}]


def _objects(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string", "minLength": 1}
_PLACE = _objects(
    {
        "artifactLocation": _objects({"uri": {"type": "string", "pattern": r"^[\w.~!$&'()*+;=:@/%-]+$"}}),
        "region": _objects({"startLine": {"type": "integer", "minimum": 1}}),
    }
)
_RESULT = _objects(
    {
        "ruleId": _TEXT,
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _objects({"text": _TEXT}),
        "locations": _array(_objects({"physicalLocation": _PLACE})),
    }
)
_RULE = _objects(
    {
        "id": _TEXT,
        "shortDescription": _objects({"text": _TEXT}),
        "helpUri": {"type": "string", "pattern": "^https://"},
    }
)
_DRIVER = _objects({"name": _TEXT, "version": _TEXT, "rules": _array(_RULE)})
SARIF = _objects(
    {
        "$schema": _TEXT,
        "version": {"const": "2.1.0"},
        "runs": _array(_objects({"tool": _objects({"driver": _DRIVER}), "results": _array(_RESULT)})),
    }
)
"""SARIF 2.1.0 and what GitHub's code scanning needs of it, for the members that we write."""


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", QWEN, "--only", "whitespace"]) == 0
    assert main(["check", QWEN, "--only", "masks"]) == 0
    assert main(["check", QWEN, "--only", "masks", "--strict"]) == 1
    assert main(["check", QWEN, "--only", "loses"]) == 1
    assert main(["check", str(tmp_path / "nowhere")]) == 2
    assert main(["check", QWEN, "--only", "nothing"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    several = [QWEN, str(OWN / "glm-4-5.jinja"), str(tmp_path / "nowhere")]
    assert main(["check", *several, "--only", "loses"]) == 2
    printed = capsys.readouterr()  # a line for each
    assert [line.split(": ")[1] for line in printed.out.splitlines()] == ["qwen3", "glm-4-5"]
    assert "nowhere" in printed.err


def test_json_is_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", QWEN, "--json", "--only", "loses"])
    report = _json(capsys)
    assert report["format"] == "qwen3" and report["findings"]
    for finding in report["findings"]:
        assert set(finding) == {"code", "severity", "message", "witness", "mend"}
        assert finding["severity"] in ("error", "warning", "note")
    assert report == json.loads(json.dumps(chatparsers.check(QWEN, only=["loses"]).to_dict()))


def test_annotations_sarif_and_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    main(["check", QWEN, "--format-output", "github", "--html", str(page)])
    lines = capsys.readouterr().out.splitlines()
    command = re.compile(r"::(error|warning|notice) file=[^:,\s]+,line=1,title=[\w-]+::\S.*")
    assert all(command.fullmatch(line) for line in lines)
    folder = tmp_path / "my model, 50 %"
    folder.mkdir()
    (folder / "chat_template.jinja").write_text(Path(QWEN).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text("{}")
    main(["check", str(folder), "--format-output", "sarif", "--only", "loses"])
    log = _json(capsys)
    jsonschema.validate(log, SARIF, format_checker=jsonschema.FormatChecker())
    run = log["runs"][0]
    assert {result["ruleId"] for result in run["results"]} == {
        rule["id"] for rule in run["tool"]["driver"]["rules"]
    }
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/my%20model%2C%2050%20%25/chat_template.jinja")
    main(["check", str(folder), "--format-output", "github", "--only", "loses"])
    line = capsys.readouterr().out.splitlines()[0]
    assert "/my model%2C 50 %25/chat_template.jinja,line=1,title=" in line
    text = page.read_text(encoding="utf-8")
    assert "not-append-only" in text and "&lt;think&gt;" in text and "<think>" not in text


def test_a_mend_is_proved_and_written_beside(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The template prints arguments that are text as JSON within JSON. The mend writes them as they are given."""
    assert main(["check", HERMES, "--only", "arguments", "--fix", str(tmp_path / "fixed")]) == 1
    said = capsys.readouterr().err
    assert "arguments-escaped-twice" in said and "+++ b/default.jinja" in said
    fixed = tmp_path / "fixed" / "default.jinja"
    before, after = (chatparsers.check(path, only=["arguments", "loses"]) for path in (HERMES, fixed))
    assert "arguments-escaped-twice" in before.codes() and "arguments-escaped-twice" not in after.codes()
    assert set(after.codes()) < set(before.codes())
    assert main(["check", HERMES, "--only", "arguments", "--fix", str(tmp_path / "fixed")]) == 2
    assert "not overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "path"), [("--fix", "file/fixed"), ("--html", "nowhere/report.html")])
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    option: str, path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    def worked(*given: Any, **options: Any) -> None:
        raise AssertionError("the model was checked first")

    monkeypatch.setattr("chatparsers.doctor.check.examined", worked)
    (tmp_path / "file").write_text("")
    assert main(["check", HERMES, option, str(tmp_path / path)]) == 2
    assert str(tmp_path) in (said := capsys.readouterr().err) and "checked first" not in said
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_every_file_names_the_stop_and_nothing_else_changes(tmp_path: Path) -> None:
    """What was an end before stays one: an id, or the token for which ``eos_token`` has no room any more."""
    config = {"eos_token": {"content": "<s>", "lstrip": False}, "pad_token": "<s>"}
    texts = {
        **files(config=config, ends=["<|endoftext|>"]),
        "special_tokens_map.json": '{\n    "eos_token" : "<|endoftext|>"}',
        "config.json": '{"text_config": {"eos_token_id": 0}, "eos_token": "no end"}',
    }
    model, fixed = tmp_path / "model", tmp_path / "fixed"
    written(model, texts)
    assert main(["check", str(model), "--only", "ends", "--fix", str(fixed)]) == 1
    ids = {text: chatparsers.load(model).tokenizer.token_to_id(text) for text in MARKERS}
    stop, others = ids["<|im_end|>"], [ids["<|endoftext|>"], ids["<s>"]]
    assert {file.name: file.read_text() for file in fixed.iterdir()} == {
        "tokenizer_config.json": texts["tokenizer_config.json"].replace('"<s>", "l', '"<|im_end|>", "l'),
        "special_tokens_map.json": texts["special_tokens_map.json"].replace("endoftext", "im_end"),
        "config.json": texts["config.json"].replace("0", f"[{stop}, 0]"),
        "generation_config.json": json.dumps({"eos_token_id": [stop, *others]}),
    }
    assert "stop-differs" in chatparsers.check(model, only=["ends"]).codes()
    written(model, {file.name: file.read_text() for file in fixed.iterdir()})
    assert not chatparsers.check(model, only=["ends"]).codes()


def test_a_generation_prompt_is_written_where_there_is_none(tmp_path: Path) -> None:
    """Also where the template overrides what it was asked. With it the format is known again."""
    told = source("hermes-2-pro")
    without = told[: told.rindex("{%- if add_generation_prompt")]
    overriding = "{% set add_generation_prompt = false %}" + source("plain")
    for name, text in (("hermes-2-pro", without), ("content-only", overriding)):
        model, fixed = tmp_path / f"{name}.jinja", tmp_path / name
        model.write_text(text, encoding="utf-8")
        assert main(["check", str(model), "--only", "prompt", "--fix", str(fixed)]) == 1
        mended = chatparsers.load(fixed / "default.jinja")
        assert mended.prepare([user("Hi")]).prompt.endswith("<|im_start|>assistant\n")
        assert mended.detection.name == name


def test_a_report_has_the_answer_and_no_secrets(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tools, output = tmp_path / "tools.json", tmp_path / "out.txt"
    tools.write_text(json.dumps(TOOLS))
    output.write_text('Hi.\n<tool_call>\n{"name": "f", "arguments": {"a": ')
    template = str(OWN / "hermes-2-pro.jinja")
    assert main(["report", template, "--output", str(output), "--tools", str(tools)]) == 0
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert "hidden" not in printed.out and str(OWN) not in printed.out
    left_out = ["properties.api_key.default", "properties.api_key.examples"]
    left_out += ["api_key", "headers.Authorization", "credentials"]
    assert report["about"]["left_out"] == [f"tools[0].function.parameters.{path}" for path in left_out]
    parameters = report["tools"][0]["function"]["parameters"]
    assert parameters["headers"] == {"needs_key": True} and parameters["required"] == ["api_key"]
    assert parameters["properties"]["api_key"] == {"type": "string"}
    assert report["text"] == output.read_text() and report["expect"]["complete"] is False
    assert report["about"]["template"].startswith("{") and report["about"]["detection"]["evidence"]
    assert "".join(text for _, text in report["about"]["strip"]) == report["text"]
    found = tmp_path / "found"
    found.mkdir()
    (found / "900-report.json").write_text(printed.out, encoding="utf-8")
    ((_, case),) = load_cases(found)
    assert run_case(chatparsers.get_format(case["format"]), case, cuts=2)["whole"] == 1
