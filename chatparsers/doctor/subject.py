"""The model that is checked: its files, its chat, and renderings in which words occur that occur nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from ..chat.chat import Chat
from ..core.errors import TemplateError
from ..core.format import Format
from ..templates import Capabilities, Template

__all__ = ["CLOCK", "Messages", "Subject", "answer", "call", "excerpt", "quoted", "result", "user"]

Messages = Sequence[Mapping[str, Any]]
CLOCK = datetime(2024, 1, 1).strftime
"""The time of all renderings that are compared."""

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "check_weather",
            "description": "Says how the weather is.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str, reasoning: str = "") -> dict[str, Any]:
    thought = {"reasoning_content": reasoning} if reasoning else {}
    return {"role": "assistant", "content": text, **thought}


def call(
    *arguments: object, content: str = "", reasoning: str = "", name: str = "check_weather"
) -> dict[str, Any]:
    """An answer that calls a tool once with each of ``arguments``, objects or JSON text."""
    calls = [
        {
            "id": f"checkid{place:02}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for place, given in enumerate(arguments)
    ]
    return {**answer(content, reasoning), "tool_calls": calls}


def result(text: str, place: int = 0, name: str = "check_weather") -> dict[str, Any]:
    return {"role": "tool", "name": name, "tool_call_id": f"checkid{place:02}", "content": text}


class Subject:
    """A model under check. All renderings have one clock, so that they can be compared."""

    def __init__(self, chat: Chat, tools: Sequence[Mapping[str, Any]] | None = None) -> None:
        self.chat = chat
        self.tools: list[Any] = list(tools) if tools else TOOLS
        self.given = bool(tools)

    @cached_property
    def template(self) -> Template:
        return self.chat.template()

    @cached_property
    def can(self) -> Capabilities:
        return self.template.probe()

    @cached_property
    def format(self) -> Format:
        return self.chat.format

    @property
    def tokenizer(self) -> Any:
        return self.chat.tokenizer

    def render(
        self, messages: Messages, *, generate: bool = False, tools: bool = False, **variables: Any
    ) -> str:
        """What the template writes. Raises `TemplateError`."""
        shown = self.tools if tools and self.can.tools else None
        variables.setdefault("strftime_now", CLOCK)
        return self.template.render(messages, tools=shown, add_generation_prompt=generate, **variables)

    def tried(self, messages: Messages, **options: Any) -> str | None:
        """As `render`; None if the template refuses."""
        try:
            return self.render(messages, **options)
        except TemplateError:
            return None

    def raw(self, messages: Messages) -> str | None:
        """What the template writes of messages that are not shaped for it, as a plain host gives them."""
        try:
            tools = self.tools if self.can.tools else None
            return self.template.render_unshaped(messages, tools=tools, strftime_now=CLOCK)
        except TemplateError:
            return None

    def ids(self, text: str) -> list[int]:
        """The ids of a text, special tokens as such."""
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found


def excerpt(text: str, at: int, before: int = 30, behind: int = 40) -> str:
    """The text around a place, in quotes."""
    start, end = max(at - before, 0), at + behind
    return quoted(f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}")


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
