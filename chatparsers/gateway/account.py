"""What one request may cost.

A request comes from a stranger. Each thing that it can make the gateway spend has a limit. It is checked before it is
spent where its size is known, and while it is spent where it is not:

| what | limit | checked |
|---|---|---|
| seconds to send the body | `Settings.body_timeout` | while it arrives |
| bytes of the body | `Settings.max_body` | while it arrives |
| bytes of all bodies that arrive or wait | `READING` bodies of the largest size | while they arrive |
| values in the body | `VALUES` | in the bytes, before they are read as JSON |
| nesting of the body | `DEPTH` | before anything else walks through it |
| tools, and characters of tools and schemas | `Settings.max_tools`, `max_schemas` | before the template is rendered |
| characters of the messages, and of the prompt | `Settings.max_prompt` | before it is rendered, before it is encoded |
| tokens of the prompt | the engine's context | before the engine is asked |
| steps and size of the grammar | `MAX_SIZE`, `MAX_WORK` | while it is written |
| characters of an answer | `ANSWER`, and with ids the tokens that the engine was asked for | while it arrives |
| answers to one prompt | `CHOICES`, and `Settings.concurrency` for all that run | before the engine is asked |
| seconds of CPU of all this | `Settings.max_cpu` | while they pass (`chatparsers.gateway.fair_pool`) |

Memory has no limit of its own: it follows from the others. docs/security.md has what was measured. If the client
leaves, the work is given up, wherever it is.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import Any

from ..serving import ApiError, Request
from .settings import Settings

READING = 4
"""How many bodies of the largest size may arrive or wait to be read at once."""
VALUES = 100_000
"""How many values a body may have: a value of JSON takes up to 60 times its bytes in memory."""
_REPEATED = ("reasoning", "text", "tool_choice", "tools", "truncation")
"""What a response repeats besides the instructions, which are a part of the prompt, and the metadata, which have bounds
of their own."""
CHOICES = 64
"""How many answers one request may ask for. Each counts as a running request."""
ANSWER = 16_000_000
"""How many characters an engine may send for one answer. Each event counts as 16 more."""
DEPTH = 100
"""How deep a body may nest."""
MAX_SIZE: int = 4_000_000
MAX_WORK: int = 1_000_000
"""How many characters a grammar may have, and how many steps it may take: options of `Turn.grammar`."""


class Account:
    """The limits of one request. Each method raises `ApiError` if the request asks for more. ``size``: how many bytes
    of its body have come. ``replaced``: how many of its texts and
    numbers could not stay as they were (`read_body`)."""

    __slots__ = ("_settings", "replaced", "size")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.size = 0
        self.replaced = 0

    def arrived(self) -> None:
        """The body has come."""
        if self.size > self._settings.max_body:
            raise ApiError(f"expected a body of at most {self._settings.max_body:,} bytes", status=413)

    def values(self, raw: bytes) -> None:
        """The body is going to be read as JSON."""
        count = _separators(raw)
        if count > VALUES:
            count = _separators(_without_texts(raw))
        if count > VALUES:
            raise ApiError(f"expected a body of at most {VALUES:,} values, found about {count:,}", status=413)

    def schemas(self, request: Request) -> None:
        """Grammars of these are going to be made, and a response repeats some fields as they came."""
        tools = [*(request.tools or ()), *(request.loaded or ())]
        most, largest = self._settings.max_tools, self._settings.max_schemas
        if len(tools) > most:
            raise ApiError(f"expected at most {most} tools, found {len(tools)}", param="tools")
        repeated = [(name, request.body.get(name)) for name in _REPEATED]
        named = [("tools", tools), ("response_format", request.response_format), *repeated]
        if _far_below(named, largest):
            return
        for name, value in named:
            found = characters(value)
            if found > largest:
                said = f"expected at most {largest:,} characters of tools and schemas, found {found:,}"
                raise ApiError(said, status=413, param=name)

    def messages(self, messages: list[Any]) -> None:
        """These are going to be rendered. A template may leave out as much as it shows."""
        if not _far_below(messages, 2 * self._settings.max_prompt):
            self.prompt(characters(messages) // 2)

    def prompt(self, size: int) -> None:
        """A prompt of so many characters is going to be encoded."""
        most = self._settings.max_prompt
        if size > most:
            said = f"expected a prompt of at most {most:,} characters, found {size:,}: send less"
            raise ApiError(said, status=413, code="prompt_too_long")

    @staticmethod
    def room(prompt: int, most: int | None, context: int | None, param: str) -> int | None:
        """How many tokens the answer may have: what the client or the settings say, cut to what is left of the
        engine's context. None: the engine decides. ``param``: the field of the prompt, for the error."""
        if context is None:
            return most
        left = context - prompt
        if left < 1:
            raise ApiError.too_long(prompt, context, param)
        left = max(left - 1, 1)  # some engines want one token more
        return left if most is None else min(most, left)


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def _without_texts(raw: bytes) -> bytes:
    """JSON without its texts, or as it is if it has more of them than `VALUES` allows. Each step is one pass over the
    bytes: a regular expression would take a hundred times their size in memory."""
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * VALUES:  # each text is a value or a key
        return raw
    return b"".join(plain.split(b'"')[::2])


def _far_below(value: Any, most: int) -> bool:
    """Whether a value of JSON has fewer characters than ``most``, where the size of its dump is enough to tell. A dump
    has at least a byte for four characters, and is made at once."""
    try:
        return 4 * len(marshal.dumps(value, 2)) < most
    except ValueError:  # too deep for a dump
        return False


def characters(value: object) -> int:
    """About how many characters a value of JSON has when it is written."""
    total, waiting = 0, [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            total += len(found) + 2
        elif isinstance(found, list):
            waiting += found
            total += 2 * len(found) + 2
        elif type(found) is dict or isinstance(found, Mapping):
            waiting += found.values()
            total += sum(map(len, found)) + 6 * len(found) + 2
        else:
            total += 4
    return total
