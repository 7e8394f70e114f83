"""What is remembered of earlier requests changes nothing but the time: warm and cold find the same."""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
from collections.abc import Callable
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

from model import chat_of

from chatparsers.sessions.paths import Keys, Place
from chatparsers.sessions.session import Sampled, Session
from chatparsers.sessions.walks import Walks

CONTENTS: list[Any] = [
    "a",
    "b",
    "",
    None,
    [{"type": "text", "text": "a"}],
    [{"n": 1}],
    [{"n": True}],
    [{"n": 1.0}],
]


def drawn(random: Random) -> dict[str, Any]:
    role = random.choice(["user", "assistant", "tool", "tool", "assistant", "system"])
    found: dict[str, Any] = {"role": role, "content": random.choice(CONTENTS)}
    if role == "tool":
        found["tool_call_id"] = random.choice(["1", "2", "3"])
    if role == "assistant":
        found["reasoning_content"] = random.choice([None, "T", " T ", "U"])
        calls = random.sample(["1", "2", "3"], random.randrange(3))
        arguments = ['{"a": 1}', '{"a":1}', '{"a": true}', "{a"]
        found["tool_calls"] = [
            {"id": id, "function": {"name": "f", "arguments": random.choice(arguments)}} for id in calls
        ]
    return found


def test_warm_ways_are_cold_ways(amount: Callable[[int, int, int], int]) -> None:
    """Whatever a client changes in what it sent before, at any place."""
    for seed in range(amount(100, 400, 5000)):
        random, keys = Random(seed), Keys()
        root: Place[int] = Place()
        walks = Walks(root, keys)
        messages = [drawn(random) for _ in range(3)]
        for number in range(8):
            walk = walks.of(messages)
            assert walk.keys == keys.of(messages), (seed, number)
            assert walk.places == [*root.walk(walk.keys)], (seed, number)
            if walk.before is not None:
                there = zip(messages[: walk.told], walk.before.spelt, strict=False)
                assert all(one == own for one, own in there if one["role"] == "assistant"), (seed, number)
            walks.remember(walk)
            if random.random() < 0.7:
                root.after(walk.keys[: random.randrange(len(messages) + 1)])
            messages = [deepcopy(message) for message in messages] + [
                drawn(random) for _ in range(random.randrange(3))
            ]
            for _ in range(random.randrange(3)):
                messages[random.randrange(len(messages))] = drawn(random)


def step(session: Session, messages: list[dict[str, Any]], ids: list[int]) -> dict[str, Any]:
    """A request and its answer."""
    tools = [{"name": "get_weather"}]
    asked = session.ask(messages, {"tools": tools, "thinking": True})
    told = session.answered(asked, Sampled(ids, None, [(len(ids), 1)], cut=False)).told
    return {**told}


@pytest.mark.parametrize("history", ["template", "exact"])
def test_a_step_is_flat(history: Any) -> None:
    """As many calls of Python after 40 turns as after 3: nothing is done for each turn."""
    chat: Any = chat_of("qwen3")
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    text = f"<think>\nI look.\n</think>\n\n{call}<|im_end|>"
    ids = chat.tokenizer.encode(text, add_special_tokens=False).ids
    session = Session(chat, "s", now=datetime(2025, 1, 1), history=history)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Weather?"}]
    counts: dict[int, int] = {}
    for turn in range(41):
        sent = json.loads(json.dumps(messages))
        profile = cProfile.Profile()
        profile.enable()
        told = step(session, sent, ids)
        profile.disable()
        counts[turn] = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
        assert told["reasoning_content"] and told["tool_calls"]
        messages += [told, {"role": "tool", "tool_call_id": told["tool_calls"][0]["id"], "content": "Cold."}]
    assert counts[40] <= counts[3] * 1.02, counts
