"""Arguments as an object, also while they are not whole, and also if a broken call wrote other text than JSON."""

from __future__ import annotations

from typing import Any

from ..templates import from_json, to_json
from ..values.cut import cut_json
from ..values.json import JsonScanner

_LONGEST = 1_000_000
"""How many characters of broken arguments are looked through for what is whole."""


class ArgumentsFilter:
    """Passes on the pieces of a call's arguments as far as they can be the beginning of a JSON object.

    Whole arguments pass unchanged. The beginning of an escape is held until the escape is whole.
    """

    __slots__ = ("_held", "_scanner")

    def __init__(self) -> None:
        self._scanner = JsonScanner("{")
        self._held = ""

    def take(self, piece: str) -> str:
        """The part of the held text and ``piece`` that may go out."""
        scanner = self._scanner
        if scanner.done or scanner.error:
            return ""
        text = self._held + piece
        end = scanner.scan(text, 0, False)
        self._held = text[end:]
        return scanner.out

    def finish(self) -> str:
        """What may go out of the held text at the end: nothing, as it is the half of an escape."""
        return ""


def object_text(text: str) -> str:
    """``text`` if it is a JSON object or empty; else the JSON of the object that it begins, without what is broken.

    What is too long or too deep to be read is returned as it is: whoever reads it next refuses it.
    """
    if not text.strip() or len(text) > _LONGEST:
        return text
    try:
        if isinstance(from_json(text), dict):
            return text
    except ValueError:
        pass
    except RecursionError:
        return text
    return to_json(partial_object(ArgumentsFilter().take(text)))


def partial_object(text: str) -> dict[str, Any]:
    """The object that ``text`` is, or begins: then with the members and elements that are whole. Numbers are exact.

    ``text`` is the beginning of a JSON text, as `ArgumentsFilter` passes it on.
    """
    try:
        found = from_json(text)
    except (ValueError, RecursionError):
        found = _closed(text)
    return found if isinstance(found, dict) else {}


def _closed(text: str) -> Any:
    """The value of the longest beginning of ``text`` that is JSON once its brackets are closed."""
    cut = cut_json(text)
    try:
        return from_json(text[: cut.whole] + cut.closers)
    except (ValueError, RecursionError):
        return {}
