"""The parts of the adapters that need no host."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tinies import MESSAGES, TOOLS, tiny, wrong_in

import chatparsers
from chatparsers.adapters import hosts
from chatparsers.adapters.__main__ import main
from chatparsers.adapters._answer import Answer, end_ids
from chatparsers.adapters._check import check_parameters
from chatparsers.adapters._deltas import delta_of
from chatparsers.adapters._masks import Rows
from chatparsers.adapters._tokenizers import FORMAT, chat_of
from chatparsers.serving import OpenAIChat

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("stop", ["STOP", ". ", '": "', "the the"])
def test_nothing_before_a_text_stop_is_lost(stop: str) -> None:
    """The answer is cut at the first stop, wherever it begins in a token, and nothing of the stop is shown."""
    chat = tiny("qwen3").chat
    turn = chat.prepare(MESSAGES)
    words = [
        "ST",
        "STO",
        "P",
        "the ",
        "the",
        " the",
        ". ",
        ".",
        '"',
        '": "',
        " weather",
        "é",
        "\n",
        "{",
        '"}}',
    ]
    draw = random.Random(stop)
    cuts = 0
    for _ in range(40):
        ids = [id for _ in range(30) for id in chat.tokenizer.encode(draw.choice(words)).ids]
        text = chat.tokenizer.decode(ids, skip_special_tokens=False)
        before, found, _ = text.partition(stop)
        answer = Answer(turn, [stop], reasoning="inline")
        events = [event for id in ids for event in answer.feed(id)] + answer.finish()
        expected = turn.parse(before, reasoning="inline").content
        assert answer.message.content == expected == "".join(event.text for event in events)
        assert answer.reason == ("stop" if found else "length")
        cuts += bool(found)
    assert cuts > 0


def test_the_end_of_turn_releases_what_a_stop_holds() -> None:
    chat = tiny("qwen3").chat
    turn = chat.prepare(MESSAGES)
    answer = Answer(turn, ["the end!"])
    for id in chat.tokenizer.encode("This is the end").ids:
        answer.feed(id)
    assert answer.message.content == "This is"  # the space is in the token in which the stop may begin
    answer.feed(turn.stop_ids[0])
    assert answer.ended and answer.feed(5) == []
    answer.finish()
    assert (answer.message.content, answer.message.complete) == ("This is the end", True)


def test_a_turn_that_hosts_cannot_serve_says_why() -> None:
    with pytest.raises(chatparsers.RequestError, match="expected one with a tokenizer"):
        end_ids(chatparsers.get_format("qwen3").bind())
    bare = tiny("qwen3").tokenizer.from_str(tiny("qwen3").tokenizer.to_str().replace("<|im_end|>", "<|a|>"))
    bare = bare.from_str(bare.to_str().replace("<|endoftext|>", "<|b|>"))
    with pytest.raises(chatparsers.RequestError, match="expected a token that ends it"):
        end_ids(chatparsers.get_format("qwen3").bind(tokenizer=bare))


def test_another_signature_names_the_host_and_both() -> None:
    def found(self: Any, other: Any) -> None: ...

    check_parameters(found, ("self", "other"), "host 1.0")
    with pytest.raises(
        ImportError, match=r"host 1\.0: .*found has the parameters \(self, other\), .*\(self, model\)"
    ):
        check_parameters(found, ("self", "model"), "host 1.0")


@pytest.mark.parametrize("name", ["qwen3-coder", "gpt-oss"])
def test_a_row_keeps_to_the_grammar_by_llguidance(name: str) -> None:
    """Random ids under the mask; a row that changes its past, as a beam does, is followed anew."""
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    model = tiny(name)
    turn = model.chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required")
    prompt = turn.tokenizer.encode(turn.prompt).ids
    size = turn.tokenizer.get_vocab_size() + 8  # a model may have more logits than its tokenizer has tokens
    biases, generator = np.append(model._biases(), np.zeros(8)), np.random.default_rng(1)
    rows = Rows(turn.guide("llguidance"))
    written: list[list[int]] = [[], []]
    for step in range(400):
        masks = rows.masks([prompt + row for row in written], size)
        for row, mask in zip(written, masks, strict=True):
            scores = biases + generator.gumbel(size=size)
            row.append(int((scores if mask is None else np.where(mask, scores, -np.inf)).argmax()))
        if step in (3, 20):
            written.reverse()
        if all(set(row) & set(turn.stop_ids) for row in written):
            break
    for row in written:
        end = min(row.index(id) for id in turn.stop_ids if id in row)
        message = turn.parse(row[: end + 1], strict=True)
        assert message.complete and message.tool_calls
        assert not [wrong for call in message.tool_calls if (wrong := wrong_in(call.name, call.arguments))]


def test_a_token_outside_the_grammar_is_named() -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    turn = tiny("hermes-2-pro").chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required")
    rows = Rows(turn.guide("llguidance"))
    rows.masks([[1, 2]], 600)
    with pytest.raises(chatparsers.RequestError, match=r"found 7 at index 0.*no processor after"):
        rows.masks([[1, 2, 7]], 600)


def test_a_delta_joins_the_events_of_a_step() -> None:
    events = [
        chatparsers.Reasoning("a"),
        chatparsers.Reasoning("b"),
        chatparsers.Content("c"),
        chatparsers.CallStart(0, "f", "id0"),
        chatparsers.CallArguments(0, "{"),
        chatparsers.CallArguments(0, "}"),
        chatparsers.CallEnd(0, "id0", True),
        chatparsers.CallStart(1, "g", "id1"),
    ]
    delta = delta_of(OpenAIChat("m"), events)
    assert (delta["reasoning"], delta["content"]) == ("ab", "c")
    assert [call["function"] for call in delta["tool_calls"]] == [
        {"name": "f", "arguments": "{}"},
        {"name": "g", "arguments": ""},
    ]
    assert delta_of(OpenAIChat("m"), []) == {}


def test_the_chat_of_a_wrapped_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("qwen3-coder")
    inner = SimpleNamespace(
        backend_tokenizer=model.tokenizer,
        chat_template=model.template,
        name_or_path="folder/model",
        bos_token=None,
        eos_token="<|im_end|>",
        eos_token_id=model.eos_ids[0],
    )
    chat = chat_of(SimpleNamespace(_tokenizer=inner))
    assert chat.format.name == "qwen3-coder" and chat is chat_of(inner)
    assert chat.prepare(MESSAGES, tools=TOOLS).prompt == model.chat.prepare(MESSAGES, tools=TOOLS).prompt
    monkeypatch.setenv(FORMAT, "hermes-2-pro")
    assert chat_of(inner).format.name == "hermes-2-pro"
    with pytest.raises(
        chatparsers.LoadError, match="expected a fast tokenizer of transformers, found SimpleNamespace"
    ):
        chat_of(SimpleNamespace())
    inner.chat_template = None
    monkeypatch.delenv(FORMAT)
    with pytest.raises(chatparsers.LoadError, match="has no chat template"):
        chat_of(SimpleNamespace(**{**vars(inner), "backend_tokenizer": tiny("qwen3").tokenizer}))


def test_every_host_is_listed_installed_and_documented(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    script = (ROOT / "tests" / "hosts" / "install").read_text(encoding="utf-8")
    assert {page.stem for page in (ROOT / "docs" / "hosts").glob("*.md")} == {host.name for host in hosts()}
    for host in hosts():
        assert f"\n{host.name})" in script, f"tests/hosts/install has no {host.name}"
        assert (ROOT / Path(*host.adapter.split("."))).with_suffix(".py").is_file()
        assert host.adapter in printed and host.tested in printed
        assert host.importable or host.version is None
        page = ROOT / "docs" / "hosts" / f"{host.name}.md"
        assert host.tested in page.read_text(encoding="utf-8"), f"{page.name} names another version"
