"""The markers that users and tools spell: where a prompt has them, so that they are encoded as text.

A needle beside each marker shows it (`Needles`). It stands behind a marker that begins the words, else before it: some
templates look at how words begin and end.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..tokens.markers import markers_of
from ..tokens.vocabulary import Vocabulary
from .marks import Span
from .needles import Needles, with_words
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
    beside = _Beside(pattern)
    marked = [beside.put(message) for message in messages]
    if not beside.markers:
        return []
    places = beside.needles.found(request, prompt, marked, **options)
    if places is None:
        warnings.warn(
            "a user or a tool spells a marker, and what the template writes depends on it: it is encoded as a marker",
            UserWarning,
            stacklevel=2,
        )
        return []
    return sorted(beside.spans(prompt, places))


class _Beside:
    """Needles beside markers. ``markers``: the text of each, and whether its needle stands behind it."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.needles = Needles()
        self.markers: list[tuple[str, bool]] = []

    def put(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """The message with a needle beside each marker in its words."""
        return message if message.get("role") in _OURS else with_words(message, self._put)

    def _put(self, text: str) -> str:
        def needled(match: re.Match[str]) -> str:
            begins = not text[: match.start()].strip()
            needle = self.needles.needle(len(self.markers))
            self.markers.append((match[0], begins))
            return match[0] + needle if begins else needle + match[0]

        return self._pattern.sub(needled, text)

    def spans(self, prompt: str, places: Sequence[tuple[int, int]]) -> Iterator[Span]:
        """The spans of the markers in ``prompt``, whose needles stand at these places."""
        for number, at in places:
            marker, behind = self.markers[number]
            start = at - len(marker) if behind else at
            if prompt.startswith(marker, start):  # else it is escaped, and no marker
                yield start, start + len(marker)
