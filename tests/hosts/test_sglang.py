"""SGLang: its real ``ReasoningParser`` and ``FunctionCallParser`` over texts sampled under their own structural tag.

The server itself needs a GPU's packages. They are not there, and stand-ins take their place for the import.
"""

from __future__ import annotations

import importlib.util
import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from stand_ins import stand_in
from tinies import FORMATS, MESSAGES, RUNS, TOOLS, Table, host_tokenizers, tiny, wrong_in

import chatparsers

if importlib.util.find_spec("sglang") is None:
    pytest.skip("SGLang is not installed: tests/hosts/install sglang", allow_module_level=True)
pytest.importorskip("transformers")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    stand_in()
    from sglang.srt.entrypoints.openai.protocol import Tool, ToolChoice
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    from chatparsers.adapters.sglang import register

from tag_mask import TagMask, compiler

register()
register()
ASKED = [Tool(**tool) for tool in TOOLS]


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return host_tokenizers(tmp_path_factory)


def sampled(name: str, tag: str, seed: int) -> list[int]:
    model = tiny(name)
    size = model.tokenizer.get_vocab_size()
    mask = TagMask(compiler(model.tokenizer, size, model.eos_ids).compile_structural_tag(tag), size)
    biases, generator = model._biases(), np.random.default_rng(seed)
    ids: list[int] = []
    for _ in range(900):
        scores = np.where(mask.allowed(), biases + generator.gumbel(size=size), -np.inf)
        ids.append(int(scores.argmax()))
        assert mask.accept(ids[-1])
        if ids[-1] in model.eos_ids:
            break
    return ids


def pieces(name: str, ids: list[int]) -> Iterator[str]:
    """The text of each step, as SGLang's detokenizer gives it: without the end of the turn."""
    tokenizer, before = tiny(name).tokenizer, ""
    for end in range(1, len(ids) + 1):
        shown = [id for id in ids[:end] if id not in tiny(name).eos_ids]
        whole = tokenizer.decode(shown, skip_special_tokens=False)
        if not whole.endswith("\ufffd"):
            yield whole[len(before) :]
            before = whole


def read(name: str, tokenizer: Any, parts: list[str], **options: Any) -> dict[str, Any]:
    """What SGLang's serving makes of the steps: the reasoning parser first, then the tool parser."""
    first = ReasoningParser("chatparsers", tokenizer=tokenizer, tool_call_parser_active=True, **options)
    second = FunctionCallParser(ASKED, "chatparsers", tokenizer=tokenizer)
    answer: dict[str, Any] = {"reasoning": "", "content": "", "tool_calls": []}

    def take(text: str, calls: list[Any]) -> None:
        answer["content"] += text
        for call in calls:
            if call.name:
                answer["tool_calls"].append((call.name, call.parameters))
            else:
                called, arguments = answer["tool_calls"][call.tool_index]
                answer["tool_calls"][call.tool_index] = (called, arguments + call.parameters)

    for part in parts:
        reasoning, normal = first.parse_stream_chunk(part)
        answer["reasoning"] += reasoning or ""
        if normal:
            take(*second.parse_stream_chunk(normal))
    reasoning, normal = first.parse_stream_end()
    answer["reasoning"] += reasoning or ""
    if normal:
        take(*second.parse_stream_chunk(normal))
    take(*second.parse_stream_end())
    streamed = second.detector.streamed_args_for_tool
    assert streamed == [call["arguments"] for call in second.detector.prev_tool_call_arr]
    return answer


def read_whole(name: str, tokenizer: Any, text: str) -> dict[str, Any]:
    first = ReasoningParser("chatparsers", tokenizer=tokenizer, tool_call_parser_active=True)
    reasoning, normal = first.parse_non_stream(text)
    content, calls = FunctionCallParser(ASKED, "chatparsers", tokenizer=tokenizer).parse_non_stream(
        normal or ""
    )
    return {
        "reasoning": reasoning or "",
        "content": content,
        "tool_calls": [(call.name, call.parameters) for call in calls],
    }


def plain(message: chatparsers.Message) -> dict[str, Any]:
    return {
        "reasoning": message.reasoning,
        "content": message.content,
        "tool_calls": [(call.name, call.arguments) for call in message.tool_calls],
    }


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, tokenizers: Any) -> None:
    tokenizer, chat = tokenizers(name), tiny(name).chat
    parser = FunctionCallParser(ASKED, "chatparsers", tokenizer=tokenizer)
    kind, tag = parser.get_structure_constraint(choice, thinking_mode=True)
    assert kind == "structural_tag"
    table = Table()
    for seed in range(RUNS):
        ids = sampled(name, tag.model_dump_json(), seed)
        turn = chat.prepare(MESSAGES, tools=TOOLS, tool_choice=choice)
        parts = list(pieces(name, ids))
        whole = turn.parse("".join(parts))
        table.add(turn.parse(ids), turn.parse(ids), choice == "required")
        assert read(name, tokenizer, parts) == plain(whole), repr("".join(parts))
        assert read_whole(name, tokenizer, "".join(parts)) == plain(whole)
    table.check(f"SGLang, {name}, {choice}", RUNS)


