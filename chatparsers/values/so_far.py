"""The arguments of a call as Python values, while their JSON text is still being written.

Strategy: a reader gets each part of the text once and changes one object in place, so a part costs its own length. The
text is JSON already, because the transcoders of the values see to that: what is no JSON ends the reading.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .json import half_escape, inside_string

_scalar = re.compile(r"[^\s,\]}]*").match
_white = re.compile(r"[ \t\r\n:,]*").match


class Reader:
    """Reads the JSON text of an object in parts.

    ``value``: the object so far. ``open``: the containers that are open, and ``keys``: of each the key or the index of
    the value that is being read, None between two. ``parts``: of a key or a scalar that is not whole yet, and ``text``:
    an escape that is not; ``within`` says of what. ``stuck``: the text is no JSON from here on. ``wrong``: the path of
    the first value that cannot become valid, where somebody judges the values (grammar/schemas/checked.py).
    """

    __slots__ = ("keys", "open", "parts", "stuck", "text", "value", "within")

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self.open: list[Any] = []
        self.keys: list[str | int | None] = []
        self.within = ""
        """What is being read: a ``key``, a ``string``, a ``scalar``, or nothing of these."""
        self.parts: list[str] = []
        self.text = ""
        self.stuck = False

    wrong = ""

    # what is told to a reader that judges the values

    def _begins(self, char: str) -> None:
        """A value begins with this character."""

    def _named(self, name: str) -> None:
        """The name of a member is whole."""

    def _grows(self, text: str, more: str) -> None:
        """A string goes on with ``more``: it is ``text`` so far."""

    def _ends(self, value: Any) -> None:
        """A value is whole."""

    # reading

    def copy(self) -> Reader:
        """An independent reader at this point. The values that are whole belong to both."""
        other = Reader()
        self._copy_to(other)
        return other

    def _copy_to(self, other: Reader) -> None:
        other.open = [container.copy() for container in self.open]
        for container, key, inner in zip(other.open, self.keys, other.open[1:], strict=False):
            container[key] = inner
        other.value = other.open[0] if other.open else self.value.copy()
        other.keys, other.within = self.keys.copy(), self.within
        other.parts, other.text, other.stuck = self.parts.copy(), self.text, self.stuck

    @property
    def path(self) -> tuple[str | int, ...]:
        """The keys and indexes that lead to the value that is being read."""
        return tuple(key for key in self.keys if key is not None)

    def read(self, text: str) -> None:
        """Reads the next part of the text."""
        text, self.text = self.text + text, ""
        i = 0
        try:
            while i < len(text) and not self.stuck:
                if self.within == "string":
                    i = self._string(text, i)
                elif self.within == "key":
                    i = self._key(text, i)
                elif self.within == "scalar":
                    i = self._scalar(text, i)
                else:
                    i = self._between(text, i)
        except (ValueError, IndexError):  # no JSON, or a number that Python refuses
            self.stuck = True

    def _between(self, text: str, i: int) -> int:
        i = _white(text, i).end()  # type: ignore[union-attr]
        if i == len(text):
            return i
        char = text[i]
        if char in "]}":
            self.keys.pop()
            self._whole(self.open.pop())
            return i + 1
        if self.open and self.keys[-1] is None:
            if isinstance(self.open[-1], dict):
                if char != '"':
                    raise ValueError("no key")
                self.within = "key"
                return i + 1
            self.keys[-1] = len(self.open[-1])
        self._begins(char)
        if char in "{[":
            self._begin({} if char == "{" else [])
        elif char == '"' and self.open:
            self._put("")
            self.within = "string"
        elif self.open:
            self.within = "scalar"
            return i
        else:
            raise ValueError("no object")
        return i + 1

    def _begin(self, container: Any) -> None:
        if self.open:
            self._put(container)
        elif isinstance(container, dict) and not self.value:
            self.value = container
        else:
            raise ValueError("no object")
        self.open.append(container)
        self.keys.append(None)

    def _put(self, value: Any) -> None:
        """Puts the value into the container that is open."""
        container, key = self.open[-1], self.keys[-1]
        if isinstance(container, dict):
            container[key] = value
        else:
            container.append(value)

    def _whole(self, value: Any) -> None:
        """The value that was being read is whole."""
        self._ends(value)
        self.within = ""
        if self.keys:
            self.keys[-1] = None

    def _string(self, text: str, i: int) -> int:
        container, key = self.open[-1], self.keys[-1]
        # Nobody else holds the text, so that Python adds to it in place.
        string = container.pop(key) if isinstance(container, dict) else container.pop()
        more, i, closed = self._characters(text, i)
        string += more
        self._put(string)
        self._grows(string, more)
        if closed:
            self._whole(string)
        return i

    def shorten(self, length: int) -> bool:
        """Takes back the last ``length`` characters, all of them plain text of a string. False if only a new reader can
        tell what was before."""
        if self.stuck or self.within != "string":
            return False
        container, key = self.open[-1], self.keys[-1]
        container[key] = text = container[key][:-length]
        return not "\ud800" <= text[-1:] <= "\udbff"

    def _key(self, text: str, i: int) -> int:
        more, i, closed = self._characters(text, i)
        self.parts.append(more)
        if closed:
            self.keys[-1] = name = self._joined()
            self.within = ""
            self._named(name)
        return i

    def _joined(self) -> str:
        """The key or scalar of which the last part has come."""
        text = "".join(self.parts)
        self.parts.clear()
        return text

    def _characters(self, text: str, i: int) -> tuple[str, int, bool]:
        """The characters of a string from ``i`` on, where they end, and whether the string does. Keeps an escape that
        is not whole."""
        end = inside_string(text, i).end()  # type: ignore[union-attr]
        inside = text[i:end]
        closed = end < len(text)
        half = None if closed else half_escape(inside)
        if half is not None:
            inside, self.text = inside[: half.start(1)], half[1]
        more = json.loads(f'"{inside}"', strict=False) if "\\" in inside else inside
        return more, end + closed, closed

    def _scalar(self, text: str, i: int) -> int:
        end = _scalar(text, i).end()  # type: ignore[union-attr]
        self.parts.append(text[i:end])
        if end < len(text):
            value = json.loads(self._joined())
            self._put(value)
            self._whole(value)
        return end
