"""The vocabulary of a GGUF file as a ``tokenizers.Tokenizer`` that gives llama.cpp's ids.

The rules are those of ``src/llama-vocab.cpp`` of llama.cpp (b11434). The ids may differ from its ids where tokens that
are cut out of a text overlap (llama.cpp takes the longest first, ``tokenizers`` the leftmost), where tokens of a
SentencePiece vocabulary have equal scores, and for characters that Unicode has had for only a few years. Phi-3's tokens
before blanks beyond ASCII are not exact either.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import LoadError, warn_user
from .files import refused
from .gguf_added import TokenType, added_tokens
from .gguf_metadata import Metadata
from .gguf_words import PRE_TOKENIZERS, PreTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY = "tokenizer.ggml."
"""How the keys of a vocabulary begin."""
_LONGEST_TOKEN = 512
_MOST_CUTS = 8_000_000
"""The limit of places at which tokens are cut to find merges. A vocabulary of 262,000 tokens has 1.9 million."""

_DEFAULTS = {"llama": {"bos": 1, "eos": 2}, "gpt2": {"bos": 11, "eos": 11}}
"""The ids of the tokens that begin and end a text, where the file names none."""


def unknown_pre(metadata: Metadata) -> str | None:
    """The name of the file's pre-tokenizer, if its vocabulary needs one and none of that name is known."""
    if "tokenizer.huggingface.json" in metadata or metadata.text(VOCABULARY + "model") != "gpt2":
        return None
    pre = metadata.text(VOCABULARY + "pre") or "default"
    return None if pre in PRE_TOKENIZERS else pre


def build_tokenizer(metadata: Metadata) -> Tokenizer | None:
    """The tokenizer of the metadata, None if there is no vocabulary. Warns if it cannot know how to cut words.

    Raises LoadError.
    """
    from tokenizers import Tokenizer

    whole = metadata.text("tokenizer.huggingface.json")
    if whole:
        with refused(partial(metadata.wrong, "tokenizer.huggingface.json", "a tokenizer.json")):
            return Tokenizer.from_str(whole)
    kind = metadata.text(VOCABULARY + "model")
    tokens = metadata.texts(VOCABULARY + "tokens")
    if kind in {None, "none", "no_vocab"} or not tokens:
        return None
    types = metadata.numbers(VOCABULARY + "token_type") or [TokenType.NORMAL] * len(tokens)
    if len(types) != len(tokens):
        raise metadata.wrong(
            VOCABULARY + "token_type", f"{len(tokens)} entries, one for each token", str(len(types))
        )
    if kind not in {"gpt2", "llama", "gemma4"}:
        raise LoadError(
            f'{metadata.path}: field "{VOCABULARY}model": a {kind!r} vocabulary cannot be read, '
            "only gpt2, llama and gemma4; pass the model's tokenizer.json as the tokenizer"
        )
    with refused(partial(metadata.wrong, VOCABULARY + "merges", "merges of the tokens in the file")):
        tokenizer = _by_scores(metadata, tokens) if kind == "llama" else _by_merges(metadata, tokens, kind)
        added = list(added_tokens(metadata, tokens, types))
        tokenizer.add_special_tokens([one for one in added if one.special])
        tokenizer.add_tokens([one for one in added if not one.special])
    return tokenizer


