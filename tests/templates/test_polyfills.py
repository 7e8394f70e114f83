"""Each polyfill by itself: messages in, messages out."""

from __future__ import annotations

from typing import Any

import pytest

import chatparsers
from chatparsers.registry import get_format
from chatparsers.templates.messages import BEFORE_CALLS, MARK, with_texts
from chatparsers.templates.rewrite.polyfills import POLYFILLS, apply

QWEN = get_format("qwen3")
USER, ANSWER = {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}
SYSTEM = {"role": "system", "content": "S"}
CALLS = [
    {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
    {"id": "b", "type": "function", "function": {"name": "g", "arguments": {}}},
]
CALLED = {"role": "assistant", "content": "T", "tool_calls": CALLS}
F, G = ({"role": "tool", "tool_call_id": id, "content": text} for id, text in (("a", "F"), ("b", "G")))
CALLED_AGAIN = {"role": "assistant", "content": "", "tool_calls": [{**CALLS[0], "id": "d"}]}
AGAIN, UNNAMED = {**F, "tool_call_id": "d"}, {"role": "tool", "content": "R"}
BESIDE = {**USER, "beside_result": True}
PICTURE = {"type": "image"}
TEXT_PARTS = [{"type": "text", "text": "P"}, "Q"]


def no_result(id: str, name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "name": name, "content": "No result was given for this call."}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


CASES: dict[str, list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]] = {
    "flat": [
        (
            [CALLED],
            [
                {
                    **CALLED,
                    "tool_calls": [
                        {**CALLS[0], "name": "f", "arguments": '{"x": 1}'},
                        {**CALLS[1], "name": "g", "arguments": {}},
                    ],
                }
            ],
        )
    ],
    "developer_role": [
        ([{"role": "developer", "content": "D"}, USER], [{"role": "system", "content": "D"}, USER])
    ],
    "several_systems": [
        (
            [SYSTEM, {**SYSTEM, "content": "S2"}, USER, ANSWER, SYSTEM],
            [{"role": "system", "content": "S\n\nS2"}, USER, ANSWER, SYSTEM],
        ),
        ([SYSTEM, USER], [SYSTEM, USER]),
    ],
    "late_system": [
        (
            [SYSTEM, {**SYSTEM, "content": "S2"}, USER, ANSWER, SYSTEM],
            [SYSTEM, {**SYSTEM, "content": "S2"}, USER, ANSWER, {"role": "user", "content": "S"}],
        ),
    ],
    "result_order": [
        ([CALLED, G, F, ANSWER], [CALLED, F, G, ANSWER]),
        ([CALLED, G, USER, F], [CALLED, F, G, USER]),
        ([CALLED, F, ANSWER, G], [CALLED, F, G, ANSWER]),
        ([CALLED, {**G, "tool_call_id": "c"}, F], [CALLED, F, G]),
        ([CALLED, G, G, F], [CALLED, F, G, G]),
        ([CALLED, F, G, ANSWER, F], [CALLED, F, G, ANSWER, F]),
        ([CALLED, CALLED_AGAIN, F, G, {**F, "tool_call_id": "d"}], [CALLED, F, G, CALLED_AGAIN, AGAIN]),
        ([CALLED, UNNAMED, UNNAMED], [CALLED, UNNAMED, UNNAMED]),
        ([F, USER, CALLED], [F, USER, CALLED]),
    ],
    "missing_result": [
        ([CALLED, G, USER], [CALLED, no_result("a", "f"), G, USER]),
        ([CALLED, USER], [CALLED, no_result("a", "f"), no_result("b", "g"), USER]),
        ([CALLED, UNNAMED], [CALLED, UNNAMED, no_result("b", "g")]),
        ([USER, CALLED], [USER, CALLED]),
    ],
    "round": [
        ([CALLED, F, SYSTEM, BESIDE, CALLED], [CALLED, {**F, "content": "F\n\nS\n\nU"}, CALLED]),
        (
            [CALLED, F, G, {**BESIDE, "content": TEXT_PARTS}, USER],
            [CALLED, F, {**G, "content": "G\n\nPQ"}, USER],
        ),
        ([F, ANSWER, BESIDE], [F, ANSWER, BESIDE]),
        ([F, USER], [F, USER]),
        ([F, {**BESIDE, "content": [PICTURE]}, BESIDE], [F, {**BESIDE, "content": [PICTURE]}, BESIDE]),
    ],
    "question_in_result": [([CALLED, F, USER, CALLED], [CALLED, {**F, "content": "F\n\nU"}, CALLED])],
    "result_parts": [
        (
            [CALLED, {**F, "content": ["P", PICTURE, PICTURE]}, {**G, "content": [PICTURE]}, ANSWER],
            [
                CALLED,
                {**F, "content": "P[image 1: it follows the results][image 2: it follows the results]"},
                {**G, "content": "[image 3: it follows the results]"},
                {
                    "role": "user",
                    "content": [part for n in (1, 2, 3) for part in (text_part(f"[image {n}]"), PICTURE)],
                },
                ANSWER,
            ],
        ),
        ([F, USER], [F, USER]),
    ],
    "system_role": [
        ([SYSTEM, USER], [{"role": "user", "content": "S\n\nU"}]),
        ([SYSTEM, ANSWER], [{"role": "user", "content": "S"}, ANSWER]),
        ([USER, SYSTEM], [USER, {"role": "user", "content": "S"}]),
        ([SYSTEM, {**SYSTEM, "content": "S2"}, USER], [{"role": "user", "content": "S\n\nS2\n\nU"}]),
        (
            [SYSTEM, {"role": "user", "content": [PICTURE]}],
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "S"}, {"type": "text", "text": "\n\n"}, PICTURE],
                }
            ],
        ),
    ],
    "tools": [([USER], [USER])],  # no tools were given
    "text_before_calls": [
        (
            [CALLED, F],
            [{**CALLED, "content": "", BEFORE_CALLS: ("T\n", '<tool_call>\n{"name": "')}, F],
        ),
        ([{**CALLED, "content": [PICTURE]}], [{**CALLED, "content": [PICTURE]}]),
    ],
    "text_beside_calls": [
        ([CALLED, F], [{"role": "assistant", "content": "T"}, {**CALLED, "content": ""}, F])
    ],
    "parallel_calls": [
        (
            [CALLED, G, F, ANSWER],
            [
                {**CALLED, "tool_calls": CALLS[:1]},
                F,
                {**CALLED, "content": "", "tool_calls": CALLS[1:]},
                G,
                ANSWER,
            ],
        )
    ],
    "tool_role": [
        (
            [CALLED, G, F],
            [
                CALLED,
                {"role": "user", "content": "Result of g (call 2 of 2):\nG\n\nResult of f (call 1 of 2):\nF"},
            ],
        ),
        ([F], [{"role": "user", "content": "Result of the call:\nF"}]),
        ([{**F, "content": TEXT_PARTS}], [{"role": "user", "content": "Result of the call:\nPQ"}]),
    ],
    "tool_calls": [
        (
            [CALLED],
            [
                {
                    "role": "assistant",
                    "content": 'T\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>\n'
                    '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>',
                }
            ],
        )
    ],
    "alternation": [
        ([USER, {"role": "user", "content": TEXT_PARTS}], [{**USER, "content": "U\n\nPQ"}]),
        ([USER, USER, ANSWER, ANSWER], [{**USER, "content": "U\n\nU"}, {**ANSWER, "content": "A\n\nA"}]),
        ([ANSWER, CALLED], [{**CALLED, "content": "A\n\nT"}]),
        ([CALLED, ANSWER], [CALLED, ANSWER]),
    ],
}


