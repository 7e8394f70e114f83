"""The bridges of a template: for each shape of answer and each kind of next message, the text between, and its proof.

The same mechanism serves rollouts. Here it is shown for stand-ins, with an answered question before, so that a reader
of `Chat.bridge` sees what a rollout will do before it runs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..answers.format import Turn
from ..errors import ChatParsersError
from ..streams.message import Message, ToolCall
from .bridge import lead_of, stand_in
from .compare import Verdict, compare
from .parts import Completion
from .request import Model, Request
from .segment import Segment
from .shapes import Shape

_TOOL = {
    "type": "function",
    "function": {
        "name": "needle_tool",
        "description": "Needs a needle.",
        "parameters": {
            "type": "object",
            "properties": {"needle": {"type": "string", "description": "It."}},
            "required": ["needle"],
        },
    },
}
_SHAPES = {
    "answer": Shape(False, True, 0),
    "call": Shape(False, False, 1),
    "parallel calls": Shape(False, False, 2),
    "thought and answer": Shape(True, True, 0),
    "thought and call": Shape(True, False, 1),
}
_NEXT = ("result", "user", "system")
_WORDS = "永 N33DLE one."


@dataclass(frozen=True, slots=True)
class Bridge:
    """The way from an answer of a shape to the next generation prompt, after one kind of message.

    ``delta``: the text between; None if the template refuses such a conversation. ``reason``: None if the text is
    proved to be right whatever was said, else why a rollout renders anew: ``thought``, ``content``, ``moved`` or
    ``unproved``.
    ``held``, ``shown``: then the witness, what was given or sampled and what the template writes in its place.
    """

    shape: str
    next: str
    delta: str | None
    reason: str | None = None
    held: str = ""
    shown: str = ""

    @property
    def proved(self) -> bool:
        """Whether a step costs only its new text."""
        return self.delta is not None and self.reason is None

    def __str__(self) -> str:
        if self.delta is None:
            return "refused"
        return (
            f"proved: {self.delta!r}"
            if self.proved
            else f"{self.reason}: {self.held[:60]!r} is {self.shown[:60]!r}"
        )


class Bridges(dict[tuple[str, str], Bridge]):
    """Each `Bridge` by the answer's shape and what follows, such as ``("call", "result")``."""

    def __repr__(self) -> str:
        proved = sum(bridge.proved for bridge in self.values())
        return f"<Bridges: {proved} of {len(self)} proved>"


def bridges_of(model: Model) -> Bridges:
    """All bridges of a chat: calls with a tool, other answers without tools."""
    found = Bridges()
    for name, shape in _SHAPES.items():
        for kind in _NEXT:
            if kind != "result" or shape.calls:
                found[name, kind] = _bridge(model, name, shape, kind)
    return found


def _bridge(model: Model, name: str, shape: Shape, kind: str) -> Bridge:
    options: dict[str, Any] = {"tools": [_TOOL]} if shape.calls else {}
    thinking = True if shape.thought and _switch(model) else None
    request = Request(model, {**options, "thinking": thinking}).fixed()
    verdict = _proof(request, shape, kind, "needle_tool")
    if verdict is None:
        return Bridge(name, kind, None)
    if verdict.status == "kept" and verdict.delta is not None:
        return Bridge(name, kind, verdict.delta.text)
    status = "unproved" if verdict.status == "tail" else verdict.status
    held = "" if verdict.delta is None else verdict.held or verdict.delta.text
    return Bridge(name, kind, held, status, verdict.held, verdict.shown)


def is_proved(request: Request, shape: Shape, role: str) -> bool:
    """Whether the bridge from such an answer to a message of ``role`` is proved for this request; found once."""
    kind = "result" if role == "tool" else role
    name = f"bridge {tuple(shape)} {kind}"

    def proved() -> bool:
        verdict = _proof(request, shape, kind, next(iter(request.tools.names()), "needle_tool"))
        return verdict is not None and verdict.status == "kept"

    return request.fact(name, proved)


def _switch(model: Model) -> bool:
    return bool(model.template().can.thinking.names)


def _proof(request: Request, shape: Shape, kind: str, tool: str) -> Verdict | None:
    """What a rollout would find after such an answer; None if the template refuses the conversation."""
    history: list[Mapping[str, Any]] = [
        {"role": "user", "content": "永 first question"},
        {"role": "assistant", "content": "永 first answer"},
        {"role": "user", "content": "永 second question"},
    ]
    answer, message = _answer(shape, tool)
    new = list(_new(kind, message))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            asked = request.prepare(history)
            delta = stand_in(request, answer, new, system=False)
            whole = request.traced([*history, answer, *new])
        except ChatParsersError:
            return None
    said = Completion(cast("Any", _Unsampled(asked, message)), len(history))
    segment = Segment((said,), lead_of(request.around(asked.polyfills), asked, history, asked.prompt))
    return compare(segment, whole, delta, [*history, answer, *new])


@dataclass(frozen=True, slots=True)
class _Unsampled:
    """An answer that no model sampled."""

    turn: Turn
    message: Message

    def text(self, tokenizer: Any) -> str:
        """Nothing: it is compared as a message."""
        return "\0"


def _answer(shape: Shape, tool: str) -> tuple[dict[str, Any], Message]:
    calls = [
        ToolCall(place, f"call0000{place}", tool, json.dumps({"needle": _WORDS}, ensure_ascii=False), True)
        for place in range(shape.calls)
    ]
    thought = f"Thought of {_WORDS}" if shape.thought else ""
    message = Message(_WORDS if shape.content else "", thought, calls, True)
    return message.to_openai(), message


def _new(kind: str, message: Message) -> Iterator[Mapping[str, Any]]:
    calls: Sequence[ToolCall] = message.tool_calls if kind == "result" else ()
    for call in calls:
        yield {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": "永 result"}
    if kind == "system":
        yield {"role": "system", "content": "永 system"}
    if kind != "result":
        yield {"role": "user", "content": "永 third question"}
