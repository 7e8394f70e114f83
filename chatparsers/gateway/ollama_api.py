"""Ollama's own API, for clients that speak no other: ``/api/chat``, ``/api/generate``, and what they ask before.

A chat is a chat completion in other words: a body is put into these, and the stream is written as lines of JSON. The
calls in a history may have no ids, so results belong to them by name, else in their order. A call goes out when it is
whole.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..serving import ApiError
from ..serving.fields import mapping, sequence, string
from ..templates import to_json
from .inner import Events, inner
from .keys import Caller
from .models import Model, Models
from .work import until_left

VERSION = "0.12.6"
"""Of the API that is spoken here. VS Code asks for 0.6.4 at least."""
_OPTIONS = {
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "seed", "stop")},
    **{name: name for name in ("presence_penalty", "frequency_penalty")},
    "num_predict": "max_tokens",
    "repeat_penalty": "repetition_penalty",
}
"""Options, and the fields of chat completions that they are."""
_LOADING = frozenset(
    (
        *("num_ctx", "num_gpu", "num_thread", "num_keep", "num_batch", "main_gpu", "use_mmap", "use_mlock"),
        *("low_vram", "numa", "vocab_only", "f16_kv", "repeat_last_n"),
    )
)
"""Options of how a model is loaded: they ask nothing of an answer."""
CHANGING = ("pull", "push", "create", "copy", "delete", "embed", "embeddings")
"""Paths of Ollama's that are an error here."""
_NOT_HERE = {
    **dict.fromkeys(
        ("raw", "suffix", "context", "template"), "the model's own template writes the prompt: leave it out"
    ),
    **dict.fromkeys(("logprobs", "top_logprobs"), "ask for log probabilities by /v1/chat/completions"),
}
_NDJSON = [(b"content-type", b"application/x-ndjson")]
Respond = Callable[[HttpRequest], Awaitable[ASGIApp]]
"""Gives the response to a chat completion."""


class OllamaApi:
    """The paths. ``respond``: answers a chat completion. ``check``: raises `ApiError` if a request has no key.
    ``body``: the JSON of a request."""

    def __init__(
        self,
        models: Models,
        *,
        respond: Respond,
        check: Callable[[Any], Caller],
        body: Callable[[HttpRequest], Awaitable[Any]],
    ) -> None:
        self._models = models
        self._respond = respond
        self._check = check
        self._body = body
        self._began = _now()

    def routes(self) -> list[Route]:
        """The routes."""
        asked = {"tags": self._tags, "ps": self._running}
        posted = {"show": self._show, "chat": self._answer, "generate": self._answer}
        return [
            Route("/api/version", self._version),
            *(Route(f"/api/{path}", self._guarded(made)) for path, made in asked.items()),
            *(Route(f"/api/{path}", self._guarded(made), methods=["POST"]) for path, made in posted.items()),
            *(
                Route(f"/api/{path}", self._guarded(self._none), methods=["POST", "DELETE"])
                for path in CHANGING
            ),
        ]

    def _guarded(self, made: Callable[[HttpRequest], Awaitable[ASGIApp]]) -> Any:
        async def answer(http: HttpRequest) -> ASGIApp:
            try:
                self._check(http.headers)
                return await made(http)
            except ApiError as error:
                return JSONResponse({"error": str(error)}, error.status)

        return answer

    async def _version(self, http: HttpRequest) -> Response:
        return JSONResponse({"version": VERSION})

    def _open(self, http: HttpRequest) -> dict[str, Model]:
        """The models that a client may ask, by their names."""
        return self._models.open_to(self._check(http.headers))

    async def _tags(self, http: HttpRequest) -> Response:
        return JSONResponse({"models": [self._model(*one) for one in self._open(http).items()]})

    async def _running(self, http: HttpRequest) -> Response:
        loaded = {"expires_at": "2318-01-01T00:00:00Z", "size_vram": 0}
        shown = [
            {**self._model(name, one), **loaded, "context_length": one.engine.context or 0}
            for name, one in self._open(http).items()
        ]
        return JSONResponse({"models": shown})

    async def _show(self, http: HttpRequest) -> Response:
        body = await self._body(http)
        named = (body.get("model") or body.get("name")) if isinstance(body, Mapping) else None
        model = self._models.of(named, self._check(http.headers))
        engine, family, features = model.engine, model.chat.format.name, model.chat.format.features
        capabilities = {
            "completion": True,
            "tools": features.tools,
            "thinking": features.reasoning,
            "vision": engine.images,
        }
        info: dict[str, Any] = {"general.architecture": family, "general.basename": model.name}
        if engine.context is not None:
            info[f"{family}.context_length"] = engine.context
        shown = {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "modified_at": self._began,
            "model_info": info,
        }
        known = [name for name, has in capabilities.items() if has]
        return JSONResponse({**shown, "details": _details(family), "capabilities": known})

    async def _none(self, http: HttpRequest) -> Response:
        said = f"{http.url.path}: this server loads and changes no model, and embeds nothing"
        raise ApiError(said, status=501)

    def _model(self, name: str, model: Model) -> dict[str, Any]:
        named = {"name": name, "model": name, "modified_at": self._began, "size": 0}
        digest = hashlib.sha256(name.encode()).hexdigest()
        return {**named, "digest": digest, "details": _details(model.chat.format.name)}

    async def _answer(self, http: HttpRequest) -> ASGIApp:
        body = mapping(await self._body(http), "the body")
        generates = http.url.path.endswith("/generate")
        first = None if self._models.several else self._models.first.name
        model = string(body.get("model") or first, "model")
        written = _Written(model, generates=generates, streams=body.get("stream") is not False)
        if not body.get("prompt" if generates else "messages"):  # it is to be loaded, or unloaded
            reason = "unload" if body.get("keep_alive") in (0, "0", "0s") else "load"
            return JSONResponse(json.loads(written.line({"content": ""}, done=True, done_reason=reason)))
        request = inner(http.scope, completion(body, generates=generates), lambda: until_left(http.receive))
        app = await self._respond(request)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await app(request.scope, request.receive, written.to(send))

        return answer


