"""Random conversations, played as rollouts: the answers are sampled as a model of the format would write them."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from dialogues import TOOLS, as_read, conversation, request_of
from making import bytewise

import chatparsers
from chatparsers import Chat, Kind, Rollout, Turn
from chatparsers.chat.spoken import spelt
from chatparsers.errors import ChatParsersError
from chatparsers.templates.probe.turns import common
from chatparsers.tokens.pieces import encode_after

NOW = datetime(2025, 1, 1)


class Violation(AssertionError):
    """A promise that did not hold."""


@lru_cache(maxsize=4)
def chat_of(path: Path, tokenizer: Any = None) -> Chat:
    """The chat of a template; without a tokenizer, one of single bytes that knows the format's markers."""
    bare = chatparsers.load(path, bos_token="<BOS>", eos_token="<EOS>")
    if tokenizer is None:
        fmt = bare.syntax
        marks = {text.strip() for text in (*fmt.preserved_tokens, *fmt.stops)}
        tokenizer = bytewise("<BOS>", "<EOS>", *sorted(text for text in marks if text))
    bare._tokenizer = tokenizer  # the format need not be found again
    return bare


def wire_of(turn: Turn, message: Mapping[str, Any], stop: str, compact: bool) -> str | None:
    """What a model of the turn's format would write to say ``message``; None if its reader does not read that."""
    said = dict(message)
    if not compact and said.get("tool_calls"):
        said["tool_calls"] = [dict(call) for call in said["tool_calls"]]
    try:
        wire = turn.format.render(said, TOOLS)
    except ChatParsersError:
        return None
    ways = [wire.removeprefix(turn.prefix), wire]
    if turn.prefix and not message.get("reasoning_content"):
        empty = (
            turn.format.render({**said, "reasoning_content": "永"}, TOOLS)
            if turn.format.features.reasoning
            else wire
        )
        ways.append(empty.partition("永")[2])
    for way in dict.fromkeys(ways):
        read = turn.parse(way + stop)
        if as_read(read.to_openai()) == as_read(message) and read.complete:
            return way + stop
    return None


