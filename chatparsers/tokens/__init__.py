"""Token ids: the text of each id, the special tokens, and the model files that name them.

Importing this package imports neither ``tokenizers`` nor ``gguf``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .detokenizer import Detokenizer
    from .loaders import read_model, read_tokenizer
    from .model_files import ModelFiles
    from .special import SpecialTokens
    from .vocabulary import AddedToken, TokenizerLike, Vocabulary

__all__ = [
    "AddedToken",
    "Detokenizer",
    "ModelFiles",
    "SpecialTokens",
    "TokenizerLike",
    "Vocabulary",
    "read_model",
    "read_tokenizer",
]

_HOME = {
    "AddedToken": "vocabulary",
    "Detokenizer": "detokenizer",
    "ModelFiles": "model_files",
    "SpecialTokens": "special",
    "TokenizerLike": "vocabulary",
    "Vocabulary": "vocabulary",
    "read_model": "loaders",
    "read_tokenizer": "loaders",
}


__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