def _details(family: str) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family],
        "parameter_size": "",
        "quantization_level": "",
    }


def completion(body: Mapping[str, Any], *, generates: bool) -> dict[str, Any]:
    """The chat completion that a body asks for. Raises `ApiError` for what cannot be given."""
    for name, why in _NOT_HERE.items():
        if body.get(name):
            raise ApiError(why, param=name)
    messages = sequence(body.get("messages") or [], "messages")
    if generates:
        asked = {"role": "user", "content": body.get("prompt"), "images": body.get("images")}
        messages = [*([{"role": "system", "content": body["system"]}] if body.get("system") else []), asked]
    made: dict[str, Any] = {
        "model": body.get("model"),
        "messages": [*_messages(messages)],
        "stream": True,
        "stream_options": {"include_usage": True},
        **({"tools": body["tools"]} if body.get("tools") else {}),
    }
    think, format = body.get("think"), body.get("format")
    if think is not None:
        made["enable_thinking" if isinstance(think, bool) else "reasoning_effort"] = think
    if format == "json":
        made["response_format"] = {"type": "json_object"}
    elif isinstance(format, Mapping):
        made["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": format}}
    elif format:
        raise ApiError(f"expected 'json' or a schema, found {format!r:.80}", param="format")
    for name, value in mapping(body.get("options") or {}, "options").items():
        if name not in _OPTIONS and name not in _LOADING:
            raise ApiError("this server has no such option: leave it out", param=f"options.{name}")
        if name in _OPTIONS and value is not None and not (name == "num_predict" and value in (-1, -2)):
            made[_OPTIONS[name]] = value
    return made


def _messages(given: Any) -> Iterator[dict[str, Any]]:
    """Messages as chat completions have them."""
    waiting: list[tuple[str, str]] = []
    """The name and the id of each call that has no result yet."""
    for at, message in enumerate(given):
        message = mapping(message, f"messages[{at}]")
        made: dict[str, Any] = {"role": message.get("role"), "content": message.get("content") or ""}
        if message.get("images"):
            pictures = [
                string(one, f"messages[{at}].images") for one in sequence(message["images"], "images")
            ]
            parts = (
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{one}"}}
                for one in pictures
            )
            made["content"] = [{"type": "text", "text": made["content"]}, *parts]
        if message.get("thinking"):
            made["reasoning_content"] = message["thinking"]
        calls = sequence(message.get("tool_calls") or [], f"messages[{at}].tool_calls")
        for place, call in enumerate(calls):
            path = f"messages[{at}].tool_calls[{place}]"
            function = mapping(mapping(call, path).get("function"), f"{path}.function")
            name, id = (
                string(function.get("name"), f"{path}.function.name"),
                call.get("id") or f"call_{at}_{place}",
            )
            text = to_json(function.get("arguments") or {})
            called = {"id": id, "type": "function", "function": {"name": name, "arguments": text}}
            made.setdefault("tool_calls", []).append(called)
            waiting.append((name, id))
        if message.get("role") == "tool":
            made["tool_call_id"] = message.get("tool_call_id") or _called(message, waiting) or f"call_{at}"
        yield made


def _called(result: Mapping[str, Any], waiting: list[tuple[str, str]]) -> str | None:
    """The id of the call that a result is of, which then waits no more: the first of its name, else the first."""
    name = result.get("tool_name") or result.get("name")
    at = next((at for at, (called, _) in enumerate(waiting) if called == name), 0)
    return waiting.pop(at)[1] if waiting else None


