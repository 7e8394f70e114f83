"""JSON that keeps its numbers: if Python's ``int`` and ``float`` would respell a number, its text is kept unchanged.

A template wants a call's arguments as a dict and writes them out again with ``tojson``. Between the two,
``1e400`` would become ``Infinity``, ``1.10`` would become ``1.1`` and ``-0`` would become ``0``. Only such
numbers become an ``ExactNumber``. All others stay plain, so a template's arithmetic and tests work on them as
usual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, NoReturn

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class ExactNumber(Decimal):
    """A JSON number that is written exactly as it was read.

    It is a ``Decimal`` and not a ``float``: for a ``float`` the C encoder of ``json`` writes ``repr(float)``, for a
    ``Decimal`` it calls our ``default``.
    """

    text: str

    def __new__(cls, text: str) -> ExactNumber:
        try:
            self = super().__new__(cls, text)
        except InvalidOperation:  # an exponent of more than 18 digits
            self = super().__new__(cls, "-Infinity" if text.startswith("-") else "Infinity")
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def __format__(self, specifier: str, /, *args: Any) -> str:
        return super().__format__(specifier) if specifier else self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactNumber, (self.text,)


def _float(text: str) -> float | ExactNumber:
    value = float(text)
    return value if repr(value) == text else ExactNumber(text)


def _int(text: str) -> int | ExactNumber:
    if len(text) > 4000:  # int() refuses texts above sys.get_int_max_str_digits(), 4,300 by default
        return ExactNumber(text)
    value = int(text)
    return value if str(value) == text else ExactNumber(text)


def from_json(text: str) -> Any:
    """The value of a JSON text, numbers exact. Raises ``ValueError`` if it is not JSON."""
    if text[:1] == "{":
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            end = -1
        if end == len(text):
            return value
    return _decoder.decode(text)


_decoder = json.JSONDecoder(parse_float=_float, parse_int=_int)
_scan = _decoder.scan_once  # type: ignore[attr-defined]  # not in typeshed


def _plain(value: object) -> object:
    """What ``json`` does not know but templates give to ``tojson``: results of ``map``, dict views."""
    from jinja2 import Undefined

    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, Undefined)):
        return list(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """``json.dumps`` with the defaults of transformers' ``tojson``, exact numbers and iterables included.

    A lone surrogate, which no file and no socket could carry, is written as its JSON escape.
    Raises ``TypeError`` for a value that has no JSON form.
    """
    spelt = encode_basestring_ascii if ensure_ascii else encode_basestring
    if indent is None:
        between, colon = separators or (", ", ": ")
        try:
            text = "".join(_encoder(spelt, between, colon, sort_keys)(value, 0))
        except _Other:
            text = _writer(spelt, between, colon, sort_keys)(value, "", "")
    else:  # Python has no fast encoder for that
        between, colon = separators or (",", ": ")
        step = indent if isinstance(indent, str) else " " * indent
        text = _writer(spelt, between, colon, sort_keys)(value, "\n", step)
    return text if text.isascii() else _LONE_SURROGATE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


class _Other(Exception):
    """A value holds more than plain JSON data."""


def _refuse(value: object) -> NoReturn:
    raise _Other


@lru_cache(maxsize=64)
def _encoder(
    spelt: Callable[[str], str], between: str, colon: str, sort_keys: bool
) -> Callable[[Any, int], Iterable[str]]:
    """Python's encoder of plain data. `json.dumps` makes one for each call."""
    made = getattr(json.encoder, "c_make_encoder", None)
    if made is None:
        return lambda value, level: _refuse(value)
    found: Callable[[Any, int], Iterable[str]] = made(
        None, _refuse, spelt, None, colon, between, sort_keys, False, True
    )
    return found


@lru_cache(maxsize=64)
def _writer(
    spelt: Callable[[str], str], between: str, colon: str, sort_keys: bool
) -> Callable[[Any, str, str], str]:
    """Writes any value that has a JSON form. ``step``: the indent. ``line``: the line break and the indent of the line
    on which the value ends. Both are empty if nothing is indented."""

    def write(value: Any, line: str, step: str) -> str:
        kind = type(value)
        if kind is dict or isinstance(value, dict):
            if not value:
                return "{}"
            inner, members = line + step, []
            for key, item in sorted(value.items()) if sort_keys else value.items():
                text = spelt(item) if type(item) is str else write(item, inner, step)
                members.append(f"{spelt(key if type(key) is str else _key(key))}{colon}{text}")
            return f"{{{inner}{(between + inner).join(members)}{line}}}"
        if kind is list or isinstance(value, (list, tuple)):
            inner = line + step
            items = [spelt(item) if type(item) is str else write(item, inner, step) for item in value]
            return f"[{inner}{(between + inner).join(items)}{line}]" if items else "[]"
        if isinstance(value, str):
            return spelt(value)
        if isinstance(value, ExactNumber):
            return value.text
        return _scalar(value) if isinstance(value, _SCALARS) else write(_plain(value), line, step)

    return write


_SCALARS = (int, float, type(None))


def _scalar(value: object) -> str:
    return str(value) if type(value) is int else json.dumps(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, _SCALARS):
        return _scalar(key)
    raise TypeError(f"keys must be str, int, float, bool or None, not {type(key).__name__}")
