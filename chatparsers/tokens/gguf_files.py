"""GGUF files: the chat templates and the vocabulary in their metadata.

The vocabulary becomes a ``tokenizers.Tokenizer`` (`chatparsers.tokens.gguf_tokenizer`).

The keys are those of the GGUF specification (ggml-org/ggml, ``docs/gguf.md``).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .gguf_metadata import Metadata
from .gguf_tokenizer import VOCABULARY, build_tokenizer, unknown_pre
from .model_files import ModelFiles

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TEMPLATE = "tokenizer.chat_template"
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


def read_gguf(path: Path) -> ModelFiles:
    """Reads the metadata of a GGUF file, not the weights.

    Raises LoadError if the file is not GGUF or a field has the wrong type.
    """
    metadata = Metadata(path)
    templates = {}
    for key in metadata:
        if key == _TEMPLATE or key.startswith(_TEMPLATE + "."):
            templates[key.removeprefix(_TEMPLATE).removeprefix(".") or "default"] = metadata.text(key) or ""
    tokens = VOCABULARY + "tokens"
    roles: dict[str, int] = {}
    texts: dict[str, str] = {}
    for role, key in _ROLES.items():
        number = metadata.number(VOCABULARY + key)
        if number is None or number == _NONE:
            continue
        roles[role] = number
        if tokens in metadata:
            texts[role] = metadata.item(tokens, number, VOCABULARY + key)
    names = [metadata.text(f"general.{key}") for key in ("name", "basename", "architecture")]
    return ModelFiles(
        source=path,
        templates=templates,
        bos_token=texts.get("bos_token"),
        eos_token=texts.get("eos_token"),
        eos_ids=tuple(dict.fromkeys(roles[role] for role in _ENDS if role in roles)),
        ends={f"{VOCABULARY}{_ROLES[role]}": (roles[role],) for role in _ENDS if role in roles},
        special_tokens=texts,
        special_ids={f"{role}_id": roles[role] for role in ("bos_token", "pad_token") if role in roles},
        names=tuple(dict.fromkeys([*(name for name in names if name), path.stem])),
        unknown_pre=unknown_pre(metadata),
        _read_tokenizer=partial(_tokenizer, path),  # read anew, not kept: it is tens of megabytes
    )


def _tokenizer(path: Path) -> Tokenizer | None:
    return build_tokenizer(Metadata(path))
