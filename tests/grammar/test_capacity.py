"""Schemas that are larger than an engine bears: the grammar is weaker, says so, and lives to the end of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engines import FULL, compile_for, engines_of, llguidance
from samples import tool

import chatparsers
import chatparsers.grammar
from chatparsers.errors import SchemaError
from chatparsers.grammar.cost import MOST_ROWS, cost_of

KINDS: tuple[Any, ...] = ({"type": "string"}, {"type": "integer"}, {"type": "boolean"})
VALUES: tuple[Any, ...] = ("a b", 12, True)


def large(count: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"key_{number}": KINDS[number % 3] for number in range(count)},
        **more,
    }


def value(count: int) -> dict[str, Any]:
    return {f"key_{number}": VALUES[number % 3] for number in range(count)}


def grammar_of(schema: dict[str, Any], dialect: str, name: str = "qwen3") -> chatparsers.Grammar:
    tools = [tool("f", schema["properties"], schema.get("required", []))]
    tools[0]["function"]["parameters"] = schema
    turn = chatparsers.get_format(name).bind(tools=tools, tool_choice="required", thinking=False)
    grammar = turn.grammar(dialect)
    assert grammar is not None
    return grammar


def answer(arguments: dict[str, Any], name: str) -> str:
    call = {"type": "function", "function": {"name": "f", "arguments": json.dumps(arguments)}}
    said = {"role": "assistant", "content": "", "tool_calls": [call]}
    return chatparsers.get_format(name).render(said).strip()


@pytest.mark.parametrize("dialect", ["lark", "structural_tag"])
@pytest.mark.parametrize("name", ["qwen3", "qwen3-coder"])
def test_an_object_of_many_members(name: str, dialect: str) -> None:
    """Every member is generated in its schema, and ``weakened`` names what is not enforced."""
    count = 1_200
    grammar = grammar_of(large(count, additionalProperties=False, required=["key_0"]), dialect, name)
    assert {weak.keyword for weak in grammar.weakened} == {"properties", "required"}
    judge = compile_for(engines_of(dialect)[0], str(grammar), dialect)
    assert judge.status(answer(value(count), name)) == FULL
    assert judge.status(answer({"key_1100": 5, "key_3": "x"}, name)).kind == "rejected"
    assert judge.status(answer({"key_5000": "x"}, name)).kind == "rejected"


def test_the_cost_is_what_the_engine_needs() -> None:
    """The items of the longest row, as llguidance 1.9 counts them: four for each member in two orders, two in any
    order. Where none can be
    too long, it is not looked for."""
    for count, each in ((64, 2), (100, 4), (480, 4)):
        grammar = grammar_of(large(count, additionalProperties=False), "lark")
        cost = grammar.cost
        assert cost_of(grammar.text, cost.rows - 1).rows == cost.rows
        assert cost.rows <= cost_of(grammar.text, 10_000).rows <= 10_000
        assert abs(cost.rows - each * count) < 8, cost
        assert cost.symbols > 1.5 * each * count and cost.terminals > count and cost.repeats == 64
    options = " | ".join(f'"a" "{number}"' for number in range(900))
    assert cost_of(f'start: "[" one "]"\none: {options}').rows == 900


@pytest.mark.parametrize("name", ["hermes-2-pro", "llama-3-x", "pythonic"])
def test_the_cost_of_free_text_with_calls(name: str) -> None:
    grammar = (
        chatparsers.get_format(name)
        .bind(tools=[tool("f", {"a": {"type": "string"}}, [])])
        .grammar("structural_tag")
    )
    assert grammar is not None and grammar.cost.symbols > grammar.cost.terminals > 10


class Spaces:
    """A vocabulary of bytes and runs of blanks, with and without a character after them, as models have them."""

    eos_token_id = bos_token_id = 256
    special_token_ids = (256,)
    tokens = (
        *(bytes([value]) for value in range(256)),
        b"<eos>",
        *(
            begin + b" " * count + end
            for begin in (b"", b"\n")
            for count in range(1, 65)
            for end in (b"", b"-", b"a")
            if begin or end or count > 1
        ),
        b"{\n",
    )

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


def masks(grammar: chatparsers.Grammar, said: str, **limits: int) -> str:
    """What llguidance says at the masks of an answer; "" if it makes them all and the answer is whole."""
    module = llguidance()
    tokenizer = module.LLTokenizer(module.TokenizerWrapper(Spaces()), n_vocab=len(Spaces.tokens), slices=[])
    text = module.LLMatcher.grammar_from_lark(str(grammar))
    matcher = module.LLMatcher(tokenizer, text, log_level=0, limits=module.LLParserLimits(**limits))
    ids = said.replace("{\n", "\0").encode()
    for id in ids:
        matcher.compute_bitmask()
        if not matcher.consume_token(id or len(Spaces.tokens) - 1):
            return str(matcher.get_error() or f"refused: {bytes([id])!r}").partition("\n")[0]
    return "" if matcher.is_accepting() else "not whole"


@pytest.mark.parametrize("blanks", ["", " ", "\n", "\n" + 64 * " "])
def test_white_space_before_names_costs_nothing_for_each_of_them(blanks: str) -> None:
    """llguidance began all names anew after each run of blanks, and gave up among 200."""
    grammar = grammar_of(large(480, additionalProperties=False), "lark")
    said = answer({"key_0": "x", "key_477": "y"}, "qwen3").replace(', "key', ',"key')
    said = said.replace('"key', f'{blanks}"key')
    assert not grammar.weakened
    assert masks(grammar, said, step_max_items=20_000, step_lexer_fuel=100_000) == ""


def test_many_large_alternatives() -> None:
    """Each alternative would do alone; together they begin a row that is too long."""
    others = [
        {
            "type": "object",
            "properties": {f"{key}_{number}": kind for key, kind in large(300)["properties"].items()},
        }
        for number in range(4)
    ]
    schema = {"type": "object", "properties": {"one": {"anyOf": others}}, "required": ["one"]}
    grammar = grammar_of(schema, "lark")
    assert grammar.cost.rows <= MOST_ROWS and "properties" in {weak.keyword for weak in grammar.weakened}
    judge = compile_for("llguidance", str(grammar), "lark")
    said = {"one": {f"key_{number}_2": VALUES[number % 3] for number in range(300)}}
    assert judge.status(answer(said, "qwen3")) == FULL
    plain = grammar_of(schema, "structural_tag")
    assert not plain.weakened


@pytest.mark.slow
def test_more_alternatives_than_one_row_has() -> None:
    others = [
        {"type": "object", "properties": {f"key_{one}_{two}": {"const": two} for two in range(3)}}
        for one in range(500)
    ]
    schema = {"type": "object", "properties": {"one": {"anyOf": others}}, "required": ["one"]}
    grammar = grammar_of(schema, "lark")
    assert [(weak.keyword, "the longest row" in weak.why) for weak in grammar.weakened] == [("*", True)]
    judge = compile_for("llguidance", str(grammar), "lark")
    assert judge.status(answer({"one": {"key_499_2": 2}}, "qwen3")) == FULL


def test_more_values_than_a_lexer_has_work_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """llguidance gives up before the first token (of some 100,000 values). Those of the other member are listed."""
    monkeypatch.setattr(chatparsers.grammar, "MOST_FUEL", 40_000)
    members = {"one": {"enum": [*range(4_000)]}, "other": {"enum": ["a", "b"]}}
    grammar = grammar_of({"type": "object", "properties": members, "required": ["one", "other"]}, "lark")
    told = [(weak.path.rpartition(".")[2], weak.keyword, weak.why) for weak in grammar.weakened]
    assert [(name, keyword) for name, keyword, _ in told] == [("one", "*")], told
    assert "work that llguidance gives its lexer" in told[0][2] and grammar.cost.fuel < 10_000
    judge = compile_for("llguidance", str(grammar), "lark")
    assert judge.status(answer({"one": 3_999, "other": "b"}, "qwen3")) == FULL
    assert judge.status(answer({"one": 1, "other": "c"}, "qwen3")).kind == "rejected"


def test_many_patterns_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a name may not be is one expression, of spellings that are generated: of each pattern's own, llguidance's
    lexer made more than it bears (cirrus.json). What is left of the work is in the cost."""
    words = ("artifacts", "cache", "script", "builder")
    patterns: dict[str, Any] = {f"^(.*){word}$": {"const": number} for number, word in enumerate(words)}
    ends = {"type": "object", "patternProperties": patterns, "additionalProperties": {"type": "null"}}
    grammar = grammar_of({"type": "object", "properties": {"one": ends}, "required": ["one"]}, "lark")
    assert not grammar.weakened
    said = {"one": {"my_cache": 1, "script": 2, "\u0001artifacts": 0, "é": None}}
    text = answer(said, "qwen3")
    assert masks(grammar, text, initial_lexer_fuel=7_000) == ""
    for wrong in ({"one": {"my_cache": 2}}, {"one": {"caché": 1}}, {"one": {"script": None}}):
        assert masks(grammar, answer(wrong, "qwen3")) != "", wrong
    members = {
        f"one_{one}": {
            "type": "object",
            "patternProperties": {f"{word}{one}": {"const": one} for word in words},
        }
        for one in range(3)
    }
    whole = {"type": "object", "properties": members, "required": list(members)}
    assert grammar_of(whole, "lark").cost.fuel > 200_000
    monkeypatch.setattr(chatparsers.grammar, "MOST_FUEL", 150_000)
    weaker = grammar_of({**whole, "title": "written anew"}, "lark")
    assert {weak.keyword for weak in weaker.weakened} == {"*"} and weaker.cost.fuel < 150_000


