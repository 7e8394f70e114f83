"""A real small model answers with a value of a type, and calls a Python function: the lines of docs/serve.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import chatparsers

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

GREEDY: dict[str, Any] = {"sampling": {"temperature": 0}, "max_tokens": 128}


@dataclass
class Person:
    name: str
    age: int
    kind: Literal["child", "adult"]


@pytest.fixture(scope="module")
def asked(gguf_of: Callable[[str], Path]) -> tuple[chatparsers.Chat, Any]:
    path = str(gguf_of("qwen05"))
    llama = llama_cpp.Llama(path, n_ctx=4096, n_threads=1, n_threads_batch=1, verbose=False)
    return chatparsers.load(path), llama


def test_ask(asked: Any) -> None:
    chat, llama = asked
    person = chat.ask(llama, "Ann is 7 years old. Who is she?", Person, **GREEDY)
    assert (person.name, person.age) == ("Ann", 7)


def test_run(asked: Any) -> None:
    """It calls with the right argument, and reads the result. That it then ends is more than so small a model knows."""
    chat, llama = asked
    seen: list[str] = []

    def get_weather(city: str) -> str:
        """The weather of a city now."""
        seen.append(city)
        return "4 degrees, snow"

    try:
        ran = chat.run(
            llama, "How is the weather in Oslo?", [get_weather], steps=2, lenient_calls=True, **GREEDY
        )
        messages = ran.messages
    except chatparsers.NoAnswer as error:
        messages = error.messages
    assert seen[0] == "Oslo" and messages[2]["content"] == "4 degrees, snow"
