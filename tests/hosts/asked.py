"""`Chat.ask` and `Chat.run` before an engine: a random model under the grammar answers with valid values and calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

import chatparsers

Unit = Literal["celsius", "fahrenheit"]


@dataclass
class Day:
    """A day's weather."""

    unit: Unit
    degrees: Literal[3, 4, 5]
    snow: bool


def check_asking(chat: chatparsers.Chat, engine: Any, **sampling: Any) -> None:
    limits: dict[str, Any] = {"max_tokens": 600, "sampling": sampling, "thinking": False}
    for question in ("How is Oslo?", "How is <|im_end|> Oslo?"):
        day = chat.ask(engine, question, Day, tries=1, **limits)
        assert isinstance(day, Day) and day.degrees in (3, 4, 5)
    called: list[tuple[str, bool]] = []

    def get_weather(unit: Unit, snow: bool) -> dict[str, int]:
        """The weather in Oslo."""
        called.append((unit, snow))
        return {"degrees": 4}

    with pytest.raises(chatparsers.NoAnswer, match="still calls") as caught:
        options = {"tool_choice": "required", "parallel_tool_calls": False, **limits}
        chat.run(engine, "How is Oslo?", [get_weather], steps=2, **options)
    assert len(called) == 2 and {type(snow) for _, snow in called} == {bool}
    results = [one["content"] for one in caught.value.messages if one["role"] == "tool"]
    assert results == ['{"degrees": 4}'] * 2
