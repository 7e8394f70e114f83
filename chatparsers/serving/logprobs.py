"""Log probabilities of tokens, and the ids of tokens, as clients ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ..streams.message import RegionKind
from .errors import ApiError
from .fields import boolean, integer, sequence, string
from .sealed import ASKED

MOST = 20
INCLUDED = "message.output_text.logprobs"
_NEVER_THERE = ("file_search_call.", "web_search_call.", "computer_call_output.", "code_interpreter_call.")
"""Parts of items that no answer of ours has, so nothing is missing."""


class TopLogprob(TypedDict):
    """A token that could have stood there."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(TypedDict):
    """A token of the answer. ``bytes``: what it spells; its text alone may hold a part of a character."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


Logprobs = dict[str, "list[TokenLogprob]"]
"""Tokens by the part of the message that they belong to: ``content``, ``reasoning``, ``tool_calls`` or ``markup``."""

FIELDS: Mapping[RegionKind, str] = {
    "content": "content",
    "reasoning": "reasoning",
    "call": "tool_calls",
    "markup": "markup",
}
"""The field of each region. Only ``content`` is one of the APIs; the others are ours, so that nothing is lost."""


def asked_chat(body: Mapping[str, Any]) -> int | None:
    """How many of the likeliest tokens are asked for at each place, besides the token itself; None: nothing is."""
    most = _most(body)
    if boolean(body, "logprobs", False):
        return most or 0
    if most:
        raise ApiError("top_logprobs needs logprobs: true", param="top_logprobs")
    return None


def asked_responses(body: Mapping[str, Any]) -> int | None:
    """As `asked_chat`, for the Responses API."""
    found = False
    for index, name in enumerate(sequence(body.get("include") or [], "include")):
        path = f"include[{index}]"
        text = string(name, path)
        found = found or text == INCLUDED
        known = text in (INCLUDED, ASKED, "message.input_image.image_url")
        if not known and not text.startswith(_NEVER_THERE):
            raise ApiError(f"expected a part such as {INCLUDED!r}, found {text!r}", param=path)
    most = _most(body)
    return (most or 0) if found or most else None


def _most(body: Mapping[str, Any]) -> int | None:
    most = integer(body, "top_logprobs", 0)
    if most is not None and most > MOST:
        raise ApiError(f"expected a whole number of at most {MOST}, found {most}", param="top_logprobs")
    return most


def cut(found: TokenLogprob, most: int) -> TokenLogprob:
    """A token with its ``most`` likeliest alternatives; engines give one more, or none that is asked for."""
    tops = sorted(found["top_logprobs"], key=lambda top: -top["logprob"])
    return {**found, "top_logprobs": tops[:most]}
