"""Names of tools and arguments may hold anything: what is written for a name is read back, or the name is refused.

For every format: unusual names, and names made of the format's own markers. The grammar generates the call, the writer
writes it, and the parser reads it, by text and by ids; or `SchemaError`, `Grammar.weakened` and `RequestError` say the
name.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from samples import tool
from toy import toy_tokenizer

import chatparsers
from chatparsers import Format, RequestError, SchemaError, get_format, list_formats
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import EachTool
from chatparsers.core.tree import walk
from chatparsers.detection.analysis.accepted import accepts
from chatparsers.schema.tools import Tool
from chatparsers.writer.readable import unreadable

FORMATS = [info.name for info in list_formats()]
UNUSUAL = (
    "page[size]", "filter[status]", "a b", " a", "a ", "a>b", "a<b", 'a"b', "a'b", "a=b", "a\nb", "a\tb", "a:b", "a,b",
    "a{b", "a}b", "a(b", "a)b", "a.b", "a/b", "a|b", "a\\b", "a&b", "a;b", "Größe", "名前", "$ref", "@type", "#1", "-a",
    "functions.f", "f:0", "f.f", "a\u2028b", "x" * 1500, "</a>", "<a>", "true", "null", "1", "{", "}",
)  # fmt: skip


def _name(format: Format, draw: random.Random) -> str:
    if draw.random() < 0.6:
        return draw.choice(UNUSUAL)
    marker = draw.choice(["<x>", *format.preserved_tokens, *filter(None, format.markers), *format.stops])
    return draw.choice(("", "a")) + marker + draw.choice(("", "b"))


def _read(turn: chatparsers.Turn, output: Any) -> list[tuple[str, Any]]:
    message = turn.parse(output)
    return [
        (call.name, json.loads(call.arguments) if call.complete else call.arguments)
        for call in message.tool_calls
    ]


def _refused(turn: chatparsers.Turn, names: list[str]) -> bool:
    """Whether the grammar refuses one of the names, by name."""
    try:
        grammar = turn.grammar()
    except SchemaError as error:
        assert any(repr(name) in str(error) for name in names), error
        return True
    assert grammar is not None
    said = [f"{note.path}: {note.why}" for note in grammar.weakened]
    return any(repr(name) in note for note in said for name in names)


@pytest.mark.parametrize("name", FORMATS)
def test_a_name_is_read_back_or_refused(name: str, amount: Callable[[int, int, int], int]) -> None:
    format = get_format(name)
    if not any(isinstance(node, EachTool) for node in walk(format.tree(Options(tools=True)))):
        pytest.skip("its calls name no declared tool")
    tokenizer = toy_tokenizer(format, True)
    for round in range(amount(2, 6, 200)):
        draw = random.Random(f"{name} {round}")
        called = _name(format, draw) if draw.random() < 0.5 else "f"
        unusual = _name(format, draw)
        arguments = {unusual: draw.choice(("x", "> x", "]=x")), "n": 3}
        schema: dict[str, Any] = {unusual: {"type": "string"}, "n": {"type": "integer"}}
        if draw.random() < 0.3:
            schema.setdefault(unusual[: draw.randrange(1, len(unusual) + 1)], {"type": "string"})
        tools = [tool(called, schema, [unusual, "n"]), tool("g", {}, [])]
        call = {
            "id": "a12345678",
            "function": {"name": called, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        turn = format.bind(tools=tools, tool_choice="required", tokenizer=tokenizer)
        refused = _refused(turn, [called, *schema])
        try:
            text = format.render(message, tools=tools)
        except RequestError as error:
            assert repr(called) in str(error) or repr(unusual) in str(error), error
            assert refused, f"the writer refuses what the grammar generates: {error}"
            continue
        ids = tokenizer.encode(text).ids
        meant = [(called, arguments)]
        assert _read(turn, text) == meant, text
        assert _read(turn, ids) == meant, text
        assert refused or accepts(turn, text), text


def test_each_reason_why_a_name_is_refused() -> None:
    """It holds what ends the turn, or a token where it is written twice; it is too long; a shorter one misleads."""
    refused = ("a[e~[", "a</mm:think>", "x" * 1500, "a>b")
    known = Tool("f", {"type": "object", "properties": dict.fromkeys(("a", "a b", *refused), True)})
    assert unreadable(get_format("minimax-m3"), known, ("f",)) == refused


def test_ordinary_names_cost_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise AssertionError("an ordinary name was tried")

    monkeypatch.setattr("chatparsers.writer.readable._reads", fail)
    turn = get_format("qwen3-coder").bind(tools=[tool("get_weather", {"city_name": {"type": "string"}}, [])])
    assert turn.grammar()
