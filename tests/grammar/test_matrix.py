"""Every format in every mode compiles in its engines. All engines take and refuse the same texts at the same
places."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pytest
from engines import FULL, compile_for, engines_of, llguidance, xgrammar
from grammar_report import record
from samples import MANY, TOOLS, Walk, closers, tool, walk_bytes
from test_generated import byte_vocabulary, hash_of, names

import chatparsers
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Lenient, Literal, Node, Sequence, Tagged, Think, Token
from chatparsers.core.tree import walk

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
    "no arguments": {"tools": [tool("now", {}, [])], "tool_choice": "required"},
    "schema": {"response_format": SCHEMA},
    "schema-and-tools": {"tools": TOOLS, "response_format": SCHEMA},
    "grammar": {"response_format": GRAMMAR},
}
WITHOUT_CALLS = {"content-only", "kimi-k1-5"}  # named, as the features of all formats take seconds to find
TOOL_FORMATS = [name for name in names() if name not in WITHOUT_CALLS]
# The tests of a format run together.
EACH_FORMAT = pytest.mark.parametrize("name", TOOL_FORMATS, scope="module")


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
    """The beginnings of reasoning that the prompt may have written."""
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
    """The grammar of a request, and it in its engine. The tests of a format run together and share what is made."""
    return _compiled(name, json.dumps(request), dialect)


@lru_cache(maxsize=64)
def _compiled(name: str, request: str, dialect: str) -> tuple[Any, Any]:
    grammar = chatparsers.get_format(name).bind(**json.loads(request)).grammar(dialect)
    assert grammar is not None
    (engine,) = engines_of(dialect)
    return grammar, compile_for(engine, str(grammar), dialect)


def compile_all(
    name: str,
    mode: str,
    requests: Iterable[tuple[str, dict[str, Any]]],
    request: pytest.FixtureRequest,
    nightly: bool,
) -> None:
    """Compiles the grammars of requests, each with its description: nightly in all dialects. Else the first one is
    compiled in all unless it has very many tools, and the others in one, in turn."""
    refused: list[str] = []
    taken: Counter[str] = Counter()
    for index, (what, asked) in enumerate(requests):
        all_of_them = nightly or (index == 0 and len(asked.get("tools", ())) < len(MANY))
        turn = index or TOOL_FORMATS.index(name)
        for dialect in DIALECTS if all_of_them else (DIALECTS[turn % len(DIALECTS)],):
            try:
                grammar, _ = compiled(name, asked, dialect)
            except Exception as error:  # whatever an engine raises
                refused.append(f"{what}, {dialect}: {error}")
                continue
            taken[f"{engines_of(dialect)[0]} ({dialect})"] += 1
            lazy = asked.get("tool_choice") == "auto" and dialect == "gbnf"
            assert grammar.lazy is lazy, (what, dialect)
            assert bool(grammar.triggers) is lazy
    record(
        request, "compiled", format=name, mode=mode, taken=taken.total(), refused=len(refused), engines=taken
    )
    assert not refused, (mode, refused)


def test_the_other_formats_have_no_calls() -> None:
    assert not [name for name in WITHOUT_CALLS if chatparsers.get_format(name).features.tools]


@EACH_FORMAT
def test_compiles(name: str, nightly: bool, request: pytest.FixtureRequest) -> None:
    """In every mode and every state of the reasoning; and with 1, 3 and 100 tools, nightly in every mode too."""
    for mode in MODES:
        asked = ((state, {**MODES[mode], **more}) for state, more in states(name).items())
        compile_all(name, mode, asked, request, nightly)
    for count in (1, 3, 100):
        check_count(name, count, nightly, request)


def check_count(name: str, count: int, nightly: bool, request: pytest.FixtureRequest) -> None:
    tools = MANY[:count]
    modes = ("auto", "required", "named", "schema-and-tools") if nightly else ("required",)
    requests: list[tuple[str, dict[str, Any]]] = []
    for mode in modes:
        base = {**MODES[mode], "tools": tools}
        if mode == "named":
            base["tool_choice"] = {"type": "function", "function": {"name": tools[-1]["function"]["name"]}}
        for state, more in (states(name) if nightly else {"free": {}}).items():
            requests.append((f"{mode}, {state}", {**base, **more}))
    compile_all(name, f"{count} tool{'s' if count > 1 else ''}", requests, request, nightly)


@EACH_FORMAT
def test_nothing_to_constrain(name: str) -> None:
    format = chatparsers.get_format(name)
    for dialect in DIALECTS:
        assert format.bind().grammar(dialect) is None
        none = format.bind(tools=TOOLS, tool_choice="none").grammar(dialect)
        assert none is None or dialect != "gbnf"
        assert format.bind(response_format={"type": "text"}).grammar(dialect) is None


def mutations(text: str, chance: random.Random, count: int) -> list[str]:
    """``text`` with small mistakes."""
    found = [text, text[: chance.randrange(len(text) + 1)], text + chance.choice("x\n{<")]
    for _ in range(count):
        at = chance.randrange(len(text))
        found += [text[:at] + text[at + 1 :], text[:at] + chance.choice('ax1"}<\n ') + text[at + 1 :]]
    return found


def random_texts(name: str, request: dict[str, Any], count: int) -> list[str]:
    tokens, (_, end), _ = byte_vocabulary()
    found = compiled(name, request, "gbnf")[1].compiled
    texts = [
        walk_bytes(
            Walk("xgrammar", found, tokens, end), closers(name), hash_of(name, "matrix", index), free=25
        )
        for index in range(count)
    ]
    assert None not in texts, "a walk came to no end"
    return [text for text in texts if text is not None]


def compare(
    texts: Iterable[str],
    judges: dict[str, Any],
    what: str,
    counted: Counter[str],
    different: list[str],
    narrower: bool = False,
) -> None:
    """What each dialect's engine says of each text, to be the same. ``narrower``: the structural tag names that it
    refuses more; never may it take more."""
    for text in texts:
        found = {dialect: judge.status(text) for dialect, judge in judges.items()}
        counted["texts"] += 1
        counted["accepted"] += FULL in found.values()
        if len(set(found.values())) > 1 and not (narrower and refuses_first(found)):
            different.append(f"{what}: {found}, {text!r}")


def refuses_first(found: dict[str, Any]) -> bool:
    """Whether the structural tag refuses a text, and at a place that Lark comes to."""
    tag, lark = found["structural_tag"], found["lark"]
    return tag.kind == "rejected" and (lark.kind != "rejected" or tag.at < lark.at)


@EACH_FORMAT
def test_engines_agree(name: str, nightly: bool, request: pytest.FixtureRequest) -> None:
    """In some modes, and nightly in all."""
    xgrammar(), llguidance()
    for mode in (
        [mode for mode in MODES if mode != "auto"] if nightly else ("required", "no arguments", "schema")
    ):
        check_agreement(name, mode, nightly, request)


def check_agreement(name: str, mode: str, nightly: bool, request: pytest.FixtureRequest) -> None:
    chance = random.Random(f"{name} {mode}")
    counted: Counter[str] = Counter()
    different: list[str] = []
    for state, more in (states(name) if nightly or mode == "required" else {"free": {}}).items():
        asked = {**MODES[mode], **more}
        judges = {dialect: compiled(name, asked, dialect)[1] for dialect in DIALECTS}
        for text in random_texts(name, asked, 2 if nightly or state == "free" else 1):
            compare(mutations(text, chance, 6), judges, state, counted, different)
    agreed(name, mode, counted, different, request)


@EACH_FORMAT
def test_without_calls(name: str, nightly: bool) -> None:
    """With ``tool_choice="none"`` the free dialects take an answer, and no call at its start."""
    asked = {"tools": TOOLS, "tool_choice": "none"}
    calls = random_texts(name, MODES["required"], 4 if nightly else 1)
    turn = chatparsers.get_format(name).bind(**asked)
    auto = chatparsers.get_format(name).bind(tools=TOOLS)
    for dialect in ("lark", "structural_tag"):
        judge = compiled(name, asked, dialect)[1]
        free = compiled(name, MODES["auto"], dialect)[1]
        for answer in ("", "Hello.", "It is sunny in Oslo, and 3 < 5."):
            assert judge.status(answer) == free.status(answer), (dialect, answer)
        for call in calls:
            codes = {one.code for one in turn.parse(call).diagnostics}
            assert auto.parse(call).tool_calls and "unwanted-call" in codes
            assert judge.status(call).kind == "rejected", (dialect, call)


@EACH_FORMAT
def test_free_text_and_calls_agree(name: str, nightly: bool, request: pytest.FixtureRequest) -> None:
    chance = random.Random(name)
    counted: Counter[str] = Counter()
    different: list[str] = []
    found = states(name)
    for state in found if nightly else ("free",):
        more = found[state]
        asked = {"tools": TOOLS, "tool_choice": "auto", **more}
        both = {dialect: compiled(name, asked, dialect) for dialect in ("lark", "structural_tag")}
        judges = {dialect: judge for dialect, (_, judge) in both.items()}
        named = {dialect: {weak.why for weak in grammar.weakened} for dialect, (grammar, _) in both.items()}
        narrower = bool(named["structural_tag"] - named["lark"])
        calls = random_texts(name, asked, 2 if nightly else 1)
        if state == "free":
            for dialect, judge in judges.items():  # a turn of Jamba begins with a blank
                refused = [
                    call for call in calls if FULL not in (judge.status(call), judge.status(f" {call}"))
                ]
                assert not refused, f"{dialect} takes no call: {refused[0]!r}"
        texts = ["", "Hello.", *calls]
        if judges["lark"].status("Hello.") == FULL:
            texts += [f"Hello. {call} And more." for call in calls]
        for text in texts:
            compare(mutations(text or " ", chance, 6), judges, state, counted, different, narrower)
    agreed(name, "auto", counted, different, request)


def agreed(
    name: str, mode: str, counted: Counter[str], different: list[str], request: pytest.FixtureRequest
) -> None:
    """Records what was compared; nothing may differ, and some texts are accepted, others not."""
    record(request, "compared", format=name, mode=mode, different=len(different), **counted)
    assert not different, "\n".join([mode, *different[:5]])
    assert 0 < counted["accepted"] < counted["texts"]
