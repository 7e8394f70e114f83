"""The tokenizer that is bound to a turn: which kinds are accepted, and how a pickle names one.

A tokenizer takes megabytes, and every process that reads a model's ids has it. So a pickle holds only a digest.
Unpickling finds the tokenizer among those that the process has bound to a turn.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any
from weakref import ref

from ..errors import RequestError


class _Read(ref[Any]):
    """A tokenizer that was read. ``digest`` is empty until it is computed."""

    __slots__ = ("digest", "identity")

    digest: bytes
    identity: int


_read: dict[int, _Read] = {}
"""Every living tokenizer that was read, by its identity, as every request asks for it."""


def _noted(tokenizer: Any) -> _Read:
    """What is kept of a tokenizer as long as it lives."""
    found = _read.get(id(tokenizer))
    if found is None:
        found = _Read(tokenizer, lambda gone: _read.pop(gone.identity, None))
        found.digest, found.identity = b"", id(tokenizer)
        _read[id(tokenizer)] = found
    return found


def bound_tokenizer(tokenizer: Any) -> Any:
    """The ``tokenizers.Tokenizer`` in a user's object, which is such a tokenizer or a fast one of transformers.

    Raises `RequestError` for anything else.
    """
    if id(tokenizer) in _read:
        return tokenizer
    found = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(found, "to_str"):
        _noted(found)
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
    found = _noted(tokenizer)
    if not found.digest:
        text = tokenizer.to_str().encode("utf-8", "surrogatepass")
        found.digest = blake2b(text, digest_size=16).digest()
    return found.digest


def _find(digest: bytes) -> Any:
    for kept in _read.copy().values():  # other threads add to it
        tokenizer = kept()
        if tokenizer is not None and _digest(tokenizer) == digest:
            return tokenizer
    raise RequestError(
        "unpickle: the tokenizer of this turn is not loaded in this process: load it and bind it to a turn first "
        "(bind(tokenizer=…), or load(…) and Chat.prepare)"
    )


def _itself(tokenizer: Any) -> Any:
    return tokenizer
