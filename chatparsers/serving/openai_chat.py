"""Answers of OpenAI's chat-completions API.

Reasoning goes out under two names, because clients are divided between ``reasoning`` and ``reasoning_content``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict
from uuid import uuid4

from ..streams.message import RegionKind
from .errors import ApiError
from .logprobs import FIELDS, TokenLogprob
from .parts import Part, PartKind
from .tools import Toolkit
from .usage import Usage
from .writer import Writer

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
    warnings: list[str]
    regions: list[dict[str, str]]


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
    warnings: list[str]
    regions: list[dict[str, str]]


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

    @staticmethod
    def new_id() -> str:
        return f"chatcmpl-{uuid4().hex}"

    def start(self, prompt_tokens: int = 0) -> list[ChatChunk]:
        first = self._chunk({"role": "assistant", "content": ""})
        if self.prompt_token_ids is not None and not self._index:
            first["prompt_token_ids"] = self.prompt_token_ids
        return [first]

    def _begun(self, part: Part) -> list[ChatChunk]:
        if not part.is_call:
            return []
        field = _FIELD[part.kind]
        call = _call(part, {"name": part.name, _TEXT[part.kind]: ""}, id=part.id, type=field)
        return [self._chunk(call)]

    def _added(self, part: Part, text: str) -> ChatChunk:
        if part.is_call:
            return self._chunk(_call(part, {_TEXT[part.kind]: text}))
        if part.kind == "content":
            return self._chunk({"content": text})
        return self._chunk({"reasoning": text, "reasoning_content": text})

    def _last(self) -> list[ChatChunk]:
        last = self._chunk({})
        choice = last["choices"][0]
        choice["finish_reason"] = self._finish_reason
        self._extend(choice)
        return [last, self.used(self._usage)] if self.include_usage else [last]

    @property
    def _finish_reason(self) -> ChatFinish:
        if self._reason == "length":
            return "length"
        return "tool_calls" if self._finished and self._called else "stop"

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
        calls = self._calls()
        content, reasoning = self._joined("content"), self._joined("reasoning")
        message: ChatMessage = {
            "role": "assistant",
            "content": content if content or not calls else None,
            "refusal": None,
        }
        if reasoning:
            message["reasoning"] = message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [_whole_call(part) for part in calls]
        choice: ChatChoice = {
            "index": self._index,
            "message": message,
            "logprobs": None,
            "finish_reason": self._finish_reason,
        }
        if self.logprobs is not None:
            choice["logprobs"] = {"content": None, "refusal": None, **self.logprobs}
        if self.token_ids is not None:
            choice["token_ids"] = self.token_ids
        self._extend(choice)
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

    def _extend(self, choice: ChunkChoice | ChatChoice) -> None:
        """Adds the fields of our own to the choice that ends an answer."""
        choice.update(self._own)  # type: ignore[typeddict-item]
        if self.regions is not None:
            choice["regions"] = self.regions

    def _joined(self, kind: PartKind) -> str:
        return "".join(part.text for part in self._parts if part.kind == kind)

    def _chunk(self, delta: Mapping[str, Any]) -> ChatChunk:
        choice: Any = {"index": self._index, "delta": delta, "logprobs": None, "finish_reason": None}
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [choice],
        }


def _call(part: Part, more: Mapping[str, str], **first: str) -> Delta:
    """More of a call. That of a freeform tool has ``custom`` where others have a function."""
    call: Any = {"index": part.index, **first, _FIELD[part.kind]: more}
    return {"tool_calls": [call]}


_FIELD: Mapping[PartKind, str] = {"call": "function", "custom": "custom"}
_TEXT: Mapping[PartKind, str] = {"call": "arguments", "custom": "input"}
"""What has the text of a call."""


def _whole_call(part: Part) -> ChatToolCall:
    field = _FIELD[part.kind]
    more = {"name": part.name, _TEXT[part.kind]: part.text}
    return {"id": part.id, "type": field, field: more}  # type: ignore[misc]
