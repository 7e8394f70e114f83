"""The ASGI application."""

from __future__ import annotations

import hmac
import json
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from ..chat.chat import Chat
from ..core.errors import ChatParsersError
from ..core.parser.turn import Turn
from ..grammar import Grammar
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
from .answer import Answer
from .engine import Engine, Job
from .metrics import Metrics
from .respond import Responding
from .settings import Settings

__all__ = ["create_app"]


@dataclass(frozen=True, slots=True)
class _Api:
    """One of the three APIs: how it reads requests, writes answers and shapes errors."""

    name: str
    read: Callable[[object], Request]
    writer: Callable[[str, Turn, Request], Writer[Any, Any]]
    error: Callable[[ApiError], dict[str, Any]] = ApiError.openai

    def failed(self, error: ApiError) -> Response:
        """The response for an error before the first byte."""
        headers = {"retry-after": "1"} if error.status in (429, 503) else None
        return JSONResponse(self.error(error), error.status, headers)


def _chat(model: str, turn: Turn, request: Request) -> Writer[Any, Any]:
    return OpenAIChat(model, call_id=turn.call_id, include_usage=request.include_usage)


def _responses(model: str, turn: Turn, request: Request) -> Writer[Any, Any]:
    return OpenAIResponses(model, call_id=turn.call_id, request=request.body)


def _messages(model: str, turn: Turn, request: Request) -> Writer[Any, Any]:
    return AnthropicMessages(model, call_id=turn.call_id)


CHAT = _Api("chat", read_chat, _chat)
RESPONSES = _Api("responses", read_responses, _responses)
MESSAGES = _Api("messages", read_messages, _messages, ApiError.anthropic)
COUNT = _Api("count_tokens", partial(read_messages, counting=True), _messages, ApiError.anthropic)


