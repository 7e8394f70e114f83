"""A thought as one word, which clients carry back unread: the Responses API's ``encrypted_content``, and Anthropic's
``signature`` of a thought that is not shown.

What is here hides nothing. So it needs no key, any server can read it, and a client can write with it only what it
could write as text. `chatparsers.gateway.seals` has a key.
"""

from __future__ import annotations

import base64
import binascii

ASKED = "reasoning.encrypted_content"
"""What asks for it in ``include``."""
SHOWN = "chatparsers.0"
"""The signature of a thought that is shown. Several clients drop each thought whose signature is empty."""
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


class Seals:
    """Makes such words, and opens them."""

    def seal(self, thought: str) -> str:
        """The thought as one word."""
        return sealed(thought)

    def open(self, word: str) -> str | None:
        """The thought; None if the word cannot be opened."""
        return opened(word)


PLAIN = Seals()
