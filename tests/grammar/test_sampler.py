"""The grammar and the stream mean the same by ids: a toy model under an engine's mask, its ids fed to the stream.

No text test can show this. A grammar of texts lets the sampler spell a marker in ordinary tokens, and a stream of ids
then reads text (C9). Every run that the engine ends must be complete in strict mode, its arguments must be valid, and
it must honour the request. The matcher must take every id that the mask allowed.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from grammar_report import record
from samples import tool
from test_matrix import SCHEMA, TOOL_FORMATS, states
from toy import END, LlguidanceMask, Mask, XgrammarMask, sample, toy_tokenizer

import chatparsers

TOOLS = [
    tool(
        "get_weather",
        {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        ["city", "days"],
    ),
    tool(
        "plan_trip",
        {
            "stops": {
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "nights": {"enum": [1, 2, 3]}},
                    "required": ["name", "nights"],
                },
            },
            "flag": {"type": "boolean"},
        },
        ["stops", "flag"],
    ),
    tool("now", {}, []),
]
ANSWER: Any = SCHEMA["json_schema"]["schema"]  # type: ignore[index]
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
REQUESTS: dict[str, dict[str, Any]] = {
    "auto": {"tools": TOOLS},
    "required": {"tools": TOOLS, "tool_choice": "required"},
    "named": {"tools": TOOLS, "tool_choice": "get_weather"},
    "schema": {"response_format": SCHEMA},
}
DIALECTS = ("gbnf", "structural_tag", "lark")


def mask_of(turn: chatparsers.Turn, dialect: str, tokenizer: Any, stops: list[int]) -> Mask:
    options = {"engine": "xgrammar"} if dialect == "gbnf" else {}
    grammar = turn.grammar(dialect, **options)
    assert grammar is not None and not grammar.weakened, grammar
    if dialect == "lark":
        return LlguidanceMask(tokenizer, str(grammar), stops)
    return XgrammarMask(tokenizer, str(grammar), dialect, stops)


def wrong_in(turn: chatparsers.Turn, request: dict[str, Any], ids: list[int]) -> Iterator[str]:
    """Everything that is wrong with the ids of a run that the engine ended."""
    try:
        message = turn.parse(ids, strict=True)
    except chatparsers.OutputError as error:
        yield f"not parsed: {error}"
        return
    if not message.complete:
        yield f"not complete: {message}"
    if request.get("tool_choice") and not message.tool_calls:
        yield "no call"
    for call in message.tool_calls:
        if request.get("tool_choice") == "get_weather" and call.name != "get_weather":
            yield f"the call of another tool: {call.name}"
        try:
            jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])
        except (ValueError, KeyError, jsonschema.ValidationError) as error:
            yield f"invalid arguments {call.arguments!r}: {str(error).splitlines()[0]}"
    if "response_format" in request:
        try:
            jsonschema.validate(json.loads(message.content), ANSWER)
        except (ValueError, jsonschema.ValidationError) as error:
            yield f"invalid answer {message.content!r}: {str(error).splitlines()[0]}"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_what_the_mask_lets_through_is_read(name: str, dialect: str, request: pytest.FixtureRequest) -> None:
    nightly = bool(request.config.getoption("--nightly", default=False))
    format = chatparsers.get_format(name)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    for special in (True, False):
        tokenizer = toy_tokenizer(format, special)
        for mode, asked in REQUESTS.items():
            if dialect == "gbnf" and mode == "auto":
                continue  # lazy: the engine has no mask before a call begins
            for state, more in states(name).items():
                turn = format.bind(**asked, **more, tokenizer=tokenizer)
                stops = list(turn.stop_ids) or [tokenizer.token_to_id(END)]
                for index in range(20 if nightly else 1):
                    seed = random.Random(f"{name}/{dialect}/{special}/{mode}/{state}/{index}").getrandbits(32)
                    mask = mask_of(turn, dialect, tokenizer, stops)
                    ids, end = sample(mask, tokenizer, format, stops, seed, 240)
                    counts[end] += 1
                    where = f"{mode}, reasoning {state}, special={special}, {index}"
                    shown = tokenizer.decode(ids, skip_special_tokens=False)
                    if end in ("stuck", "refused"):
                        failures.append(f"{where}: {end} after {shown!r}")
                    elif end == "ended":
                        failures += [f"{where}: {wrong} in {shown!r}" for wrong in wrong_in(turn, asked, ids)]
    record(request, "sampled", format=name, dialect=dialect, runs=counts, failed=len(failures))
    assert not failures, f"{len(failures)} of {counts.total()} runs:\n" + "\n".join(failures[:4])
    assert counts["ended"] * 2 >= counts.total(), f"too many runs came to no end: {counts}"
