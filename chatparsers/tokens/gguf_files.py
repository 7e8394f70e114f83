"""GGUF files: the chat templates and the vocabulary in their metadata.

The vocabulary becomes a ``tokenizers.Tokenizer``. It decodes ids exactly. It splits text as the model does for
SentencePiece vocabularies, and nearly so for byte-level ones: the file does not hold their pattern for words, so
GPT-2's is used.

The keys are those of the GGUF specification (ggml-org/ggml, ``docs/gguf.md``).
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import LoadError
from .gguf_metadata import Metadata
from .model_files import ModelFiles

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["read_gguf"]

_TEMPLATE = "tokenizer.chat_template"
_VOCABULARY = "tokenizer.ggml."
_ROLES = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "eot_token": "eot_token_id",
    "eom_token": "eom_token_id",
    "pad_token": "padding_token_id",
    "unk_token": "unknown_token_id",
}
_NONE = 0xFFFFFFFF  # what converters write for an id of -1
_ENDS = ("eos_token", "eot_token", "eom_token")


_LONGEST_TOKEN = 512
_MOST_CUTS = 8_000_000
"""The limit of places at which tokens are cut to find merges. A vocabulary of 262,000 tokens has 1.9 million."""


class _TokenType(IntEnum):
    """The values of ``tokenizer.ggml.token_type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def read_gguf(path: Path) -> ModelFiles:
    """Reads the metadata of a GGUF file, not the weights.

    Raises LoadError if the file is not GGUF or a field has the wrong type.
    """
    metadata = Metadata(path)
    templates = {}
    for key in metadata:
        if key == _TEMPLATE or key.startswith(_TEMPLATE + "."):
            templates[key.removeprefix(_TEMPLATE).removeprefix(".") or "default"] = metadata.text(key) or ""
    tokens = _VOCABULARY + "tokens"
    roles: dict[str, int] = {}
    texts: dict[str, str] = {}
    for role, key in _ROLES.items():
        number = metadata.number(_VOCABULARY + key)
        if number is None or number == _NONE:
            continue
        roles[role] = number
        if tokens in metadata:
            texts[role] = metadata.item(tokens, number, _VOCABULARY + key)
    names = [metadata.text(f"general.{key}") for key in ("name", "basename", "architecture")]
    return ModelFiles(
        source=path,
        templates=templates,
        bos_token=texts.get("bos_token"),
        eos_token=texts.get("eos_token"),
        eos_ids=tuple(dict.fromkeys(roles[role] for role in _ENDS if role in roles)),
        ends={f"{_VOCABULARY}{_ROLES[role]}": (roles[role],) for role in _ENDS if role in roles},
        special_tokens=texts,
        special_ids={f"{role}_id": roles[role] for role in ("bos_token", "pad_token") if role in roles},
        names=tuple(dict.fromkeys([*(name for name in names if name), path.stem])),
        _read_tokenizer=partial(_tokenizer, path),  # read anew, not kept: it is tens of megabytes
    )


def _tokenizer(path: Path) -> Tokenizer | None:
    return _build(Metadata(path))


