"""Events as one delta of OpenAI's chat-completions API, for hosts that send a delta for each step of the engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..serving import OpenAIChat
from ..streams.events import Event

__all__ = ["delta_of"]


def delta_of(writer: OpenAIChat, events: Iterable[Event]) -> dict[str, Any]:
    """The delta of several events: ``content``, ``reasoning`` and ``tool_calls``, each only if there is any. Pieces of
    the same call are joined."""
    delta: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for event in events:
        for chunk in writer.event(event):
            found: Any = chunk["choices"][0]["delta"]
            for name in ("content", "reasoning"):
                if name in found:
                    delta[name] = delta.get(name, "") + found[name]
            for call in found.get("tool_calls", ()):
                if calls and calls[-1]["index"] == call["index"]:
                    calls[-1]["function"]["arguments"] += call["function"]["arguments"]
                else:
                    calls.append({**call, "function": dict(call["function"])})
    if calls:
        delta["tool_calls"] = calls
    return delta
