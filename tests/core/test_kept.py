"""Caches are bounded in bytes."""

from __future__ import annotations

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import chatparsers
from chatparsers import grammar
from chatparsers.kept import Kept, kept
from chatparsers.schema import tools as tool_module
from chatparsers.schema.tools import Toolset


def test_the_bytes_are_bounded_and_the_oldest_go_first() -> None:
    cache: Kept[str] = Kept(800)
    for number in range(10):
        cache.add(number, str(number), 100)
        assert cache.get(0) == "0"  # asked for, so it stays
        assert cache.size <= 800
    assert (len(cache), cache.size) == (8, 800)
    assert (cache.get(1), cache.get(9)) == (None, "9")
    cache.add("long", "x", 101)
    assert cache.get("long") is None and len(cache) == 8
    cache.add(9, "nine", 50)
    assert (cache.get(9), cache.size) == ("nine", 750)


def test_what_nobody_asks_for_makes_place_first() -> None:
    cache: Kept[int] = Kept(1_000, 400, fresh=250)
    for number in range(30):
        cache.add(number, number, 100)
        assert number % 10 or cache.get(number) == number
    assert [number for number in range(30) if cache.get(number) is not None] == [0, 10, 20, 28, 29]
    cache.add("large", 30, 400)  # the newest stays, whatever its size
    assert (cache.get("large"), cache.get(29), cache.size) == (30, 29, 900)


def test_a_copy_is_empty() -> None:
    cache: Kept[int] = Kept(1_000, 400, fresh=250)
    cache.add("one", 1, 100)
    for copied in (deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert (len(copied), copied.most, copied.largest, copied.fresh) == (0, 1_000, 400, 250)
    chat = chatparsers.load(template="qwen3")
    said = [{"role": "user", "content": "Hi"}]
    chat.prepare(said)
    renderer = chat.renderer()
    for again in (deepcopy(renderer), pickle.loads(pickle.dumps(renderer))):
        assert again.rewrite(said) == renderer.rewrite(said)


def test_threads_share_one() -> None:
    cache: Kept[int] = Kept(8_000, fresh=2_000)

    def use(thread: int) -> None:
        for number in range(3_000):
            key = (number * 7 + thread) % 60
            found = cache.get(key)
            assert found in (None, key)
            cache.add(key, key, 500)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert cache.size == 500 * len(cache) <= 8_000


def test_what_is_long_is_not_kept() -> None:
    asked = []

    @kept(4, 3)
    def twice(text: str) -> str:
        asked.append(text)
        return text * 2

    assert [twice(text) for text in ("abc", "abc", "abcd", "abcd")] == ["abcabc"] * 2 + ["abcdabcd"] * 2
    assert asked == ["abc", "abcd", "abcd"]


def test_grammars_of_strangers_do_not_pile_up() -> None:
    def tools(number: int) -> list[dict[str, object]]:
        values = [f"value {number} {index}" for index in range(20_000)]
        schema = {"type": "object", "properties": {"a": {"enum": values}}}
        return [{"name": f"tool_{number}", "parameters": schema}]

    cache = grammar._CACHE
    cache.clear()
    try:
        sizes = []
        for number in range(4):
            found = chatparsers.get_format("hermes-2-pro").bind(tools=tools(number)).grammar()
            assert found is not None
            sizes.append(len(found.text))
        assert cache.size > sum(sizes) > 1_000_000  # keys and grammars are counted
        most, cache.most = cache.most, max(sizes)
        try:
            chatparsers.get_format("hermes-2-pro").bind(tools=[{"name": "small"}]).grammar()
            assert cache.size <= cache.most
        finally:
            cache.most = most
    finally:
        cache.clear()


def test_a_tool_is_read_once_and_changed_data_anew() -> None:
    """A request's data may change between two requests; a stream that holds the tool goes on with the old one."""
    properties: dict[str, object] = {"a": {"type": "string"}}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties}}]
    first, again = Toolset(tools).get("f"), Toolset(deepcopy(tools)).get("f")
    assert first is not None and first is again
    properties["b"] = {"type": "integer"}
    changed = Toolset(tools).get("f")
    assert changed is not None and list(changed.arguments) == ["a", "b"]
    assert list(first.arguments) == ["a"] and "integer" not in str(first.parameters)


def test_tools_take_no_more_memory_than_is_counted() -> None:
    """Narrow schemas are the worst: many objects for few bytes."""
    tool_module._read.clear()
    tracemalloc.start()
    try:
        for number in range(40):
            properties: dict[str, object] = {f"p{index}": {} for index in range(100)}
            tool = Toolset([{"name": f"t{number}", "parameters": {"properties": properties}}]).get(
                f"t{number}"
            )
            assert tool is not None and all(argument.types for argument in tool.arguments.values())
        assert tracemalloc.get_traced_memory()[0] < 1.5 * tool_module._read.size
    finally:
        tracemalloc.stop()
        tool_module._read.clear()
