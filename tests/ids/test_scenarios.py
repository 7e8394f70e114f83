"""Every scenario reads the same by ids as by text: with the unchanged tokenizer (missing markers are spelt in several
tokens), and with the format's markers added to it as special tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from making import bytewise
from tokenizers import AddedToken, Tokenizer

from chatparsers import Message, Turn, get_format, list_formats
from chatparsers.testing.cases import bound
from chatparsers.testing.plugin import Entry
from chatparsers.testing.rendering import Case, Inexpressible, render
from chatparsers.testing.scenarios import scenarios
from chatparsers.tokens import Detokenizer, Vocabulary

OWN = Path(__file__).parent.parent / "templates_own"
NAMES = [info.name for info in list_formats() if (OWN / f"{info.name}.jinja").is_file()]
BROKEN = sorted((OWN.parent / "needle" / "cases").glob("*/wild-broken-value.json"))
REAL = ["qwen3", "llama3.1", "deepseek-v3x", "o200k_harmony", "gemma-4", "tekken-v13", "mistral-spm-v7"]


@lru_cache(maxsize=2)
def cases(name: str) -> list[Case]:
    """The scenarios of our own template of a format, rendered once for all tokenizers."""
    info = next(info for info in list_formats() if info.name == name)
    entry = Entry(info.load(), OWN / f"{name}.jinja")
    found = []
    for scenario in scenarios(entry.format):
        if not scenario.heavy:
            with suppress(Inexpressible):
                found.append(render(entry.format, entry.template(), scenario))
    return found


def without_tokens(message: Message) -> Message:
    regions = [replace(region, token_start=None, token_end=None) for region in message.regions]
    return replace(message, regions=regions)


def in_groups(ids: list[int], random: Random) -> Iterator[int | list[int]]:
    place = 0
    while place < len(ids):
        number = random.choice((1, 1, 2, 5, 40))
        yield ids[place] if number == 1 else ids[place : place + number]
        place += number


def check_ids(turn: Turn, text: str, ids: list[int]) -> None:
    message = turn.parse(ids)
    expected = turn.parse(text)
    if any(marker in call.arguments for call in expected.tool_calls for marker in turn.preserved_tokens):
        # By text a value with a marker is whole. By ids the marker's token breaks raw text, if the tokenizer has one.
        broken = any(not call.complete for call in message.tool_calls)
        assert broken or without_tokens(message) == expected
    else:
        assert without_tokens(message) == expected
    if message.regions:
        assert message.regions[0].token_start == 0
        assert message.regions[-1].token_end == len(ids)
    for region in message.regions:
        assert region.token_start is not None and region.token_end is not None
        assert 0 <= region.token_start <= region.token_end <= len(ids)
    for seed in range(3):
        stream = turn.stream()
        moments = []
        for number, piece in enumerate(in_groups(ids, Random(seed)) if seed else ids):
            stream.feed(piece)
            if number % 16 == 5:  # regions that are asked for at once, and later
                moments.append((replace(stream.message), stream.message))
        stream.finish()
        assert stream.message == message
        assert all(at_once == later for at_once, later in moments)


def run(name: str, tokenizer: Tokenizer, chosen: Callable[[int], object]) -> int:
    """The number of cases that were read alike. ``chosen``: whether the case of this number is read."""
    count = 0
    for case in (case for number, case in enumerate(cases(name)) if chosen(number)):
        turn = case.turn(tokenizer=tokenizer)
        ids = tokenizer.encode(case.text, add_special_tokens=False).ids
        ends = set(turn.stop_ids)
        if any(id in ends for id in ids[:-1]):
            continue  # such an id ends the turn wherever it stands, its text inside an argument does not
        text = Detokenizer(Vocabulary.of(tokenizer)).decode_all(ids)  # SentencePiece adds a space in front
        check_ids(turn, text, ids)
        count += 1
    return count


def with_markers(tokenizer: Tokenizer, name: str) -> Tokenizer:
    info = next(info for info in list_formats() if info.name == name)
    fmt = info.load()
    copy = Tokenizer.from_str(tokenizer.to_str())
    texts = [text for text in fmt.stops if not any(token in text for token in fmt.preserved_tokens)]
    copy.add_special_tokens([AddedToken(text, special=True) for text in (*fmt.preserved_tokens, *texts)])
    return copy


@pytest.mark.parametrize("name", NAMES, scope="class")
class TestFormat:
    """The tests of a format run one after another, so that its scenarios are rendered once."""

    def test_bytes(self, name: str, amount: Callable[..., int]) -> None:
        """With special markers, and with bytes alone: usually each case with one of the two."""
        both, turn = amount(0, 1, 1), len(name) % 2
        assert run(name, with_markers(bytewise(), name), lambda number: both or number % 2 == turn)
        assert run(name, bytewise(), lambda number: both or number % 2 != turn)

    def test_real_tokenizers(self, name: str, tokenizer: Any, amount: Callable[..., int]) -> None:
        """Each case with one of the tokenizers, another one for the next case; nightly with all. The last is a real
        one with the markers added."""
        several, read, count = amount(1, 2, len(REAL) + 1), 0, len(REAL) + 1
        for place in range(count):
            base = (
                tokenizer(REAL[place])
                if place < len(REAL)
                else with_markers(first_tokens(tokenizer("qwen3")), name)
            )
            read += run(name, base, partial(has_its_turn, place, several, count))
        assert read


def has_its_turn(place: int, several: int, count: int, number: int) -> bool:
    """Whether the tokenizer at ``place`` reads this case, of which ``several`` of ``count`` tokenizers do."""
    return (number + place) % count < several


@cache
def first_tokens(tokenizer: Tokenizer) -> Tokenizer:
    """The first 8,000 tokens of byte-level BPE: a copy with more markers is made in little time."""
    parts = json.loads(tokenizer.to_str())
    model = parts["model"]
    model["vocab"] = {text: id for text, id in model["vocab"].items() if id < 8_000}
    model["merges"] = [pair for pair in model["merges"] if "".join(pair) in model["vocab"]]
    parts["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(parts))


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.parent.name)
def test_tokens_in_a_broken_call(path: Path) -> None:
    """A special token of the arguments does not end the broken call, so nothing of the call is content."""
    case, name = json.loads(path.read_text(encoding="utf-8")), path.parent.name
    tokenizer = with_markers(bytewise(), name)
    turn = bound(get_format(name), case, tokenizer=tokenizer)
    ids = tokenizer.encode(case["text"], add_special_tokens=False).ids
    check_ids(turn, case["text"], ids)
    message = turn.parse(ids)
    assert (message.content, [call.complete for call in message.tool_calls]) == ("", [False, True])
