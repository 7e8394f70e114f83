"""``grammar`` and ``grammar check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import chatparsers

from .conftest import TOOLS, Run, put

HERMES = ("grammar", "--format", "hermes-2-pro")


def test_the_text_is_the_turns(run: Run, tools: Path) -> None:
    bound = chatparsers.get_format("hermes-2-pro").bind(tools=TOOLS)
    ran = run(*HERMES, "--tools", tools)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.rstrip("\n") == str(bound.grammar()).rstrip("\n") and ran.out.endswith("\n")
    required = chatparsers.get_format("hermes-2-pro").bind(tools=TOOLS, tool_choice="get_weather")
    ran = run(*HERMES, "--tools", tools, "--tool-choice", "get_weather")
    assert ran.out.rstrip("\n") == str(required.grammar()).rstrip("\n")
    ran = run(*HERMES)
    assert (ran.status, ran.out) == (1, "") and "constrains nothing" in ran.err
    assert "give --tools or --response-format" in ran.err


def test_info_goes_to_standard_error(run: Run, tools: Path) -> None:
    ran = run(*HERMES, "--tools", tools, "--info")
    info = json.loads(ran.err)
    assert info["dialect"] == "gbnf" and info["lazy"] is True and info["weakened"] == []
    assert info["triggers"] and "<tool_call>" in json.dumps(info["triggers"])
    assert info["lines"] == len(ran.out.splitlines())
    eager = json.loads(run(*HERMES, "--tools", tools, "--tool-choice", "required", "--info").err)
    assert eager["lazy"] is False


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_dialects(run: Run, tools: Path, template: Path, dialect: str) -> None:
    ran = run("grammar", "--template", template, "--tools", tools, "--dialect", dialect)
    assert ran.status == 0 and "get_weather" in ran.out and "<function=" in ran.out
    if dialect == "structural_tag":
        assert isinstance(json.loads(ran.out), dict)


def test_response_formats(run: Run, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}
    whole = put(
        tmp_path / "whole.json", {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    )
    bare = put(tmp_path / "bare.json", schema)
    texts = {run(*HERMES, "--response-format", file).out for file in (whole, bare)}
    assert len(texts) == 1 and "mood" in texts.pop()
    own = put(tmp_path / "own.gbnf", 'root ::= "yes" | "no"\n')
    ran = run(*HERMES, "--response-format", own)
    assert ran.status == 0 and '"yes"' in ran.out


def test_check_accepts_a_grammar(run: Run, tmp_path: Path, tools: Path) -> None:
    file = put(tmp_path / "own.gbnf", run(*HERMES, "--tools", tools).out)
    ran = run("grammar", "check", file)
    assert (ran.status, ran.err) == (0, "")
    rules = sum("::=" in line for line in file.read_text(encoding="utf-8").splitlines())
    assert ran.out == f"{file}: a GBNF grammar of {rules} rules, no errors\n"
    assert run("grammar", "check", "-", stdin='root ::= "a"\n').status == 0
