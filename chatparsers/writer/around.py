"""What a format itself writes around thoughts and content, found by writing an answer."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from ..answers.format import Format
from ..errors import ChatParsersError

_WORDS, _THOUGHT = "永Words", "永Thought"


@lru_cache(maxsize=256)
def written_around(fmt: Format) -> tuple[str, str, str]:
    """What the format itself writes before a thought, after it, and after content, such as the end of a channel; ``""``
    for what it cannot write."""
    for content in (_WORDS, ""):  # some formats write no content after a thought
        message = {"role": "assistant", "content": content, "reasoning_content": _THOUGHT}
        with suppress(ChatParsersError):
            before, _, rest = fmt.render(message).partition(_THOUGHT)
            between, words, after = rest.partition(_WORDS)
            return before, between if words else "", after
    return "", "", ""
