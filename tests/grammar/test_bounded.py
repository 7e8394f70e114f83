"""Schemas and grammars from strangers. The written grammar grows with the input, within a budget. Only errors that say
what to do are raised."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
from engines import compile_for
from test_matrix import DIALECTS

import chatparsers
from chatparsers.grammar import Grammar
from chatparsers.schema.tools import _read as tools_read

FORMATS = ("hermes-2-pro", "qwen3-coder")


def nested(kind: str, count: int) -> Any:
    around: dict[str, Callable[[Any], Any]] = {
        "array": lambda inner: {"type": "array", "items": inner},
        "object": lambda inner: {"type": "object", "properties": {"a": inner}, "required": ["a"]},
        "anyOf": lambda inner: {"anyOf": [inner, {"type": "null"}]},
        "not": lambda inner: {"not": inner},
    }
    return reduce(lambda inner, _: around[kind](inner), range(count), {"type": "string"})


def argument(schema: Any, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": "f",
            "parameters": {"type": "object", "properties": {"a": schema}, "required": ["a"], **more},
        }
    ]


def defs(schemas: dict[str, Any]) -> list[dict[str, Any]]:
    return argument({"$ref": "#/$defs/d0"}, **{"$defs": schemas})


def properties(count: int) -> list[dict[str, Any]]:
    names = [f"p{index}" for index in range(count)]
    parameters = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names[::2],
    }
    return [{"name": "f", "parameters": parameters}]


def chain(count: int, make: Callable[[Any], Any], last: Any) -> list[dict[str, Any]]:
    found = {f"d{i}": make({"$ref": f"#/$defs/d{i + 1}"}) for i in range(count)}
    return defs({**found, f"d{count}": last})


def ring(count: int) -> list[dict[str, Any]]:
    """Objects of which each leads to itself and to its neighbours."""
    refs = [{"$ref": f"#/$defs/d{index}"} for index in range(count)]
    members = [
        {"self": ref, "up": refs[index - 1], "down": refs[(index + 1) % count]}
        for index, ref in enumerate(refs)
    ]
    return defs({f"d{index}": {"type": "object", "properties": found} for index, found in enumerate(members)})


GROWING: dict[str, tuple[Callable[[int], list[dict[str, Any]]], int]] = {
    "arrays": (lambda n: argument(nested("array", n)), 20),
    "objects": (lambda n: argument(nested("object", n)), 20),
    "enum": (lambda n: argument({"enum": [f"value-{i}" for i in range(n)]}), 500),
    "enum with a stop's beginning": (lambda n: argument({"enum": [f"<v{i}" for i in range(n)]}), 500),
    "enum of all kinds": (lambda n: argument({"enum": [*range(n), *({"a": i} for i in range(n))]}), 250),
    "words": (
        lambda n: argument({"type": "string", "pattern": f"(?:{'|'.join(f'b{i}' for i in range(n))})*x"}),
        100,
    ),
    "properties": (properties, 200),
    "tools": (lambda n: [{**argument({"type": "string"})[0], "name": f"tool_{i}"} for i in range(n)], 50),
    "references": (lambda n: chain(n, lambda ref: ref, {"type": "integer"}), 500),
    "references to objects": (
        lambda n: chain(n, lambda ref: {"type": "object", "properties": {"a": ref, "b": ref}}, True),
        20,
    ),
    "rings of references": (ring, 15),
    "references to objects, back to the first": (
        lambda n: chain(
            n, lambda ref: {"type": "object", "properties": {"a": ref, "b": ref}}, {"$ref": "#/$defs/d0"}
        ),
        4,
    ),
    "unions of two references": (
        lambda n: chain(n, lambda ref: {"anyOf": [ref, ref]}, {"type": "null"}),
        100,
    ),
    "alternatives": (
        lambda n: argument({"anyOf": [{"type": "object", "properties": {f"a{i}": {}}} for i in range(n)]}),
        200,
    ),
    "prefixItems": (lambda n: argument({"type": "array", "prefixItems": [{"type": "integer"}] * n}), 200),
    # From some 760 names on, an automaton says which other names there may be: that is a step, and no growth.
    "required": (lambda n: argument({"type": "object", "required": [f"r{i}" for i in range(n)]}), 150),
}


def work(tools: list[dict[str, Any]], name: str, dialect: str) -> tuple[int, Grammar]:
    """How many calls of functions it takes to write a grammar of tools that were never read, and the grammar."""
    tools_read.clear()
    turn = chatparsers.get_format(name).bind(tools=tools, tool_choice="required")
    count = 0

    def counted(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        grammar = turn.grammar(dialect)
    finally:
        sys.setprofile(before)
    return count, grammar


@pytest.mark.one_in(12)
@pytest.mark.parametrize("shape", GROWING)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_size_and_work_are_linear(shape: str, dialect: str, amount: Callable[[int, int, int], int]) -> None:
    """Usually in one of the formats, another one for the next shape."""
    make, size = GROWING[shape]
    place = list(GROWING).index(shape) % 2
    for name in FORMATS if amount(0, 1, 1) else FORMATS[place : place + 1]:
        work(make(2), name, dialect)  # fills the caches of what does not depend on the tools
        small_work, small = work(make(size), name, dialect)
        large_work, large = work(make(4 * size), name, dialect)
        assert len(str(large)) <= 4.6 * len(str(small)), f"{name}: {len(str(small))} -> {len(str(large))}"
        assert large_work <= 5 * small_work, f"{name}: {small_work} -> {large_work} calls"
        # of more members than an engine bears, the orders are given up
        assert all(dialect != "gbnf" and "members: in any order" in weak.why for weak in large.weakened)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "name", [info.name for info in chatparsers.list_formats() if info.origin == "chatparsers"]
)
def test_calls_in_free_text_grow_linearly(name: str, dialect: str) -> None:
    """Each way to begin a call, and each tool that a call may begin with, once led to a grammar of all the tools. The
    engine takes the grammar of many."""

    def written(count: int) -> str:
        tools = [{**argument({"type": "string"})[0], "name": f"tool_{i}"} for i in range(count)]
        return str(chatparsers.get_format(name).bind(tools=tools).grammar(dialect) or "")

    large = written(24)
    assert len(large) <= 4.4 * len(written(6))
    if large:
        compile_for("llguidance" if dialect == "lark" else "xgrammar", large, dialect)


HOSTILE: dict[str, Callable[[], list[dict[str, Any]]]] = {
    **{
        f"{kind} 10,000 deep": lambda kind=kind: argument(nested(kind, 10_000))
        for kind in ("array", "object", "anyOf", "not")
    },
    "a chain of references": lambda: chain(5_000, lambda ref: ref, {"type": "integer"}),
    "a chain of objects": lambda: chain(5_000, lambda ref: {"type": "object", "properties": {"a": ref}}, True),
    "pairs that lead back to the first": lambda: chain(
        30, lambda ref: {"type": "object", "properties": {"a": ref, "b": ref}}, {"$ref": "#/$defs/d0"}
    ),
    "unions of themselves": lambda: defs({"d0": {"anyOf": [{"$ref": "#/$defs/d0"}, {"$ref": "#/$defs/d0"}]}}),
    "a product of unions": lambda: argument(
        {"allOf": [{"anyOf": [{"minimum": i}, {"maximum": i}]} for i in range(40)]}
    ),
    "unions of unlike references": lambda: chain(
        30, lambda ref: {"minimum": 1, "anyOf": [{**ref, "maximum": 9}, ref]}, {"type": "integer"}
    ),
    "groups": lambda: argument({"type": "string", "pattern": "(" * 500 + "a" + ")" * 500}),
    "repeated groups": lambda: argument({"type": "string", "pattern": "(" * 500 + "a" + ")*" * 500}),
    "repeats of repeats": lambda: argument({"type": "string", "pattern": "a" + "{2}" * 500}),
    "a large automaton": lambda: argument({"type": "string", "pattern": "^(a|b)*a(a|b){14}$"}),
    "a large count": lambda: argument({"type": "string", "pattern": "^(?:[a-z]{5000}){5000}$"}),
    "1e400": lambda: argument({"type": "number", "minimum": float("-inf"), "maximum": float("inf")}),
    "NaN": lambda: argument({"type": "number", "minimum": float("nan")}),
    "10**5000": lambda: argument({"type": "integer", "minimum": -(10**5000), "maximum": 10**5000}),
    "a tiny step": lambda: argument({"type": "number", "multipleOf": 1e-320}),
    "listed numbers": lambda: argument({"enum": [float("nan"), float("inf"), 10**5000]}),
    "counts": lambda: argument({"type": "array", "minItems": 10**9, "maxItems": 10**5000}),
    "an endless count": lambda: argument({"type": "string", "maxLength": float("inf")}),
    "a key that is no text": lambda: argument({"type": "object", "properties": {1: {}}}),
    "an argument that is no text": lambda: [{"name": "f", "parameters": {"properties": {1: {}, "a": {}}}}],
    "values that are not JSON": lambda: argument({"enum": [object(), {1: 2}]}),
    "half a surrogate pair": lambda: argument({"enum": ["\ud800"]}),
    "a value nested deeply": lambda: argument({"const": reduce(lambda inner, _: [inner], range(5_000), 1)}),
    "a schema that holds itself": lambda: argument(endless()),
}  # fmt: skip


def endless() -> Any:
    found: dict[str, Any] = {"type": "array"}
    found["items"] = found
    return found


@pytest.mark.parametrize("shape", HOSTILE)
@pytest.mark.parametrize("name", FORMATS)
def test_hostile_schemas(name: str, shape: str) -> None:
    for dialect in DIALECTS:
        turn = chatparsers.get_format(name).bind(tools=HOSTILE[shape](), tool_choice="required")
        try:
            grammar = turn.grammar(dialect)
        except chatparsers.SchemaError as error:
            assert error.path.startswith("$")
            continue
        assert len(str(grammar)) < 100_000
        compile_for("llguidance" if dialect == "lark" else "xgrammar", str(grammar), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_budget(dialect: str) -> None:
    tools = argument(
        {"type": "object", "properties": {f"p{i}": {"enum": [f"value {i}", i]} for i in range(400)}}
    )
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=tools, tool_choice="required")
    whole = turn.grammar(dialect)
    assert not whole.weakened
    assert turn.grammar(dialect, max_size=len(str(whole))) == whole
    small = turn.grammar(dialect, max_size=len(str(whole)) - 1)
    assert len(str(small)) < len(str(whole))
    assert {weak.keyword for weak in small.weakened} == {"*"}
    assert "max_size" in small.weakened[0].why
    little = turn.grammar(dialect, max_work=300)
    assert "max_work" in little.weakened[0].why
    with pytest.raises(chatparsers.SchemaError, match="max_size"):
        turn.grammar(dialect, max_size=100)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_grammars_of_users(dialect: str) -> None:
    def grammar(text: str) -> Any:
        given = {"type": "grammar", "grammar": text}
        return chatparsers.get_format("qwen3").bind(response_format=given).grammar(dialect)

    steps = "".join(f'r{i} ::= "a" r{i + 1}\n' for i in range(500))
    for text in (f'root ::= r0\n{steps}r500 ::= "x"', f'root ::= r0\n{steps}r500 ::= "x" r0 | "y"'):
        engine = "llguidance" if dialect == "lark" else "xgrammar"
        assert compile_for(engine, str(grammar(text)), dialect)
    for text in (
        "root ::= " + "(" * 50_000 + '"a"' + ")" * 50_000,
        "root ::= " + "(" * 50_000,
        'root ::= "a"' + "*" * 5_000,
    ):
        with pytest.raises(chatparsers.RequestError, match="line 1, column"):
            grammar(text)


@pytest.mark.parametrize("required", [0, 3])
def test_an_object_of_many_members_leaves_llguidance_its_stack(required: int) -> None:
    """It reads rules by recursion, in servers on threads with a small stack."""
    names = [f"m{number:03}" for number in range(200)]
    schema = {"type": "object", "properties": dict.fromkeys(names, True), "required": names[:required]}
    answer = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    grammar = chatparsers.get_format("qwen3").bind(response_format=answer, thinking=False).grammar("lark")
    found: list[bool] = []

    def read() -> None:
        judge = compile_for("llguidance", str(grammar), "lark")
        for listed in (names, names[::-1]):
            members = ", ".join([f'"{name}": 1' for name in listed])
            found.append(judge.status(f"{{{members}}}").kind == "full")

    before = threading.stack_size(1 << 19)
    try:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [True, False]
