"""What runs at a URL, found by asking for what one engine alone serves."""

from __future__ import annotations

import time

import httpx2

from .engine import EngineError

_ONLY = {
    "/props": "llama-server",
    "/api/version": "ollama",
    "/server_info": "sglang",
    "/get_server_info": "sglang",
    "/version": "vllm",
}
"""Paths at which one engine alone has a JSON object; that of a name which others may use comes last."""
_PATIENCE = 10.0
_AGAIN = 1.0


def kind_at(url: str, key: str | None, wait: float) -> str | None:
    """The kind of the engine at ``url``; None if it is none of those that can be told. ``wait``: for how many seconds
    nothing may answer yet. Raises `EngineError` if nothing does."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    until = time.monotonic() + wait
    with httpx2.Client(headers=headers, timeout=_PATIENCE) as client:
        while True:
            try:
                return _asked(client, url.rstrip("/").removesuffix("/v1"))
            except httpx2.InvalidURL as error:
                raise EngineError(f"{url}: {error}") from error
            except httpx2.TransportError as error:
                if time.monotonic() > until:
                    raise EngineError(f"nothing answers at {url}", where=url) from error
            time.sleep(_AGAIN)


def _asked(client: httpx2.Client, url: str) -> str | None:
    for path, kind in _ONLY.items():
        found = client.get(url + path)
        if kind == "llama-server" and found.status_code == 503:  # it loads its model
            return kind
        try:
            said = found.json() if found.status_code == 200 else None
        except ValueError:
            continue
        if said and isinstance(said, dict):
            return kind
    return None
