"""Every GBNF keeps to the syntax that llama.cpp has had since the end of 2024, references to tokens apart (2026)."""

from __future__ import annotations

from typing import Any

import pytest
from gbnf_subset import faults
from samples import TOOLS, tool
from test_matrix import EACH_FORMAT, MODES, states
from toy import toy_tokenizer

import chatparsers

RICH = tool(
    "write_all",
    {
        "number": {"type": "number"},
        "bounded": {"type": "integer", "minimum": -5, "maximum": 70},
        "mail": {"type": "string", "format": "email"},
        "moment": {"type": "string", "format": "date-time"},
        "dashes": {"type": "string", "pattern": r"^[a-z\-\^]{2,40}[^-][!--]$"},
        "long": {"type": "string", "maxLength": 5_000},
        "short": {"type": "string", "minLength": 3, "maxLength": 100},
        "many": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 5_000},
        "any": {},
        "others": {"type": "object", "additionalProperties": {"type": "number"}},
        "listed": {"enum": ['a"b', "é", "x-y", "^", "]", "\\", "\0"]},
    },
    ["number"],
)
WIDE = tool("wide", {f"m{number}": {"type": "integer"} for number in range(9)}, ["m1", "m4"])
MANY_ITEMS = tool("many", {"a": {"type": "array", "items": {"type": "boolean"}, "maxItems": 1001}}, ["a"])
ASKED: dict[str, dict[str, Any]] = {
    **MODES,
    "rich": {"tools": [*TOOLS, RICH], "tool_choice": "required"},
    "wide": {"tools": [WIDE], "tool_choice": "required"},
    "many items": {"tools": [MANY_ITEMS], "tool_choice": "required"},
    "rich schema": {"response_format": RICH["function"]["parameters"]},
}


@EACH_FORMAT
def test_every_grammar_is_in_the_subset(name: str) -> None:
    format = chatparsers.get_format(name)
    tokenizer = toy_tokenizer(format, True)
    for mode, asked in ASKED.items():
        for state, more in states(name).items() if mode in ("required", "auto") else [("free", {})]:
            for given in ({}, {"tokenizer": tokenizer}):
                grammar = format.bind(**asked, **more, **given).grammar()
                assert grammar is not None
                assert not faults(str(grammar), ids=bool(given)), (mode, state)


@pytest.mark.parametrize(
    "text",
    [
        r"root ::= [+\-]",
        r"root ::= [a\^]",
        "root ::= [a-b-c]",
        r'root ::= "\/"',
        r'root ::= "\x41"',
        "root ::= [a]{0,2000}",
        'root ::= ("," ("a" | "b")){0,1000}',
        'root ::= ("a"{500} "b"){4}',
        "root ::= <[5]>",
        "root ::= Token(5)",
        "root ::= a_b\na_b ::= [a]",
        'root ::= "a"\n  | "b"',
        "root ::= missing",
        'root ::= "a"\nb ::= "b"',
        'root ::= root "a" | "b"',
        'root ::= a "b"\na ::= "" | root',
        'root ::= ("" | "x")*',
        'root ::= a*\na ::= b?\nb ::= "x"',
        'root ::= ("a"',
        'start ::= "a"',
    ],
)
def test_the_checker_refuses_what_is_outside(text: str) -> None:
    assert faults(text)


def test_the_checker_takes_what_is_inside() -> None:
    text = 'root ::= "" | [+-]? ([\\u002D-Z\\]]{0,1999} | a{3}) "\\"\\n" | ("b" | "")\na ::= [^a-] root\n'
    assert not faults(text)
    assert not faults("root ::= <[5]>", ids=True)
