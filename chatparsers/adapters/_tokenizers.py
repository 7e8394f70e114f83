"""The chat of a host's tokenizer: its template, its special tokens, its ids.

A server gives a parser the tokenizer, in wrappers of its own. Chats are kept for as long as the tokenizer lives, so
each request finds the one of the first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ..chat.chat import Chat
from ..errors import LoadError
from ..registry import get_format
from ..tokens import ModelFiles

__all__ = ["FORMAT", "chat_of"]

FORMAT = "CHATPARSERS_FORMAT"
"""The environment variable that names the format, for templates that do not show theirs."""

_chats: WeakKeyDictionary[Any, dict[tuple[str | None, str | None], Chat]] = WeakKeyDictionary()


def chat_of(tokenizer: Any, template: str | None = None) -> Chat:
    """The chat of a tokenizer of transformers, or of a wrapper around one. ``template``: the text of a chat template in
    place of the tokenizer's.

    Raises `LoadError` if it is no fast tokenizer, or if there is no template.
    """
    inner = tokenizer
    while not hasattr(inner, "backend_tokenizer") and hasattr(inner, "_tokenizer"):
        inner = inner._tokenizer
    backend = getattr(inner, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "to_str"):
        raise LoadError(
            f"tokenizer: expected a fast tokenizer of transformers, found {type(tokenizer).__name__}: serve the model "
            "with its tokenizer.json"
        )
    name = os.environ.get(FORMAT) or None
    known = _chats.setdefault(backend, {})
    if (template, name) not in known:
        known[template, name] = _chat(inner, backend, template, name)
    return known[template, name]


def _chat(tokenizer: Any, backend: Any, template: str | None, name: str | None) -> Chat:
    found = tokenizer.chat_template if template is None else template
    source = str(getattr(tokenizer, "name_or_path", "") or "tokenizer")
    if not found:
        raise LoadError(f"{source}: the tokenizer has no chat template: give the server one")
    texts = {
        role: str(token)
        for role in ("bos_token", "eos_token", "pad_token")
        if (token := getattr(tokenizer, role, None)) is not None
    }
    eos = getattr(tokenizer, "eos_token_id", None)
    files = ModelFiles(
        Path(source),
        dict(found) if isinstance(found, dict) else {"default": found},
        bos_token=texts.get("bos_token"),
        eos_token=texts.get("eos_token"),
        eos_ids=() if eos is None else (eos,),
        special_tokens=texts,
        names=(Path(source).name,),
    )
    return Chat._made(files, tokenizer=backend, format=None if name is None else get_format(name))
