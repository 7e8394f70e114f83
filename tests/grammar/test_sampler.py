"""The grammar and the stream mean the same by ids: a toy model under an engine's mask, its ids fed to the stream.

No text test can show this. A grammar of texts lets the sampler spell a marker in ordinary tokens, and a stream of ids
then reads text (C9). Every run that the engine ends must be complete in strict mode, its arguments must be valid, and
it must honour the request. The matcher must take every id that the mask allowed.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from grammar_report import record
from making import KINDS
from samples import tool
from test_matrix import SCHEMA, TOOL_FORMATS, states
from toy import END, LlguidanceMask, Mask, XgrammarMask, sample, toy_tokenizer

import chatparsers
from chatparsers.testing.plugin import tokenizer_loaders

TOOLS = [tool(name, *given) for name, given in KINDS.items()]
ANSWER: Any = SCHEMA["json_schema"]["schema"]  # type: ignore[index]
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
REQUESTS: dict[str, dict[str, Any]] = {
    "auto": {"tools": TOOLS},
    "required": {"tools": TOOLS, "tool_choice": "required"},
    "named": {"tools": TOOLS, "tool_choice": "get_weather"},
    "schema": {"response_format": SCHEMA},
}
DIALECTS = ("gbnf", "structural_tag", "lark")
NO_FORCING = '%llguidance {"no_forcing": true}\n'


def mask_of(
    turn: chatparsers.Turn,
    dialect: str,
    tokenizer: Any,
    stops: list[int],
    told: frozenset[str] = frozenset(),
    forcing: bool = True,
    whitespace: int | None = None,
) -> Mask:
    """``told``: keywords that the grammar may leave out. Without ``forcing``, llguidance's mask has all spellings of a
    text that alone may follow."""
    options = {"engine": "xgrammar"} if dialect == "gbnf" else {}
    grammar = turn.grammar(dialect, whitespace=whitespace, **options)
    assert grammar is not None
    schemas = [weak for weak in grammar.weakened if weak.path != "$.tools"]  # there: what text is left out
    assert told.issuperset(weak.keyword for weak in schemas), schemas
    if dialect == "lark":
        return LlguidanceMask(tokenizer, ("" if forcing else NO_FORCING) + str(grammar), stops)
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


TOY_RUNS, REAL_RUNS = 5, 2
"""How many runs of each case there are in a nightly run."""
LOADERS = ("qwen3", "llama3.1", "deepseek-v3x", "o200k_harmony", "gemma-4", "tekken-v13", "mistral-spm-v7")


def real_tokenizer(name: str, config: pytest.Config) -> tuple[str, Any]:
    """The real tokenizer that has the most of a format's markers. A format without markers takes turns."""
    loaders = tokenizer_loaders(config)
    format = chatparsers.get_format(name)
    wanted = {*format.preserved_tokens, *format.stops}
    best, most = None, -1
    start = TOOL_FORMATS.index(name) if name in TOOL_FORMATS else 0
    for index in range(len(LOADERS)):
        base = LOADERS[(start + index) % len(LOADERS)]
        if base not in loaders:
            pytest.skip(f"no real tokenizer {base!r}: give --shared DIR or set CHATPARSERS_SHARED")
        added = loaders[base]().get_added_tokens_decoder().values()
        count = len(wanted & {token.content for token in added})
        if count > most:
            best, most = base, count
    assert best is not None
    return best, loaders[best]()


def end_of(tokenizer: Any) -> int:
    """The token that ends a turn for a format without stops of its own in this tokenizer."""
    for text in (END, "<|im_end|>", "<|eot_id|>", "<｜end▁of▁sentence｜>", "<|return|>", "<eos>", "</s>"):
        if (id := tokenizer.token_to_id(text)) is not None:
            return int(id)
    raise AssertionError("the tokenizer has no token that ends a turn")


def some(all_of_them: dict[str, Any], turn: int, count: int) -> dict[str, Any]:
    """Of the states of the reasoning one, another in each turn; all of them where each runs several times."""
    if count > 1:
        return all_of_them
    chosen = list(all_of_them)[turn % len(all_of_them)]
    return {chosen: all_of_them[chosen]}


def run(
    name: str,
    dialect: str,
    tokenizers: list[tuple[str, Any]],
    count: int,
    request: pytest.FixtureRequest,
) -> Counter[str]:
    """Samples every mode and state of the reasoning; fails if a run is stuck, refused or read wrongly."""
    format = chatparsers.get_format(name)
    table: dict[str, Counter[str]] = {}
    turns = itertools.count()
    failures: list[str] = []
    budget = 360
    for label, tokenizer in tokenizers:
        for mode, asked in REQUESTS.items():
            if dialect == "gbnf" and mode == "auto":
                continue  # lazy: the engine has no mask before a call begins
            counts = table.setdefault(mode, Counter())
            for state, more in some(states(name), next(turns), count).items():
                if dialect == "gbnf" and state != "free" and label in LOADERS:
                    continue  # xgrammar compiles GBNF over a real vocabulary for a second or more
                turn = format.bind(**asked, **more, tokenizer=tokenizer)
                stops = list(turn.stop_ids) or [end_of(tokenizer)]
                for index in range(count):
                    seed = random.Random(f"{name}/{dialect}/{label}/{mode}/{state}/{index}").getrandbits(32)
                    mask = mask_of(turn, dialect, tokenizer, stops)
                    ids, end = sample(mask, tokenizer, format, stops, seed, budget)
                    counts[end] += 1
                    where = f"{mode}, reasoning {state}, {label}, {index}"
                    shown = tokenizer.decode(ids, skip_special_tokens=False)
                    if end in ("stuck", "refused"):
                        failures.append(f"{where}: {end} after {shown!r}")
                    elif end == "ended" and (found := list(wrong_in(turn, asked, ids))):
                        counts["invalid"] += 1
                        failures += [f"{where}: {wrong} in {shown!r}" for wrong in found]
    record(request, "sampled", format=name, dialect=dialect, table={m: dict(c) for m, c in table.items()})
    total = sum(table.values(), Counter())
    runs = total.total() - total["invalid"]
    assert not failures, f"{len(failures)} wrong in {runs} runs:\n" + "\n".join(failures[:4])
    return total


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_what_the_mask_lets_through_is_read(
    name: str, request: pytest.FixtureRequest, amount: Callable[[int, int, int], int]
) -> None:
    """Usually in one dialect, another one for the next format."""
    format = chatparsers.get_format(name)
    toys = [(f"toy, special={special}", toy_tokenizer(format, special)) for special in (True, False)]
    first = TOOL_FORMATS.index(name)
    for place in range(first, first + amount(1, 3, 3)):
        dialect = DIALECTS[place % 3]
        runs = amount(1, 1, TOY_RUNS)
        total = run(name, dialect, toys, runs, request)
        wanted = total.total() / 2 if runs > 1 else 1  # chance decides about the few of a usual run
        assert total["ended"] >= wanted, f"{dialect}: too many runs came to no end: {total}"


@pytest.mark.of_the_folder
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_with_a_real_vocabulary(name: str, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--nightly", default=False):
        pytest.skip("a mask of 150,000 tokens takes long to sample from: with --nightly")
    for dialect in DIALECTS:
        # In GBNF only one state of the reasoning runs.
        count = 3 * REAL_RUNS if dialect == "gbnf" else REAL_RUNS
        total = run(name, dialect, [real_tokenizer(name, request.config)], count, request)
        assert total["ended"], f"{dialect}: no run came to an end: {total}"
