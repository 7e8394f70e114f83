"""Reads a rendered conversation, such as a dataset's row or a log, back into messages, and marks the model's parts.

Text that a template drops or merges cannot come back: the tools stay in the system text, the reasoning of earlier turns
is gone. `cut` finds the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..public import public
from .cut import cut
from .request import Request


@public
@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of a rendered conversation.

    ``message``: OpenAI-shaped. ``start``, ``end``: the span of its content in the text. An assistant's span begins
    after the generation prompt and includes the text that ends its turn: all that the model writes, and so all that a
    loss counts. ``tokens``: the same in tokens, None without a tokenizer.
    """

    message: dict[str, Any]
    start: int
    end: int
    tokens: tuple[int, int] | None = None

    @property
    def written(self) -> bool:
        """Whether the model wrote it."""
        return bool(self.message["role"] == "assistant")


def read_back(request: Request, text: str, wishes: Sequence[bool]) -> list[PromptMessage]:
    """The messages of a rendered conversation. ``wishes``: as of `cut`. Raises `TemplateError` if the template marks no
    roles."""
    tokenizer = request.chat.tokenizer
    offsets = None if tokenizer is None else tokenizer.encode(text, add_special_tokens=False).offsets
    said = ("content", "tool_calls", "reasoning_content")
    return [
        PromptMessage(part.message, part.start, part.end, _tokens(offsets, part.start, part.end))
        for part in cut(request, text, wishes)
        if not part.written or any(part.message.get(key) for key in said)
    ]


def _tokens(offsets: list[tuple[int, int]] | None, start: int, end: int) -> tuple[int, int] | None:
    """The tokens that hold a character of the span."""
    if offsets is None:
        return None
    inside = [number for number, (first, last) in enumerate(offsets) if first < end and last > start]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)
