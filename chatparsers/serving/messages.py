"""Answers of Anthropic's Messages API.

An answer is a list of blocks: thinking, text, a tool's use. One block is open at a time, and is closed before the next.

The API gives a call's arguments as an object, and its clients read the pieces as JSON while they come, and take what is
there for whole. So a call that is not complete must not come here (`WholeCalls`). If one comes, as where arguments are
streamed early, what it wrote after the last character that can be JSON is not sent: a client would raise on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypedDict
from uuid import uuid4

from .errors import ApiError
from .partial import ArgumentsFilter, partial_object
from .parts import Part, PartKind
from .sealed import SHOWN, Seals
from .sendable import Sendable
from .usage import Usage
from .writer import Writer

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class Block(TypedDict, total=False):
    """A block of the message. ``type``: ``thinking``, ``text`` or ``tool_use``."""

    type: Literal["thinking", "text", "tool_use"]
    thinking: str
    signature: str
    text: str
    id: str
    name: str
    input: Any


class AnthropicMessage(TypedDict, total=False):
    """A ``message``."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Block]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: dict[str, Any]
    diagnostics: dict[str, Any] | None


class MessageEvent(TypedDict, total=False):
    """An event of the stream. ``type`` is its name."""

    type: str
    message: AnthropicMessage
    index: int
    content_block: Block
    delta: dict[str, Any]
    usage: dict[str, Any]


class AnthropicMessages(Writer[MessageEvent, AnthropicMessage]):
    """Writes a message.

    >>> from chatparsers.serving import AnthropicMessages
    >>> AnthropicMessages("m").whole(chat.bind(tools=tools).parse(call))["stop_reason"]
    'tool_use'
    """

    cut_calls: ClassVar[bool] = False
    diagnostics: tuple[dict[str, Any] | None] | None = None
    """What is said of the request in ``diagnostics``; None: nothing is, as it does not ask."""

    def __init__(
        self,
        model: str,
        *,
        id: str | None = None,
        created: int | None = None,
        call_id: Callable[[int], str] | None = None,
        seals: Seals | None = None,
    ) -> None:
        """``seals``: what seals thoughts, which then are not shown; None: they are. The others: as of `Writer`."""
        super().__init__(model, id=id, created=created, call_id=call_id)
        self._seals = seals

    @staticmethod
    def new_id() -> str:
        return f"msg_{uuid4().hex}"

    def start(self, prompt_tokens: int = 0) -> list[MessageEvent]:
        self._usage = Usage(prompt_tokens)
        return [{"type": "message_start", "message": self.answer}]

    def _begun(self, part: Part) -> list[MessageEvent]:
        part.silent = self._seals is not None and part.kind == "reasoning"
        return [self._event("content_block_start", content_block=self._block(part))]

    def _added(self, part: Part, text: str) -> MessageEvent:
        kind, field = _DELTAS[part.kind]
        return self._event("content_block_delta", delta={"type": kind, field: text})

    def _ended(self, part: Part) -> list[MessageEvent]:
        stop = self._event("content_block_stop")
        if part.kind != "reasoning":
            return [stop]
        signed = {"type": "signature_delta", "signature": self._signature(part)}
        return [self._event("content_block_delta", delta=signed), stop]

    def _event(self, type: str, **fields: Any) -> MessageEvent:
        """An event of the last block."""
        return {"type": type, "index": len(self._parts) - 1, **fields}  # type: ignore[typeddict-item]

    def _reader(self) -> Sendable:
        return Sendable(ArgumentsFilter())

    def _last(self) -> list[MessageEvent]:
        delta: dict[str, Any] = {"stop_reason": self._stop_reason, "stop_sequence": self._stop_sequence}
        delta.update(self._own)
        last: MessageEvent = {"type": "message_delta", "delta": delta, "usage": self._usage.anthropic()}
        return [last, {"type": "message_stop"}]

    @property
    def _stop_reason(self) -> StopReason | None:
        if not self._finished:
            return None
        if self._reason == "length":
            return "max_tokens"
        if self._stop_sequence is not None:
            return "stop_sequence"
        return "tool_use" if self._called else "end_turn"

    def fail(self, error: ApiError) -> list[dict[str, Any]]:
        return [error.anthropic()]

    @property
    def answer(self) -> AnthropicMessage:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [self._block(part) for part in self._parts],
            "stop_reason": self._stop_reason,
            "stop_sequence": self._stop_sequence,
            "usage": self._usage.anthropic(),
            **({} if self.diagnostics is None else {"diagnostics": self.diagnostics[0]}),
            **self._own,  # type: ignore[typeddict-item]
        }

    # blocks

    def _block(self, part: Part) -> Block:
        """The block of a part with the text that it has so far."""
        if part.kind == "content":
            return {"type": "text", "text": part.text}
        if part.kind == "reasoning":
            signature = "" if part is self._open else self._signature(part)
            return {"type": "thinking", "thinking": "" if part.silent else part.text, "signature": signature}
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": partial_object(part.text)}

    def _signature(self, part: Part) -> str:
        """The signature of a thought: what is not shown of it, else that it is shown."""
        return SHOWN if self._seals is None else part.sealed(self._seals)


_DELTAS: Mapping[PartKind, tuple[str, str]] = {
    "content": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}