def test_required_and_named_calls_are_kept_without_the_reasoning(tokenizers: Any) -> None:
    """Where SGLang reads the reasoning before its grammar begins, ours begins at what follows it."""
    parser = FunctionCallParser(ASKED, "chatparsers", tokenizer=tokenizers("qwen3"))
    assert parser.owns_tool_format()
    named = ToolChoice(function={"name": "now"})
    for seed in range(5):
        _, tag = parser.get_structure_constraint(named, thinking_mode=False, parallel_tool_calls=False)
        text = "".join(pieces("qwen3", sampled("qwen3", tag.model_dump_json(), seed)))
        assert "<think>" not in text
        ((name, arguments),) = read("qwen3", tokenizers("qwen3"), [text])["tool_calls"]
        assert (name, json.loads(arguments)) == ("now", {})


SAID = {
    "role": "assistant",
    "reasoning_content": "The user wants weather.\nTwo cities.",
    "content": "Let me look.",
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": text}}
        for text in ('{"city": "Oslo", "days": 3}', '{"city": "Tromsø \\"N\\"", "days": 1}')
    ],
}


@pytest.mark.parametrize("name", FORMATS)
def test_reasoning_content_and_parallel_calls_in_any_pieces(name: str, tokenizers: Any) -> None:
    said = dict(SAID)
    if not tiny(name).format.features.reasoning:
        del said["reasoning_content"]
    turn = tiny(name).chat.prepare(MESSAGES, tools=TOOLS)
    text = tiny(name).format.render(said, TOOLS).removeprefix(turn.prefix)  # the prompt wrote it
    expected = plain(turn.parse(text))
    assert expected["content"] == SAID["content"] and len(expected["tool_calls"]) == 2
    draw = random.Random(name)
    for _ in range(20):
        cuts = sorted(draw.sample(range(1, len(text)), 12))
        parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert read(name, tokenizers(name), parts) == expected
    assert not [w for call, arguments in expected["tool_calls"] if (w := wrong_in(call, arguments))]


@pytest.mark.parametrize("forced", [None, True, False])
def test_what_the_prompt_opens(forced: bool | None, tokenizers: Any) -> None:
    """SGLang says whether it expects reasoning; the template's prompts say how the answer begins then."""
    answer = read("qwen3", tokenizers("qwen3"), ["Hello", " there."], force_reasoning=forced)
    assert answer == {"reasoning": "", "content": "Hello there.", "tool_calls": []}


def test_without_a_tool_parser_the_content_alone_is_left(tokenizers: Any) -> None:
    parser = ReasoningParser("chatparsers", tokenizer=tokenizers("qwen3"))
    found = [parser.parse_stream_chunk(part) for part in ("<thi", "nk>\nHm", ".\n</think>\n\nHi", " you.")]
    found.append(parser.parse_stream_end())
    assert "".join(reasoning or "" for reasoning, _ in found) == "Hm."
    assert "".join(normal or "" for _, normal in found) == "Hi you."
    late = ReasoningParser("chatparsers", stream_reasoning=False, tokenizer=tokenizers("qwen3"))
    parts = [late.parse_stream_chunk(part) for part in ("<think>\nHm", ".", "\n</think>\n\nHi")]
    assert [reasoning or "" for reasoning, _ in parts] == ["", "", "Hm."]


def test_another_sglang_is_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(FunctionCallParser, "ToolCallParserEnum", None)
    register()  # it must not fail: it runs in every process of SGLang
    assert "SGLang" in caplog.text and "ToolCallParserEnum" in caplog.text


@pytest.mark.filterwarnings("ignore:max_rollback_tokens:DeprecationWarning")  # SGLang's own call
@pytest.mark.parametrize("by_id", [True, False])
def test_the_grammar_backend_takes_the_structural_tag(by_id: bool, tokenizers: Any) -> None:
    """The request of docs/grammar-engines.md: SGLang's own class compiles its tag, and follows an answer to its end."""
    from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend
    from sglang.srt.sampling.sampling_params import SamplingParams

    model = tiny("qwen3")
    size = model.tokenizer.get_vocab_size()
    backend = XGrammarGrammarBackend(tokenizers("qwen3"), size, model_eos_token_ids=sorted(model.eos_ids))
    given = {"tokenizer": model.tokenizer} if by_id else {}
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, tool_choice="now", **given)
    tag = str(turn.grammar("structural_tag"))
    asked = SamplingParams(stop=list(turn.stops), skip_special_tokens=False, structural_tag=tag)
    asked.verify(size)
    grammar = backend.dispatch_structural_tag(asked.structural_tag)
    answer = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call><|im_end|>'
    mask = grammar.allocate_vocab_mask(size, 1, "cpu")
    for id in model.tokenizer.encode(answer).ids:
        grammar.fill_vocab_mask(mask, 0)
        assert int(mask[0, id // 32]) >> (id % 32) & 1, id
        grammar.accept_token(id)
    assert grammar.is_terminated()
    refused = backend.dispatch_structural_tag(tag)
    with pytest.raises(ValueError, match="Tokens not accepted"):
        for id in model.tokenizer.encode(answer.replace("now", "nobody")).ids:
            refused.accept_token(id)
