"""Messages that note what a template looks up in them: what it never looks at cannot change a rendering."""

from __future__ import annotations

from typing import Any

_MOST, _LONG = 16, 64
"""How many keys of a message are noted, and of how many characters each; templates know four."""


class Observed(dict[str, Any]):
    """A message. ``_keys``: those that were looked up; None if it was looked at as a whole, or for
    many keys: a stranger's template may ask for a million."""

    __slots__ = ("_keys",)  # private, so no template sees it

    def __init__(self, message: dict[str, Any]) -> None:
        super().__init__(message)
        self._keys: set[str] | None = set()


def seen(message: Observed) -> frozenset[str] | None:
    """The keys that were looked up in it; None if it was looked at as a whole."""
    return None if message._keys is None else frozenset(message._keys)


def _noted(name: str) -> Any:
    look = getattr(dict, name)

    def noted(self: Observed, *given: Any) -> Any:
        key = given[0] if name in _OF_A_KEY and given else None
        if not isinstance(key, str) or len(key) > _LONG or len(self._keys or ()) == _MOST:
            self._keys = None
        elif self._keys is not None:
            self._keys.add(key)
        for other in given:
            if isinstance(other, Observed):  # to which it is compared
                other._keys = None
        return look(self, *given)

    return noted


_OF_A_KEY = frozenset({"__contains__", "__getitem__", "get"})
_OF_ALL = ("__eq__", "__iter__", "__len__", "__ne__", "__or__", "__repr__", "__reversed__", "__ror__")
for _name in (*_OF_A_KEY, *_OF_ALL, "copy", "items", "keys", "values"):
    setattr(Observed, _name, _noted(_name))

Observed.__module__, Observed.__name__ = dict.__module__, dict.__name__  # as errors of templates name it
