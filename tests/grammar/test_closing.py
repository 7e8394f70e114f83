"""A string that takes in the comma after it: the orders and the texts stay the same."""

from __future__ import annotations

from itertools import product

import pytest
from engines import FULL, compile_for, engines_of
from samples import tool
from test_matrix import DIALECTS

import chatparsers
from chatparsers.grammar.arrange import Member, arrange
from chatparsers.grammar.dialects.structural_tag import closing
from chatparsers.grammar.ir import Alt, Order, State, Text


def words(states: tuple[State, ...], members: list[str]) -> set[str]:
    """All texts of an order, with a comma as separator."""
    first = len(members) + 1  # after the extra member
    found: list[set[str]] = []
    for state in states:
        texts = set()
        for option in state.options:
            parts = [{members[number]} if number < first else found[number - first] for number in option]
            texts |= set(map("".join, product(*parts)))
        texts = {"," + text for text in texts} if state.begun else texts
        found.append(texts | ({""} if state.may_end else set()))
    return found[-1]


@pytest.mark.parametrize("required", ["", "a", "bc", "abc", "abcdefgh", "ah"])
@pytest.mark.parametrize("names", ["ab", "abc", "abcdefgh"])
def test_the_orders_stay_the_same(names: str, required: str) -> None:
    node, _ = arrange([Member(name, Text(name), name in required) for name in names], Text(","))
    for order in node.options if isinstance(node, Alt) else (node,):
        assert isinstance(order, Order)
        members = list(names)
        before = words(order.states, members)
        for closed in ((0,), (1,), (0, len(names) - 1), tuple(range(len(names)))):
            made = closing(order.states, len(members), closed)
            assert words(made, members + [members[at] + "," for at in closed]) == before


TOOL = tool(
    "f",
    {
        "a": {"type": "string"},
        "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "c": {"type": "integer"},
        "d": {"type": "object", "properties": {"e": {"type": "string"}}, "required": ["e"]},
    },
    ["a"],
)
TEXTS = {
    '{"a": "x"}': True,
    '{"a":"x","c":1}': True,
    '{"a": "x", "b": "y", "c": 1}': True,
    '{"b": null, "a": "x"}': True,
    '{"b": "y",\n  "a": "x"\n}': True,
    '{"c": 1, "a": "x", "d": {"e": "z"}}': True,
    '{"d": {"e": "z"}, "a": "x,\\""}': True,
    '{"a": "x",}': False,
    '{"a": "x", }': False,
    '{"a": "x",,"c": 1}': False,
    '{"a": "x" "c": 1}': False,
    '{"a": "x",  "c": 1}': False,
    '{"a": "x", "a": "y"}': False,
    '{"b": "y"}': False,
    '{"b": "y",}': False,
    '{"b": null,}': False,
    '{"a": "x", "d": {"e": "z",}}': False,
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_texts_stay_the_same(dialect: str) -> None:
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=[TOOL], tool_choice="required")
    judge = compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)
    for text, valid in TEXTS.items():
        call = f'<tool_call>\n{{"name": "f", "arguments": {text}}}\n</tool_call>'
        assert (judge.status(call) == FULL) == valid, text
