"""Answers that fail for a known cause: the cause is named first. And texts in which nothing is wrong."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from making import tool
from prose import PROSE

import chatparsers
from chatparsers import Format, RequestError, get_format
from chatparsers.explaining.causes import CauseCode

TOOLS = [
    tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"]),
    tool("search_files", {"pattern": {"type": "string"}, "path": {"type": "string"}}, ["pattern"]),
]
CALLS: dict[str, dict[str, Any]] = {
    "get_weather": {"city": "Oslo", "days": 3},
    "search_files": {"pattern": "two words", "path": "src/a b"},
}
NAMES = ("qwen3", "qwen3-coder", "gpt-oss", "deepseek-v3-2", "glm-4-5", "kimi-k2", "minimax-m2", "gemma-4")


def written(format: Format, name: str, content: str = "") -> str:
    """A call as the format writes it."""
    function = {"name": name, "arguments": json.dumps(CALLS[name])}
    call = {"type": "function", "id": "call00000", "function": function}
    return format.render({"role": "assistant", "content": content, "tool_calls": [call]}, TOOLS)


def is_read(format: Format, text: str) -> bool:
    calls = format.parse(text, tools=TOOLS).tool_calls
    return bool(calls) and all(call.complete and call.name in CALLS for call in calls)


def failing(format: Format, name: str) -> Iterator[tuple[str, str, str, set[str]]]:
    """What was done to a call of this format, the text, the prefix, and the codes of which one is the cause."""
    call = written(format, name)
    after = call.index(name) + len(name)
    for share in (0.3, 0.8):
        yield f"cut at {share}", call[: after + int((len(call) - after) * share)], "", {"truncated"}
    for typo in (name.replace("_", "", 1), f"{name}s"):
        yield typo, call.replace(name, typo), "", {"unknown-tool"}
    yield "escaped for a page", html.escape(call, quote=False), "", {"escaped"}
    yield "escaped for JSON", json.dumps(call, ensure_ascii=False)[1:-1], "", {"escaped"}
    bare = call
    for token in sorted({*format.preserved_tokens, *format.stops}, key=len, reverse=True):
        bare = bare.replace(token, "")
    # What two formats share is told by either.
    yield "without markers", bare, "", {"markers-stripped", "marker-missing"}
    object = json.dumps({"name": name, "arguments": CALLS[name]})
    others = {"lenient", "other-format", "markers-stripped", "marker-missing"}
    yield "in a fence", f"I look.\n\n```json\n{object}\n```", "", others
    yield "bare, after words", f"I look.\n\n{object}", "", others


@pytest.mark.one_in(8)
def test_the_cause_comes_first(format: Format) -> None:
    """For each format and each thing done to its calls."""
    if not format.features.tools:
        return
    for name in CALLS:
        for what, text, prefix, causes in failing(format, name):
            if is_read(format, text):
                continue
            found = chatparsers.explain(text, format.bind(tools=TOOLS, prefix=prefix))
            assert found.code in causes, (what, text, str(found))
            assert all(cause.says and cause.mend for cause in found.causes)
        whole = written(format, name)
        if is_read(format, whole):
            assert chatparsers.explain(whole, format.bind(tools=TOOLS)).code == "nothing"
        if not format.parse(whole).tool_calls:
            assert chatparsers.explain(whole, format.bind()).code == "tools-not-given", whole


@pytest.mark.parametrize("theirs", NAMES)
@pytest.mark.parametrize("ours", NAMES)
def test_another_format_is_named(ours: str, theirs: str) -> None:
    for name in CALLS:
        text = written(get_format(theirs), name)
        if is_read(get_format(ours), text):
            continue
        found = chatparsers.explain(text, get_format(ours).bind(tools=TOOLS))
        assert found.code == "other-format", str(found)
        best = get_format(found.causes[0].formats[0])
        calls = best.parse(text, tools=TOOLS).tool_calls
        assert [call.parsed_arguments for call in calls] == [CALLS[name]], text


_TAGGED = "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"
_JSON = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
_BARE = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
_SCHEMA = (
    '{"name": "get_weather", "description": "Weather", "parameters": {"type": "object", "properties": {}}}'
)


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        ("I should think.\n</think>\n\nIt is cold.", "qwen3", "prefix"),
        ("It is cold.", "qwen3", "nothing"),
        ("I use `get_weather` to look, as in get_weather(city).", "qwen3", "nothing"),
        (_SCHEMA, "qwen3", "nothing"),
        ('{"name": "drop_table", "arguments": {"table": "users"}}', "qwen3", "undeclared"),
        ("<think>\nget_weather then.\n<tool_call>\n", "qwen3", "thought-open"),
        (f"<think>\n{_JSON}\nNo.\n</think>\n\nHi.", "qwen3", "in-thought"),
        (_JSON.replace(" ", "Ġ").replace("\n", "Ċ"), "qwen3", "byte-level"),
        (_JSON.replace('": {', '" {'), "qwen3", "broken"),
        (_JSON.replace("<tool_call>", "<tool_call id='1'>"), "qwen3", "broken"),
        ('<tool_call>\n{"arguments": {"city": "Oslo"}}\n</tool_call>', "qwen3", "broken"),
        ('Write <tool_call>{"a": 1}</tool_call>, and then stop.', "qwen3", "nothing"),
        (f"[TOOL_CALLS][{_BARE}]", "qwen3", "other-format"),
        ('get_weather <go> {"city": "Oslo"} </go>', "content-only", "nothing"),
        ('["name": "get_weather"]', "qwen3", "unread"),
        (_TAGGED, "content-only", "template-without-tools"),
    ],
)
def test_a_cause(text: str, name: str, code: str) -> None:
    found = chatparsers.explain(text, get_format(name).bind(tools=TOOLS))
    assert found.code == code, str(found)
    plain = found.to_dict()
    assert plain["code"] == found.code and json.dumps(plain)


def test_the_page_has_a_line_for_each_code() -> None:
    page = Path(__file__).parents[2] / "docs" / "explain.md"
    if not page.exists():
        pytest.skip("no docs: not a checkout")
    codes = re.findall(r"^\| `([\w-]+)` \| \S", page.read_text("utf-8"), re.MULTILINE)
    assert sorted(codes) == sorted(["nothing", *get_args(CauseCode)])


@pytest.mark.parametrize("name", ["qwen3", "gpt-oss", "llama-3-x", "glm-4-5"])
def test_nothing_is_wrong_in_text_about_a_tool(name: str) -> None:
    for known in ("search", "run"):
        turn = get_format(name).bind(tools=[tool(known, {"path": {"type": "string"}})])
        for sentence in PROSE:
            found = chatparsers.explain(sentence.format(known, known), turn)
            assert found.code == "nothing", (found.message.text, str(found))


def test_nearly_spelt_markers_are_recovered() -> None:
    for name, old, new in (
        ("deepseek-v3-2", "｜", "｜｜"),
        ("deepseek-v3-2", "｜", " | "),
        ("deepseek-v3", "▁", "_"),
        ("qwen3", "<tool_call>", '<tool_call id="1">'),
        ("kimi-k2", "|", " | "),
    ):
        text = written(get_format(name), "get_weather", "I look.").replace(old, new)
        found = chatparsers.recover(text, TOOLS)
        assert [call.parsed_arguments for call in found.calls] == [CALLS["get_weather"]], text
        ((start, end),) = found.spans
        assert text[:start].strip() == "I look." and not text[end:].strip(), text


def test_what_is_no_turn() -> None:
    with pytest.raises(RequestError, match=r"explain: expected a turn, .* found str"):
        chatparsers.explain("Hi", "qwen3")  # type: ignore[arg-type]
