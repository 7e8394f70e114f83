"""Words that a template writes elsewhere than in the order of the messages, such as Mistral's system text before the
last question: needles show where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .marks import standing, words_runs
from .needles import Needles, with_words
from .places import Places, words_of
from .request import Request
from .sample import Run

__all__ = ["moved_runs"]


def moved_runs(
    request: Request, prompt: str, messages: Sequence[Mapping[str, Any]], places: Places, **options: Any
) -> list[tuple[Run, Run]]:
    """The runs of kinds and of messages of the words that do not stand between the answers before and behind them.
    ``prompt``: the rendering of ``messages`` with these options. It renders once more if there are such words."""
    spans = standing(prompt, messages, places)
    lost = [index for index, found in spans if len(found) < len(words_of(messages[index]))]
    if not lost:
        return []
    between = _Between()
    needled = [*messages]
    for index in lost:
        between.index = index
        needled[index] = with_words(messages[index], between.put)
    stand = between.needles.found(request, prompt, needled, **options) or []
    first: dict[int, int] = {}
    runs: list[tuple[Run, Run]] = []
    for number, at in stand:
        if number % 2 == 0:
            first[number] = at
            continue
        start, (index, left, right) = first.pop(number - 1, at), between.edges[number // 2]
        if prompt[start - 1 : start] == left and prompt[at : at + 1] == right:
            runs += words_runs(index, messages[index], [(start - 1, at + 1)])
    return runs


class _Between:
    """Needles behind the first and before the last character of words: templates look at how words begin and end.
    ``edges``: of each words the message's index and these two characters."""

    def __init__(self) -> None:
        self.needles = Needles()
        self.edges: list[tuple[int, str, str]] = []
        self.index = 0

    def put(self, text: str) -> str:
        """The text with two needles; itself if it is too short."""
        words = text.strip()
        if len(words) < 2:
            return text
        number = 2 * len(self.edges)
        self.edges.append((self.index, words[0], words[-1]))
        inner = self.needles.needle(number) + words[1:-1] + self.needles.needle(number + 1)
        return text.replace(words, words[0] + inner + words[-1], 1)
