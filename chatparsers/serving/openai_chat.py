"""Answers of OpenAI's chat-completions API.

Reasoning goes out under two names, because clients are divided between ``reasoning`` and ``reasoning_content``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal, TypedDict
from uuid import uuid4

from ..core.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from ..core.message import FinishReason, RegionKind
from ..core.parser.stream import check_reason
from .errors import ApiError
from .freeform import FreeText
from .logprobs import FIELDS, TokenLogprob
from .tools import Toolkit
from .usage import Usage
from .writer import Writer, to_data

_HERE: Any = {"here": "delta"}
ChatFinish = Literal["stop", "length", "tool_calls"]


class FunctionDelta(TypedDict, total=False):
    """The name comes with the call's first delta, the arguments in pieces."""

    name: str
    arguments: str


class ToolCallDelta(TypedDict, total=False):
    """More of the call at ``index``. Its first delta has the id, the type and the name."""

    index: int
    id: str
    type: Literal["function"]
    function: FunctionDelta


class Delta(TypedDict, total=False):
    """More of the message."""

    role: Literal["assistant"]
    content: str
    reasoning: str
    reasoning_content: str
    tool_calls: list[ToolCallDelta]


class ChunkChoice(TypedDict, total=False):
    """The only choice of a chunk. ``logprobs`` and ``token_ids``: of the tokens since the last chunk that had them."""

    index: int
    delta: Delta
    logprobs: dict[str, Any] | None
    token_ids: list[int]
    finish_reason: ChatFinish | None
    unwanted_calls: list[str]


class ChatChunk(TypedDict, total=False):
    """A ``chat.completion.chunk``. The one with ``usage`` has no choices."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: dict[str, Any]
    prompt_token_ids: list[int]


class Function(TypedDict):
    """A call's function; ``arguments`` is JSON text."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """A call of the message."""

    id: str
    type: Literal["function"]
    function: Function


class ChatMessage(TypedDict, total=False):
    """The message. ``content`` is None if there are only calls."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    reasoning: str
    reasoning_content: str
    tool_calls: list[ChatToolCall]


class ChatChoice(TypedDict, total=False):
    """A choice of an answer."""

    index: int
    message: ChatMessage
    logprobs: dict[str, Any] | None
    token_ids: list[int]
    finish_reason: ChatFinish
    unwanted_calls: list[str]


class ChatCompletion(TypedDict, total=False):
    """A ``chat.completion``."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: dict[str, Any]
    prompt_token_ids: list[int]


