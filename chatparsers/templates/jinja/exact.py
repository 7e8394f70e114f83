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
    if (
        separators is None
        and not sort_keys
        and (type(indent) is int or (indent is None and not ensure_ascii))
    ):
        try:
            text = (
                "".join(_compact(value, 0))
                if indent is None
                else _indented(
                    value, "\n", " " * indent, encode_basestring_ascii if ensure_ascii else encode_basestring
                )
            )
        except _Other:
            pass
        else:
            return text if text.isascii() else _LONE_SURROGATE.sub(_escaped, text)
    numbers: list[ExactNumber] = []
    plain: dict[int, tuple[object, object]] = {}  # what a one-shot iterator gave: it may be asked twice
    mark = ""

    def default(item: object) -> object:
        if isinstance(item, ExactNumber):
            numbers.append(item)
            return f"{mark}{len(numbers) - 1}"
        if id(item) not in plain:
            plain[id(item)] = item, _plain(item)
        return plain[id(item)][1]

    def dump() -> str:
        numbers.clear()
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
            default=default,
        )

    text = dump()
    if numbers:
        # Write each number as a string that occurs nowhere else, then replace that string by the number's text.
        salt = 0
        while (mark := f"@number{salt}@") in text:
            salt += 1
        text = re.sub(f'"{mark}([0-9]+)"', lambda found: numbers[int(found[1])].text, dump())
    return text if text.isascii() else _LONE_SURROGATE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


class _Other(Exception):
    """A value holds more than plain JSON data."""


def _refuse(value: object) -> NoReturn:
    raise _Other


def _encoder() -> Callable[[Any, int], Iterable[str]]:
    """Python's encoder of plain data with the usual separators. `json.dumps` makes one for each call."""
    made = getattr(json.encoder, "c_make_encoder", None)
    if made is None:
        return lambda value, level: _refuse(value)
    found: Callable[[Any, int], Iterable[str]] = made(
        None, _refuse, encode_basestring, None, ": ", ", ", False, False, True
    )
    return found


_compact = _encoder()


def _indented(value: Any, line: str, indent: str, spelt: Callable[[str], str]) -> str:
    """Plain data as ``json.dumps`` writes it with an indent, which has no fast encoder for that. ``line``: the line
    break and the indent of the line on which the value ends. Raises `_Other` for other data."""
    kind = type(value)
    if kind is str:
        return spelt(value)
    if kind is dict:
        if not value:
            return "{}"
        inner = line + indent
        members = []
        for key, item in value.items():
            if type(key) is not str:
                raise _Other
            text = spelt(item) if type(item) is str else _indented(item, inner, indent, spelt)
            members.append(f"{spelt(key)}: {text}")
        return f"{{{inner}{f',{inner}'.join(members)}{line}}}"
    if kind is list:
        if not value:
            return "[]"
        inner = line + indent
        return f"[{inner}{f',{inner}'.join([_indented(item, inner, indent, spelt) for item in value])}{line}]"
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    raise _Other