def test_more_symbols_than_the_engine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """llguidance gives up before the first token (of some 500 objects of 40 members each)."""
    monkeypatch.setattr(chatparsers.grammar, "MOST_SYMBOLS", 3_000)
    members = {f"one_{number}": large(50, additionalProperties=False) for number in range(20)}
    schema = {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }
    for number, member in enumerate(members.values()):
        member["properties"] = {f"{key}_{number}": kind for key, kind in member["properties"].items()}
    grammar = grammar_of(schema, "lark")
    assert {(weak.keyword, "the symbols that llguidance takes" in weak.why) for weak in grammar.weakened} == {
        ("*", True)
    }
    assert grammar.cost.symbols < 3_000
    said = {name: {f"key_0_{number}": "x"} for number, name in enumerate(members)}
    assert compile_for("llguidance", str(grammar), "lark").status(answer(said, "qwen3")) == FULL


@pytest.mark.parametrize("blanks", ["", " ", "\n  "])
def test_many_tools_after_white_space(blanks: str) -> None:
    """llguidance began the names of all tools anew after each run of blanks, and gave up among 900."""
    tools = [tool(f"tool_{number}", {}, []) for number in range(1_900)]
    turn = chatparsers.get_format("qwen3").bind(tools=tools, tool_choice="required", thinking=False)
    said = f'<tool_call>\n{{"name":{blanks}"tool_1700", "arguments": {{}}}}\n</tool_call>'
    found = masks(turn.grammar("lark"), said)
    assert ("'\\n' fails parse" in found) if "\n" in blanks else found == ""


@pytest.mark.slow
def test_what_no_writing_bears_is_an_error_before_the_engine() -> None:
    tools = [tool(f"tool_{number}", {}, []) for number in range(2_100)]
    turn = chatparsers.get_format("qwen3").bind(tools=tools, tool_choice="required")
    with pytest.raises(SchemaError, match="items in one row, and llguidance takes 2,000"):
        turn.grammar("lark")
    assert turn.grammar("structural_tag") is not None
