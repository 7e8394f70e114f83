"""Parser and grammar agree on every text of a format: what is read as a whole turn, the grammar of its request takes.

The other direction of `test_read_back`. The texts are the writer's own, the golden and wild cases, and both with other
white space and other orders. A text that the parser reads without a diagnostic, and whose message the request allows,
is in the grammar, or its kind is named in `read_narrower.json` with a reason; narrower.py tells the kinds. A grammar
may be narrower in how something is said, not in what: for the kinds of spelling, the writer's text of the same message
is in the grammar.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import making
import pytest
from grammar_report import record
from narrower import RULES, STEPS, Judge, Refused, is_clean, kind_of, meaning, words
from test_matrix import TOOL_FORMATS

import chatparsers
from chatparsers.answers.format import Format
from chatparsers.streams.message import Message
from chatparsers.testing import load_cases
from chatparsers.testing.cases import bound
from chatparsers.watch import observe

KNOWN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("read_narrower.json").read_text("utf-8"))
CASES = Path(__file__).parents[1] / "needle" / "cases"
ARGUMENTS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": ARGUMENTS}},
    making.tool("now", {}, [], additionalProperties=False),
]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ARGUMENTS}}
OF_CASES = ("auto", "required")
"""The requests of texts with tools of their own, each of which costs its grammars."""
IN_OTHER_WORDS = (
    *STEPS,
    "an opener twice",
    "a closer left out",
    "another id",
    "white space",
    "another spelling",
)
"""The kinds in which a message is only said in another way."""


def requests(tools: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The requests of which a text may be the answer."""
    if tools:
        named = {"type": "function", "function": {"name": tools[0]["function"]["name"]}}
        yield "auto", {"tools": tools}
        yield "one call", {"tools": tools, "parallel_tool_calls": False}
        yield "none", {"tools": tools, "tool_choice": "none"}
        yield "required", {"tools": tools, "tool_choice": "required"}
        yield "single", {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False}
        yield "named", {"tools": tools, "tool_choice": named}
        yield "schema and tools", {"tools": tools, "response_format": SCHEMA}
    yield "schema", {"response_format": SCHEMA}


def is_allowed(message: Message, asked: str, tools: list[dict[str, Any]], thinking: bool | None) -> bool:
    """Whether the request allows this answer."""
    parameters = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in tools}
    calls, answer = message.tool_calls, message.content.strip()
    if not all(call.name in parameters and _valid(call.arguments, parameters[call.name]) for call in calls):
        return False
    if thinking is False and message.reasoning.strip():
        return False
    if asked in ("required", "single", "named"):
        one = asked == "required" or len(calls) == 1
        return (
            one
            and bool(calls)
            and not answer
            and (asked != "named" or calls[0].name == next(iter(parameters)))
        )
    if asked.startswith("schema"):
        return not answer if asked != "schema" and calls else not calls and _valid(answer, ARGUMENTS)
    return len(calls) <= {"one call": 1, "none": 0}.get(asked, len(calls))


def _valid(text: str, schema: dict[str, Any]) -> bool:
    """Whether a text is a value of the schema with no other members than it names."""
    try:
        value = json.loads(text)
        return (
            jsonschema.Draft202012Validator(schema).is_valid(value)
            and value.keys() <= schema.get("properties", {}).keys()
        )
    except (ValueError, AttributeError, jsonschema.exceptions.UnknownType, jsonschema.exceptions.SchemaError):
        return False


def messages() -> Iterator[dict[str, Any]]:
    """Calls, content and thoughts in each combination."""
    weather, days, now = (
        _call("get_weather", city="Oslo", days=3),
        _call("get_weather", days=3, city="a b"),
        _call("now"),
    )
    called: list[list[Any]] = [[], [weather], [days], [now], [weather, now]]
    contents = ("", "Hello there.", '{"city": "Oslo"}')
    for calls, content, thought in itertools.product(called, contents, ("", "So be it.")):
        more = {"tool_calls": calls} if calls else {}
        yield {"role": "assistant", "content": content, "reasoning_content": thought, **more}


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"type": "function", "id": "abcdefghi", "function": function}


def texts(format: Format, cases: bool) -> Iterator[tuple[list[dict[str, Any]], str, str]]:
    """Tools, what the prompt wrote of the turn, and a text. ``cases``: also of the cases."""
    for message in messages():
        try:
            yield TOOLS, "", format.render(message, TOOLS)
        except chatparsers.RequestError:
            continue
    for _, case in load_cases(CASES / format.name) if cases else ():
        if not case.get("options"):
            raw: list[Any] = list(bound(format, case).tools.raw)
            tools = [tool if "function" in tool else {"type": "function", "function": tool} for tool in raw]
            yield tools, case.get("prefix", ""), case["text"]


