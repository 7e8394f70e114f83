"""Random messages and tables for the tests of tables."""

from __future__ import annotations

import json
import random
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "near": {"type": ["object", "null"]},
                    "exact": {"type": "boolean"},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
WORDS = [
    "Oslo",
    "two words",
    "line\nbreak",
    'quote"s',
    "ünï",
    "a<b>",
    "it's",
    "{x}",
    "1",
    "[]",
    "back\\slash",
]


class Draw:
    """Random messages of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(1, 4)))

    def arguments(self) -> str:
        chance = self.random.random
        found: dict[str, Any] = {}
        if chance() < 0.8:
            found["city"] = self.text()
        if chance() < 0.4:
            found["days"] = self.random.randint(-3, 99)
        if chance() < 0.4:
            found["tags"] = [self.text() for _ in range(self.random.randint(0, 3))]
        if chance() < 0.3:
            found["near"] = self.random.choice([None, {"a": 1, "b": [True, None]}, {}])
        if chance() < 0.3:
            found["exact"] = chance() < 0.5
        return json.dumps(found, ensure_ascii=chance() < 0.5)

    def call(self) -> dict[str, Any]:
        weather = {"name": "get_weather", "arguments": self.arguments()}
        function = weather if self.random.random() < 0.8 else {"name": "now", "arguments": "{}"}
        id = f"call{self.random.randint(0, 99999):05d}"
        return {"id": id, "type": "function", "function": function}

    def answer(self) -> dict[str, Any]:
        """An assistant's message: text, thought and calls, each or not."""
        count = self.random.choice([0, 1, 1, 2, 3])
        text = self.text() if self.random.random() < 0.7 or not count else ""
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if self.random.random() < 0.5:
            message["reasoning_content"] = self.text()
        if count:
            message["tool_calls"] = [self.call() for _ in range(count)]
        return message