def create_app(chat: Chat, engine: Engine, settings: Settings | None = None) -> Starlette:
    """The gateway as an ASGI application, for uvicorn or any other server.

    When the server starts it, it asks the engine what it can do, and prints warnings on standard error; it does not
    start if the engine cannot be used. ``app.state.metrics`` has the counters.
    """
    gateway = _Gateway(chat, engine, settings or Settings())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await gateway.start()
        try:
            yield
        finally:
            await engine.close()

    def post(api: _Api) -> Callable[[HttpRequest], Awaitable[Any]]:
        async def endpoint(request: HttpRequest) -> Any:
            return await gateway.respond(api, request)

        return endpoint

    async def count_tokens(request: HttpRequest) -> Response:
        return await gateway.count_tokens(request)

    async def models(request: HttpRequest) -> Response:
        return gateway.models(request)

    async def health(request: HttpRequest) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(request: HttpRequest) -> Response:
        return PlainTextResponse(gateway.metrics.text())

    async def missing(request: HttpRequest, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        message = f"{request.method} {request.url.path}: this server has no such path or method"
        return CHAT.failed(ApiError(message, status=status))

    app = Starlette(
        routes=[
            Route("/v1/chat/completions", post(CHAT), methods=["POST"]),
            Route("/v1/responses", post(RESPONSES), methods=["POST"]),
            Route("/v1/messages", post(MESSAGES), methods=["POST"]),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", models),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
        exception_handlers={404: missing, 405: missing},
    )
    app.state.metrics = gateway.metrics
    return app


class _Gateway:
    def __init__(self, chat: Chat, engine: Engine, settings: Settings) -> None:
        self.chat = chat
        self.engine = engine
        self.settings = settings
        self.metrics = Metrics()
        self._created = int(time.time())
        self._key = None if settings.api_key is None else settings.api_key.encode()
        # Templates and grammars are made in one other thread, so that streams go on meanwhile.
        self._thread = anyio.CapacityLimiter(1)

    async def start(self) -> None:
        await anyio.to_thread.run_sync(self.chat.warm, limiter=self._thread)
        for warning in await self.engine.start(self.chat):
            print(f"chatparsers: warning: {warning}", file=sys.stderr)

    # requests

    async def respond(self, api: _Api, http: HttpRequest) -> Response | Responding:
        if self.metrics.active >= self.settings.concurrency:
            most = self.settings.concurrency
            return self._refused(api, ApiError(f"{most} requests are running: try again later", status=429))
        self.metrics.active += 1
        try:
            return await self._responding(api, http)
        except BaseException as error:
            self.metrics.active -= 1
            if isinstance(error, ClientDisconnect):
                return Response(status_code=400)
            if not isinstance(error, Exception):
                raise
            if not isinstance(error, ChatParsersError):
                traceback.print_exception(error)
            return self._refused(api, ApiError.of(error))

    async def _responding(self, api: _Api, http: HttpRequest) -> Responding:
        request, turn, prompt, grammar = await self._prepared(api, http)
        most = request.max_tokens if request.max_tokens is not None else self.settings.max_tokens
        tokens = len(prompt) if isinstance(prompt, list) else None
        writer = api.writer(request.model or self.settings.model, turn, request)
        answer = Answer(
            turn,
            writer,
            request,
            by_ids=self.engine.ids,
            framed=request.stream,
            prompt_tokens=tokens,
        )
        return Responding(
            self.engine,
            Job(turn, prompt, grammar, most, request.sampling),
            answer,
            stream=request.stream,
            api=api.name,
            settings=self.settings,
            metrics=self.metrics,
            failed=api.failed,
        )

    async def count_tokens(self, http: HttpRequest) -> Response:
        try:
            _, turn, _, _ = await self._prepared(COUNT, http)
            if turn.tokenizer is None:
                raise ApiError("this server has no tokenizer, so it cannot count tokens", status=501)
            count = len(self._encoded(turn))
        except ClientDisconnect:
            return Response(status_code=400)
        except ChatParsersError as error:
            return self._refused(COUNT, ApiError.of(error))
        self.metrics.count("requests", api=COUNT.name, status="200")
        return JSONResponse({"input_tokens": count})

    def models(self, http: HttpRequest) -> Response:
        try:
            self._check_key(http)
        except ApiError as error:
            return CHAT.failed(error)
        name = http.path_params.get("name")
        if name is not None and name != self.settings.model:
            return CHAT.failed(ApiError(f"this server has no model {name!r}", status=404))
        model = {
            "id": self.settings.model,
            "object": "model",
            "type": "model",
            "display_name": self.settings.model,
            "created": self._created,
            "owned_by": "chatparsers",
        }
        return JSONResponse(model if name is not None else {"object": "list", "data": [model]})

    def _refused(self, api: _Api, error: ApiError) -> Response:
        self.metrics.count("requests", api=api.name, status=str(error.status))
        return api.failed(error)

    async def _prepared(
        self, api: _Api, http: HttpRequest
    ) -> tuple[Request, Turn, str | list[int], Grammar | None]:
        self._check_key(http)
        request = api.read(await self._body(http))
        if request.tools is not None and len(request.tools) > self.settings.max_tools:
            raise ApiError(
                f"expected at most {self.settings.max_tools} tools, found {len(request.tools)}", param="tools"
            )
        turn, prompt, grammar = await anyio.to_thread.run_sync(self._turn, request, limiter=self._thread)
        return request, turn, prompt, grammar

    def _check_key(self, http: HttpRequest) -> None:
        if self._key is None:
            return
        given = http.headers.get("x-api-key") or http.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._key):
            raise ApiError("the API key is missing or wrong", status=401, code="invalid_api_key")

    async def _body(self, http: HttpRequest) -> object:
        most = self.settings.max_body
        size, pieces = 0, []
        async for piece in http.stream():
            size += len(piece)
            if size > most:
                raise ApiError(f"expected a body of at most {most:,} bytes", status=413)
            pieces.append(piece)
        try:
            found: object = json.loads(b"".join(pieces))
        except (ValueError, RecursionError) as error:
            raise ApiError(f"expected a JSON object: {error}") from error
        return found

    def _turn(self, request: Request) -> tuple[Turn, str | list[int], Grammar | None]:
        """The turn, the prompt for the engine, and the grammar."""
        engine = self.engine
        turn = self.chat.prepare(**request.prepare)
        grammar = None
        if engine.dialect is not None and self.settings.grammar:
            references = None if engine.ids else False  # text is read by text, so the grammar must write text
            grammar = turn.grammar(engine.dialect, engine=engine.reader, token_references=references)
        if engine.takes_ids and turn.tokenizer is not None:
            return turn, self._encoded(turn), grammar
        # A server writes the first token before a text itself.
        return turn, turn.prompt.removeprefix(self.chat.files.bos_token or ""), grammar

    @staticmethod
    def _encoded(turn: Turn) -> list[int]:
        ids: list[int] = turn.tokenizer.encode(turn.prompt, add_special_tokens=False).ids
        return ids