def varied(message: Message, text: str, chance: random.Random) -> Iterator[str]:
    """The text with other white space outside of words, and with the members of an object in another order."""
    places = [
        at
        for region in message.regions
        if region.kind in ("markup", "call")
        for at in range(region.start, region.end + 1)
    ]
    if places:
        at = chance.choice(places)
        if text[at : at + 1].isspace() and chance.random() < 0.5:
            yield text[:at] + text[at + 1 :]
        else:
            yield text[:at] + chance.choice((" ", "\n", "\n\n")) + text[at:]
    for found in re.finditer(r"\{[^{}]+\}|\{[^{}]*\{[^{}]*\}[^{}]*\}", text):
        try:
            members = json.loads(found[0])
        except ValueError:
            continue
        if len(members) > 1:
            yield text[: found.start()] + json.dumps(dict(reversed(members.items()))) + text[found.end() :]


def read(format: Format, cases: bool) -> Iterator[tuple[str, Refused]]:
    """Texts that the parser reads as whole turns and that their requests allow, each with its request."""
    chance = random.Random(format.name)
    judges: dict[str, Judge | None] = {}
    seen: set[tuple[str, str]] = set()
    for tools, prefix, whole in texts(format, cases):
        given: dict[str, Any] = {"prefix": prefix, "id_seed": ""}
        message = format.bind(tools=tools or None, **given).parse(whole)
        for text in (whole, *varied(message, whole, chance)):
            while stop := next((stop for stop in format.stops if text.rstrip().endswith(stop)), None):
                text = text.rstrip().removesuffix(stop)
            for (name, request), thinking in itertools.product(requests(tools), (None, False)):
                asked = {**request, **given, "thinking": thinking}
                key = json.dumps(asked)
                if (key, text) in seen or not (tools is TOOLS or (name in OF_CASES and thinking is None)):
                    continue
                seen.add((key, text))
                turn = format.bind(**asked)
                message = turn.parse(text)
                if (
                    not is_clean(message)
                    or not is_allowed(message, name, tools, thinking)
                    or observe(turn, message)
                ):
                    continue
                if key not in judges:
                    try:
                        judges[key] = Judge(format, asked)
                    except chatparsers.RequestError:  # the prompt wrote what the grammar does not
                        judges[key] = None
                judge = judges[key]
                if judge is not None:
                    yield name, Refused(format, asked, text, judge, judge.left(text))


def unsaid(case: Refused) -> str:
    """The writer's text of the message, if it can be written and the grammar refuses that too, for how it says it."""
    content, thought, calls = meaning(case.message)
    if not calls and not case.turn.options.schema:
        return ""  # any text at all
    message = {"role": "assistant", "content": content, "reasoning_content": thought}
    ids = [call.id for call in case.message.tool_calls]
    if calls:
        message["tool_calls"] = [
            {**_call(name, **given), "id": id} for (name, given), id in zip(calls, ids, strict=True)
        ]
    try:
        text = case.format.render(message, case.turn.tools)
    except chatparsers.RequestError:
        return ""
    asked = {**case.asked, "prefix": ""}
    judge = Judge(case.format, asked)
    written = Refused(case.format, asked, text, judge, judge.left(text))
    fits = written.at < 0 or words(case) or kind_of(written) not in ("", *IN_OTHER_WORDS)
    return "" if fits else text


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_what_is_read_is_in_the_grammar(
    name: str, amount: Callable[[int, int, int], int], request: pytest.FixtureRequest
) -> None:
    """The cases, each of whose tools cost grammars of their own, are read by ``--whole`` and ``--nightly``."""
    warnings.filterwarnings("ignore", "tools. expected JSON's names of types")
    format = chatparsers.get_format(name)
    counted: Counter[tuple[str, str]] = Counter()
    faults: list[str] = []
    for asked, case in read(format, bool(amount(0, 1, 1))):
        kind = "" if case.at < 0 else kind_of(case)
        counted[asked, kind or "whole"] += 1
        if case.at >= 0 and kind not in {known["kind"] for known in KNOWN}:
            faults.append(
                f"{asked}, {case.asked['thinking']}: {case.text[: case.at]!r} {case.text[case.at :]!r}: {kind}"
            )
        elif kind in IN_OTHER_WORDS and (text := unsaid(case)):
            faults.append(f"{asked}: {case.text!r} is {kind}, but {text!r} is refused too")
    record(request, "read", format=name, counted=sorted(counted.items()))
    assert not faults, f"{len(faults)}: " + "\n".join(faults[:5])


def test_each_kind_is_named_once() -> None:
    assert sorted(known["kind"] for known in KNOWN) == sorted((*STEPS, *RULES))


@pytest.mark.parametrize("known", KNOWN, ids=[known["kind"] for known in KNOWN])
def test_a_named_kind_occurs(known: Mapping[str, Any]) -> None:
    """If the grammar takes the text by now, the kind is to be taken out."""
    format = chatparsers.get_format(known["format"])
    asked = {"tools": TOOLS, "id_seed": "", **known.get("asked", {})}
    turn, judge = format.bind(**asked), Judge(format, asked)
    message = turn.parse(known["text"])
    assert is_clean(message) and not observe(turn, message)
    at = judge.left(known["text"])
    assert at >= 0
    assert kind_of(Refused(format, asked, known["text"], judge, at)) == known["kind"]
