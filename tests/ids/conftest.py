"""A small tokenizer for these tests, and real ones with a format's markers added."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def byte_tokenizer(special: tuple[str, ...] = ()) -> Tokenizer:
    """One token for each byte, with these special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: id for id, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    return tokenizer


@pytest.fixture
def bytewise() -> Any:
    """``bytewise(special)``: a tokenizer of single bytes with special tokens."""
    return byte_tokenizer
