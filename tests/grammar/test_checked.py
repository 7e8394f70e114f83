"""Arguments judged while they come (``check``): nothing is told of valid ones, and invalid ones are told at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_agreement import DEFS, VALUES, _document, _valid, schemas

import chatparsers

pytestmark = pytest.mark.filterwarnings("ignore:tools. expected JSON's names of types")

ROW = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 5, "pattern": "^[A-Z]"},
        "days": {"type": "integer", "maximum": 5},
        "unit": {"enum": ["celsius", "kelvin", 3]},
        "rows": {"type": "array", "items": ROW, "maxItems": 2},
        "when": {"type": "string", "format": "date"},
        "either": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {**ROW, "maxProperties": 1}]},
        "odd": {"type": "array", "uniqueItems": True},
    },
    "required": ["city"],
    "additionalProperties": False,
}
TOLD = [  # the arguments up to the character at which nothing valid is left, and the path; a comma waits for more
    ('{"city": "o', "$.city"),
    ('{"city": "Trondh', "$.city"),
    ('{"city": 3', "$.city"),
    ('{"citi"', "$.citi"),
    ('{"days": 1}', "$"),
    ('{"days": 7, "', "$.days"),
    ('{"unit": "kels', "$.unit"),
    ('{"unit": 4, "', "$.unit"),
    ('{"rows": [{"a": true}, {}', "$.rows[1]"),
    ('{"rows": [{"a": 1', "$.rows[0].a"),
    ('{"rows": [{"a": true}, {"a": true}, {', "$.rows[2]"),
    ('{"when": "2026-2', "$.when"),
    ('{"either": [1, "', "$.either[1]"),
    ('{"either": {"a": true, "b"', "$.either.b"),
    ('{"either": true}', "$.either"),
]
FINE = [
    '{"city": "Oslo", "days": -3, "unit": 3, "rows": [], "when": "2026-11-26"}',
    '{"city": "\\u004fs", "either": [], "odd": [1, 1]}',
    '{"city": "A", "either": {"a": false}}',
]


def streamed(turn: chatparsers.Turn, text: str, size: int) -> tuple[int, list[chatparsers.Diagnostic]]:
    """After how many characters a diagnostic came, -1 if none did; and all of them."""
    stream, at = turn.stream(check=True), -1
    for place in range(0, len(text), size):
        stream.feed(text[place : place + size])
        if at < 0 and stream.message.diagnostics:
            at = place + size
    stream.finish()
    return at, [found for found in stream.message.diagnostics if found.code == "schema"]


HEAD = '<tool_call>\n{"name": "f", "arguments": '
TAIL = "}\n</tool_call>"


@pytest.mark.parametrize(("text", "path"), TOLD)
def test_it_is_told_where_nothing_valid_is_left(text: str, path: str) -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=[{"name": "f", "parameters": PARAMETERS}])
    for before in (HEAD, HEAD + FINE[0] + TAIL + "\n" + HEAD):
        at, found = streamed(turn, before + text, 1)
        assert (at, len(found)) == (len(before + text), 1)
        assert found[0].expected.endswith(f"at {path}") and found[0].call == before.count("arguments") - 1
        assert streamed(turn, before + text, 7)[1] == found
    with pytest.raises(chatparsers.OutputError, match="schema"):
        turn.stream(strict=True, check=True).feed(HEAD + text)


def asked(schema: Any, name: str = "qwen3", **more: Any) -> chatparsers.Turn:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    return chatparsers.get_format(name).bind(response_format=form, **more)


ANSWERS = [  # of an answer, what may also go wrong
    ("Su", "$"),
    ("[", "$"),
    ('{"city": "Oslo"} a', "$"),
    ('{"city": "Oslo"}}', "$"),
    ('{"city": [', "$.city"),
]


@pytest.mark.parametrize(("text", "path"), [*TOLD, *ANSWERS])
@pytest.mark.parametrize("thought", ["", "<think>\nHm.\n</think>\n\n"])
def test_it_is_told_where_an_answer_cannot_fit(text: str, path: str, thought: str) -> None:
    turn = asked(PARAMETERS)
    found = streamed(turn, thought + text, 1)
    told = text.removesuffix(' "') if not path.endswith("]") else text  # no comma waits
    first = len(thought) + (1 if text == "Su" else len(told))
    assert (found[0], len(found[1])) == (first, 1)
    assert found[1][0].expected.endswith(f"at {path}") and found[1][0].call is None
    for cut in range(1, len(text)):  # the beginning stands in the prompt, or a copy goes on
        assert len(streamed(turn.rest(thought + text[:cut]), text[cut:], 1)[1]) == 1
        stream = turn.stream(check=True)
        stream.feed(thought + text[:cut])
        fork = stream.fork()
        fork.feed(text[cut:])
        assert fork.message.diagnostics[0].expected == found[1][0].expected
        assert not stream.message.diagnostics or cut >= first - len(thought)
    with pytest.raises(chatparsers.OutputError, match="schema"):
        turn.stream(strict=True, check=True).feed(thought + text)


@pytest.mark.parametrize(
    ("schema", "answer", "others"),
    [
        (PARAMETERS, FINE[0], [FINE[0] + "]", "", FINE[0].replace(', "', ' "', 1), FINE[0][:-1]]),
        (
            {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}},
            "[1, 2]",
            ["[1, 2"],
        ),
        ({"type": "integer", "minimum": 10}, " 12\n", ["1", "true", "12 3"]),
        ({"enum": ["yes", "no"]}, '"no"', ['"n"', "no"]),
    ],
)
def test_the_end_of_an_answer_is_judged(schema: Any, answer: str, others: list[str]) -> None:
    turn = asked(schema)
    assert streamed(turn, answer, 1) == (-1, [])
    for other in others:
        assert len(streamed(turn, other, 1)[1]) == 1, other
    stream = turn.stream(check=True)
    stream.feed(answer[:1])
    stream.finish("length")  # more may come
    assert [one.code for one in stream.message.diagnostics] == ["truncated"]


@pytest.mark.parametrize("name", [info.name for info in chatparsers.list_formats()])
def test_an_answer_of_every_format_is_judged(name: str) -> None:
    format = chatparsers.get_format(name)
    thought = {"reasoning_content": "Hm."} if format.features.reasoning else {}
    for more in ({}, {"tools": [{"name": "f", "parameters": PARAMETERS}]}):
        for answer, told in ((FINE[0], 0), (FINE[0].replace("-3", "9"), 1)):
            for before in ({}, thought):
                try:
                    text = format.render({"role": "assistant", "content": answer, **before})
                except chatparsers.RequestError:  # it has no place for both
                    continue
                for size in (1, 5, 1000):
                    found = streamed(asked(PARAMETERS, name, **more), text, size)[1]
                    assert len(found) == told, (text, size)


def test_a_call_in_place_of_an_answer_is_judged_as_a_call() -> None:
    turn = asked({"type": "object"}, tools=[{"name": "f", "parameters": PARAMETERS}])
    assert streamed(turn, HEAD + FINE[0] + TAIL, 1) == (-1, [])
    assert streamed(turn, HEAD + '{"city": 3}' + TAIL, 1)[1][0].call == 0


def test_nothing_is_told_of_what_fits() -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=[{"name": "f", "parameters": PARAMETERS}])
    for text in FINE:
        assert streamed(turn, HEAD + text + TAIL, 1) == (-1, [])
    assert turn.parse(HEAD + '{"city": 3}' + TAIL).diagnostics == []


def test_what_a_judge_from_outside_refuses_is_told(amount: Callable[[int, int, int], int]) -> None:
    seen = {True: 0, False: 0}

    @settings(
        max_examples=amount(40, 200, 2_000),
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schemas, st.lists(schemas, min_size=len(DEFS), max_size=len(DEFS)))
    def check(schema: Any, parts: list[Any]) -> None:
        parameters = _document(schema, parts)
        turn = chatparsers.get_format("qwen3").bind(
            tools=[{"name": "f", "parameters": parameters}], tool_choice="required"
        )
        try:
            grammar = turn.grammar("lark")
        except chatparsers.SchemaError:
            return
        assert grammar is not None
        for value in VALUES:
            told = bool(streamed(turn, HEAD + json.dumps({"v": value}) + TAIL, 3)[1])
            valid = _valid({"v": value}, parameters)
            seen[valid] += 1
            assert not (valid and told), value
            assert valid or told or grammar.weakened, value

    check()
    assert min(seen.values()) > 100
