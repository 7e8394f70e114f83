"""The user's tokenizer: which kinds are accepted, and how a pickle names one.

A tokenizer takes megabytes, and every process that reads a model's ids has it. So a pickle holds only a digest.
Unpickling finds the tokenizer among those that the process has bound to a turn.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

from ...errors import RequestError

_digests: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()
"""Every tokenizer that was read, with its digest, which is empty until it is computed."""


def read_tokenizer(tokenizer: Any) -> Any:
    """The ``tokenizers.Tokenizer`` in a user's object, which is such a tokenizer or a fast one of transformers.

    Raises `RequestError` for anything else.
    """
    try:
        if _digests.get(tokenizer) is not None:  # it was read before
            return tokenizer
    except TypeError:  # it cannot be referred to weakly
        pass
    found = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(found, "to_str"):
        _digests.setdefault(found, b"")
    elif not hasattr(found, "get_added_tokens_decoder") and not hasattr(found, "pieces"):
        raise RequestError(
            "tokenizer: expected a tokenizers.Tokenizer or a fast tokenizer of transformers, found "
            f"{type(tokenizer).__name__} (of a file: tokenizers.Tokenizer.from_file(path))"
        )
    return found


class Named:
    """A tokenizer that is pickled by name. Unpickling gives the tokenizer itself.

    Unpickling raises `RequestError` in a process that has no such tokenizer. A tokenizer that cannot be written as text
    (``to_str``) is pickled whole.
    """

    __slots__ = ("tokenizer",)

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def __reduce__(self) -> tuple[Any, ...]:
        if hasattr(self.tokenizer, "to_str"):
            return _find, (_digest(self.tokenizer),)
        return _itself, (self.tokenizer,)


def _digest(tokenizer: Any) -> bytes:
    digest = _digests.get(tokenizer)
    if not digest:
        text = tokenizer.to_str().encode("utf-8", "surrogatepass")
        digest = _digests[tokenizer] = blake2b(text, digest_size=16).digest()
    return digest


def _find(digest: bytes) -> Any:
    for kept in _digests.keyrefs():  # a list, as other threads add to it
        tokenizer = kept()
        if tokenizer is not None and _digest(tokenizer) == digest:
            return tokenizer
    raise RequestError(
        "unpickle: the tokenizer of this turn is not loaded in this process: load it and bind it to a turn first "
        "(bind(tokenizer=…), or load(…) and Chat.prepare)"
    )


def _itself(tokenizer: Any) -> Any:
    return tokenizer
