"""The markers that users and tools spell: where a prompt has them, so that they are encoded as text.

Strategy. The messages are rendered once more, with a needle beside each such marker. Where the needles stand, the
markers stand in the prompt, however the template strips, escapes or moves the words. This is believed only if the
rendering without its needles is the prompt. A needle stands behind a marker that begins the words, else before it: some
templates look at how words begin and end.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from os import urandom
from typing import Any

from ..core.errors import ChatParsersError
from ..tokens.markers import markers_of
from ..tokens.vocabulary import Vocabulary
from .marks import Span
from .request import Request

__all__ = ["quoted_markers"]

_OURS = ("system", "developer", "assistant")
"""Roles whose words are the host's or the model's own."""


def quoted_markers(
    request: Request, prompt: str, messages: Sequence[Mapping[str, Any]], **options: Any
) -> list[Span]:
    """The spans in ``prompt``, the rendering of ``messages`` with these options, of the markers that users and tools
    spell. Warns if they cannot be told from the template's."""
    tokenizer = request.chat.tokenizer
    pattern = None if tokenizer is None else markers_of(Vocabulary.of(tokenizer))
    if pattern is None:
        return []
    needles = _Needles(pattern)
    marked = [needles.beside(message) for message in messages]
    if not needles.markers:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shown = request.rendered(marked, **options).prompt
        except ChatParsersError:
            shown = ""
    found = needles.found(shown, prompt)
    if found is None:
        warnings.warn(
            "a user or a tool spells a marker, and what the template writes depends on it: it is encoded as a marker",
            UserWarning,
            stacklevel=2,
        )
    return found or []


class _Needles:
    """Needles beside markers. ``markers``: the text of each, and whether its needle stands behind it."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._word = f"N{urandom(8).hex()}x"  # nobody can spell it beforehand
        self.markers: list[tuple[str, bool]] = []

    def beside(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """The message with a needle beside each marker in its words; itself if there is none."""
        content = message.get("content")
        if message.get("role") in _OURS or not content:
            return message
        before = len(self.markers)
        if isinstance(content, str):
            content = self._put(content)
        elif isinstance(content, (list, tuple)):
            content = [self._part(part) for part in content]
        return message if len(self.markers) == before else {**message, "content": content}

    def _part(self, part: Any) -> Any:
        if isinstance(part, str):
            return self._put(part)
        text = part.get("text") if isinstance(part, Mapping) else None
        return {**part, "text": self._put(text)} if isinstance(text, str) else part

    def _put(self, text: str) -> str:
        def needled(match: re.Match[str]) -> str:
            begins = not text[: match.start()].strip()
            needle = f"{self._word}{len(self.markers)}x"
            self.markers.append((match[0], begins))
            return match[0] + needle if begins else needle + match[0]

        return self._pattern.sub(needled, text)

    def found(self, shown: str, prompt: str) -> list[Span] | None:
        """The spans of the markers in ``prompt``; None if ``shown`` is not the prompt with needles."""
        pieces = re.split(f"{self._word}([0-9]+)x", shown)
        if "".join(pieces[::2]) != prompt:
            return None
        spans = []
        at = 0
        for text, number in zip(pieces[::2], pieces[1::2], strict=False):
            at += len(text)
            marker, behind = self.markers[int(number)]
            start = at - len(marker) if behind else at
            if prompt.startswith(marker, start):  # else it is escaped, and no marker
                spans.append((start, start + len(marker)))
        return sorted(spans)
