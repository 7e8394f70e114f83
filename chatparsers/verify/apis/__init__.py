"""The three chat APIs from a client's side: how each is asked, and what its answers say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..answer import Answer
from ..events import Event
from . import chat, messages, responses

__all__ = ["APIS", "Api"]


class Api(NamedTuple):
    """``request`` puts a chat-completions body into the API's shape, ``streamed`` asks for a stream. ``read`` and
    ``read_events`` say what a client gets of an answer. ``stops``: whether a request can name texts that end it."""

    name: str
    path: str
    request: Callable[[Mapping[str, Any]], dict[str, Any]]
    streamed: Callable[[Mapping[str, Any]], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Answer]
    read_events: Callable[[Iterable[Event]], Answer]
    stops: bool = True


APIS = {
    "chat": Api("chat", chat.PATH, chat.request, chat.streamed, chat.read, chat.read_events),
    "messages": Api(
        "messages", messages.PATH, messages.request, messages.streamed, messages.read, messages.read_events
    ),
    "responses": Api(
        "responses",
        responses.PATH,
        responses.request,
        responses.streamed,
        responses.read,
        responses.read_events,
        stops=False,
    ),
}
