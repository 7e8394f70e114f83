"""The three APIs: how each reads requests, writes answers and shapes errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.responses import JSONResponse, Response

from ..answers.format import Turn
from ..serving import (
    AnthropicMessages,
    ApiError,
    OpenAIChat,
    OpenAIResponses,
    Request,
    Writer,
    read_chat,
    read_messages,
    read_responses,
)
from ..serving.compaction import CompactedResponse
from ..storage.session_index import Elsewhere


def _openai(error: ApiError) -> dict[str, Any]:
    return error.openai()


def _anthropic(error: ApiError) -> dict[str, Any]:
    return error.anthropic()


def _no_echo(answer: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    raise ApiError("this API has no answers")


@dataclass(frozen=True, slots=True)
class Api:
    """How one API reads requests, writes answers and shapes errors."""

    name: str
    read: Callable[..., Request]
    writer: Callable[[str, Turn, Request, int, str | None], Writer[Any, Any]]
    """Of the choice at an index. The choices of one answer have one id; None: a new one."""
    error: Callable[[ApiError], dict[str, Any]] = _openai
    prompt: str = "messages"
    """The field of a request that has its prompt."""
    echo: Callable[[Any, Mapping[str, Any]], dict[str, Any]] = _no_echo
    """The message that a client sends back of a whole answer to a request's body. Raises `ApiError` if it cannot."""

    def failed(self, error: ApiError) -> Response:
        """The response for an error before the first byte."""
        headers = {"retry-after": str(error.retry_after)} if error.status in (429, 503) else None
        if isinstance(error, Elsewhere):
            headers = {"x-session-gateway": error.gateway}
        return JSONResponse(self.error(error), error.status, headers)


def _chat(model: str, turn: Turn, request: Request, index: int, id: str | None) -> Writer[Any, Any]:
    return OpenAIChat(
        model,
        id=id,
        call_id=turn.call_id,
        toolkit=request.toolkit,
        index=index,
    )


def _responses(model: str, turn: Turn, request: Request, index: int, id: str | None) -> Writer[Any, Any]:
    return OpenAIResponses(
        model, call_id=turn.call_id, request=request.body, toolkit=request.toolkit, seals=request.seals
    )


def _compacted(model: str, turn: Turn, request: Request, index: int, id: str | None) -> Writer[Any, Any]:
    return CompactedResponse(model, call_id=turn.call_id, request=request.body)


def _messages(model: str, turn: Turn, request: Request, index: int, id: str | None) -> Writer[Any, Any]:
    seals = request.seals if request.hides_thoughts else None
    return AnthropicMessages(model, call_id=turn.call_id, seals=seals)


_ASKED = {"role": "user", "content": "?"}


def _chat_echo(answer: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    messages = [_ASKED, answer["choices"][0]["message"]]
    return read_chat({"messages": messages}, drop_unsupported=True).messages[-1]


def _responses_echo(answer: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    given = {"input": [_ASKED, *answer["output"]], "tools": body.get("tools")}
    return read_responses(given, drop_unsupported=True).messages[-1]


def _messages_echo(answer: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    messages = [_ASKED, {"role": "assistant", "content": answer["content"]}]
    return read_messages({"messages": messages, "max_tokens": 1}, drop_unsupported=True).messages[-1]


CHAT = Api("chat", read_chat, _chat, echo=_chat_echo)
RESPONSES = Api("responses", read_responses, _responses, prompt="input", echo=_responses_echo)
MESSAGES = Api("messages", read_messages, _messages, _anthropic, echo=_messages_echo)
COMPACT = Api("compact", read_responses, _compacted, prompt="input")
COUNT_INPUT = Api("input_tokens", read_responses, _responses, prompt="input")
COUNT = Api("count_tokens", partial(read_messages, counting=True), _messages, _anthropic)


def ending() -> ApiError:
    """The error of what is cut off because the server ends."""
    return ApiError("this server is ending: ask again", status=503, code="server_ending")


def api_of(path: str) -> Api:
    """The API whose clients ask at a path, for errors that come before anything is read."""
    return MESSAGES if path.startswith("/v1/messages") else CHAT
