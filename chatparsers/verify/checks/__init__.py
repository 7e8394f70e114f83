"""What is judged: each check is a function from one exchange to rows."""

from __future__ import annotations

from . import contract, counts, prompt, reading, shape, unread
from .check import Check

__all__ = ["CHECKS", "Check"]

CHECKS: tuple[Check, ...] = (
    shape.status,
    shape.shape,
    shape.arguments,
    shape.schema,
    shape.ids,
    shape.finish,
    contract.choice,
    contract.parallel,
    contract.response_format,
    contract.stop,
    contract.known_tools,
    contract.grammar,
    reading.forced_calls,
    reading.calls,
    reading.reasoning,
    reading.content,
    reading.markup,
    unread.call_in_content,
    counts.usage,
    counts.unaccounted,
    prompt.prompt,
    prompt.prompt_usage,
)
