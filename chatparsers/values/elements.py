"""Nested elements, passed on as JSON while they arrive: ``<tags><item>a</item><item>b</item></tags>`` is
``["a", "b"]``.

A marker comes before every tag (``prefix``, left out here), so a tag without it is text. An object is written as
elements that are named after its members, an array as elements of one name, any other value as raw text. The scanner
reads the value of one element. It leaves the closing tag of that element to its caller.

Strategy: a stack holds the elements that are open, each with its schema. At the beginning of an element the scanner
looks at the text after any white space. A tag that opens another element begins an object or an array, if the schema
admits one. The element's closing tag ends a blank value. Anything else is raw text: a transcoder of raw.py reads it up
to the closing tag. Where the argument is a list and such text begins it, each item of the list is an element of the
argument's name: the element may come again. Between elements, white space is layout. The scanner leaves at most two
tags unconsumed, and `_WINDOW` white space before each.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from ..core.machine.stops import StopFinder
from ..core.machine.value import Transcoder
from ..schema.document import Document
from .base import white
from .closers import Closers, of_texts
from .raw import raw_maker

_WINDOW = 256
_CONTAINERS = frozenset({"object", "array"})

# What may come next: an element's value, more of its raw text, its closing tag, another element in it.
_VALUE, _TEXT, _CLOSE, _INSIDE = range(4)

_Element = tuple[str, Any, str, int]
"""An open element: its name; its schema; ``{`` or ``[`` if it is an object or an array, ``+`` if it is an array that it
shares with the elements after it, else ""; how many elements it holds so far."""


@lru_cache(maxsize=64)
def _openers(prefixes: tuple[str, ...]) -> tuple[Any, Any]:
    """Match a tag that opens an element, and the beginning of such a tag at the end of a text."""
    spelt = "|".join(map(re.escape, prefixes))
    begun = "".join(f"{re.escape(prefix[:end])}|" for prefix in prefixes for end in range(1, len(prefix)))
    name = r"[^<>/\s]"
    return (
        re.compile(rf"(?:{spelt})<({name}{{1,{_WINDOW}}})>").match,
        re.compile(rf"(?:{begun}(?:{spelt})(?:<{name}{{0,{_WINDOW}}})?)\Z").match,
    )


@lru_cache(maxsize=1024)
def _closer(prefixes: tuple[str, ...], shown: str, name: str, markers: tuple[str, ...] = ()) -> StopFinder:
    """Finds the closing tag of an element, and ``markers``."""
    tags = [f"{prefix}</{name}>" for prefix in prefixes]
    return StopFinder(tags, shown=[f"{shown}</{name}>"], markers=markers)


@lru_cache(maxsize=1024)
def _closes(prefixes: tuple[str, ...], name: str, after: tuple[str, ...]) -> Closers:
    """The closing tags of an element, and the texts that may follow them."""
    return of_texts({f"{prefix}</{name}>": after for prefix in prefixes})


@lru_cache(maxsize=1024)
def _again(prefixes: tuple[str, ...], name: str) -> StopFinder:
    """Finds the opening tag of an element."""
    return StopFinder([f"{prefix}<{name}>" for prefix in prefixes])


class ElementScanner(Transcoder):
    """Reads the value of the element ``name``, which has this schema in the document.

    ``prefixes``: the forms of the marker before every tag in the text; ``shown``: the form for diagnostics. ``item``:
    the name of the elements of an array.
    ``markers``: those of calls, as for raw text. ``after``: the texts that may follow the element's closing tag.
    """

    __slots__ = (
        "after", "document", "inner", "item", "markers", "prefixes", "shown", "stack", "state", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        prefixes: tuple[str, ...],
        shown: str,
        markers: tuple[str, ...],
        document: Document,
        schema: Any,
        name: str,
        item: str = "item",
        after: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.prefixes = prefixes
        self.shown = shown
        self.item = item
        self.markers = markers
        self.after = after
        self.document = document
        self.stack: list[_Element] = [(name, schema, "", 0)]
        self.state = _VALUE
        self.inner: Transcoder | None = None
        self.waiting = False
        """True if the scan must stop until more text comes."""

    def scan(self, text: str, start: int, final: bool) -> int:
        i = start
        parts: list[str] = []
        if self.notes:
            self.notes = []
        self.marked = -1
        self.waiting = False
        while not (self.done or self.error or self.waiting):
            if self.state == _TEXT:
                i = self._text(text, i, final, parts)
            elif self.state == _CLOSE:
                i = self._close(text, i, final, parts)
            elif self.state == _VALUE:
                i = self._begin(text, i, final, parts)
            else:
                i = self._next(text, i, final, parts)
        self.out = parts[0] if len(parts) == 1 else "".join(parts)
        inner = self.inner
        self.plain = inner.plain if inner is not None and i == len(text) and not self.error else None
        return i

    def _wait(self, final: bool, expected: str) -> None:
        """Waits for more text; at the end of the text, fails."""
        if final:
            self.error = expected
        else:
            self.waiting = True

    def _tag(self) -> str:
        return repr(f"{self.shown}</{self.stack[-1][0]}>")

    def _begin(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Decides what the value of the innermost element is."""
        name, schema, _, _ = self.stack[-1]
        types = self.document.types(schema)
        if types == {"string"}:
            return self._raw(i, types)
        found = white(text, i, i + _WINDOW)
        after = found.end() if found else i
        if after == len(text) and after < i + _WINDOW:
            self._wait(final, self._tag())
            return i
        end = _closer(self.prefixes, self.shown, name).at(text, after)
        if end > 0:
            blank = next((out for kind, out in _BLANK if kind in types), "")
            if not blank or "string" in types:
                return self._raw(i, types)
            parts.append(blank)
            self._over()
            return after
        whole, begun = _openers(self.prefixes)
        kinds = types & _CONTAINERS
        opened = whole(text, after) if kinds else None
        if opened is not None:
            array = "object" not in kinds or ("array" in kinds and opened[1] == self.item)
            self._set("[" if array else "{")
            parts.append("[" if array else "{")
            self.state = _INSIDE
            return after
        if not final and (end or (kinds and begun(text, after))):
            self.waiting = True
            return i
        if types == {"array"} and len(self.stack) == 1 and text[after] != "[":
            self._set("+")
            parts.append("[")
            self.stack.append((name, self.document.items(self.stack[0][1], 0), "", 0))
            return after
        return self._raw(i, types)

    def _set(self, kind: str) -> None:
        name, schema, _, number = self.stack[-1]
        self.stack[-1] = (name, schema, kind, number)

    def _raw(self, i: int, types: frozenset[str]) -> int:
        finder = _closer(self.prefixes, self.shown, self.stack[-1][0], self.markers)
        nested = len(self.stack) > 1 and self.stack[-2][2] != "+"
        name, follows = self.stack[-1][0], self.prefixes if nested else self.after
        self.inner = raw_maker(finder, types, closers=_closes(self.prefixes, name, follows))()
        self.state = _TEXT
        return i

    def _text(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads raw text up to the closing tag of its element."""
        inner = self.inner
        assert inner is not None
        end = inner.scan(text, i, final)
        parts.append(inner.out)
        self.notes += inner.notes
        if self.marked < 0:
            self.marked = inner.marked
        if inner.done:
            self.inner = None
            self._over()
        elif inner.error:
            self.error = inner.error
        else:
            self.waiting = True
        return end

    def _over(self) -> None:
        """Ends the value of the innermost element."""
        self.done = len(self.stack) == 1
        self.state = _CLOSE

    def _close(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads the closing tag of an element. Its value ended where the tag begins."""
        found = _closer(self.prefixes, self.shown, self.stack[-1][0]).at(text, i)
        if not found:
            self.error = self._tag()
            return i
        if found < 0:
            self._wait(final, self._tag())
            return i
        if self.stack[-2][2] == "+":
            return self._next_shared(text, i, i + found, final, parts)
        self.stack.pop()
        self.state = _INSIDE
        return i + found

    def _next_shared(self, text: str, i: int, end: int, final: bool, parts: list[str]) -> int:
        """Reads the tag of the next element of an array whose items are elements of one name, or ends the array at
        ``i``, before the closing tag, which ends at ``end``."""
        name, schema, _, number = self.stack[0]
        space = white(text, end, end + _WINDOW)
        after = space.end() if space else end
        found = _again(self.prefixes, name).at(text, after)
        if found < 0 or after == len(text) < end + _WINDOW:
            self._wait(final, self._tag())
            return i
        if not found:
            self.stack.pop()
            parts.append("]")
            self._over()
            return i
        self.stack[0] = (name, schema, "+", number + 1)
        self.stack[1] = (name, self.document.items(schema, number + 1), "", 0)
        parts.append(", ")
        self.state = _VALUE
        return after + found

    def _next(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads the tag of the next element in an object or an array, or finds its end."""
        name, schema, kind, number = self.stack[-1]
        found = white(text, i)
        i = found.end() if found else i
        if i == len(text):
            self._wait(final, self._tag())
            return i
        closed = _closer(self.prefixes, self.shown, name).at(text, i)
        if closed > 0:
            parts.append("]" if kind == "[" else "}")
            self._over()
            return i
        whole, begun = _openers(self.prefixes)
        opened = whole(text, i)
        if opened is None:
            if not final and (closed or begun(text, i)):
                self.waiting = True
            else:
                self.error = f"an element or {self._tag()}"
            return i
        self.stack[-1] = (name, schema, kind, number + 1)
        if number:
            parts.append(", ")
        if kind == "{":
            parts.append(json.dumps(opened[1], ensure_ascii=False) + ": ")
            listed, _, others = self.document.members(schema)
            inner = listed.get(opened[1], others)
        else:
            inner = self.document.items(schema, number)
        self.stack.append((opened[1], inner, "", 0))
        self.state = _VALUE
        return int(opened.end())


_BLANK = (("array", "[]"), ("object", "{}"), ("null", "null"))
"""What a blank value is, by the types that its schema admits."""
