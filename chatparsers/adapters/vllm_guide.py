"""vLLM: a guide as vLLM drives a grammar, for engines that you make yourself.

vLLM's list of backends for structured outputs is closed, so nothing is registered. `GuideBackend` is one of its
backends: it makes guides of the requests whose grammar is the text of `chatparsers.adapters.steered.to_spec`.

    manager = StructuredOutputManager(vllm_config)
    manager.backend = GuideBackend(vllm_config, tokenizer, vocab_size)

Its grammars take drafts back, so speculative decoding is steered too, which vLLM's ``thinking_token_budget`` is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from ..errors import ChatParsersError, RequestError
from ..guide import Guide
from ._tokenizers import chat_of
from .steered import guide_of

__all__ = ["GuideBackend", "GuideGrammar"]


class GuideGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """A guide as vLLM drives the grammar of a request."""

    def __init__(self, guide: Guide) -> None:
        self.guide = guide
        self._fresh = guide.fork()

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Takes the ids. False if one of them may not come; then it takes none."""
        try:
            self.guide.feed(tokens)
        except ChatParsersError:
            return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The first of the ids, up to one that may not come. Takes none."""
        return tokens[: self.guide.accepts(tokens)]

    def rollback(self, num_tokens: int) -> None:
        """Takes the last ids back."""
        self.guide.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Writes which ids may come next into a row."""
        self.guide.fill(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Whether the turn is over."""
        return self.guide.ended

    def reset(self) -> None:
        """Begins the answer anew."""
        self.guide = self._fresh.fork()


@dataclass
class GuideBackend(StructuredOutputBackend):  # type: ignore[misc]
    """Makes the guides of an engine's requests."""

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> GuideGrammar:
        """The guide of a request. Raises `RequestError` if it asks for another kind of structured output."""
        if request_type is not StructuredOutputOptions.GRAMMAR:
            raise RequestError(
                f"structured outputs: expected a grammar that to_spec wrote, found {request_type.name.lower()}"
            )
        return GuideGrammar(guide_of(chat_of(self.tokenizer), grammar_spec))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        size = max(self.vocab_size, len(self.tokenizer))
        return torch.full((max_num_seqs, (size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Nothing is held."""