def play(
    chat: Chat,
    messages: Sequence[Mapping[str, Any]],
    count: Counter[str],
    *,
    history: str = "template",
    left_out: bool = False,
    **request: Any,
) -> Rollout | None:
    """Plays the conversation and checks R1, R2, R4 and R6 at each step. None if an answer cannot be written."""
    tokenizer = chat.tokenizer
    assert tokenizer is not None
    first = next(i for i, m in enumerate(messages) if m["role"] == "assistant")
    rollout = chat.rollout(messages[:first], history=history, **request)  # type: ignore[arg-type]
    growing = chat.conversation(messages[:first], **request)
    exact = True  # whether all that was sampled is what the template writes
    sampled = 0
    at = first
    while at < len(messages):
        answer = messages[at]
        turn = rollout.turn
        stop = _stop(chat, answer, request)
        wire = wire_of(turn, answer, stop, compact=False)
        if wire is None:
            count["unwritten"] += 1
            return None
        given = rollout.ids
        ids = encode_after(tokenizer, wire)[0]
        if spelt(tokenizer, ids) != wire:
            count["the tokenizer cannot spell the answer"] += 1
            return None
        if left_out and turn.stop_ids and ids and ids[-1] in turn.stop_ids:
            ids = ids[:-1]
        message = rollout.sampled(ids, logprobs=[-0.5] * len(ids))
        sampled += len(ids)
        if as_read(message.to_openai()) != as_read(answer):
            raise Violation(f"read as {as_read(message.to_openai())}, not {as_read(answer)}")
        held = rollout.ids
        if held != given + ids:
            raise Violation("R1: the ids do not end with what was sampled")
        count["answers"] += 1
        new: list[Mapping[str, Any]] = []
        at += 1
        while at < len(messages) and messages[at]["role"] != "assistant":
            new.append(messages[at])
            at += 1
        if not new:
            break
        new = _answered(message, answer, new)
        breaks = len(rollout.breaks)
        rollout.append(*new)
        count["steps"] += 1
        now = rollout.ids
        grown = growing.append(message, *new, wrote=ids)
        whole = chat.prepare(rollout.messages, **request).prompt
        if len(rollout.breaks) > breaks:
            count[f"break: {rollout.breaks[-1].reason}"] += 1
            if rollout.text != whole:
                raise Violation(f"R6: after a break {rollout.text[-300:]!r}, not {whole[-300:]!r}")
            if not (grown.rewritten and whole.endswith(grown.text)):
                raise Violation(f"conversation: after a break {grown}, not {whole[-300:]!r}")
            continue
        if now[: len(held)] != held:
            raise Violation("R1: the ids do not begin with those that were")
        if history == "template" and not rollout.breaks and (growing.ids != now or grown.rewritten):
            at = common(growing.text, rollout.text)
            raise Violation(f"conversation: {growing.text[at:]!r}, rollout: {rollout.text[at:]!r}, {grown}")
        added = spelt(tokenizer, now[len(held) :])
        count["kept"] += 1
        if history == "template" and not whole.endswith(added):
            if as_encoded(tokenizer, whole).endswith(added):
                count["the tokenizer adds spaces"] += 1
                continue
            raise Violation(f"R2: added {added!r}, the template writes {whole[-len(added) - 80 :]!r}")
        if rollout.text == whole:
            count["equal to the rendering"] += 1
        elif not exact:
            count["other spelling"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = rollout.samples()
    counted = sum(sample.counted for sample in samples)
    if counted != sampled:
        raise Violation(f"R4: {counted} ids count, {sampled} were sampled")
    for sample in samples:
        lengths = {len(sample.ids), len(sample.loss_mask), len(sample.kinds), len(sample.message_indices)}
        lengths |= {len(sample.logprobs), len(sample.versions), len(sample)}
        if len(lengths) != 1:
            raise Violation(f"columns of lengths {lengths}")
        wrong = [
            k
            for k, (m, kind) in enumerate(zip(sample.loss_mask, sample.kinds, strict=True))
            if m and kind < 4
        ]
        if wrong:
            raise Violation(f"R5: {len(wrong)} counted ids are no part of an answer")
        if tokenizer.get_vocab_size() < 1000:
            # Of single bytes: no token holds words or a name and the markup before them.
            _names_are_names(tokenizer, sample, rollout.messages)
            _words_have_their_kind(tokenizer, sample, rollout.messages)
    if tokenizer.get_vocab_size() < 1000 and rollout.messages[-1]["role"] == "assistant":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _words_have_their_kind(tokenizer, chat.encode(rollout.messages, **request), rollout.messages)
    count["samples"] += len(samples)
    count["conversations"] += 1
    return rollout


def _names_are_names(tokenizer: Any, sample: Any, messages: Sequence[Mapping[str, Any]]) -> None:
    """Checks that the name of each call has its kind, also if several calls have one name. As context, an answer stands
    as the template writes it: DeepSeek's ends the turn before a third call."""
    counted = {index for index, mask in zip(sample.message_indices, sample.loss_mask, strict=True) if mask}
    for index in counted - {-1}:
        calls = [call["function"]["name"] for call in messages[index].get("tool_calls") or ()]
        marks = zip(sample.ids, sample.message_indices, sample.kinds, strict=True)
        text = spelt(tokenizer, [id for id, place, kind in marks if place == index and kind == Kind.CALL])
        if any(text.count(name) != calls.count(name) for name in calls):
            raise Violation(f"R5: the calls are {calls}, the names marked {text!r}")


_KINDS = {
    "system": ("content", Kind.SYSTEM),
    "user": ("content", Kind.USER),
    "tool": ("content", Kind.RESULT),
    "assistant": ("reasoning_content", Kind.REASONING),
}


def _words_have_their_kind(tokenizer: Any, sample: Any, messages: Sequence[Mapping[str, Any]]) -> None:
    """Checks that words which stand once in the sample, and in no other message, have their message and its kind."""
    said = [(m.get(_KINDS[m["role"]][0]) or "").strip() for m in messages]
    for index, words in enumerate(said):
        others = [
            json.dumps({**m, _KINDS[m["role"]][0]: ""} if i == index else m, ensure_ascii=False)
            for i, m in enumerate(messages)
        ]
        if not words or sample.text.count(words) != 1 or any(words in other for other in others):
            continue
        kind = _KINDS[messages[index]["role"]][1]
        marks = zip(sample.ids, sample.message_indices, sample.kinds, strict=True)
        text = spelt(tokenizer, [id for id, place, value in marks if place == index and value == kind])
        if words not in text:
            raise Violation(f"R5: of {kind.name} {words!r} of message {index}, {text!r} has its kind")


def as_encoded(tokenizer: Any, text: str) -> str:
    """The text as its ids spell it: some tokenizers write a space behind markers."""
    return spelt(tokenizer, tokenizer.encode(text, add_special_tokens=False).ids)


def _answered(
    message: Any, answer: Mapping[str, Any], new: list[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The results, with the ids of the calls that were read."""
    ids = {
        call["id"]: read.id
        for call, read in zip(answer.get("tool_calls") or (), message.tool_calls, strict=True)
    }
    return [{**m, "tool_call_id": ids[m["tool_call_id"]]} if m["role"] == "tool" else m for m in new]


def _stop(chat: Chat, answer: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """The stop of such an answer."""
    stops = chat.format.stops
    return stops[0] if stops else ""


def plays(path: Path, number: int, count: Counter[str], found: list[str], *, tokenizer: Any = None) -> None:
    """Plays ``number`` random conversations with a template."""
    chat = chat_of(path, tokenizer)
    for seed in range(number):
        random = Random(seed)
        thoughts = chat.format.features.reasoning and seed % 2 == 0
        messages = conversation(random, tools=seed % 4 != 0, several=seed % 3 == 0, thoughts=thoughts)
        request = {**request_of(chat, True if thoughts else False if seed % 3 == 0 else None), "now": NOW}
        if seed % 4:
            request["tools"] = TOOLS
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                play(
                    chat,
                    messages,
                    count,
                    left_out=seed % 5 == 4,
                    history="exact" if seed % 7 == 6 else "template",
                    **request,
                )
        except Violation as wrong:
            count["violations"] += 1
            found.append(f"{path.stem} seed {seed}: {wrong}")
        except ChatParsersError as refused:
            count["refused"] += 1
            if "alternat" not in str(refused):
                found.append(f"{path.stem} seed {seed}: refused: {str(refused)[:200]}")
