"""The harness itself: it notices faults, and outsiders can use it in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import chatparsers
from chatparsers import get_format
from chatparsers.streams.events import CallArguments, CallEnd, CallStart, Content, Event
from chatparsers.streams.message import Message, Region, ToolCall
from chatparsers.templates import Template
from chatparsers.testing import (
    TOOLS,
    Case,
    Expected,
    Record,
    check_conservation,
    check_expected,
    check_message,
    chunkings,
    feed_in_every_way,
    load_cases,
    needle,
    render,
    scenarios,
    table,
    update_golden,
)
from chatparsers.testing.check import Deltas, same, smallest
from chatparsers.testing.needles import find_needles, prose

_OWN = Path(__file__).parents[1] / "templates_own"
_TEXT = 'Hm.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>'


def case(**more: object) -> Case:
    format = get_format("hermes-2-pro")
    expected = Expected("Hm.", "", (("get_weather", '{"city": "Oslo"}'),))
    made = Case(format, "own", "a call", _TEXT, "", expected, {"tools": list(TOOLS)})
    return replace(made, **more)  # type: ignore[arg-type]


def fed(case: Case) -> tuple[Record, list[str]]:
    record = Record(case.format.name, case.template, case.scenario)
    return record, feed_in_every_way(case, record, {}, cuts=20)


def test_a_right_case_passes_in_every_way() -> None:
    record, problems = fed(case())
    assert not problems and not record.failures
    assert record.counts["random"] == 20 and record.counts["prefixes"] == len(_TEXT)


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        (Expected("Hm", "", (("get_weather", '{"city": "Oslo"}'),)), "content is 'Hm.'"),
        (Expected("Hm.", "so", (("get_weather", '{"city": "Oslo"}'),)), "reasoning is ''"),
        (Expected("Hm.", "", (("get_time", '{"city": "Oslo"}'),)), "calls are ['get_weather']"),
        (Expected("Hm.", "", (("get_weather", '{"city": "Bergen"}'),)), "arguments are"),
        (Expected("Hm.", "", (("get_weather", '{"city": "Oslo"}'),), ("abc",)), "the id 'abc' was written"),
    ],
)
def test_what_is_not_as_expected_is_told_with_what_to_run(expected: Expected, told: str) -> None:
    record, problems = fed(case(expected=expected))
    assert record.failures == {"whole": 1}
    assert problems[0].startswith("whole: " + told)
    assert "get_format('hermes-2-pro').bind(prefix=''" in problems[0] and f"text = {_TEXT!r}" in problems[0]


def test_numbers_are_compared_as_they_are_spelt() -> None:
    text = '<tool_call>\n{"name": "add_numbers", "arguments": {"a": 1.0}}\n</tool_call>'
    for number, right in (("1.0", True), ("1", False), ("1.00", False)):
        made = case(text=text, expected=Expected("", "", (("add_numbers", f'{{"a": {number}}}'),)))
        message = made.turn().parse(text)
        if right:
            check_expected(made, message)
        else:
            with pytest.raises(AssertionError, match="arguments are"):
                check_expected(made, message)


def of_events(*events: Event) -> Callable[[], None]:
    return lambda: Deltas().add(events)


def of_regions(*spans: tuple[int, int]) -> Callable[[], None]:
    return lambda: check_conservation(
        Message(text="abcd", regions=[Region("content", *span) for span in spans])
    )


def of_deltas(content: str) -> None:
    deltas = Deltas()
    deltas.add([Content("a"), Content("b")])
    deltas.check(Message(content=content))


def of_arguments(complete: bool) -> None:
    check_message(Message(tool_calls=[ToolCall(0, "i", "f", "{", complete)]))


START, OTHER = CallStart(0, "f", None), CallStart(1, "g", None)
BREAKS: dict[str, tuple[Callable[[], None], str]] = {
    "a first call with another index": (of_events(OTHER), "call 1 starts after 0 calls"),
    "a call in a call": (of_events(START, OTHER), "call 1 starts inside another"),
    "arguments after the call": (
        of_events(START, CallEnd(0, "i", True), CallArguments(0, "{}")),
        "arguments of call 0 out of turn",
    ),
    "an end without a call": (of_events(CallEnd(0, "i", True)), "call 0 ends out of turn"),
    "an empty event": (of_events(Content("")), "an event without text"),
    "deltas of another message": (lambda: of_deltas("a"), "the content is not the deltas"),
    "no regions": (of_regions(), "character"),
    "regions end too soon": (of_regions((0, 2)), "character"),
    "a gap": (of_regions((0, 2), (3, 4)), "character"),
    "regions overlap": (of_regions((0, 3), (2, 4)), "character"),
    "an empty region": (of_regions((0, 4), (4, 4)), "character"),
    "regions begin too late": (of_regions((1, 4)), "character"),
    "arguments that are no JSON": (lambda: of_arguments(True), "Expecting"),
}


@pytest.mark.parametrize("case", BREAKS)
def test_events_and_messages_that_break_a_promise_are_told(case: str) -> None:
    check, told = BREAKS[case]
    with pytest.raises((AssertionError, ValueError), match=told):
        check()
    of_deltas("ab")
    of_arguments(False)


def test_two_messages_are_compared_field_by_field() -> None:
    with pytest.raises(AssertionError) as error:
        same(Message(content="a", text="t"), Message(content="b", text="t"), "they differ")
    lines = str(error.value).splitlines()
    assert [line.strip() for line in lines] == ["they differ", "content", "in pieces 'a'", "whole     'b'"]


def test_pieces_are_joined_as_long_as_it_fails() -> None:
    def fails(pieces: object) -> bool:
        return "ab" not in list(pieces)  # type: ignore[call-overload]

    assert smallest(fails, list("xxabxx")) == ["xxabxx"]
    assert smallest(lambda pieces: len(pieces) > 1 and pieces[0] == "x", list("xyz")) == ["x", "yz"]


def test_needles_and_every_way_to_cut_a_text() -> None:
    assert needle("C") == "$N1C$text$N2C$"
    assert list(find_needles([{"a": needle("A", "x", 3)}, "-"])) == ["$N1A3$", "$N2A3$"]
    text = prose(50) + "😀é"
    assert len(prose(50)) == 50
    for pieces in [*chunkings.random_cuts(text, 50), chunkings.token_pieces(text, [3, 9, 20, 52], 2)]:
        assert "".join(pieces) == text and all(pieces)
    assert list(chunkings.random_cuts(text, 5)) == list(chunkings.random_cuts(text, 5))
    assert list(chunkings.random_cuts(text, 5)) != list(chunkings.random_cuts(text, 5, seed=1))


def test_a_template_tells_what_it_cannot_show() -> None:
    from chatparsers.testing import Inexpressible

    format = get_format("mistral-nemo")
    template = Template((_OWN / "mistral-nemo.jinja").read_text(encoding="utf-8"), eos_token="</s>")
    by_name = {scenario.name: scenario for scenario in scenarios(format)}
    assert render(format, template, by_name["parallel-tool-calls"]).text.count('"id": "needle') == 2
    with pytest.raises(Inexpressible, match="no reasoning"):
        render(format, template, by_name["content-with-reasoning"])


def test_the_table_has_a_line_a_format() -> None:
    records = [
        Record("a", "t", "one", counts={"whole": 1, "random": 5}, silence=2),
        Record("a", "t", "two", counts={"whole": 1}, failures={"whole": 1}),
        Record("b", "t", "one", skipped="no calls: at all"),
    ]
    lines = table(record.as_dict() for record in records)
    assert any(line.split()[:3] == ["a", "1", ".F"] for line in lines)
    assert any(line.split()[:3] == ["b", "1", "--"] for line in lines)
    assert lines[-2:] == [
        "2 cells run, 1 distinct texts of a format, 7 feedings, 1 failed",
        "     1 not shown: no calls",
    ]


def run_pytest(folder: Path, *arguments: str, ends: int = 0) -> str:
    """What pytest printed in a process of its own, which must end with that status."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(chatparsers.__file__).parents[1])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == ends, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.nightly