class _Written(Events):
    """Writes the stream of a chat completion as lines of JSON, or as one object.

    ``generates``: the text is the field ``response``, not a message."""

    def __init__(self, model: str, *, generates: bool, streams: bool) -> None:
        super().__init__()
        self._model = model
        self._generates = generates
        self._streams = streams
        self._begin = time.monotonic_ns()
        self._first = 0
        """When the first text came."""
        self._texts: dict[str, list[str]] = {"content": [], "thinking": []}
        self._calls: list[dict[str, Any]] = []
        self._open: dict[str, str] | None = None
        """The call that is being written."""
        self._usage: dict[str, Any] = {}
        self._cut = False
        self._failed = ""
        self._begun = False

    def to(self, send: Send) -> Send:
        """What the chat completion is sent to, so that it goes on to ``send`` as Ollama writes it."""

        async def taken(event: Message) -> None:
            begins = event["type"] == "http.response.start"
            lines = b"".join(line for _, data in self.take(event) for line in self._lines(data))
            over = not begins and not event.get("more_body", False)
            if self.status != 200 or not self._streams:
                if over:
                    await self._whole(send)
                return
            if begins:
                await send({"type": "http.response.start", "status": 200, "headers": _NDJSON})
            elif lines or over:
                await send({"type": "http.response.body", "body": lines, "more_body": not over})

        return taken

    async def _whole(self, send: Send) -> None:
        """Sends the answer, or the error, as one object."""
        failed = self._failed or (self.status != 200 and self.error().get("message"))
        text = to_json({"error": failed}).encode() if failed else self._last(whole=True)
        status = self.status if self.status != 200 else 500 if failed else 200
        kept = [(name, value) for name, value in self.headers if name.startswith((b"x-", b"retry-after"))]
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode()), *kept]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": text})

    def line(self, message: dict[str, Any], **more: Any) -> bytes:
        """One line."""
        if self._generates:
            message["response"] = message.pop("content")
            shown = message
        else:
            shown = {"message": {"role": "assistant", **message}}
        return (
            to_json({"model": self._model, "created_at": _now(), **shown, "done": False, **more}).encode()
            + b"\n"
        )

    def _lines(self, data: str) -> Iterator[bytes]:
        """The lines of a chunk."""
        if data == "[DONE]":
            if not self._failed:
                yield self._last()
            return
        chunk = json.loads(data)
        if "error" in chunk:
            self._failed = str(chunk["error"].get("message"))
            yield to_json({"error": self._failed}).encode() + b"\n"
            return
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk["choices"]:
            self._first = self._first or time.monotonic_ns()
            delta = choice["delta"]
            for theirs, ours in (("reasoning_content", "thinking"), ("content", "content")):
                if text := delta.get(theirs):
                    yield from self._called()
                    self._texts[ours].append(text)
                    yield self.line({"content": "", ours: text})
            for call in delta.get("tool_calls") or ():
                if "id" in call:
                    yield from self._called()
                    self._open = {"id": call["id"], "name": "", "arguments": ""}
                assert self._open is not None
                for field, text in call["function"].items():
                    self._open[field] += text
            if choice.get("finish_reason") is not None:
                self._cut = choice["finish_reason"] == "length"
                yield from self._called()

    def _called(self) -> Iterator[bytes]:
        """The line of the call that is over. One that the model broke is text."""
        call, self._open = self._open, None
        if call is None:
            return
        try:
            arguments = dict(json.loads(call["arguments"] or "{}"))
        except (ValueError, TypeError):
            text = call["name"] + call["arguments"]
            self._texts["content"].append(text)
            yield self.line({"content": text})
            return
        function = {"index": len(self._calls), "name": call["name"], "arguments": arguments}
        self._calls.append({"id": call["id"], "function": function})
        yield self.line({"content": "", "tool_calls": self._calls[-1:]})

    def _last(self, *, whole: bool = False) -> bytes:
        """The last line. ``whole``: it has all of the answer."""
        end, first = time.monotonic_ns(), self._first or self._begin
        message: dict[str, Any] = {"content": ""}
        if whole:
            message["content"] = "".join(self._texts["content"])
            if self._texts["thinking"]:
                message["thinking"] = "".join(self._texts["thinking"])
            if self._calls:
                message["tool_calls"] = self._calls
        counts = {
            "total_duration": end - self._begin,
            "load_duration": 0,
            "prompt_eval_count": self._usage.get("prompt_tokens", 0),
            "prompt_eval_duration": first - self._begin,
            "eval_count": self._usage.get("completion_tokens", 0),
            "eval_duration": end - first,
        }
        return self.line(message, done=True, done_reason="length" if self._cut else "stop", **counts)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
