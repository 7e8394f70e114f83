"""Ids taken back, forks, states and arguments so far, over every format: a stream that went astray and back is one that
never did."""

from __future__ import annotations

import tracemalloc
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from making import bytewise

from chatparsers import Event, Message, RequestError, Stream, Turn, get_format
from chatparsers.answers.format import Format
from chatparsers.testing import load_cases
from chatparsers.testing.cases import bound

_CASES = Path(__file__).parents[1] / "needle" / "cases"
_KEPT = 24
_LONGEST = 700


def answers(format: Format, random: Random, number: int) -> list[tuple[Turn, list[int]]]:
    """Answers as ids with their turns: texts of models, whole and with noise in them."""
    markers = tuple(text for text in (*format.preserved_tokens, *format.stops) if text.strip() == text)
    tokenizer = bytewise(*markers)
    cases = [case for _, case in load_cases(_CASES / format.name) if len(case["text"]) <= _LONGEST]
    found = []
    for case in random.sample(cases, min(number, len(cases))):
        turn = bound(format, case, tokenizer=tokenizer)
        ids = tokenizer.encode(case["text"], add_special_tokens=False).ids
        noise = tokenizer.encode("".join((*markers, 'é😀 {}"\\\n,:')), add_special_tokens=False).ids
        found.append((turn, ids))
        spoilt = [random.choice(noise) if random.random() < 0.1 else id for id in ids]
        found.append((turn, [*spoilt, len(tokenizer.get_vocab()) + 7]))
    return found


def looked(stream: Stream) -> tuple[Any, ...]:
    calls = range(len(stream.message.tool_calls))
    return stream.region, stream.state, stream.ended, stream.message, [stream.so_far(i) for i in calls]


def ended(stream: Stream, rest: list[int]) -> tuple[list[Event], Message]:
    deltas: list[Event] = []
    for id in rest:
        deltas += stream.feed(id)
    return deltas + stream.finish(), stream.message


def walked(turn: Turn, ids: list[int], random: Random) -> Stream:
    """A stream that has read ``ids``, after it has read others, taken them back, and been forked."""
    stream = turn.stream(rollback=_KEPT)
    read = floor = 0
    while read < len(ids):
        many = min(random.choice((1, 1, 1, 3, 12)), len(ids) - read)
        stream.feed(ids[read : read + many] if many > 1 else ids[read])
        read += many
        floor = max(floor, read + 4 - _KEPT)
        if random.random() < 0.2:
            looked(stream)
        if random.random() < 0.3:
            astray = [random.choice(ids) for _ in range(random.choice((1, 2, 9)))]
            for id in astray:
                stream.feed(id)
            if random.random() < 0.3:
                looked(stream)
            floor = max(floor, read + len(astray) - _KEPT)
            stream.rollback(len(astray))
        if random.random() < 0.2:
            back = random.randint(0, max(0, min(read, _KEPT) and read - max(floor, 0)))
            stream.rollback(back)
            read -= back
        if random.random() < 0.2:
            fork = stream.fork()
            stray, stream = (fork, stream) if random.random() < 0.5 else (stream, fork)
            stray.feed(random.choice(ids))
            stray.rollback(1)
            stray.feed(random.sample(ids, min(3, len(ids))))
            looked(stray)
    return stream


def test_ids_taken_back_were_never_read(format: Format, amount: Any) -> None:
    for seed in range(amount(1, 4, 40)):
        random = Random(f"{format.name} {seed}")
        for turn, ids in answers(format, random, 2):
            cut = random.randint(1, len(ids))
            stream, fresh = walked(turn, ids[:cut], random), turn.stream()
            for id in ids[:cut]:
                fresh.feed(id)
            assert looked(stream) == looked(fresh)
            assert stream.token_regions() == fresh.token_regions()
            assert ended(stream, ids[cut:]) == ended(fresh, ids[cut:])


