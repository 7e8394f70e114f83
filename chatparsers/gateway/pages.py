"""What a browser sees: a page with one chat at ``/``, the paths of the server at ``/docs``, and OpenAPI's description.

The pages ask no other host and run no script but their own. What a model writes is put into them as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ..serving.known import CHAT, MESSAGES, RESPONSES
from .ollama_api import CHANGING

_FOLDER = Path(__file__).parent / "page"
_FILES = {"page.css": "text/css", "page.js": "text/javascript"}
_SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_SAID = {
    "/v1/chat/completions": "OpenAI's chat completions",
    "/v1/responses": "OpenAI's Responses",
    "/v1/messages": "Anthropic's Messages",
    "/v1/messages/count_tokens": "the tokens of a message's prompt",
    "/v1/responses/input_tokens": "the tokens of a response's prompt",
    "/v1/responses/compact": "a conversation as its user's messages and a summary",
    "/v1/models": "the model",
    "/api/version": "the version of Ollama's API",
    **{f"/api/{name}": "the model, as Ollama shows it" for name in ("tags", "ps", "show")},
    "/api/chat": "Ollama's chat",
    "/api/generate": "Ollama's answer to one prompt",
    **{f"/api/{name}": "not here: one model is served" for name in CHANGING},
    "/v1/models/{name}": "the model, under any name",
    "/v1/responses/{id}": "a response that is kept",
    "/v1/responses/{id}/cancel": "ends a response in the background",
    "/v1/responses/{id}/input_items": "the input of a response that is kept",
    "/v1/conversations": "begins a conversation",
    "/v1/conversations/{id}": "a conversation that is kept",
    "/v1/conversations/{id}/items": "the items of a conversation",
    "/v1/conversations/{id}/items/{item}": "an item of a conversation",
    "/sessions": "the sessions that are recorded; begins one",
    "/sessions/{id}": "what is recorded of a session",
    "/sessions/{id}/samples": "the rows of a session, for training",
    "/sessions/{id}/reward": "rewards a session, or one of its answers",
    "/sessions/{id}/close": "ends a session",
    "/samples": "the rows of a group of sessions",
    "/weights": "names the weights that sample from now on",
    "/health": "whether the server runs",
    "/ready": "whether its engine answers",
    "/metrics": "counters for Prometheus",
}
_FIELDS: Mapping[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "/v1/chat/completions": (CHAT, ("messages",)),
    "/v1/responses": (RESPONSES, ()),
    "/v1/responses/input_tokens": (RESPONSES, ()),
    "/v1/responses/compact": (RESPONSES, ("input",)),
    "/v1/messages": (MESSAGES, ("messages", "max_tokens")),
    "/v1/messages/count_tokens": (MESSAGES, ("messages",)),
}
_NO_KEY = ("/health", "/ready", "/metrics", "/api/version")


def wants_page(http: HttpRequest) -> bool:
    """Whether a browser asks, which shows pages."""
    return "text/html" in http.headers.get("accept", "")


def page() -> Response:
    """The page with the chat."""
    return HTMLResponse((_FOLDER / "index.html").read_text(encoding="utf-8"), headers=_SAFE)


def description(version: str, routes: Iterable[Route], keyed: bool) -> dict[str, Any]:
    """The paths as OpenAPI describes them. ``keyed``: whether a key is asked for."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = route.path.replace(":path}", "}")
        said = _SAID.get(path, "passed on to the engine")
        for method in sorted((route.methods or set()) - {"HEAD"}):
            paths.setdefault(path, {})[method.lower()] = _operation(path, method, said, keyed)
    schemes = {"bearer": {"type": "http", "scheme": "bearer"}} if keyed else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "chatparsers gateway", "version": version},
        "paths": paths,
        "components": {"securitySchemes": schemes},
    }


def _operation(path: str, method: str, said: str, keyed: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": said,
        "operationId": f"{method.lower()}{path.replace('/', '_').replace('{', '').replace('}', '')}",
        "responses": {
            "200": {"description": "as the API has it"},
            "4XX": {"description": "the API's own error"},
        },
    }
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    if names:
        text = {"type": "string"}
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": text} for name in names
        ]
    if method == "POST" and path in _FIELDS:
        known, required = _FIELDS[path]
        schema = {
            "type": "object",
            "properties": {name: {} for name in sorted(known)},
            "required": list(required),
        }
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if keyed and path not in _NO_KEY:
        found["security"] = [{"bearer": []}]
    return found


def listed(given: Mapping[str, Any]) -> Response:
    """The description as a page."""
    rows = []
    for path, operations in given["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            fields = ", ".join(
                f"<code>{escape(name)}</code>" for name in body.get("schema", {}).get("properties", ())
            )
            rows.append(
                f"<tr><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code></td>"
                f"<td>{escape(operation['summary'])}{f'<br>{fields}' if fields else ''}</td></tr>"
            )
    title, version = escape(given["info"]["title"]), escape(given["info"]["version"])
    head = "<tr><th>Method</th><th>Path</th><th>What it is, and the fields that it knows</th></tr>"
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="page.css"></head><body><header><h1>{title} {version}</h1>'
        '<p>As <a href="openapi.json">OpenAPI</a>. <a href="./">A chat</a>.</p></header>'
        f"<main><section><table>{head}{''.join(rows)}</table></section></main></body></html>",
        headers=_SAFE,
    )


def files() -> list[Route]:
    """What the pages load."""

    def route(name: str, kind: str) -> Route:
        async def endpoint(request: HttpRequest) -> Response:
            return Response((_FOLDER / name).read_bytes(), media_type=kind, headers=_SAFE)

        return Route(f"/{name}", endpoint)

    return [route(name, kind) for name, kind in _FILES.items()]


def described(given: Mapping[str, Any]) -> list[Route]:
    """The description's own paths."""

    async def openapi(request: HttpRequest) -> Response:
        return JSONResponse(given)

    async def docs(request: HttpRequest) -> Response:
        return listed(given)

    return [Route("/openapi.json", openapi), Route("/docs", docs)]
