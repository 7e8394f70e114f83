"""SGLang: ``--grammar-backend chatparsers`` steers answers by guides: budgets for thoughts, numbers of calls.

A request whose ``ebnf`` is the text of `chatparsers.adapters.steered.to_spec` gets a guide of its own turn. Any other
grammar goes to SGLang's backend for llguidance, as before. The guide takes drafts back (``rollback``), so it serves
speculative decoding too. `chatparsers.adapters.sglang.register` registers it.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, InvalidGrammarObject
from sglang.srt.constrained.llguidance_backend import GuidanceBackend, GuidanceGrammar

from ..errors import ChatParsersError
from ..guide import Guide
from ._tokenizers import chat_of
from .steered import guide_of, is_spec

__all__ = ["GuideBackend", "GuideGrammar", "create"]


class GuideGrammar(BaseGrammarObject):  # type: ignore[misc]
    """A guide as SGLang drives a grammar."""

    def __init__(self, guide: Guide) -> None:
        super().__init__()
        self.guide = guide

    def accept_token(self, token: int) -> None:
        """Takes the next id. Raises ValueError if it may not come: SGLang ends the request then."""
        try:
            self.guide.feed(int(token))
        except ChatParsersError as error:
            raise ValueError(str(error)) from error

    def rollback(self, k: int) -> None:
        """Takes the last ``k`` ids back."""
        self.guide.rollback(k)

    def is_terminated(self) -> bool:
        return self.guide.ended

    def copy(self) -> GuideGrammar:
        return GuideGrammar(self.guide.fork())

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        size = max(vocab_size, self.guide.size)
        return torch.full((batch_size, (size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        self.guide.fill(vocab_mask, idx)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The ids that must come now."""
        ids = self.guide.forced()
        return (ids, "") if ids else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return "", -1

    def jump_and_retokenize(self, old_output_ids: Any, new_output_ids: Any, next_state: int) -> None:
        """Nothing: the guide reads ids."""

    # What is done with a mask is the same for each grammar of packed words.
    reset_vocab_mask = staticmethod(GuidanceGrammar.reset_vocab_mask)
    move_vocab_mask = staticmethod(GuidanceGrammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(GuidanceGrammar.apply_vocab_mask)


class GuideBackend(GuidanceBackend):  # type: ignore[misc]
    """SGLang's backend for llguidance, and guides for the requests that ask for them."""

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        if not is_spec(key_string):
            return super().dispatch_ebnf(key_string)
        try:
            return GuideGrammar(guide_of(chat_of(self.tokenizer), key_string))
        except ChatParsersError as error:
            return InvalidGrammarObject(str(error))


def create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None) -> GuideBackend:
    """The backend, as SGLang makes one of its table."""
    return GuideBackend(tokenizer=tokenizer, n_vocab=vocab_size, eos_token_ids=eos_token_ids)
