"""``thinking_tokens``, ``answer_tokens``: an engine counts a thought and the answer's text, each exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from engines import llguidance, xgrammar
from test_call_within import CALL, ENGINES, TOOLS, allowed
from test_matrix import TOOL_FORMATS
from test_sampler import real_tokenizer
from toy import toy_tokenizer

from chatparsers import Format, RequestError, Turn, get_format
from chatparsers.guide.engines import Matcher, engine_for
from chatparsers.tokens import Vocabulary

MOST = 3
WORDS = "We may say so, or we may not."
REFUSED = "thinking_tokens, answer_tokens: Lark cannot count text up to "


def turn_of(format: Format, tokenizer: Any, **asked: Any) -> Turn:
    ends = None if format.stops else {"eos_token": "<|toy_end|>"}
    return format.bind(**asked, tokenizer=tokenizer, token_config=ends, id_seed="s")


def parts_of(format: Format) -> Iterator[tuple[str, str, str]]:
    """An answer after a thought: what it is, the thought's opener, and what comes after the thought."""
    for then, message in (("content", {"content": "@"}), ("call", {"tool_calls": [CALL]})):
        try:
            text = text_of(format, reasoning_content="#", **message)
        except RequestError:  # it has no place for thoughts
            return
        begin, thought, rest = text.partition("#")
        if thought:
            yield then, begin, rest


def walk(matcher: Matcher, ids: list[int]) -> int:
    """How many of the ids the engine takes; its mask says the same."""
    for taken, id in enumerate(ids):
        if id not in allowed(matcher):
            return taken
        assert matcher.take(id)
    return len(ids)


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_thoughts_are_counted(name: str, dialect: Any) -> None:
    """Exactly: one token more is not in the mask. The closer and what follows it always are, an answer or a call."""
    llguidance(), xgrammar()
    format = get_format(name)
    check_thoughts(format, toy_tokenizer(format, True), dialect)


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_thoughts_in_a_real_vocabulary(name: str, dialect: Any, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--nightly"):
        pytest.skip("masks of 150,000 tokens take long: with --nightly")
    _, tokenizer = real_tokenizer(name, request.config)
    check_thoughts(get_format(name), tokenizer, dialect)


def check_thoughts(format: Format, tokenizer: Any, dialect: Any) -> None:
    encode = Vocabulary.of(tokenizer).encode
    words = encode(WORDS)
    for then, begin, rest in parts_of(format):
        asked = {} if then == "content" else {"tools": TOOLS, "tool_choice": "required"}
        turn = turn_of(format, tokenizer, thinking=True, **asked)
        try:
            grammar = turn.grammar(dialect, thinking_tokens=MOST)
        except RequestError as error:
            assert str(error).startswith(REFUSED)
            continue
        engine = engine_for(turn.tokenizer, turn.stop_ids, ENGINES[dialect]).engine
        opener, space = encode(begin.strip()), encode(begin[len(begin.rstrip()) :])
        for said in (0, 1, MOST):
            matcher = engine.compiled(str(grammar))
            assert walk(matcher, opener) == len(opener), begin
            if words[0] not in allowed(matcher):
                assert walk(matcher, space) == len(space)
            assert walk(matcher, words[:said]) == said
            assert (words[said] in allowed(matcher)) == (said < MOST), said
            after = encode(rest.strip().replace("@", "yes"))
            taken = walk(matcher, after)
            assert taken == len(after), tokenizer.decode(after[taken:], skip_special_tokens=False)


def text_of(format: Format, **message: Any) -> str:
    return str(format.render({"role": "assistant", **message}, TOOLS))


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_an_answer_is_counted(name: str, dialect: Any) -> None:
    """Its text alone. A call after it can still be made, after which no more text comes."""
    llguidance(), xgrammar()
    format = get_format(name)
    tokenizer = toy_tokenizer(format, True)
    encode = Vocabulary.of(tokenizer).encode
    words = encode(WORDS)
    begin, _, end = text_of(format, content="#").partition("#")
    try:
        call = text_of(format, content="#", tool_calls=[CALL]).partition("#")[2]
    except RequestError:  # its calls come without text
        call = ""
    for asked in ({}, {"tools": TOOLS}):
        turn = turn_of(format, tokenizer, thinking=False, **asked)
        try:
            grammar = turn.grammar(dialect, answer_tokens=MOST)
        except RequestError as error:
            assert "answer_tokens: Lark cannot count text up to" in str(error)
            continue
        engine = engine_for(turn.tokenizer, turn.stop_ids, ENGINES[dialect]).engine
        markers = encode(begin.strip()), encode(begin.lstrip()), encode(begin)
        opener = next(
            ids for ids in markers if walk(engine.compiled(str(grammar)), [*ids, words[0]]) > len(ids)
        )
        for said in (0, 1, MOST):
            matcher = engine.compiled(str(grammar))
            assert walk(matcher, [*opener, *words]) == len(opener) + MOST, grammar
            matcher = engine.compiled(str(grammar))
            assert walk(matcher, [*opener, *words[:said]]) == len(opener) + said
            if not matcher.may_end():
                walk(matcher, encode(end.strip()))
            assert matcher.may_end(), (said, asked)
            matcher = engine.compiled(str(grammar))
            walk(matcher, [*opener, *words[:said]])
            text = begin + WORDS[: len(tokenizer.decode(words[:said]))] + call
            if asked and len(turn.parse(text).tool_calls) == 1:
                ids = encode(call.strip())
                taken = walk(matcher, ids)
                assert taken == len(ids), (
                    said,
                    tokenizer.decode(ids[taken:], skip_special_tokens=False),
                    grammar,
                )
                assert words[0] not in allowed(matcher), (said, grammar)


@pytest.mark.filterwarnings("ignore:the grammar has")  # as text
@pytest.mark.parametrize(
    "options",
    [
        {"dialect": "gbnf"},
        {"dialect": "structural_tag", "engine": "xgrammar>=0.2.4"},
        {"dialect": "lark", "token_references": False},
    ],
)
def test_what_cannot_be_counted_is_refused(options: Any) -> None:
    format = get_format("qwen3")
    turn = turn_of(format, toy_tokenizer(format, True), tools=TOOLS)
    for limit in ("thinking_tokens", "answer_tokens"):
        with pytest.raises(RequestError, match=limit):
            turn.grammar(**options, **{limit: MOST})