def test_what_is_decided_does_not_depend_on_answers_before(format: Format) -> None:
    """The first answers of a process and later ones are in the same states at each cut."""
    fresh = replace(format, name=f"{format.name}-anew")  # nothing is compiled for it
    cases = [case for _, case in load_cases(_CASES / format.name) if len(case["text"]) <= _LONGEST]
    case = max(cases, key=lambda case: len(bound(format, case).parse(case["text"]).tool_calls))

    def read() -> list[Any]:
        stream = bound(fresh, case).stream()
        return [(stream.feed(character), stream.state, stream.message.regions) for character in case["text"]]

    first = read()
    assert all(read() == first for _ in range(3))


def test_a_state_says_where_the_next_character_goes(format: Format, amount: Any) -> None:
    random = Random(format.name)
    cases = [case for _, case in load_cases(_CASES / format.name) if len(case["text"]) <= _LONGEST]
    for case in random.sample(cases, min(len(cases), amount(2, 6, 40))):
        stream = bound(format, case).stream()
        for character in case["text"]:
            state, fork = stream.state, stream.fork()
            assert state == fork.state
            fork.feed("\ue000")
            ends = {
                "reasoning": fork.message.reasoning.endswith("\ue000"),
                "content": fork.message.content.endswith("\ue000"),
            }
            if state.kind == "content":
                assert ends["content"], state
            elif (
                state.kind == "reasoning"
            ):  # it may be held: whether a thought is open may show at its closer only
                assert ends["reasoning"] or not ends["content"], state
            # A call in an open thought may become a draft of it.
            assert state.kind in ("reasoning", "call") or not ends["reasoning"], state
            if state.kind == "call" and state.call < len(fork.message.tool_calls):
                assert state.tool == fork.message.tool_calls[state.call].name
            stream.feed(character)


def test_the_arguments_so_far_become_the_arguments(format: Format, amount: Any) -> None:
    random = Random(format.name)
    cases = [case for _, case in load_cases(_CASES / format.name) if len(case["text"]) <= _LONGEST]
    for case in random.sample(cases, min(len(cases), amount(3, 12, 60))):
        stream = bound(format, case).stream()
        seen: list[tuple[int, Any]] = []
        for character in case["text"]:
            stream.feed(character)
            seen += [(call.index, deepcopy(stream.so_far(call.index))) for call in stream.message.tool_calls]
        stream.finish()
        for call in stream.message.tool_calls:
            whole = call.parsed_arguments
            if whole is not None:
                assert stream.so_far(call.index) == whole
                assert all(_begins(found, whole) for index, found in seen if index == call.index)


def _begins(found: Any, whole: Any) -> bool:
    """Whether a value is a beginning of another."""
    if isinstance(found, str):
        return isinstance(whole, str) and whole.startswith(found)
    if isinstance(found, list):
        return len(found) <= len(whole) and all(map(_begins, found, whole))
    if isinstance(found, dict):
        return all(name in whole and _begins(value, whole[name]) for name, value in found.items())
    return bool(found == whole)


def test_a_fork_costs_a_copy_of_its_text() -> None:
    """Counts what is copied: the text and where its ids begin, and no more."""
    turn = get_format("qwen3").bind(tokenizer=bytewise())
    stream = turn.stream(rollback=4)
    ids = turn.tokenizer.encode("word " * 5_000).ids
    stream.feed(ids)
    stream.fork()
    tracemalloc.start()
    fork = stream.fork()
    fork.feed(turn.tokenizer.encode("<b").ids)
    fork.rollback(3)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 8 * len(ids)
    assert fork.message.content == ("word " * 5_000)[:-1]


def test_what_cannot_be_taken_back() -> None:
    turn = get_format("qwen3").bind(tokenizer=bytewise("<think>", "</think>", "<|im_end|>"))
    stream = turn.stream(rollback=2)
    stream.feed(turn.tokenizer.encode("<think>abc").ids)
    for n in (3, -1, True, 1.0):
        with pytest.raises(RequestError, match="from 0 to 2"):
            stream.rollback(n)  # type: ignore[arg-type]
    stream.rollback(2)
    assert stream.message.text == "<think>a"
    stream.finish()
    with pytest.raises(RequestError, match="finished"):
        stream.rollback(0)
    with pytest.raises(RequestError, match=r"turn.stream\(rollback=…\)"):
        turn.stream().rollback(1)
    with pytest.raises(RequestError, match="number of ids"):
        turn.stream(rollback=-1)