def test_outsiders_get_the_matrix_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["chatparsers.testing"]\n')
    (tmp_path / "acme.jinja").write_text(
        (_OWN / "kimi-k2.jinja").read_text(encoding="utf-8"), encoding="utf-8"
    )
    test = (
        'from chatparsers.testing import matrix\n\ntest_acme = matrix("kimi-k2", templates=["acme.jinja"])\n'
    )
    (tmp_path / "test_acme.py").write_text(test)
    scenarios = ("tool-auto-single", "reasoning-only")
    printed = run_pytest(tmp_path, *(f"--chatparsers-scenario={name}" for name in scenarios))
    assert "1 passed" in printed and "1 cells run, 1 distinct texts" in printed and ", 0 failed" in printed


@pytest.mark.slow
@pytest.mark.nightly
def test_the_suite_runs_without_any_file(tmp_path: Path) -> None:
    options = [
        "--chatparsers-format",
        "hermes-2-pro",
        "--chatparsers-template",
        str(_OWN / "hermes-2-pro.jinja"),
    ]
    suite = [
        "-p",
        "chatparsers.testing",
        "--pyargs",
        "chatparsers.testing.suite",
        "--chatparsers-matrix",
        "full",
    ]
    printed = run_pytest(tmp_path, *suite, *options, "--chatparsers-scenario=tool-auto-single")
    assert "1 passed" in printed and "1 real templates used: hermes-2-pro.jinja" in printed
    printed = run_pytest(tmp_path, *suite, *options, "--chatparsers-scenario=tool-auto", ends=2)
    assert (
        "no scenario is named 'tool-auto': write one of 1-MB-argument, " in printed
    )  # and nothing is skipped
    assert "Traceback" not in printed and "plugin.py:" not in printed


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"text": None}, "text: expected a text, found None"),
        ({"text_": ""}, r"a case: expected title, .*, found text_"),
        ({"expect": {"compelte": False}}, r"expect: expected .*, complete, found compelte"),
        ({"expect": {"calls": [{"name": "f"}]}}, r"expect\.calls\[0\]: expected name and arguments"),
        ({"expect": {"calls": [{"argument": "f"}]}}, r"expect\.calls\[0\]: expected .*, found argument"),
        ({"tools": ["get_wether"]}, r"tools: .*'get_weather'.*, found 'get_wether'"),
    ],
)
def test_a_case_that_would_not_be_checked_is_refused(
    fields: dict[str, object], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "wild-one.json"
    path.write_text(json.dumps({"title": "", "source": "", "text": "", **fields}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"wild-one.json: {told}"):
        list(load_cases(tmp_path))


def test_a_golden_without_tools_for_a_text_with_a_call_is_refused(tmp_path: Path) -> None:
    """Without tools a call is content: a golden written so would hold a call as text for ever."""
    path = tmp_path / "golden-call.json"
    case = {"title": "a call", "source": "ours", "text": _TEXT}
    path.write_text(json.dumps(case), encoding="utf-8")
    with pytest.raises(ValueError, match=r"<tool_call>.* names no tools"):
        update_golden(get_format("qwen3"), path)
    assert json.loads(path.read_text(encoding="utf-8")) == case
    for tools, calls in ((["get_weather"], 1), ([], 0)):
        path.write_text(json.dumps({**case, "tools": tools}), encoding="utf-8")
        update_golden(get_format("qwen3"), path)
        assert len(json.loads(path.read_text(encoding="utf-8"))["message"]["tool_calls"]) == calls
