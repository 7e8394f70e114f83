"""The key-value pairs at the start of a GGUF file.

This module reads them with the standard library. The reader of the ``gguf`` package makes an array for every token and
merge: eight seconds for a vocabulary of 150,000 tokens. This one takes a tenth of a second. The layout is that of
ggml-org/ggml, ``docs/gguf.md``, versions 2 and 3, in both byte orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct, error, unpack_from
from typing import Any, TypeVar

from ..errors import LoadError
from .files import opened

_T = TypeVar("_T", bound=object)

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# A sparse file may claim any number of these. The largest vocabularies have 1.3 million entries, in 50 MB.
_MOST_FIELDS = 65_536
_MOST_ENTRIES = 4_000_000
_MOST_BYTES = 128_000_000
_DEEPEST = 4
_STRING = 8
_ARRAY = 9
_NAMES = {bytes: "a text", bool: "true or false", int: "a number", float: "a number", list: "an array"}


class Metadata:
    """The key-value pairs of a GGUF file, read by type. The tensors are not read.

    Each method raises LoadError, which names the file and the field, if the field has another type.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with opened(path) as (file, size):
                if not size:
                    raise ValueError("it is empty")
                with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                    self._fields = _Scanner(data).fields()
        except (ValueError, error) as problem:
            what = f"it ends inside a value: {size} bytes" if isinstance(problem, error) else problem
            raise LoadError(f"{path}: not a GGUF file, or cut short: {what}; download it again") from problem
        except OSError as problem:
            raise LoadError(f"{path}: cannot be read: {problem.strerror or problem}") from problem

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def text(self, key: str) -> str | None:
        """The text at ``key``, None if there is no such field."""
        data = self._value(key, bytes)
        return None if data is None else self._decode(key, data)

    def number(self, key: str) -> int | None:
        """The integer at ``key``, None if there is no such field."""
        return self._value(key, int)

    def flag(self, key: str) -> bool | None:
        """The truth value at ``key``, None if there is no such field."""
        return self._value(key, bool)

    def texts(self, key: str) -> list[str]:
        """The texts of the array at ``key``, empty if there is no such field."""
        return [self._decode(f"{key}[{place}]", data) for place, data in enumerate(self._array(key, bytes))]

    def numbers(self, key: str) -> list[float]:
        """The numbers of the array at ``key``, empty if there is no such field."""
        return self._array(key, float, int)

    def item(self, key: str, place: int, source: str) -> str:
        """The text at ``place`` of the array at ``key``, to which the field ``source`` points."""
        items = self._array(key, bytes)
        if not 0 <= place < len(items):
            raise self.wrong(source, f"an index into {key}, which has {len(items)} entries", str(place))
        return self._decode(f"{key}[{place}]", items[place])

    def wrong(self, key: str, expected: str, found: str) -> LoadError:
        """The error for a field with a wrong value."""
        return LoadError(
            f'{self.path}: field "{key}": expected {expected}, found {found}; convert the model again'
        )

    def _value(self, key: str, kind: type[_T]) -> _T | None:
        value = self._fields.get(key)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, _NAMES[kind], _NAMES[type(value)])
        return value

    def _array(self, key: str, *kinds: type) -> list[Any]:
        items: list[Any] = self._value(key, list) or []
        if items and not isinstance(items[0], kinds):
            raise self.wrong(f"{key}[0]", _NAMES[kinds[0]], _NAMES[type(items[0])])
        return items

    def _decode(self, key: str, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as problem:
            raise self.wrong(key, "UTF-8", f"a broken byte at {problem.start}") from problem


class _Scanner:
    """Reads values one after the other. Raises ValueError or struct.error if they make no sense."""

    def __init__(self, data: mmap) -> None:
        self._data = data
        self._entries = 0
        self._bytes = 0
        self._at = 4
        if data[:4] != b"GGUF":
            raise ValueError(f"it begins with {data[:4]!r}, not b'GGUF'")
        self._order = "<"
        if (
            self._scalar("I") & 0xFFFF == 0
        ):  # the version is small, so the other half of it shows the byte order
            self._order = ">"
        self._at = 4
        version = self._scalar("I")
        if version not in (2, 3):
            raise ValueError(f"its version is {version}, expected 2 or 3")

    def fields(self) -> dict[str, Any]:
        """Every field; a text is left as its bytes."""
        self._scalar("Q")  # the number of tensors
        found: dict[str, Any] = {}
        for _ in range(self._counted(self._scalar("Q"), "fields", _MOST_FIELDS)):
            key = self._strings(1)[0].decode("utf-8", "replace")
            found[key] = self._value(self._scalar("I"))
        return found

    def _counted(self, count: int, what: str, most: int) -> int:
        if count > most:
            raise ValueError(f"{count:,} {what} before byte {self._at}, expected at most {most:,}")
        return count

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind == _STRING:
            return self._strings(1)[0]
        if kind != _ARRAY:
            return self._scalar(self._format(kind))
        self._counted(depth, "arrays inside each other", _DEEPEST)
        kind, count = self._scalar("I"), self._scalar("Q")
        self._entries = self._counted(self._entries + count, "entries of arrays", _MOST_ENTRIES)
        if kind == _STRING:
            return self._strings(count)
        if kind == _ARRAY:
            return [self._value(_ARRAY, depth + 1) for _ in range(count)]
        form = Struct(f"{self._order}{count}{self._format(kind)}")
        values = form.unpack_from(self._data, self._at)
        self._at += form.size
        return list(values)

    def _format(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise ValueError(f"a value of the unknown type {kind} before byte {self._at}")
        return _SCALARS[kind]

    def _scalar(self, form: str) -> Any:
        form = self._order + form
        (value,) = unpack_from(form, self._data, self._at)
        self._at += Struct(form).size
        return value

    def _strings(self, count: int) -> list[bytes]:
        data, at = self._data, self._at
        total = len(data)
        length = Struct(f"{self._order}Q").unpack_from
        found = []
        for _ in range(count):
            (size,) = length(data, at)
            start, at = at + 8, at + 8 + size
            if at > total:
                raise ValueError(f"a text of {size} bytes at byte {start} of {total}")
            self._bytes += size
            if self._bytes > _MOST_BYTES:
                raise ValueError(f"texts of more than {_MOST_BYTES:,} bytes together")
            found.append(data[start:at])
        self._at = at
        return found
