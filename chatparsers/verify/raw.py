"""The raw text of the same request: what the engine itself says of its prompt and of what the model wrote.

Each engine has fields of its own for it. `WAYS` has them in the order in which they are tried; a way that the server
refuses, or that gives nothing, is left out. What was found is one `Raw`, whatever the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from .answer import objects
from .events import Event

Source: TypeAlias = Literal["engine", "logprobs", "paired"]


class RawSource(NamedTuple):
    """How a server is asked for the raw text: by these fields of the request. ``whole``: only of a whole answer."""

    name: str
    fields: dict[str, Any]
    stream: dict[str, Any]
    engines: tuple[str, ...] = ()


WAYS = (
    RawSource(
        "verbose, return_tokens",
        {"verbose": True, "return_tokens": True},
        {"verbose": True},
        ("llama-server",),
    ),
    RawSource(
        "return_token_ids",
        {"return_token_ids": True},
        {"return_token_ids": True},
        ("vllm", "chatparsers"),
    ),
    RawSource(
        "sglext",
        {"return_input_ids_in_sglext": True, "return_output_ids_in_sglext": True},
        {"return_input_ids_in_sglext": True, "return_output_ids_in_sglext": True},
        ("sglang",),
    ),
    RawSource("logprobs", {"logprobs": True}, {"logprobs": True}),
)
PAIRED = RawSource("/v1/completions with the same prompt, twice", {}, {})
NOTHING = RawSource("nothing", {}, {})


@dataclass(slots=True)
class Raw:
    """What a server told of one request. ``ids`` and ``text`` are what the model wrote, if they are whole. ``prompt``
    and ``prompt_ids``: what it read. ``settings``: the engine's own, such as its grammar."""

    ids: list[int] | None = None
    text: str | None = None
    prompt: str | None = None
    prompt_ids: list[int] | None = None
    source: Source = "engine"
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        return self.ids is not None or self.text is not None


def raw_of(data: Mapping[str, Any], completion: int | None) -> Raw:
    """What a whole answer tells. ``completion``: how many tokens it had, by its usage."""
    found = _Found()
    found.take(data, "message")
    return found.raw(completion, whole=True)


def raw_of_events(events: Iterable[Event], completion: int | None) -> Raw:
    """What a stream tells. Pieces count only if they are all there."""
    found = _Found()
    for event in events:
        if isinstance(event.data, dict):
            found.take(event.data, "delta")
    return found.raw(completion, whole=False)


class _Found:
    def __init__(self) -> None:
        self.ids: list[int] = []
        self.probable: list[dict[str, Any]] = []
        self.raw_text: str | None = None
        self.told = Raw()

    def take(self, data: Mapping[str, Any], part: str) -> None:
        told = self.told
        verbose = data.get("__verbose")
        if isinstance(verbose, dict):
            told.prompt = verbose["prompt"] if isinstance(verbose.get("prompt"), str) else told.prompt
            settings = verbose.get("generation_settings")
            told.settings = settings if isinstance(settings, dict) else told.settings
            if part == "message":  # in a stream, chunks without a delta do not tell theirs
                self.raw_text = verbose["content"] if isinstance(verbose.get("content"), str) else None
                self.ids += _ids(verbose.get("tokens")) or []
        extension = data.get("sglext") or {}
        told.prompt_ids = (
            told.prompt_ids or _ids(data.get("prompt_token_ids")) or _ids(extension.get("input_ids"))
        )
        for ids in (extension.get("output_ids") or [])[:1]:
            self.ids += _ids(ids) or []
        for choice in objects(data.get("choices")):
            if not extension.get("output_ids"):
                self.ids += _ids(choice.get("token_ids")) or []
            told.prompt_ids = told.prompt_ids or _ids(choice.get("prompt_token_ids"))
            self.probable += objects((choice.get("logprobs") or {}).get("content"))

    def raw(self, completion: int | None, *, whole: bool) -> Raw:
        told = self.told
        enough = completion is not None and abs(len(self.ids) - completion) <= 1  # with or without the stop
        if self.ids and (whole or enough):
            told.ids = self.ids
        if self.raw_text is not None:
            told.text = self.raw_text
        elif told.ids is None and self.probable and len(self.probable) == completion:
            pieces = [_bytes(token) for token in self.probable]
            told.ids, told.source = _ids([token.get("id") for token in self.probable]), "logprobs"
            if None not in pieces:  # some servers give ids alone
                told.text = b"".join(filter(None, pieces)).decode("utf-8", "replace")
        return told


def _ids(value: object) -> list[int] | None:
    """Token ids; None for what cannot be any."""
    if not isinstance(value, list) or not value:
        return None
    return value if all(type(id) is int and id >= 0 for id in value) else None


def _bytes(token: Mapping[str, Any]) -> bytes | None:
    given = token.get("bytes")
    if isinstance(given, list) and all(type(each) is int and 0 <= each < 256 for each in given):
        return bytes(given)
    text = token.get("token")
    return text.encode() if isinstance(text, str) else None
