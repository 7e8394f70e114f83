"""A guide feeds stream and matcher the same ids, and closes a thought when its tokens are spent."""

from __future__ import annotations

import json
from array import array
from typing import Any

import numpy as np
import pytest
from engines import llguidance, xgrammar
from samples import tool
from test_sampler import end_of, real_tokenizer
from toy import toy_tokenizer

from chatparsers import CallEnd, Guide, Guides, RequestError, get_format
from chatparsers.guide.engines import engine_for

TOOLS = [tool("get_weather", {"city": {"type": "string"}}, ["city"])]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def guide_of(engine: str | None = None, prefix: str = "<think>\n", **limits: Any) -> Guide:
    llguidance()
    if engine == "xgrammar":
        xgrammar()
    format = get_format("qwen3")
    turn = format.bind(
        tools=TOOLS, tool_choice="required", tokenizer=toy_tokenizer(format, True), prefix=prefix, id_seed="s"
    )
    return turn.guide(engine, **limits)


def ids(text: str) -> list[int]:
    return list(toy_tokenizer(get_format("qwen3"), True).encode(text, add_special_tokens=False).ids)


def allowed(guide: Guide, size: int = 16) -> list[int]:
    bits = np.zeros((2, size), dtype=np.int32)
    assert guide.fill(bits, 1)
    assert not bits[0].any()
    return list(np.flatnonzero(np.unpackbits(bits[1].view(np.uint8), bitorder="little")))


@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
def test_a_budget_is_exact(engine: str) -> None:
    thought = ids("Hm, 😀 the weather")
    for budget in range(len(thought)):
        guide = guide_of(engine, thinking_tokens=budget)
        fed = 0
        while not guide.forced():
            guide.feed(thought[fed])
            fed += 1
        assert 0 <= fed - budget <= 3
        assert allowed(guide) == guide.forced() == ids("</think>")
        with pytest.raises(RequestError, match="at index 1"):
            guide.feed([guide.forced()[0], ids("b")[0]])
        assert (guide.state.kind, guide.state.left) == ("reasoning", 0)
        guide.feed(guide.forced())
        assert guide.state.kind != "reasoning"
        guide.feed(ids(CALL))
        guide.feed(ids("<|im_end|>"))
        guide.finish()
        message = guide.message
        assert message.complete and not message.diagnostics
        assert message.tool_calls[0].parsed_arguments == {"city": "Oslo"}
        guide.rollback(len(ids(CALL)) + 2)
        assert (guide.state.kind, guide.forced()) == ("reasoning", ids("</think>"))


@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
def test_a_batch_fills_what_each_guide_fills(engine: str) -> None:
    guides = Guides([guide_of(engine, thinking_tokens=0), guide_of(engine), None])
    for words in (11, 20):
        bits = np.zeros((3, words), dtype=np.int32)
        try:
            assert guides.fill(bits) == [True, True, False]
        except RequestError as error:
            assert "words" in str(error)
            continue
        for row in (0, 1):
            guide = guides[row]
            assert guide is not None
            alone = np.zeros(words, dtype=np.int32)
            guide.fill(alone)
            assert (alone == bits[row]).all()
        assert (bits[2] == -1).all()


@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
def test_a_mask_is_filled_where_it_is(engine: str) -> None:
    """The same one again, another row of it, a tensor that moved, a buffer that was resized."""

    class Tensor:
        """As one of torch."""

        dtype, device, is_contiguous = "torch.int32", "cpu", staticmethod(lambda: True)

        def __init__(self) -> None:
            self.words = np.zeros((2, 16), dtype=np.int32)

        shape = property(lambda self: self.words.shape)

        def data_ptr(self) -> int:
            return int(self.words.ctypes.data)

    guide, tensor, alone = guide_of(engine), Tensor(), np.zeros(16, dtype=np.int32)
    for id in ids("Hm</think>" + CALL):
        guide.fork().fill(alone)
        for row in (0, 0, 1, 1):
            tensor.words[row] = 0
            assert guide.fill(tensor, row) and (tensor.words[row] == alone).all()
        before, tensor.words = tensor.words, np.zeros((2, 16), dtype=np.int32)
        before[:] = 7
        assert guide.fill(tensor, 1) and (tensor.words[1] == alone).all() and (before == 7).all()
        guide.feed(id)
    buffer = array("i", [0] * 16)
    assert guide.fill(buffer)
    with pytest.raises(BufferError):
        buffer.extend([0] * 1000)
    assert guide.fill(tensor)
    buffer.extend([7] * 1000)
    assert guide.fill(buffer) and list(buffer[:16]) == list(tensor.words[0]) and not any(buffer[16:])


def test_a_grammar_is_not_taken_for_another_of_its_shape() -> None:
    """xgrammar's own cache does so, where they differ in a token alone."""
    xgrammar()
    tokenizer = toy_tokenizer(get_format("qwen3"), True)
    engine = engine_for(tokenizer, tuple(ids("<|im_end|>")), "xgrammar").engine
    for id in ids("<think></think><tool_call>"):
        rules = f'root ::= "a" Token({id})'
        matcher = engine.compiled(json.dumps({"format": {"type": "grammar", "grammar": rules}}))
        assert matcher.take(ids("a")[0])
        bits = np.zeros((engine.size + 31) // 32, dtype=np.int32)
        matcher.fill(bits.ctypes.data)
        assert list(np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))) == [id]


