"""Token ids: the text of each id, the special tokens, and the model files that name them.

Importing this package imports neither ``tokenizers`` nor ``gguf``.
"""

from __future__ import annotations

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
