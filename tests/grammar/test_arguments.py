"""Arguments that are written one by one, of every shape of schema. The grammar lets valid ones through, and they are
read back. It refuses all others."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

import pytest
from engines import FULL, compile_for
from test_matrix import TOOL_FORMATS
from test_sampler import end_of, mask_of
from toy import toy_tokenizer

import chatparsers

INTEGER, STRING = {"type": "integer"}, {"type": "string"}
MAP_OF_TWO = {"type": "object", "additionalProperties": INTEGER, "minProperties": 2}
A, B = {"properties": {"a": INTEGER}, "required": ["a"]}, {"properties": {"b": STRING}, "required": ["b"]}

SHAPES: dict[str, tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "allOf": (
        {"allOf": [A, {"properties": {"b": STRING}}]},
        [{"a": 1}, {"a": 1, "b": "5"}],
        [{}, {"b": "x"}],
    ),
    "anyOf": ({"type": "object", "anyOf": [A, B]}, [{"a": 1}, {"b": "x"}], [{}]),
    "$ref": ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", **A}}}, [{"a": 1}], [{}]),
    "additionalProperties": (
        {"type": "object", "additionalProperties": INTEGER},
        [{}, {"q": 1}, {"q": 1, "r": 2}],
        [{"q": "x"}],
    ),
    "listed and others": (
        {"type": "object", "properties": {"city": STRING}, "additionalProperties": INTEGER},
        [{"city": "5"}, {"q": 1, "city": "x"}, {"citz": 2}, {"cit": 2}, {"city2": 2}],
        [{"cit": "x"}],
    ),
    "patternProperties": (
        {"type": "object", "patternProperties": {"^x_": INTEGER}},
        [{"x_1": 1}],
        [{"y": 1}, {"x_1": "u"}],
    ),
    "any object": ({"type": "object"}, [{}, {"q": 1}, {"q": "abc"}, {"q": [1]}], []),
    "anything": ({}, [{}, {"q": 1}], []),
    "minProperties": (
        {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "minProperties": 1},
        [{"a": 1}, {"b": 1}],
        [{}],
    ),
    "dependentRequired": (
        {
            "type": "object",
            "properties": {"a": INTEGER, "b": INTEGER},
            "dependentRequired": {"a": ["b"]},
        },
        [{"a": 1, "b": 2}, {"b": 1}],
        [{"a": 1}],
    ),
    "if": (
        {"type": "object", "properties": {"a": INTEGER}, "if": {"required": ["a"]}, "then": B},
        [{"a": 1, "b": "x"}],
        [],
    ),
    "one name, two types": (
        {
            "oneOf": [
                {"properties": {"k": {"const": "i"}, "v": INTEGER}, "required": ["k", "v"]},
                {"properties": {"k": {"const": "s"}, "v": STRING}, "required": ["k", "v"]},
            ]
        },
        [{"k": "i", "v": 3}, {"k": "s", "v": "abc"}],
        [{"k": "i", "v": "abc"}],
    ),
}


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


WIRES = {
    "qwen3-coder": lambda arguments: (
        "<tool_call>\n<function=f>\n"
        + "".join(f"<parameter={k}>\n{_raw(v)}\n</parameter>\n" for k, v in arguments.items())
        + "</function>\n</tool_call>"
    ),
    "minimax-m2": lambda arguments: (
        '<minimax:tool_call>\n<invoke name="f">\n'
        + "".join(f'<parameter name="{k}">{_raw(v)}</parameter>\n' for k, v in arguments.items())
        + "</invoke>\n</minimax:tool_call>"
    ),
    "lfm2": lambda arguments: (
        "<|tool_call_start|>[f("
        + ", ".join(f"{k}={json.dumps(v)}" for k, v in arguments.items())
        + ")]<|tool_call_end|>"
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", WIRES)
def test_shapes(name: str, shape: str) -> None:
    schema, valid, invalid = SHAPES[shape]
    tool = {"name": "f", "parameters": schema}
    turn = chatparsers.get_format(name).bind(
        tools=[tool], tool_choice="required", parallel_tool_calls=False, thinking=False
    )
    for dialect, engine in (("gbnf", "xgrammar"), ("lark", "llguidance"), ("structural_tag", "xgrammar")):
        grammar = turn.grammar(dialect)
        judge = compile_for(engine, str(grammar), dialect)
        for arguments in valid:
            text = WIRES[name](arguments)
            assert judge.status(text) == FULL, f"{dialect} refuses {text!r}"
            assert json.loads(turn.parse(text, strict=True).tool_calls[0].arguments) == arguments
        for arguments in invalid:
            text = WIRES[name](arguments)
            assert judge.status(text) != FULL, f"{dialect} takes {text!r}"
        assert not grammar.weakened or shape in ("if", "one name, two types")


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "object", "patternProperties": {"^(?=x)": INTEGER}}, "patternProperties"),
        ({"type": "object", "properties": {"a": INTEGER}, "if": A, "then": B}, "if"),
        ({"type": "object", "properties": {"a": {**STRING, "pattern": "(?i)abc"}}}, "pattern"),
        ({"type": "object", "properties": {"a": {"type": "int"}}}, "type"),
        ({"type": "object", "properties": {"a": {**STRING, "format": "hostname"}}}, "format"),
        (
            {"type": "object", "properties": {"a": INTEGER}, "additionalProperties": INTEGER, "minProperties": 2},
            "minProperties",
        ),
        ({"properties": {"a": INTEGER}, "additionalProperties": INTEGER, "maxProperties": 1}, "maxProperties"),
        ({"properties": {"a": {"type": "number", "multipleOf": 1e-320}}}, "multipleOf"),
        ({"properties": {"a": {"type": "array", "items": INTEGER, "uniqueItems": True}}}, "uniqueItems"),
        ({"properties": {"a": MAP_OF_TWO}}, "minProperties"),
        # Of listed values: those that depend on what no grammar knows stay, and it is said.
        ({"properties": {"a": {"enum": ["abc", "x"], "pattern": "(?i)abc"}}}, "pattern"),
        ({"properties": {"a": {"const": "abc", "format": "hostname"}}}, "format"),
        ({"properties": {"a": {"enum": [{"b": 1}], "patternProperties": {"^(?=x)": INTEGER}}}}, "patternProperties"),
        ({"properties": {"a": {"enum": ["ab", 3], "not": {"pattern": "(?i)abc"}}}}, "pattern not"),
        ({"patternProperties": dict.fromkeys(["^a", "^b", "^c", "^d", "^e"], INTEGER)}, "patternProperties"),
        ({"properties": dict.fromkeys(map(str, range(40)), INTEGER), "maxProperties": 3}, "maxProperties"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}, "$ref"),
        # Between tags alone: JSON writes these as they are.
        ({"enum": [{"a": 1}]}, "enum in tags"),
        ({"properties": {"a": {"enum": ["x</parameter>\n", "x"]}}}, "enum in tags"),
        ({"properties": {"a": {**STRING, "maxLength": 300}}}, "maxLength in tags"),
        ({"properties": {"a": {"anyOf": [STRING, {**INTEGER, "minimum": 3}]}}}, "type in tags"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:tools. expected JSON's names of types")
def test_what_is_weakened_is_said(schema: Any, keyword: str) -> None:
    keyword, _, in_tags = keyword.partition(" in ")
    told = keyword.split()
    for name, expected in (("qwen3-coder", told), ("hermes-2-pro", [] if in_tags else told)):
        weakened = (
            chatparsers.get_format(name).bind(tools=[{"name": "f", "parameters": schema}]).grammar().weakened
        )
        assert [weak.keyword for weak in weakened] == expected, name
        if keyword == "minProperties" and "additionalProperties" in schema:
            assert "additional_properties" in weakened[0].why
        if keyword == "pattern":
            assert "(?i)" in weakened[0].why


@pytest.mark.parametrize("name", ["qwen3-coder", "hermes-2-pro"])
def test_a_schema_without_a_finite_value_is_refused(name: str) -> None:
    endless = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "required": ["next"],
    }
    around = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "required": ["a"],
        "$defs": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]},
            "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
        },
    }
    for schema in (endless, around):
        with pytest.raises(chatparsers.SchemaError):
            chatparsers.get_format(name).bind(tools=[{"name": "f", "parameters": schema}]).grammar()
    around["required"] = []  # then the member is left out
    grammar = chatparsers.get_format(name).bind(tools=[{"name": "f", "parameters": around}]).grammar()
    assert '"b' not in str(grammar).replace("\\", "")


@pytest.mark.parametrize(
    ("name", "nested"), [("gemma-4", True), ("minimax-m2", False), ("qwen3-coder", False)]
)
def test_names_that_a_format_cannot_write(name: str, nested: bool) -> None:
    """Such members are not generated, and ``weakened`` says so. The automaton without texts escaped here as an error of
    no public class."""
    quoted = {"type": "object", "patternProperties": {'^"': {"type": "string"}}}
    for parameters, told in ((quoted, True), ({"properties": {"a": quoted}}, nested)):
        turn = chatparsers.get_format(name).bind(tools=[{"name": "f", "parameters": parameters}])
        for dialect in ("gbnf", "lark", "structural_tag"):
            grammar = turn.grammar(dialect)
            assert grammar is not None
            left = [weak.keyword for weak in grammar.weakened if weak.path != "$.tools"]
            assert left == ["additionalProperties"] * told


def test_no_string_reads_as_a_word_or_number_that_is_invalid() -> None:
    other = {"anyOf": [{"type": "string", "minLength": 2}, {"enum": [False, None, 10]}]}
    turn = chatparsers.get_format("qwen3-coder").bind(
        tools=[{"name": "f", "parameters": {"properties": {"a": other}, "required": ["a"]}}],
        tool_choice="required",
    )
    checker = compile_for("xgrammar", str(turn.grammar()), "gbnf")
    for text, valid in {"false": 1, "null": 1, "10": 1, "truth": 1, "true": 0, "True": 0, "11": 0}.items():
        assert (checker.status(WIRES["qwen3-coder"]({"a": text})) == FULL) is bool(valid), text


INTEGERS = {"type": "integer", "minimum": 3, "maximum": 20}
UNIONS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "integer": ({"anyOf": [INTEGER, {**STRING, "minLength": 2}]}, [1, 12, -3, "ab", "a1"], ["a"]),
    "number": ({"anyOf": [{"type": "number"}, {**STRING, "pattern": "^x"}]}, [1, 1.5, "x", "x1"], ["a"]),
    "bounds": ({"anyOf": [INTEGERS, {**STRING, "minLength": 2}]}, [3, 20, "ab"], [2, 21, "a"]),
    "multiples": ({"anyOf": [{**INTEGER, "multipleOf": 2}, {**STRING, "minLength": 3}]}, [4, "abc"], ["ab"]),
    "boolean": ({"anyOf": [{"type": "boolean"}, {**STRING, "minLength": 2}]}, [True, False, "ab"], ["a"]),
    "three": ({"type": ["null", "integer", "string"], "maxLength": 3}, [None, 5, 123456, "abc"], ["abcd"]),
    "listed": ({"enum": [1, "ab", None]}, [1, "ab", None], [2, "a"]),
    "floats": ({"enum": [1.0, 2.5]}, [1, 1.0, 2.5], [2, 2.0]),
}
"""An argument of text with a constraint, or of another type; values that it admits, and others."""


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_unions_of_text_and_other_types(name: str) -> None:
    """By text and by ids. A greedy lexer must not take a number and the tag after it for the beginning of text."""
    format = chatparsers.get_format(name)
    tokenizer = toy_tokenizer(format, True)
    tools = [{"name": "f", "parameters": {"properties": {kind: union[0] for kind, union in UNIONS.items()}}}]
    request = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False, "thinking": False}
    turn, by_ids = format.bind(**request), format.bind(**request, tokenizer=tokenizer)
    stops = list(by_ids.stop_ids) or [end_of(tokenizer)]
    for dialect, engine in (("gbnf", "xgrammar"), ("lark", "llguidance"), ("structural_tag", "xgrammar")):
        judge = compile_for(engine, str(turn.grammar(dialect)), dialect)
        mask: Any = mask_of(by_ids, dialect, tokenizer, stops, frozenset({"multipleOf"}))
        for kind, (_, valid, invalid) in UNIONS.items():
            for value in (*valid, *invalid):
                call = {"id": "abcdefgh1", "function": {"name": "f", "arguments": {kind: value}}}
                text = format.render({"role": "assistant", "tool_calls": [call]}, tools)
                assert (judge.status(text) == FULL) is (value in valid), f"{dialect}: {text!r}"
                walk = copy(mask)
                walk.matcher = mask.matcher.deep_copy() if dialect == "lark" else mask.matcher.fork()
                taken = [walk.accept(id) for id in (*tokenizer.encode(text).ids, stops[0])]
                assert all(taken) is (value in valid), f"{dialect} by ids: {text!r}"
