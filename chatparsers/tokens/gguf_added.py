"""Which tokens of a GGUF file llama.cpp cuts out of a text before it becomes words.

The file's types say so. llama.cpp (``src/llama-vocab.cpp``, b11434) knows better than some files: it takes tokens of
certain names whatever their type, and blanks around some tokens, which no GGUF file can say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from .gguf_metadata import Metadata

if TYPE_CHECKING:
    from tokenizers import AddedToken


class TokenType(IntEnum):
    """The values of ``tokenizer.ggml.token_type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_CUT = (TokenType.CONTROL, TokenType.UNKNOWN, TokenType.USER_DEFINED)
_ENDS = """
<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s> <|eom_id|> <EOT>
_<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response> <｜end▁of▁sentence｜> [e~[
"""
_CONTROL = frozenset(_ENDS.split())
"""Ends of a turn: control tokens whatever their type."""
_USER_DEFINED = frozenset(["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"])
_FILL_IN: Mapping[tuple[str, ...], str] = {
    (
        "fim_pre",
        "prefix",
    ): "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> <|prefix|>",
    (
        "fim_suf",
        "suffix",
    ): "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|>",
    (
        "fim_mid",
        "middle",
    ): "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|>",
    ("fim_pad",): "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]",
    ("fim_rep",): "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>",
    ("fim_sep",): "<|file_sep|>",
}
"""Tokens for filling in the middle, by the fields that could name them. Where none does, the first that is there."""
_KEY = "tokenizer.ggml.{}_token_id"


def added_tokens(metadata: Metadata, tokens: list[str], types: list[float]) -> Iterator[AddedToken]:
    """The tokens that are cut out of a text."""
    from tokenizers import AddedToken

    name = (metadata.text("general.name") or "").lower()
    known = frozenset(tokens)
    control = _CONTROL.union(_filling_in(metadata, known))
    plain = {"</s>"} if "<|tool_response>" in known else frozenset()  # a word of HTML in Gemma 4
    trailing = "phi-3" in name or "phi3" in name
    leading = _mask(metadata, name)
    for token, type_ in zip(tokens, types, strict=True):
        cut = type_ in _CUT or token in control or token in _USER_DEFINED
        if not cut or token in plain:
            continue
        yield AddedToken(
            token,
            normalized=False,
            special=type_ in (TokenType.CONTROL, TokenType.UNKNOWN)
            or (type_ != TokenType.USER_DEFINED and token in control),
            lstrip=token == leading,
            rstrip=trailing and token not in ("<unk>", "<s>", "<|endoftext|>"),
        )


def _filling_in(metadata: Metadata, known: frozenset[str]) -> Iterator[str]:
    for keys, texts in _FILL_IN.items():
        if not any(_KEY.format(key) in metadata for key in keys):
            yield from [text for text in texts.split() if text in known][:1]


def _mask(metadata: Metadata, name: str) -> str | None:
    """The mask of an encoder that takes the blanks before it."""
    pre = metadata.text("tokenizer.ggml.pre") or ""
    architecture = metadata.text("general.architecture") or ""
    if any(one in pre for one in ("jina-v2-de", "jina-v2-es", "jina-v2-code", "mmbert")) or any(
        one in architecture for one in ("nomic-bert-moe", "jina-bert-v3")
    ):
        return "<mask>"
    return "[MASK]" if "modern-bert" in name else None