@pytest.mark.parametrize("name", POLYFILLS)
def test_what_it_writes(name: str) -> None:
    for given, wanted in CASES[name]:
        before = repr(given)
        assert apply([name], given, [], QWEN) == wanted
        assert repr(given) == before, "what the caller holds was changed"


def test_the_tools_are_described_once_and_whole() -> None:
    tools = [
        {"type": "function", "function": {"name": name, "description": f"Does {name}."}}
        for name in ("f", "g")
    ]
    ((system, user),) = [apply(["tools"], [SYSTEM, USER], tools, QWEN)]
    assert user == USER and system["role"] == "system"
    assert (
        system["content"].startswith("S\n\n")
        and '{"name": "f", "description": "Does f."}\n{"name": "g"' in system["content"]
    )
    assert system["content"].endswith(
        '<tool_call>\n{"name": "tool_name", "arguments": {"argument_name": "value"}}\n</tool_call>'
    )


def test_a_message_without_calls_asks_for_no_way_to_write_them() -> None:
    chat = chatparsers.load(template="chatml")
    for other in ({"reasoning_content": "Hm."}, {"tool_calls": None}, {"tool_calls": []}, {"name": "bob"}):
        assert chat.prepare([USER, {**ANSWER, **other}, USER]).polyfills == (), other


@pytest.mark.parametrize(
    "head, written",
    [
        ("<|calls|><|call|>", "<|calls|><|call|>"),
        ("<|calls|><|call|>", "<|call|>"),  # some templates write the first in the first turn alone
        ("<|calls|><|call|>0:", "<|calls|><|call|>12:"),
    ],
)
def test_text_comes_before_what_the_template_writes_of_a_calls_head(head: str, written: str) -> None:
    shown = f"<|assistant|>{written}{MARK}0xf()"
    assert with_texts(shown, [{BEFORE_CALLS: ("T", head)}], "own") == f"<|assistant|>T{written}f()"
