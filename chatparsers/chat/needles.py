"""Needles in the words of messages: where a rendering has what stands beside them.

The messages are rendered once more, with needles in their words. Where the needles stand, the words stand, however the
template strips, escapes or moves them. This is believed only if the rendering without its needles is the one without
them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from os import urandom
from typing import Any

from ..core.errors import ChatParsersError
from .request import Request

__all__ = ["Needles", "with_words"]


class Needles:
    """Texts that nobody can spell beforehand, each with its number."""

    def __init__(self) -> None:
        self._word = f"N{urandom(8).hex()}x"

    def needle(self, number: int) -> str:
        """The needle of this number."""
        return f"{self._word}{number}x"

    def found(
        self, request: Request, prompt: str, needled: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[tuple[int, int]] | None:
        """The number of each needle and its place in ``prompt``, in the order of the text; None if the rendering of
        ``needled`` is not the prompt with needles."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                shown = request.rendered(needled, **options).prompt
            except ChatParsersError:
                return None
        pieces = re.split(f"{self._word}([0-9]+)x", shown)
        if "".join(pieces[::2]) != prompt:
            return None
        places = []
        at = 0
        for text, number in zip(pieces[::2], pieces[1::2], strict=False):
            at += len(text)
            places.append((int(number), at))
        return places


def with_words(message: Mapping[str, Any], change: Callable[[str], str]) -> Mapping[str, Any]:
    """The message with other words: ``change`` is asked for each text of its content."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": change(content)}
    if isinstance(content, (list, tuple)):
        return {**message, "content": [_part(part, change) for part in content]}
    return message


def _part(part: Any, change: Callable[[str], str]) -> Any:
    if isinstance(part, str):
        return change(part)
    text = part.get("text") if isinstance(part, Mapping) else None
    return {**part, "text": change(text)} if isinstance(text, str) else part
