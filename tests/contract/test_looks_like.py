"""An answer that looks like a call, and is none in its format, is noted once: the message stays as it was. Prose about
tools, and code that calls functions of their names, is not."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections import Counter
from functools import cache
from json import decoder, encoder

import pytest
from making import tool
from prose import PROSE

import chatparsers
from chatparsers import Format, get_format
from chatparsers.watch import looks_like_a_call, observe

TOOLS = [
    tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"]),
    tool("search_files", {"pattern": {"type": "string"}, "path": {"type": "string"}}, ["pattern"]),
]
CALLS = {"get_weather": {"city": "Oslo", "days": 3}, "search_files": {"pattern": "a b", "path": "src"}}
DIALECTS = (
    *("qwen3", "qwen3-coder", "mistral-nemo", "ministral-3", "pythonic", "gpt-oss", "functionary-v3-1"),
    *("deepseek-v3-1", "deepseek-v3-2", "glm-4-5", "kimi-k2", "minimax-m2", "gemma-4", "lfm2", "granite"),
)
WRITTEN = ("```json\n{}\n```", "{}", "<tools>{}</tools>", "<function_call>{}</function_call>")

QUOTED = 'It is like this:\n```json\n{{"name": "{}", "arguments": {{}}}}\n```\nAnd then (at last)'
"""A call as an example, with words after it."""


@cache
def written() -> list[tuple[str, str, str]]:
    """The tool's name, the format that writes the call or "", and the call."""
    found = []
    for name, arguments in CALLS.items():
        text = json.dumps({"name": name, "arguments": arguments})
        found += [(name, "", pattern.replace("{}", text)) for pattern in WRITTEN]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"type": "function", "id": "call00000", "function": function}
        for dialect in DIALECTS:
            answer = {"role": "assistant", "content": "", "tool_calls": [call]}
            found.append((name, dialect, get_format(dialect).render(answer, TOOLS)))
    return [
        (name, dialect, lead + text) for name, dialect, text in found for lead in ("", "Let me look.\n\n")
    ]


@pytest.mark.one_in(8, quick=64)
def test_a_call_of_another_dialect_is_noted(format: Format) -> None:
    turn, none = format.bind(tools=TOOLS), format.bind()
    wished = format.bind(tools=TOOLS, response_format={"type": "json_object"})
    for name, dialect, text in written():
        if dialect == format.name:
            continue
        message = turn.parse(text)
        shown = message.content if message.content.strip() else message.reasoning
        if message.tool_calls or name not in shown or not shown.rstrip().endswith(tuple("}])>`|")):
            continue  # it is read, or not as a text
        (found,) = looks_like_a_call(turn, message)
        assert found.code == "looks-like-a-call" and f"{name!r} that {format.name}" in found.expected, text
        assert text[found.position :].startswith(found.found) and found.found.startswith(name), text
        assert observe(turn, message) == [found] and message == turn.parse(text)
        assert looks_like_a_call(none, message) == looks_like_a_call(wished, message) == []


def test_the_message_stays_complete_and_strict_raises_nothing() -> None:
    turn = get_format("qwen3").bind(tools=TOOLS)
    text = '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>'
    message = turn.parse(text, strict=True)
    assert message.complete and message.diagnostics == [] and len(looks_like_a_call(turn, message)) == 1
    thought = turn.parse(f"<think>\n{text}\n</think>\n\n")
    assert [text.index("get_weather") + 8] == [one.position for one in looks_like_a_call(turn, thought)]
    told = turn.parse(f"<think>\n{text}\n</think>\n\nIt is cold.")
    assert looks_like_a_call(turn, told) == []


@pytest.mark.parametrize("name", ["qwen3", "qwen3-coder", "glm-4-5", "llama-3-x"])
def test_text_about_a_tool_is_not_noted(name: str) -> None:
    for known in ("search", "read_file", "get_weather", "run", "bash"):
        turn = get_format(name).bind(tools=[tool(known, {"path": {"type": "string"}})])
        for sentence in (*PROSE, QUOTED):
            message = turn.parse(sentence.format(known, known))
            assert looks_like_a_call(turn, message) == [], message.content


def test_code_that_calls_functions_of_the_tools_names_is_not_noted() -> None:
    format = get_format("qwen3")
    for module in (decoder, encoder, textwrap, inspect):
        source = inspect.getsource(module)
        for at in range(0, len(source), 2000):
            code = source[at : at + 2000]
            names = Counter(re.findall(r"\b([a-z_]{4,})\(", code))
            turn = format.bind(tools=[tool(each, {"path": {"type": "string"}}) for each in names])
            message = turn.parse(f"Here is the file:\n\n```python\n{code}\n```\n")
            assert looks_like_a_call(turn, message) == [], code


def test_one_observer_or_the_other() -> None:
    """Without tools a call of the format itself is noted by its own observer."""
    call = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    turn = chatparsers.get_format("qwen3").bind()
    assert [one.code for one in observe(turn, turn.parse(call))] == ["tools-not-given"]


def test_an_opener_with_attributes_is_content_and_told(format: Format) -> None:
    """No template writes one. A call within, whose own opener is whole, is read all the same."""
    arguments = json.dumps(CALLS["get_weather"])
    call = {"id": "a1b2c3d4e", "function": {"name": "get_weather", "arguments": arguments}}
    text = format.render({"tool_calls": [call]}, TOOLS) if format.features.tools else ""
    opener = re.match(r"\s*<([\w:]+)>", text)
    if opener is None:
        return
    given = f'<{opener[1]} id="1">'
    turn = format.bind(tools=TOOLS)
    message = turn.parse(text.replace(f"<{opener[1]}>", given, 1))
    assert given in message.content
    assert message.tool_calls or looks_like_a_call(turn, message)
