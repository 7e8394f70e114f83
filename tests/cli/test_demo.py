"""``demo``, and the samples that it streams."""

from __future__ import annotations

import json
import re

import pytest

import chatparsers
from chatparsers.cli import demo
from chatparsers.cli.demos import Sample, samples, tools

from .conftest import Run

SAMPLES = samples()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.format)
def test_a_sample_is_a_whole_answer_of_its_format(sample: Sample) -> None:
    turn = chatparsers.get_format(sample.format).bind(tools=tools(), prefix=sample.prefix)
    message = turn.parse(sample.output, strict=True)
    assert message.complete and message.diagnostics == []
    assert message.tool_calls or message.content
    for call in message.tool_calls:
        tool = turn.tools.get(call.name)
        assert tool is not None and set(json.loads(call.arguments)) <= set(tool.arguments)
    assert not {region.kind for region in message.regions} <= {"markup"}


def test_the_samples_differ_in_kind() -> None:
    assert len(SAMPLES) >= 7
    assert [sample.order for sample in SAMPLES] == sorted(sample.order for sample in SAMPLES)
    messages = [
        chatparsers.get_format(s.format).bind(tools=tools(), prefix=s.prefix).parse(s.output) for s in SAMPLES
    ]
    assert any(m.reasoning for m in messages) and any(len(m.tool_calls) > 1 for m in messages)
    assert any(m.content and m.tool_calls for m in messages)


@pytest.mark.nightly
def test_without_a_terminal(spawn: Run) -> None:
    ran = spawn("demo", "--all")
    assert ran.status == 0 and ran.err == ""
    assert "\x1b" not in ran.out
    for sample in SAMPLES:
        assert f"({sample.format})" in ran.out and sample.output in ran.out
    assert ran.out.count("root ::=") >= len(SAMPLES) - 1
    assert re.search(r"GBNF, \d+ lines, once a call begins", ran.out)


def test_the_short_one_fits_a_screen(run: Run) -> None:
    ran = run("demo")
    lines = ran.out.splitlines()
    assert ran.status == 0 and len(lines) <= 13 and max(map(len, lines)) <= 110
    assert 'get_weather({"city": "Oslo"})' in ran.out and "now yours:" in ran.out


def test_chosen_formats(run: Run) -> None:
    ran = run("demo", "Mistral_Nemo", "--speed", 0)
    assert ran.status == 0
    assert re.findall(r"━━ .* \((.*)\) ━━", ran.out) == ["mistral-nemo"]
    told = ran.out.partition("as the events of its stream")[2]
    assert '[call 0] get_weather {"city": "Paris", "days": 3} ✓ id wk3nd0001\n' in told
    assert '[call 1] get_weather {"city": "Nice", "days": 3} ✓ id wk3nd0002\n' in told
    assert "= 0 characters of reasoning, 0 of content, 2 calls" in told


def test_colours_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "wants_colour", lambda stream, choice: choice != "never")
    coloured = run("demo", "qwen3-coder").out
    plain = run("demo", "qwen3-coder", "--plain").out
    assert "\x1b[2;3m" in coloured and "\x1b[33m" in coloured and "\x1b[1;36mwrite_file \x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


class _Terminal:
    def isatty(self) -> bool:
        return True


def test_when_there_are_colours_and_pauses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(demo.time, "sleep", slept.append)
    assert run("demo", "generic", "--speed", 200).status == 0
    assert len(slept) > 5 and set(slept) == {1 / 200}
    monkeypatch.setattr(demo.sys, "stdout", _Terminal())
    assert demo._pause(None) > 0 and demo._pause(0) == 0 and demo._pause(10) == 0.1
