"""By what a prompt's text is known again."""

from __future__ import annotations

import hashlib


def digest(prompt: str) -> str:
    """A digest of the text."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
