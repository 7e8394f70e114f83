"""The settings of a gateway."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a gateway. Sizes are in bytes, times in seconds.

    ``model``: the name that ``/v1/models`` shows. ``api_key``: the key that clients must send; None: none.
    ``max_body``, ``max_tools``: what a request may have. ``concurrency``: how many requests may run at once; more get
    the status 429. ``max_tokens``: for requests that name no limit; None leaves it to the engine. ``keep_alive``: after
    so much silence a comment is sent, so that nothing between client and gateway closes the connection.
    ``slow_client``: a client that takes nothing for so long is left. ``grammar``: whether grammars are sent.
    """

    model: str = "chatparsers"
    api_key: str | None = None
    max_body: int = 16 * 1024 * 1024
    max_tools: int = 512
    concurrency: int = 1024
    max_tokens: int | None = None
    keep_alive: float = 15.0
    slow_client: float = 120.0
    grammar: bool = True
