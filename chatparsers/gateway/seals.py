"""Thoughts that clients carry back unread, sealed with a key of the server's (Fernet, of the package cryptography).

Gateways with the same key file open each other's. Without one the key is made at the start, and is gone with the
process. Without the package a word hides nothing, as `chatparsers.serving.sealed` says.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

from ..lazy import installed, load_reference
from ..serving.sealed import PLAIN, Seals

_MARK = "chatparsers.2."
_HOW = "a line with 32 random bytes in base64, such as `openssl rand -base64 32` writes"


def seals_of(file: str | None) -> Seals:
    """The seals of a key file; None: of a new key. The first key of the file seals, and all of them open. Raises
    `ValueError` if it cannot be used."""
    if file is None and not installed("cryptography"):
        return PLAIN
    try:
        fernet = load_reference("cryptography.fernet:Fernet")
        several = load_reference("cryptography.fernet:MultiFernet")
    except ImportError as error:
        said = "seal_key_file: it needs the package cryptography: pip install 'chatparsers[gateway]'"
        raise ValueError(said) from error
    keys = [fernet.generate_key()] if file is None else _keys(Path(file))
    return _Keyed(several([fernet(key) for key in keys]), load_reference("cryptography.fernet:InvalidToken"))


def _keys(file: Path) -> list[bytes]:
    try:
        lines = file.read_text(encoding="ascii").split()
        keys = [base64.b64decode(line.replace("-", "+").replace("_", "/"), validate=True) for line in lines]
    except (OSError, UnicodeDecodeError, binascii.Error) as error:
        raise ValueError(f"seal_key_file {file}: expected {_HOW}: {error}") from error
    if not keys or any(len(key) != 32 for key in keys):
        found = ", ".join(str(len(key)) for key in keys) or "none"
        raise ValueError(f"seal_key_file {file}: expected {_HOW}, found keys of these sizes: {found}")
    return [base64.urlsafe_b64encode(key) for key in keys]


class _Keyed(Seals):
    """Seals with a key. ``box``: a `MultiFernet`. ``wrong``: what it raises for a word of another key."""

    def __init__(self, box: Any, wrong: type[Exception]) -> None:
        self._box, self._wrong = box, wrong

    def seal(self, thought: str) -> str:
        sealed: bytes = self._box.encrypt(thought.encode("utf-8", "surrogatepass"))
        return _MARK + sealed.decode()

    def open(self, word: str) -> str | None:
        if not word.startswith(_MARK):
            return super().open(word)
        try:
            found: bytes = self._box.decrypt(word[len(_MARK) :].encode("ascii", "replace"))
        except self._wrong:
            return None
        return found.decode("utf-8", "surrogatepass")