def _build(metadata: Metadata) -> Tokenizer | None:
    """The tokenizer of the metadata, None if there is no vocabulary."""
    try:
        from tokenizers import AddedToken, Tokenizer
    except ImportError as error:
        raise LoadError(
            f"{metadata.path}: its vocabulary needs tokenizers: pip install tokenizers"
        ) from error
    whole = metadata.text("tokenizer.huggingface.json")
    if whole:
        try:
            return Tokenizer.from_str(whole)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # tokenizers raises bare Exception, or what Rust calls a panic
            raise metadata.wrong(
                "tokenizer.huggingface.json", "a tokenizer.json", f"an error: {error}"
            ) from error
    kind = metadata.text(_VOCABULARY + "model")
    tokens = metadata.texts(_VOCABULARY + "tokens")
    if kind in {None, "none", "no_vocab"} or not tokens:
        return None
    types = metadata.numbers(_VOCABULARY + "token_type") or [_TokenType.NORMAL] * len(tokens)
    if len(types) != len(tokens):
        raise metadata.wrong(
            _VOCABULARY + "token_type", f"{len(tokens)} entries, one for each token", str(len(types))
        )
    try:
        if kind == "gpt2":
            tokenizer = _byte_level(metadata, tokens)
        elif kind in {"llama", "gemma4"}:
            tokenizer = _sentence_piece(metadata, tokens, types)
        else:
            raise LoadError(
                f'{metadata.path}: field "{_VOCABULARY}model": a {kind!r} vocabulary cannot be read, '
                "only gpt2, llama and gemma4; pass the model's tokenizer.json as the tokenizer"
            )
        for kinds, special in (
            ({_TokenType.CONTROL, _TokenType.UNKNOWN}, True),
            ({_TokenType.USER_DEFINED}, False),
        ):
            added = [
                AddedToken(token, special=special, normalized=False)
                for token, type_ in zip(tokens, types, strict=True)
                if type_ in kinds
            ]
            (tokenizer.add_special_tokens if special else tokenizer.add_tokens)(added)
    except (LoadError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # tokenizers raises bare Exception, or what Rust calls a panic
        raise metadata.wrong(
            _VOCABULARY + "merges", "merges of the tokens in the file", f"an error: {error}"
        ) from error
    return tokenizer


def _byte_level(metadata: Metadata, tokens: list[str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocab=_ids(tokens), merges=_merges(metadata)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentence_piece(metadata: Metadata, tokens: list[str], types: list[float]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers

    vocab = _ids(tokens)
    merges = _merges(metadata)
    if not merges:
        scores = metadata.numbers(_VOCABULARY + "scores") or [0.0] * len(tokens)
        merges = _merges_by_score(
            vocab, [token for token, type_ in zip(tokens, types, strict=True) if type_ == 1], scores
        )
    unknown = metadata.number(_VOCABULARY + "unknown_token_id")
    tokenizer = Tokenizer(
        models.BPE(
            vocab=vocab,
            merges=merges,
            unk_token=None
            if unknown is None
            else metadata.item(_VOCABULARY + "tokens", unknown, "unknown_token_id"),
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaces = normalizers.Replace(" ", "▁")
    prefixed = metadata.flag(_VOCABULARY + "add_space_prefix")
    if prefixed or (prefixed is None and metadata.text(_VOCABULARY + "model") == "llama"):
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), spaces])
    else:
        tokenizer.normalizer = spaces
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def _ids(tokens: list[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}


def _merges(metadata: Metadata) -> list[tuple[str, str]]:
    """The merges. Each is two tokens with a space between them; a token may itself begin with a space."""
    pairs = []
    for place, merge in enumerate(metadata.texts(_VOCABULARY + "merges")):
        cut = merge.find(" ", 1)
        if cut < 0:
            raise metadata.wrong(
                f"{_VOCABULARY}merges[{place}]", "two tokens with a space between", repr(merge)
            )
        pairs.append((merge[:cut], merge[cut + 1 :]))
    return pairs


def _merges_by_score(vocab: dict[str, int], tokens: list[str], scores: list[float]) -> list[tuple[str, str]]:
    """The merges that a SentencePiece model makes. The pair that makes the token with the best score comes first."""
    found: list[tuple[float, int, int, str, str]] = []
    tokens = [token for token in tokens if len(token) <= _LONGEST_TOKEN]
    if sum(map(len, tokens)) > _MOST_CUTS:
        raise LoadError(
            f"expected a vocabulary of at most {_MOST_CUTS:,} characters; pass its tokenizer.json"
        )
    for token in tokens:
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocab and right in vocab:
                found.append((-scores[vocab[token]], vocab[left], vocab[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]