class OpenAIChat(Writer[ChatChunk, ChatCompletion]):
    """Writes a choice of a chat completion. ``include_usage``: the stream ends with a chunk that has the usage.
    ``toolkit``: the request's tools; calls of freeform tools are written as one text. ``index``: of the choice.

    Of several choices each has a writer, with one id. `together` makes one answer of theirs.

    >>> from chatparsers.serving import OpenAIChat
    >>> answer = OpenAIChat("m").whole(chat.bind(tools=tools).parse(call))
    >>> answer["choices"][0]["finish_reason"]
    'tool_calls'
    """

    named: ClassVar[bool] = False
    end: ClassVar[str] = "data: [DONE]\n\n"
    early_calls: ClassVar[bool] = True

    def __init__(
        self,
        model: str,
        *,
        id: str | None = None,
        created: int | None = None,
        call_id: Callable[[int], str] | None = None,
        include_usage: bool = False,
        toolkit: Toolkit | None = None,
        index: int = 0,
    ) -> None:
        super().__init__(model, id=id, created=created, call_id=call_id)
        self._index = index
        self.include_usage = include_usage
        self._toolkit = toolkit or Toolkit()
        self._around: tuple[str, ...] = ()
        """What stands before and behind the delta in the frame of a chunk."""
        self._free: FreeText | None = None
        """Reads the text of the open call, if its tool is freeform."""
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[tuple[str, str, list[str]]] = []
        self._called = False
        """Whether a call is complete."""
        self._reason: ChatFinish = "stop"
        self._usage = Usage()

    @staticmethod
    def new_id() -> str:
        return f"chatcmpl-{uuid4().hex}"

    def start(self, prompt_tokens: int = 0) -> list[ChatChunk]:
        first = self._chunk({"role": "assistant", "content": ""})
        if self.prompt_token_ids is not None and not self._index:
            first["prompt_token_ids"] = self.prompt_token_ids
        return [first]

    def event(self, event: Event) -> list[ChatChunk]:
        return [self._chunk(delta) for delta in self._deltas(event)]

    def frames(self, events: Iterable[Event]) -> str:
        # All chunks of a stream are alike but for their deltas, so the rest is made once.
        if not self._around:
            head, tail = to_data(self._chunk(_HERE)).split(to_data(_HERE))
            self._around = f"data: {head}", f"{tail}\n\n"
        head, tail = self._around
        return "".join([f"{head}{to_data(delta)}{tail}" for event in events for delta in self._deltas(event)])

    def _deltas(self, event: Event) -> list[Delta]:
        match event:
            case Content(text=text):
                self._content.append(text)
                return [{"content": text}]
            case Reasoning(text=text):
                self._reasoning.append(text)
                return [{"reasoning": text, "reasoning_content": text}]
            case CallStart(index=index, name=name):
                id = self._call_id(event)
                self._calls.append((id, name, []))
                if self._toolkit.spelling(name).custom:
                    self._free = FreeText()
                    return [_custom(index, {"name": name, "input": ""}, id=id, type="custom")]
                function: FunctionDelta = {"name": name, "arguments": ""}
                first: ToolCallDelta = {"index": index, "id": id, "type": "function", "function": function}
                return [{"tool_calls": [first]}]
            case CallArguments(index=index, text=text):
                if self._free is not None:
                    return self._text(index, self._free.take(text))
                self._calls[-1][2].append(text)
                return [{"tool_calls": [{"index": index, "function": {"arguments": text}}]}]
            case CallEnd(index=index, complete=complete):
                self._called = self._called or complete
                free, self._free = self._free, None
                return self._text(index, free.finish()) if free is not None else []
        return []

    def _text(self, index: int, text: str) -> list[Delta]:
        """More of the text of a freeform call."""
        if not text:
            return []
        self._calls[-1][2].append(text)
        return [_custom(index, {"input": text})]

    def _call(self, id: str, name: str, text: str) -> ChatToolCall:
        if self._toolkit.spelling(name).custom:
            custom = {"id": id, "type": "custom", "custom": {"name": name, "input": text}}
            return custom  # type: ignore[return-value]
        return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}

    def finish(
        self,
        reason: FinishReason | None = None,
        usage: Usage | None = None,
        *,
        stop_sequence: str | None = None,
    ) -> list[ChatChunk]:
        check_reason(reason)
        self._reason = "length" if reason == "length" else "tool_calls" if self._called else "stop"
        self._usage = usage or Usage()
        chunks = [self._chunk({}, self._reason)]
        if self.unwanted:
            chunks[0]["choices"][0]["unwanted_calls"] = self.unwanted
        if self.include_usage:
            chunks.append(self.used(self._usage))
        return chunks

    def used(self, usage: Usage) -> ChatChunk:
        """The chunk that has the usage."""
        last = self._chunk({})
        last["choices"] = []
        last["usage"] = usage.openai()
        return last

    def tokens(self, kind: RegionKind, found: list[TokenLogprob], chunks: list[ChatChunk]) -> list[ChatChunk]:
        super().tokens(kind, found, chunks)
        chunks = chunks or [self._chunk({})]
        chunks[0]["choices"][0]["logprobs"] = {"content": None, "refusal": None, FIELDS[kind]: found}
        return chunks

    def ids(self, found: list[int], chunks: list[ChatChunk]) -> None:
        super().ids(found, chunks)
        chunks[0]["choices"][0]["token_ids"] = found

    @classmethod
    def together(cls, writers: Sequence[OpenAIChat], usage: Usage) -> ChatCompletion:
        """One answer of several choices."""
        whole = writers[0].answer
        whole["choices"] = [writer.answer["choices"][0] for writer in writers]
        whole["usage"] = usage.openai()
        return whole

    def fail(self, error: ApiError) -> list[dict[str, Any]]:
        return [error.openai()]

    @property
    def answer(self) -> ChatCompletion:
        content, reasoning = "".join(self._content), "".join(self._reasoning)
        message: ChatMessage = {
            "role": "assistant",
            "content": content if content or not self._calls else None,
            "refusal": None,
        }
        if reasoning:
            message["reasoning"] = message["reasoning_content"] = reasoning
        if self._calls:
            message["tool_calls"] = [
                self._call(id, name, "".join(arguments)) for id, name, arguments in self._calls
            ]
        choice: ChatChoice = {
            "index": self._index,
            "message": message,
            "logprobs": None,
            "finish_reason": self._reason,
        }
        if self.logprobs is not None:
            choice["logprobs"] = {"content": None, "refusal": None, **self.logprobs}
        if self.token_ids is not None:
            choice["token_ids"] = self.token_ids
        if self.unwanted:
            choice["unwanted_calls"] = self.unwanted
        whole: ChatCompletion = {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "usage": self._usage.openai(),
        }
        if self.prompt_token_ids is not None:
            whole["prompt_token_ids"] = self.prompt_token_ids
        return whole

    def _chunk(self, delta: Delta, reason: ChatFinish | None = None) -> ChatChunk:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": self._index, "delta": delta, "logprobs": None, "finish_reason": reason}],
        }


def _custom(index: int, custom: dict[str, str], **first: str) -> Delta:
    """More of the call of a freeform tool, which has ``custom`` where other calls have a function."""
    call: Any = {"index": index, **first, "custom": custom}
    return {"tool_calls": [call]}
