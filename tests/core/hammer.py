"""Threads that share one chat, its format and all caches, against one thread:

    python -W error tests/core/hammer.py [THREADS [ROUNDS [SHARE]]]

The threads begin in a fresh process, so they import and fill everything at once. Meanwhile other threads register and
remove formats, and empty the caches. One of SHARE formats is asked. It needs nothing but the package, so that an
interpreter without GIL can run it.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import chatparsers

TEMPLATE = Path(__file__).parents[1] / "templates_own" / "qwen3.jinja"
ASK = [{"role": "user", "content": "Weather?"}]
TEXTS = (
    "<think>\nwell</think>\n\nYes",
    'Hi.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>',
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
    '[get_weather(city="Oslo", days=2)]',
    'get_weather{"city": "O',
)


def tools(city: str) -> list[dict[str, Any]]:
    properties = {city: {"type": "string"}, "days": {"type": "integer"}}
    about = {"name": "get_weather", "parameters": {"type": "object", "properties": properties}}
    return [{"type": "function", "function": about}]


def said(turn: chatparsers.Turn, text: str) -> str:
    stream, events = turn.stream(), list[object]()
    for start in range(0, len(text), 3):
        events += stream.feed(text[start : start + 3])
        if start == 9:
            stream = stream.fork()
    return repr((events, stream.finish("stop"), stream.message))


def answers(chat: chatparsers.Chat, seed: int, share: int) -> dict[str, str]:
    """What each format and the chat say, asked in an order of the seed's."""
    names = [info.name for info in chatparsers.list_formats() if not info.name.startswith("mine-")]
    asked = [(name, city) for name in names[::share] for city in ("city", "town")]
    Random(seed).shuffle(asked)
    found = {}
    for name, city in asked:
        turn = chatparsers.get_format(name).bind(tools=tools(city), id_seed="")
        found[f"{name} {city}"] = repr([said(turn, text) for text in TEXTS])
        turn = chat.prepare(ASK, tools=tools(f"{city}-{len(name)}"), id_seed="")
        written = turn.grammar() if len(name) % 4 == 0 else None
        found[f"chat {city}-{len(name)}-{written is None}"] = repr(
            (turn.prompt, written, said(turn, TEXTS[1]))
        )
    return found


def registers(stop: threading.Event, number: int) -> None:
    qwen = chatparsers.get_format("qwen3")
    mine = [replace(qwen, name=f"mine-{number}-{one}", aliases=(), models=()) for one in range(20)]
    while not stop.is_set():
        for format in mine:
            chatparsers.register(format, replace=bool(number % 2))
        assert chatparsers.get_format(mine[-1].name).name == mine[-1].name
        for format in mine:
            chatparsers.unregister(format.name)


def lists(stop: threading.Event, number: int) -> None:
    while not stop.is_set():
        names = [info.name for info in chatparsers.list_formats()]
        assert names == sorted(names) and "qwen3" in names


def empties(stop: threading.Event, number: int) -> None:
    from chatparsers.kept import Kept, _renewed

    while not stop.wait(0.005):
        try:
            every = list(_renewed)
        except RuntimeError:  # another thread has just made one
            continue
        for held in every:
            if isinstance(held, Kept):
                held.clear()


def hammer(threads: int, rounds: int, share: int) -> list[str]:
    """What goes wrong: errors, and answers that differ from those of one thread."""
    wrong: list[str] = []
    found: list[dict[str, str]] = []
    stop, begin = threading.Event(), threading.Barrier(threads)
    chat = chatparsers.load(TEMPLATE)

    def guarded(work: Callable[..., None], *given: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*given)
            except BaseException:
                wrong.append(traceback.format_exc())

        return threading.Thread(target=run)

    def asks(number: int) -> None:
        begin.wait()
        for round in range(rounds):
            found.append(answers(chat, number + 100 * round, share))

    asking = [guarded(asks, number) for number in range(threads)]
    beside = [
        guarded(work, stop, number) for number, work in enumerate((registers, registers, lists, empties))
    ]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in (*asking, *beside):
            thread.start()
        for thread in asking:
            thread.join()
    finally:
        stop.set()
        for thread in beside:
            thread.join()
        sys.setswitchinterval(before)
    alone = answers(chatparsers.load(TEMPLATE), 0, share)
    wrong += [f"{name} differs" for one in found for name in alone if one.get(name) != alone[name]]
    if not wrong and len(found) != threads * rounds:
        wrong.append("a thread said nothing")
    return wrong


def main() -> None:
    threads, rounds, share = (*map(int, sys.argv[1:]), *(8, 1, 1)[len(sys.argv) - 1 :])
    wrong = hammer(threads, rounds, share)
    print(f"{threads} threads, {rounds} rounds, {len(wrong)} wrong", *wrong[:5], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
