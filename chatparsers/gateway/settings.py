"""The settings of a gateway."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..sessions.sessions import Rules

LoopMode: TypeAlias = Literal["off", "tell", "close", "stop"]
"""What becomes of a model that repeats itself (`chatparsers.gateway.loops`)."""
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/?#\s]+")
_HOST = re.compile(r"\*|[^/:\s]+|[0-9a-fA-F:.]+")
_HOST_PORT = re.compile(r"[^/:\sA-Z]+(:[0-9]{1,5})?")
_PATH = re.compile(r"/[^?#\s]+")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a gateway. Sizes are in bytes, times in seconds.

    ``model``: the name that ``/v1/models`` shows. ``api_key``: the key that clients must send; None: none.
    ``concurrency``: how many requests may run at once; more get the status 429. ``max_tokens``: for requests that name
    no limit; None leaves it to the engine. ``keep_alive``: after so much silence a comment is sent, so that nothing
    between client and gateway closes the connection. ``slow_client``: a client that takes nothing for so long is left.
    ``grammar``: whether grammars are sent.

    What one request may cost, which `chatparsers.gateway.account` explains: ``max_body`` bytes, ``max_tools`` tools,
    ``max_schemas`` characters of tools and schemas, ``max_prompt`` characters of the prompt, ``max_cpu`` seconds of CPU
    before the engine is asked, ``body_timeout`` seconds for its body to arrive.

    ``hosts``: names under which the gateway may be asked, besides addresses and ``localhost``; None: with a key any
    name. ``cors``: the origins whose pages may ask, such as ``https://chat.example``; ``*`` allows all.

    ``key_file``: a file with more keys, one in a line, which is read again when it changes. ``seal_key_file``: a file
    with the keys that seal thoughts, of which the first seals; None: a new one is made. ``log``: the file to which a
    line of JSON goes for each request, ``-`` for standard output. ``passed``: paths that are passed on to the engine.

    ``strict_fields``: a request with a field that no API has is refused; without it the field is counted and ignored.
    ``store``: a folder in which responses and conversations are kept, or ``memory``; None: nothing is. It has at most
    ``store_entries`` of them and ``store_size`` bytes; what is not used for ``store_age`` goes.

    ``max_images``: how many images a request may have; each may have ``max_body`` bytes. ``fetch_images``: hosts from
    which images are fetched that a request names by a URL, such as ``img.example``; else only their bytes are taken.

    ``rollouts``: a folder in which requests are recorded as sessions, for training; None: none is. ``rules``: what
    sessions may have. ``rollouts_name``: how a router reaches this gateway, such as ``10.0.0.5:8000``: the store has
    then an index of which gateway has which session; None: it has none.

    ``cache_watch``: how many bytes of prompts are kept to say what of the next ones the engine has to read again
    (`chatparsers.gateway.witness`); 0: none.

    ``loops``: what becomes of a model that repeats itself (`chatparsers.gateway.loops`).

    ``drop_unsupported``: images and tools that a server would run are left out of requests, and not refused.
    ``trust_ids``: whether prompts go as the ids of the gateway's tokenizer even if the engine's gives other ids.
    ``lenient_calls``: as in `Format.bind`. ``strict_tools``: a tool with ``strict: false`` is guided by its schema too.

    ``thinking``, ``effort``, ``template_kwargs``: as in `Chat.prepare`, for requests that do not say it.
    ``pin_template_kwargs``: what is given of the three stands for all requests.
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
    max_schemas: int = 500_000
    max_prompt: int = 2_000_000
    max_cpu: float = 10.0
    body_timeout: float = 30.0
    hosts: tuple[str, ...] | None = None
    cors: tuple[str, ...] = ()
    strict_fields: bool = False
    drop_unsupported: bool = False
    trust_ids: bool = False
    lenient_calls: bool = False
    strict_tools: bool = False
    loops: LoopMode = "tell"
    cache_watch: int = 64 * 1024 * 1024
    store: str | None = None
    store_entries: int = 100_000
    store_size: int = 1024 * 1024 * 1024
    store_age: float = 30 * 86_400.0
    max_images: int = 64
    fetch_images: tuple[str, ...] = ()
    rollouts: str | None = None
    rollouts_name: str | None = None
    rules: Rules = field(default_factory=Rules)
    key_file: str | None = None
    seal_key_file: str | None = None
    log: str | None = None
    passed: tuple[str, ...] = ()
    thinking: bool | str | None = None
    effort: str | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    pin_template_kwargs: bool = False

    def __post_init__(self) -> None:
        if self.api_key is not None and not self.api_key.strip():
            raise ValueError("api_key: expected a key or None, found an empty text, which anybody can send")
        if self.rollouts_name is not None and None in (self.rollouts, self.store):
            raise ValueError(
                "rollouts_name: expected a folder for rollouts and a store, which has their index"
            )
        named = () if self.rollouts_name is None else (self.rollouts_name,)
        for name, pattern, given, expected in (
            ("rollouts_name", _HOST_PORT, named, "a host and a port, such as 10.0.0.5:8000"),
            ("cors", _ORIGIN, self.cors, "an origin such as https://chat.example, or *"),
            ("hosts", _HOST, self.hosts or (), "a name such as gateway.example, without a port"),
            ("fetch_images", _HOST_PORT, self.fetch_images, "a host such as img.example, in small letters"),
            ("passed", _PATH, self.passed, "a path such as /v1/embeddings"),
        ):
            for one in given:
                if not pattern.fullmatch(one):
                    raise ValueError(f"{name}: expected {expected}, found {one!r}")
