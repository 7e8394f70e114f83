"""Rollouts: what a step of a rollout and of a session costs at 2, 20 and 200 turns, what encoding costs beside
rendering, what a fork keeps.

python benchmarks/rollouts.py TEMPLATE TOKENIZER [--peer Qwen/Qwen3-0.6B]

``--peer``: a model of this template that `renderers` knows (needs renderers and transformers). Its step is
`parse_response` and `bridge_to_next_turn`; ours beside it is a step and a copy of all ids, as its bridge makes one.
"""

from __future__ import annotations

import argparse
import json
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import chatparsers
from chatparsers import Chat, Rollout
from chatparsers.sessions.session import Sampled, Session

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Where."}},
            },
        },
    }
]
WORDS = "The quick brown fox jumps over the lazy dog and looks at the weather in Oslo. " * 12
TURNS = (2, 20, 200)


def step(rollout: Rollout, ids: list[int]) -> None:
    """One step of an agent: a call that was sampled, its result."""
    message = rollout.sampled(ids)
    rollout.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": WORDS})


def forked_step(rollout: Rollout, ids: list[int]) -> None:
    """A step that leaves the rollout as it is."""
    step(rollout.fork(), ids)


def best(run: Callable[[], Any], times: int = 9) -> float:
    """The shortest CPU time of some runs, in milliseconds."""
    found = []
    for _ in range(times):
        start = process_time()
        run()
        found.append(process_time() - start)
    return min(found) * 1e3


def peer(chat: Chat, name: str, source: str) -> Any:
    """The renderer of the peer for the model ``name``."""
    base, transformers = import_module("renderers.base"), import_module("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=chat.tokenizer, eos_token=chat.format.stops[0]
    )
    fast.name_or_path, fast.chat_template = name, source
    return base.create_renderer(fast)


def steps(chat: Chat, ids: list[int], other: Any) -> None:
    """A step at each length, what the template costs there without a rollout, and a step of the peer."""
    for turns in TURNS:
        rollout = chat.rollout([{"role": "user", "content": "Is it cold?"}], tools=TOOLS)
        for _ in range(turns):
            step(rollout, ids)
        mine = best(partial(forked_step, rollout, ids), 25)
        messages = rollout.messages

        def anew(given: list[dict[str, Any]] = messages) -> None:
            chat.tokenizer.encode(chat.prepare(given, tools=TOOLS).prompt, add_special_tokens=False)  # type: ignore[union-attr]

        print(f"{turns:4} turns: a step {mine:6.2f} ms, rendered and encoded anew {best(anew, 3):8.2f} ms")
        if other is not None:
            beside(rollout, ids, other)


def session_steps(chat: Chat, ids: list[int]) -> None:
    """A request and its answer in a session, where the client sends the whole history each time."""
    options, sampled = {"tools": TOOLS}, Sampled(ids, [-0.1] * len(ids), [(len(ids), 1)], cut=False)
    for turns in TURNS:
        session = Session(chat, "s", now=datetime(2025, 1, 1))
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Is it cold?"}]

        def one(given: list[dict[str, Any]], session: Session = session) -> Any:
            return session.answered(session.ask(given, options), sampled).told

        for _ in range(turns):
            told = one(messages)
            messages += [
                {**told},
                {"role": "tool", "tool_call_id": told["tool_calls"][0]["id"], "content": WORDS},
            ]
        times = []
        for _ in range(25):
            sent = json.loads(json.dumps(messages))  # as it comes: other objects in each request
            times.append(best(partial(one, sent), 1))
        print(f"{turns:4} turns: a step of a session {min(times):6.2f} ms")


def beside(rollout: Rollout, ids: list[int], other: Any) -> None:
    """A step and all ids, of ours and of the peer, which take turns; both must make the same ids."""
    given, result = rollout.ids, {"role": "tool", "content": WORDS}

    def mine() -> list[int]:
        fork = rollout.fork()
        step(fork, ids)
        return fork.ids

    def theirs() -> Any:
        other.parse_response(ids, tools=TOOLS)
        return other.bridge_to_next_turn(given, ids, [result], tools=TOOLS).token_ids

    if mine() != list(theirs()):
        raise SystemExit("the peer's bridge has other ids: are template and model the same?")
    pairs = [(best(mine, 1), best(theirs, 1)) for _ in range(25)]
    one, two = (min(times) for times in zip(*pairs, strict=True))
    print(f"            a step and all ids {one:6.2f} ms, renderers {two:8.2f} ms: {one / two:.2f} x")


def encoding(chat: Chat, ids: list[int]) -> None:
    """`Chat.encode` beside a bare rendering that is encoded."""
    rollout = chat.rollout([{"role": "user", "content": "Is it cold?"}], tools=TOOLS)
    for _ in range(30):
        step(rollout, ids)
    messages = [*rollout.messages, {"role": "assistant", "content": "Yes."}]

    def bare() -> object:
        return chat.tokenizer.encode(  # type: ignore[union-attr]
            chat.prepare(messages, tools=TOOLS, add_generation_prompt=False).prompt, add_special_tokens=False
        ).ids

    chat.encode(messages, tools=TOOLS)
    pairs = [(best(bare, 1), best(lambda: chat.encode(messages, tools=TOOLS), 1)) for _ in range(15)]
    one, other = (min(times) for times in zip(*pairs, strict=True))  # in turn: a busy machine slows both
    print(
        f"encode {len(messages)} messages: {other:.2f} ms; rendered and encoded bare {one:.2f} ms: {other / one:.2f} x"
    )


def forks(chat: Chat, ids: list[int]) -> None:
    """What a thousand forks of a rollout of 200 turns keep."""
    rollout = chat.rollout([{"role": "user", "content": "Is it cold?"}], tools=TOOLS)
    for _ in range(200):
        step(rollout, ids)
    tracemalloc.start()
    kept = [rollout.fork() for _ in range(1000)]
    size = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    print(f"a fork at 200 turns keeps {size:,.0f} bytes; the rollout has {len(rollout.ids):,} ids")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("template", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--peer", help="a model of this template that renderers knows")
    given = parser.parse_args()
    chat = chatparsers.load(given.template, tokenizer=given.tokenizer)
    call = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    answer = {"role": "assistant", "content": "", "tool_calls": [{"id": "call00000", "function": call}]}
    wire = chat.format.render(answer, TOOLS) + chat.format.stops[0]
    ids = chat.tokenizer.encode(wire, add_special_tokens=False).ids  # type: ignore[union-attr]
    other = peer(chat, given.peer, given.template.read_text(encoding="utf-8")) if given.peer else None
    steps(chat, ids, other)
    session_steps(chat, ids)
    encoding(chat, ids)
    forks(chat, ids)


if __name__ == "__main__":
    main()
