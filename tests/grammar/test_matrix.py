"""Every format in every mode compiles in its engines, and all of them take and refuse the same texts at the
same places."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest
from engines import FULL, compile_for, engines_of, llguidance, xgrammar
from samples import MANY, TOOLS, Walk, literals, walk_bytes
from test_generated import byte_vocabulary, hash_of, names

import chatparsers
from chatparsers.core.idioms import Options
from chatparsers.core.nodes import Lenient, Literal, Node, Sequence, Tagged, Think, Token, walk

DIALECTS = ("gbnf", "lark", "structural_tag")
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {
            "type": "object",
            "properties": {"answer": {"type": "string"}, "sure": {"type": "boolean"}},
            "required": ["answer"],
        },
    },
}
GRAMMAR = {"type": "grammar", "grammar": 'root ::= "yes" | "no" | "(" root ")"\n'}


@pytest.fixture(scope="module")
def nightly(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--nightly", default=False))


MODES: dict[str, dict[str, Any]] = {
    "auto": {"tools": TOOLS, "tool_choice": "auto"},
    "required": {"tools": TOOLS, "tool_choice": "required"},
    "named": {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
    "single": {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
    "schema": {"response_format": SCHEMA},
    "schema-and-tools": {"tools": TOOLS, "response_format": SCHEMA},
    "grammar": {"response_format": GRAMMAR},
}
TOOL_FORMATS = [name for name in names() if chatparsers.get_format(name).features.tools]


def text_of(node: Node) -> str:
    """The literal text of a marker, as it is generated."""
    if isinstance(node, (Literal, Token)):
        return node.text
    if isinstance(node, Lenient):
        return text_of(node.strict)
    if isinstance(node, Tagged):
        return text_of(node.node)
    return "".join(map(text_of, node.items)) if isinstance(node, Sequence) else ""


@lru_cache(maxsize=256)
def states(name: str) -> dict[str, dict[str, Any]]:
    """What the prompt may have written of the reasoning."""
    found: dict[str, dict[str, Any]] = {"free": {}}
    format = chatparsers.get_format(name)
    think = next((node for node in walk(format.tree(Options(tools=True))) if isinstance(node, Think)), None)
    if think is not None and think.span.close is not None:
        opener, closer = text_of(think.span.open), text_of(think.span.close)
        found |= {
            "open": {"prefix": opener},
            "closed": {"prefix": opener + closer},
            "off": {"thinking": False},
        }
    return found


def compiled(name: str, request: dict[str, Any], dialect: str) -> tuple[Any, Any]:
    grammar = chatparsers.get_format(name).bind(**request).grammar(dialect)
    assert grammar is not None
    (engine,) = engines_of(dialect)
    return grammar, compile_for(engine, str(grammar), dialect)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_compiles(name: str, mode: str) -> None:
    for state, more in states(name).items():
        for dialect in DIALECTS:
            grammar, _ = compiled(name, {**MODES[mode], **more}, dialect)
            lazy = mode == "auto" and dialect == "gbnf"
            assert grammar.lazy is lazy, (state, dialect)
            assert bool(grammar.triggers) is lazy


@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_counts_of_tools(name: str, count: int, nightly: bool) -> None:
    for dialect in DIALECTS if nightly or count < 100 else ("structural_tag",):
        for choice in ("auto", "required") if nightly else ("required",):
            compiled(name, {"tools": MANY[:count], "tool_choice": choice}, dialect)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_nothing_to_constrain(name: str) -> None:
    format = chatparsers.get_format(name)
    for dialect in DIALECTS:
        assert format.bind().grammar(dialect) is None
        assert format.bind(tools=TOOLS, tool_choice="none").grammar(dialect) is None
        assert format.bind(response_format={"type": "text"}).grammar(dialect) is None


def mutations(text: str, chance: random.Random, count: int) -> list[str]:
    """``text`` with small mistakes."""
    found = [text, text[: chance.randrange(len(text) + 1)], text + chance.choice("x\n{<")]
    for _ in range(count):
        at = chance.randrange(len(text))
        found += [text[:at] + text[at + 1 :], text[:at] + chance.choice('ax1"}<\n ') + text[at + 1 :]]
    return found


def random_texts(name: str, request: dict[str, Any], count: int) -> list[str]:
    tokens, (compiler, end), _ = byte_vocabulary()
    turn = chatparsers.get_format(name).bind(**request)
    grammar, tag = str(turn.grammar()), str(turn.grammar("structural_tag"))
    found = compiler.compile_grammar(grammar)
    closers = [list(text) for text in literals(grammar, tag)]
    texts = []
    for index in range(count):
        seed = hash_of(name, "matrix", index)
        text = walk_bytes(Walk("xgrammar", found, tokens, end), closers, seed, free=25, limit=2_500)
        texts += [text] if text is not None else []
    return texts


@pytest.mark.parametrize("mode", ["required", "single", "schema", "schema-and-tools", "grammar"])
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_engines_agree(name: str, mode: str, nightly: bool) -> None:
    if not (nightly or mode in ("required", "schema")):
        pytest.skip("the other modes are compared with --nightly")
    xgrammar(), llguidance()
    chance = random.Random(f"{name} {mode}")
    compared = full = 0
    chosen = states(name) if mode == "required" else {"free": {}}
    for state, more in chosen.items():
        request = {**MODES[mode], **more}
        judges = {dialect: compiled(name, request, dialect)[1] for dialect in DIALECTS}
        for text in random_texts(name, request, 2):
            for changed in mutations(text, chance, 6):
                found = {dialect: judge.status(changed) for dialect, judge in judges.items()}
                assert len(set(found.values())) == 1, (state, found, changed)
                compared += 1
                full += FULL in found.values()
    assert full > 0
    assert compared > full


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_free_text_and_calls_agree(name: str) -> None:
    request = {"tools": TOOLS, "tool_choice": "auto"}
    judges = {dialect: compiled(name, request, dialect)[1] for dialect in ("lark", "structural_tag")}
    chance = random.Random(name)
    calls = random_texts(name, request, 2)
    texts = ["", "Hello.", *calls]
    if judges["lark"].status("Hello.") == FULL:
        texts += [f"Hello. {call} And more." for call in calls]
    for text in texts:
        for changed in mutations(text or " ", chance, 6):
            found = {dialect: judge.status(changed) for dialect, judge in judges.items()}
            assert len(set(found.values())) == 1, (found, changed)
