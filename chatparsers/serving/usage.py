"""How many tokens a request and its answer have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..streams.message import Message


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of tokens: of the prompt, of the whole answer, and of the answer's reasoning. ``cached``: how many of the
    prompt's tokens the engine had already. ``limit``: to how many tokens the limit of the request was cut, as the
    context of the model has no more; None: it was not. It is in a field of our own, under the request's name.

    >>> from chatparsers.serving import Usage
    >>> Usage.of(chat.bind().parse("Hi"), prompt=10, completion=1).openai()["total_tokens"]
    11
    """

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0
    limit: int | None = None

    @classmethod
    def of(
        cls,
        message: Message,
        prompt: int = 0,
        *,
        completion: int | None = None,
        cached: int = 0,
        limit: int | None = None,
    ) -> Usage:
        """The usage of a message whose stream was fed ids: its regions count the tokens.

        ``completion``: the engine's own count, which has precedence, and is the only one if text was fed. A token that
        holds the end of the reasoning and the beginning of the content counts as reasoning.
        """
        last = reasoning = counted = 0
        for region in message.regions:
            if region.token_start is None or region.token_end is None:
                continue
            last = max(last, region.token_end)
            if region.kind == "reasoning":
                reasoning += max(region.token_end - max(region.token_start, counted), 0)
                counted = region.token_end
        return cls(prompt, last if completion is None else completion, reasoning, cached, limit)

    @classmethod
    def together(cls, usages: Sequence[Usage]) -> Usage:
        """The usage of several answers to one prompt, which counts once."""
        first = usages[0]
        completion = sum(usage.completion for usage in usages)
        reasoning = sum(usage.reasoning for usage in usages)
        return cls(first.prompt, completion, reasoning, first.cached, first.limit)

    def openai(self) -> dict[str, Any]:
        """As the chat-completions API counts."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
            **self._cut("max_tokens"),
        }

    def responses(self) -> dict[str, Any]:
        """As the Responses API counts."""
        return {
            "input_tokens": self.prompt,
            "input_tokens_details": {"cached_tokens": self.cached, "cache_write_tokens": 0},
            "output_tokens": self.completion,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.prompt + self.completion,
            **self._cut("max_output_tokens"),
        }

    def anthropic(self) -> dict[str, Any]:
        """As the Messages API counts: ``input_tokens`` are those that were not in a cache."""
        return {
            "input_tokens": self.prompt - self.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached,
            "output_tokens": self.completion,
            **self._cut("max_tokens"),
        }

    def _cut(self, name: str) -> dict[str, int]:
        return {} if self.limit is None else {name: self.limit}
