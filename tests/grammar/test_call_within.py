"""``call_within``: an engine counts the text before the first call, and then lets only a call or an end come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines import llguidance, xgrammar
from samples import tool
from test_matrix import TOOL_FORMATS
from toy import toy_tokenizer

from chatparsers import Format, RequestError, Turn, get_format
from chatparsers.guide.engines import Matcher, engine_for
from chatparsers.tokens import Vocabulary

TOOLS = [tool("get_weather", {"city": {"type": "string"}}, ["city"]), tool("now", {}, [])]
CALL = {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
ENGINES = {"lark": "llguidance", "structural_tag": "xgrammar"}
MOST = 4


def turn_of(format: Format) -> Turn:
    ends = None if format.stops else {"eos_token": "<|toy_end|>"}
    return format.bind(
        tools=TOOLS,
        thinking=False,
        tokenizer=toy_tokenizer(format, True),
        token_config=ends,
        call_within=MOST,
        id_seed="s",
    )


def allowed(matcher: Matcher) -> set[int]:
    bits = np.zeros((matcher.size + 31) // 32, dtype=np.int32)
    matcher.fill(bits.ctypes.data)
    return set(map(int, np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))))


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_text_before_a_call_is_counted(name: str, dialect: Any) -> None:
    llguidance(), xgrammar()
    format = get_format(name)
    turn = turn_of(format)
    try:
        grammar = turn.grammar(dialect)
    except RequestError as error:
        assert str(error).startswith("call_within: ")
        return
    engine = engine_for(turn.tokenizer, turn.stop_ids, ENGINES[dialect]).engine  # type: ignore[arg-type]
    encode = Vocabulary.of(turn.tokenizer).encode
    letters = encode("Hi dear")
    call = encode(format.render({"role": "assistant", "tool_calls": [CALL]}, TOOLS).lstrip())
    for said in range(MOST + 1):
        matcher = engine.compiled(str(grammar))
        assert all(map(matcher.take, letters[:said]))
        assert matcher.may_end()
        assert (letters[said] in allowed(matcher)) == (said < MOST)
        for id in call:
            assert id in allowed(matcher), turn.tokenizer.decode([id], skip_special_tokens=False)
            assert matcher.take(id)
        assert turn.parse([*letters[:said], *call]).tool_calls
        if letters[0] in allowed(matcher):  # text after the call is not counted
            assert all(letter in allowed(matcher) and matcher.take(letter) for letter in letters)


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
    with pytest.raises(RequestError, match=r"call_within.*turn\.guide"):
        turn_of(get_format("qwen3")).grammar(**options)
