"""The ids that llama-server leaves out of its events are spelt anew: no character is lost, and no marker."""

from __future__ import annotations

import random
from typing import Any

import pytest
from scripted import llama_events
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

from chatparsers.gateway.lost_ids import LostIds, Spelling
from chatparsers.tokens import Vocabulary

WORDS = ("a", " the", "☃", "é", "😀", "Ω😀", "\n", "<", "<｜", "<tool_call>", '"}', "｜", "end", "▁")


@pytest.fixture(scope="module")
def vocabulary() -> Any:
    return Vocabulary.of(tiny_model("qwen3").tokenizer)


def bytes_of(vocabulary: Any, ids: list[int]) -> bytes:
    pieces = [vocabulary.pieces[id] for id in ids]
    return b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)


def completed(events: list[tuple[str, list[int]]], tokenizer: Any) -> list[int]:
    lost = LostIds(Spelling(tokenizer))
    ids = [id for text, given in events for id in lost.complete(text, given)]
    return ids + lost.flush()


@pytest.mark.parametrize("stops", [(), ("<｜end▁", "é😀!", "☃x", " the end")], ids=["", "stops"])
def test_every_character_and_marker_comes_back(stops: tuple[str, ...], vocabulary: Any) -> None:
    tokenizer = tiny_model("qwen3").tokenizer
    marker = tokenizer.token_to_id("<tool_call>")
    draw = random.Random(4)
    lost = 0
    for _ in range(300):
        text = "".join(draw.choice(WORDS) for _ in range(draw.randrange(1, 12))) + "."
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        events = llama_events([(id, bytes_of(vocabulary, [id])) for id in ids], stops)
        found = completed(events, tokenizer)
        assert bytes_of(vocabulary, found).decode() == text
        assert found.count(marker) == ids.count(marker)
        lost += len(ids) - sum(len(given) for _, given in events)
    assert lost > 300


def test_broken_bytes_are_shown_and_change_nothing_else(vocabulary: Any) -> None:
    """A model may write half a character. It is shown as U+FFFD, as the engine does, and what follows is whole."""
    tokenizer = tiny_model("qwen3").tokenizer
    half = Spelling(tokenizer).parts[b"\xf0"]
    ids = [half, *(tokenizer.token_to_id(letter) for letter in "cab")]
    pieces = [(id, bytes_of(vocabulary, [id])) for id in ids]
    assert bytes_of(vocabulary, completed(llama_events(pieces), tokenizer)).decode() == "\ufffdcab"
    late = completed(llama_events(pieces, ["cx"]), tokenizer)  # the id of "c" came before its text
    assert bytes_of(vocabulary, late).decode() == "c\ufffdab"


def test_an_engine_that_leaves_nothing_out(vocabulary: Any) -> None:
    """Its ids stay as they are: those of control tokens without text, and several in one event."""
    tokenizer = tiny_model("qwen3").tokenizer
    a, end = tokenizer.token_to_id("a"), tokenizer.token_to_id("<|im_end|>")
    snowman = tokenizer.encode("☃", add_special_tokens=False).ids
    events = [
        ("a", [a]),
        ("", snowman[:1]),
        ("", snowman[1:2]),
        ("☃", snowman[2:]),
        ("aa", [a, a]),
        ("", [end]),
    ]
    assert completed(events, tokenizer) == [id for _, ids in events for id in ids]
    assert completed([("", [end]), ("☃", snowman[2:])], tokenizer) == [end, *snowman]
