"""Answers of Anthropic's Messages API.

An answer is a list of blocks: thinking, text, a tool's use. One block is open at a time, and is closed before the next.

The API gives a call's arguments as an object, and its clients read the pieces as JSON while they come, and take what is
there for whole. So a call that is not complete must not come here (`WholeCalls`). If one comes, as where arguments are
streamed early, what it wrote after the last character that can be JSON is not sent: a client would raise on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypedDict
from uuid import uuid4

from ..core.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from ..core.message import FinishReason
from ..core.parser.stream import check_reason
from .errors import ApiError
from .partial import ArgumentsFilter, partial_object
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

    def __init__(
        self,
        model: str,
        *,
        id: str | None = None,
        created: int | None = None,
        call_id: Callable[[int], str] | None = None,
    ) -> None:
        super().__init__(model, id=id, created=created, call_id=call_id)
        self._blocks: list[Block] = []
        self._open = ""
        """The type of the open block; "" if none is open."""
        self._pieces: list[str] = []
        """The text of the open block."""
        self._arguments = ArgumentsFilter()
        self._called = False
        """Whether a call is complete."""
        self._stop: StopReason | None = None
        self._stop_sequence: str | None = None
        self._usage = Usage()

    cut_calls: ClassVar[bool] = False

    @staticmethod
    def new_id() -> str:
        return f"msg_{uuid4().hex}"

    def start(self, prompt_tokens: int = 0) -> list[MessageEvent]:
        self._usage = Usage(prompt_tokens)
        return [{"type": "message_start", "message": self.answer}]

    def event(self, event: Event) -> list[MessageEvent]:
        match event:
            case Content(text=text):
                opened = self._opened("text", {"type": "text", "text": ""})
                return [*opened, self._delta(text, {"type": "text_delta", "text": text})]
            case Reasoning(text=text):
                opened = self._opened("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                return [*opened, self._delta(text, {"type": "thinking_delta", "thinking": text})]
            case CallStart(name=name):
                closed = self._close()
                self._arguments = ArgumentsFilter()
                block: Block = {"type": "tool_use", "id": self._call_id(event), "name": name, "input": {}}
                return [*closed, *self._opened("tool_use", block)]
            case CallArguments(text=text):
                text = self._arguments.take(text)
                if text:
                    return [self._delta(text, {"type": "input_json_delta", "partial_json": text})]
            case CallEnd(complete=complete):
                self._called = self._called or complete
                return self._close()
        return []

    def finish(
        self,
        reason: FinishReason | None = None,
        usage: Usage | None = None,
        *,
        stop_sequence: str | None = None,
    ) -> list[MessageEvent]:
        check_reason(reason)
        closed = self._close()
        if reason == "length":
            self._stop = "max_tokens"
        elif stop_sequence is not None:
            self._stop, self._stop_sequence = "stop_sequence", stop_sequence
        else:
            self._stop = "tool_use" if self._called else "end_turn"
        self._usage = usage or self._usage
        delta: dict[str, Any] = {"stop_reason": self._stop, "stop_sequence": self._stop_sequence}
        if self.unwanted:
            delta["unwanted_calls"] = self.unwanted
        return [
            *closed,
            {"type": "message_delta", "delta": delta, "usage": self._usage.anthropic()},
            {"type": "message_stop"},
        ]

    def fail(self, error: ApiError) -> list[dict[str, Any]]:
        return [error.anthropic()]

    @property
    def answer(self) -> AnthropicMessage:
        blocks = [*self._blocks]
        if self._open:
            blocks[-1] = self._filled(blocks[-1])
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": blocks,
            "stop_reason": self._stop,
            "stop_sequence": self._stop_sequence,
            "usage": self._usage.anthropic(),
            **({"unwanted_calls": self.unwanted} if self.unwanted else {}),  # type: ignore[typeddict-unknown-key]
        }

    # blocks

    def _opened(self, kind: str, block: Block) -> list[MessageEvent]:
        """The events that open a block, unless one of text or thinking is open that goes on."""
        if self._open == kind:
            return []
        closed = self._close()
        self._open = kind
        self._pieces = []
        self._blocks.append(block)
        start: MessageEvent = {
            "type": "content_block_start",
            "index": len(self._blocks) - 1,
            "content_block": block.copy(),
        }
        return [*closed, start]

    def _delta(self, text: str, delta: dict[str, Any]) -> MessageEvent:
        self._pieces.append(text)
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}

    def _close(self) -> list[MessageEvent]:
        """The event that closes the open block, if there is one."""
        if not self._open:
            return []
        self._open = ""
        self._blocks[-1] = self._filled(self._blocks[-1])
        return [{"type": "content_block_stop", "index": len(self._blocks) - 1}]

    def _filled(self, block: Block) -> Block:
        """The open block with the text that it has so far."""
        text = "".join(self._pieces)
        filled = block.copy()
        if block["type"] == "tool_use":
            filled["input"] = partial_object(text)
        elif block["type"] == "text":
            filled["text"] = text
        else:
            filled["thinking"] = text
        return filled