def test_the_rest_of_a_turn_is_read_and_steered_as_the_whole() -> None:
    """By text and by ids, at every cut."""
    llguidance()
    format = get_format("qwen3")
    turn = format.bind(tools=TOOLS, tokenizer=toy_tokenizer(format, True), id_seed="s", prompt="?")
    fed = ids("It is cold.\n" + CALL)
    whole = turn.parse(fed)
    for cut in range(1, len(fed)):
        rest = turn.rest(fed[:cut])
        text = turn.tokenizer.decode(fed[:cut], skip_special_tokens=False)
        assert (
            (rest.prefix, rest.prompt)
            == (text, "?" + text)
            == (turn.rest(text).prefix, turn.rest(text).prompt)
        )
        if cut % 5 == 0:
            before = turn.guide()
            before.feed(fed[:cut])
            assert allowed(before) == allowed(rest.guide())
        stream = turn.stream()
        ended = any(isinstance(event, CallEnd) for event in stream.feed(fed[:cut]))
        assert rest.parse(fed[cut:]).tool_calls == ([] if ended else whole.tool_calls)
    done = turn.rest(fed)
    assert done.id_seed != turn.id_seed and done.parse(ids(CALL)).tool_calls[0].id != whole.tool_calls[0].id


def test_ids_of_which_no_text_tells_are_refused() -> None:
    format = get_format("qwen3")
    turn = format.bind(tools=TOOLS, tokenizer=toy_tokenizer(format, True))
    with pytest.raises(RequestError, match="part of one"):
        turn.rest(ids("😀")[:2])
    with pytest.raises(RequestError, match="ordinary tokens"):
        turn.rest([id for char in "<think>" for id in ids(char)])


def test_a_prefix_that_the_grammar_cannot_begin_with_is_named() -> None:
    format = get_format("qwen3")
    head = '<tool_call>\n{"name": "nothing", "arg'
    turn = format.bind(tools=TOOLS, tool_choice="required", prefix=head)
    for dialect in ("lark", "structural_tag", "gbnf"):
        with pytest.raises(RequestError, match="found 'nothing"):
            turn.grammar(dialect)


@pytest.mark.of_the_folder
@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
@pytest.mark.parametrize("name", ["hunyuan-a13b", "nemotron-v2", "qwen3"])
def test_forced_ids_are_the_tokenizers_own(name: str, engine: Any, pytestconfig: pytest.Config) -> None:
    """Where a run of forced text ends, the text that follows may change how the tokenizer cuts it."""
    llguidance(), xgrammar()
    format = get_format(name)
    _, tokenizer = real_tokenizer(name, pytestconfig)
    ends = {"eos_token": tokenizer.id_to_token(end_of(tokenizer))}
    turn = format.bind(
        tools=TOOLS, tool_choice="required", thinking=False, tokenizer=tokenizer, token_config=ends
    )
    call = {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    text = format.render({"role": "assistant", "content": "", "tool_calls": [call]}, TOOLS)
    written = tokenizer.encode(text, add_special_tokens=False).ids
    guide, forced, at = turn.guide(engine), 0, 0
    while at < len(written):
        must = guide.forced()
        assert written[at : at + len(must)] == must, tokenizer.decode(written[:at], skip_special_tokens=False)
        forced += len(must)
        step = must or written[at : at + 1]
        guide.feed(step)
        at += len(step)
    assert forced > 5


@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
def test_a_loop_is_ended(engine: str) -> None:
    """The open thought is closed as one that has no ids left, or the answer ends. A guide that went back is as one that
    was never there."""
    thought = ids("Wait. " * 200)
    free, closing, stopping = (guide_of(engine, on_loop=on_loop) for on_loop in (None, "close", "stop"))
    free.feed(thought)
    assert free.stream.loop is not None and free.stream.loop.stuck and not free.forced()
    with pytest.raises(RequestError) as refused:
        closing.feed(thought)
    at = int(str(refused.value).partition("at index ")[2].partition(":")[0])
    assert 400 <= at <= 400 + 256 + 32
    for _ in range(2):
        closing.feed(thought[:at])
        assert closing.forced() == ids("</think>") == allowed(closing)
        closing.rollback(at)
    closing.feed([*thought[:at], *ids("</think>" + CALL), *ids("<|im_end|>")])
    closing.finish()
    assert closing.message.complete and closing.message.reasoning == ("Wait. " * 200)[:at]
    for _ in range(2):
        stopping.feed(thought[:at])
        assert stopping.ended and stopping.state.kind == "ended"
        stopping.rollback(9)
        assert not stopping.ended
        stopping.rollback(at - 9)
    stopping.feed(thought[:at])
    stopping.finish()
    assert not stopping.message.complete and [one.code for one in stopping.message.diagnostics] == [
        "truncated"
    ]
    with pytest.raises(RequestError, match="on_loop"):
        guide_of(engine, on_loop="tell")
