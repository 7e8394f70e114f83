"""A thought as the Responses API's ``encrypted_content``: clients that keep no thoughts carry it back unread.

It hides nothing, as the item has the thought in plain too. So it needs no key, any server can read it, and a client
can write with it only what it could write as text.
"""

from __future__ import annotations

import base64
import binascii

ASKED = "reasoning.encrypted_content"
"""What asks for it in ``include``."""
_MARK = "chatparsers.1."


def sealed(thought: str) -> str:
    """The thought as one word."""
    return _MARK + base64.urlsafe_b64encode(thought.encode("utf-8", "surrogatepass")).decode()


def opened(word: str) -> str | None:
    """The thought; None if another server wrote the word."""
    if not word.startswith(_MARK):
        return None
    try:
        raw = base64.b64decode(word[len(_MARK) :], altchars=b"-_", validate=True)
        return raw.decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None
