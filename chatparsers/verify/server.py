"""Which engine answers, in which version, and under which name it serves the model: told by the server itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .client import Client, Response, VerifyError

ENGINES = ("llama-server", "vllm", "sglang", "chatparsers", "ollama", "other")
_OWNERS = {
    "llamacpp": "llama-server",
    "vllm": "vllm",
    "sglang": "sglang",
    "chatparsers": "chatparsers",
    "library": "ollama",
}


@dataclass(frozen=True, slots=True)
class Server:
    """``engine``: one of `ENGINES`. ``version``: as it says itself, "" if it does not. ``model``: its name there."""

    engine: str
    version: str
    model: str


def server_of(client: Client, *, engine: str = "auto", name: str | None = None) -> Server:
    """Asks what is there. Raises `VerifyError` if nothing answers, or the key is refused."""
    listed = client.get("/v1/models")
    _refuse(listed)
    models = [each for each in listed.data.get("data") or () if isinstance(each, dict)]
    if engine == "auto":
        engine = _OWNERS.get(str(models[0].get("owned_by", "")).lower(), "") if models else ""
        engine = engine or _guessed(client)
    model = name or (str(models[0].get("id", "")) if models else "") or "model"
    return Server(engine, _version(client, engine), model)


def _refuse(response: Response) -> None:
    if response.status == 0:
        raise VerifyError(f"the server does not answer: {response.text}")
    if response.status in (401, 403):
        raise VerifyError(
            f"the server refuses the key (status {response.status}): set CHATPARSERS_VERIFY_KEY or name a --key-file"
        )


def _guessed(client: Client) -> str:
    """The engine by an address that only it has."""
    for path, engine in (("/props", "llama-server"), ("/api/version", "ollama"), ("/server_info", "sglang")):
        if client.get(path).ok and client.get(path).data:
            return engine
    return "vllm" if client.get("/version").data.get("version") else "other"


_Get = Callable[[Client], Any]
_VERSIONS: dict[str, tuple[str, str]] = {
    "llama-server": ("/props", "build_info"),
    "vllm": ("/version", "version"),
    "sglang": ("/server_info", "version"),
    "ollama": ("/api/version", "version"),
}


def _version(client: Client, engine: str) -> str:
    path, field = _VERSIONS.get(engine, ("", ""))
    found = client.get(path).data.get(field) if path else None
    return found if isinstance(found, str) else json.dumps(found) if found else ""