def _by_merges(metadata: Metadata, tokens: list[str], kind: str) -> Tokenizer:
    """Tokens are merged within words, in the order of the file's merges."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    pre = _pre_tokenizer(metadata, kind)
    words: list[Any] = [pre_tokenizers.Split(Regex(one), "isolated") for one in pre.expressions]
    if pre.byte_letters:
        tokenizer = Tokenizer(
            models.BPE(vocab=_ids(tokens), merges=_merges(metadata), ignore_merges=pre.ignore_merges)
        )
        words.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        if missing := sorted(
            {*pre_tokenizers.ByteLevel.alphabet()} - {*tokens}
        ):  # no id, and no merge across
            words.append(pre_tokenizers.Split(Regex(f"[{re.escape(''.join(missing))}]"), "removed"))
        tokenizer.decoder = decoders.ByteLevel()
    else:
        tokenizer = _of_characters(metadata, tokens, _merges(metadata))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
    flag = metadata.flag(VOCABULARY + "add_bos_token")
    _add_edges(tokenizer, metadata, kind, bos=pre.add_bos if flag is None or kind == "gemma4" else flag)
    return tokenizer


def _by_scores(metadata: Metadata, tokens: list[str]) -> Tokenizer:
    """The pair that makes the token with the best score is merged first, as SentencePiece does."""
    from tokenizers import normalizers

    scores = metadata.numbers(VOCABULARY + "scores") or [0.0] * len(tokens)
    tokenizer = _of_characters(metadata, tokens, _merges_by_score(tokens, scores))
    if metadata.flag(VOCABULARY + "add_space_prefix") is not False:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), tokenizer.normalizer])
    _add_edges(tokenizer, metadata, "llama", bos=metadata.flag(VOCABULARY + "add_bos_token") is not False)
    return tokenizer


def _pre_tokenizer(metadata: Metadata, kind: str) -> PreTokenizer:
    unknown = unknown_pre(metadata)
    if unknown is not None:
        warn_user(
            f"{metadata.path}: the pre-tokenizer {unknown!r} is not known, so the ids of texts may differ from "
            "the model's; pass the model's tokenizer.json as the tokenizer"
        )
    name = "gemma4" if kind == "gemma4" else metadata.text(VOCABULARY + "pre") or "default"
    return PRE_TOKENIZERS["gpt-2" if unknown is not None else name]


def _of_characters(metadata: Metadata, tokens: list[str], merges: list[tuple[str, str]]) -> Tokenizer:
    """Tokens that spell characters, a space as ``▁``, and other characters byte by byte."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    unknown = metadata.number(VOCABULARY + "unknown_token_id")
    tokenizer = Tokenizer(
        models.BPE(
            vocab=_ids(tokens),
            merges=merges,
            unk_token=None
            if unknown is None
            else metadata.item(VOCABULARY + "tokens", unknown, "unknown_token_id"),
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def _add_edges(tokenizer: Tokenizer, metadata: Metadata, kind: str, *, bos: bool) -> None:
    """Has the tokenizer write the tokens that begin and end a text, where special tokens are asked for."""
    from tokenizers import processors

    wanted = {"bos": bos, "eos": metadata.flag(VOCABULARY + "add_eos_token") is True}
    edges = {}
    for edge in (edge for edge, add in wanted.items() if add):
        id = metadata.number(f"{VOCABULARY}{edge}_token_id")
        id = _DEFAULTS.get(kind, {}).get(edge) if id is None else id
        if id is not None and (token := tokenizer.id_to_token(id)) is not None:
            edges[edge] = {"id": edge, "ids": [id], "tokens": [token]}
    if edges:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[edge for edge in ("bos", "$A", "eos") if edge == "$A" or edge in edges],
            special_tokens=list(edges.values()),
        )


def _ids(tokens: list[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}


def _merges(metadata: Metadata) -> list[tuple[str, str]]:
    """The merges. Each is two tokens with a space between them; a token may itself begin with a space."""
    pairs = []
    for place, merge in enumerate(metadata.texts(VOCABULARY + "merges")):
        cut = merge.find(" ", 1)
        if cut < 0:
            raise metadata.wrong(
                f"{VOCABULARY}merges[{place}]", "two tokens with a space between", repr(merge)
            )
        pairs.append((merge[:cut], merge[cut + 1 :]))
    return list(dict.fromkeys(pairs))


def _merges_by_score(tokens: list[str], scores: list[float]) -> list[tuple[str, str]]:
    """The merges that a SentencePiece model makes. The pair that makes the token with the best score comes first."""
    vocab = _ids(tokens)
    found: list[tuple[float, int, int, str, str]] = []
    short = [token for token in tokens if len(token) <= _LONGEST_TOKEN]
    if sum(map(len, short)) > _MOST_CUTS:
        raise LoadError(
            f"expected a vocabulary of at most {_MOST_CUTS:,} characters; pass its tokenizer.json"
        )
    for token in short:
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocab and right in vocab:
                found.append((-scores[vocab[token]], vocab[left], vocab[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]
