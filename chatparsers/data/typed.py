"""Values of a column by its Arrow type, at every depth, as JSON has them.

An array is read whole, level by level, so that a type is looked at once and not once a value: `read_array` is the table
of type → value. What JSON has no value for becomes a mark, which stays where it stands until `settled` walks the row:
it puts a plain value in its place and reports what became of it, with its path. So nothing changes in silence.

| Arrow type | Value |
|---|---|
| null, bool, integers, text (also large, view) | the same |
| float | the same; NaN and infinity: null, reported as ``not-finite`` |
| decimal | a number; ``rounded`` if a float has not all its digits |
| timestamp, date, time, duration, interval | its ISO 8601 text, reported as ``as-text`` |
| binary (also large, view, fixed size) | an error; in a column that is only kept, its base64 text |
| list (also large, view, fixed size) | a list |
| struct | an object without the nulls that Arrow pads structs with |
| map | an object with all its nulls; keys that are no text become text (``as-text``) |
| dictionary, run-end encoded, union | the values that they stand for |
| ``arrow.json`` | what the JSON text says, with its nulls |
| ``arrow.uuid`` | its text, reported as ``as-text``; ``arrow.bool8``: a boolean; another extension: its storage |
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

from .arrow import pyarrow as pa

_types = pa.types
_SECONDS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""How many digits of a second a unit of time has."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class AsText(str):
    """A value that JSON has no kind for, as its text."""


class Rounded(float):
    """A decimal of which a float has not all digits."""


@dataclass(frozen=True)
class Unread:
    """A value that has no place in a conversation. ``instead``: what a column that is only kept has."""

    what: str
    instead: str


@dataclass
class RowReport:
    """What became of the values of a row. ``losses``: codes, each with the first place. ``error``: why the row cannot
    be read, by its column."""

    column: str
    """The column that is looked at."""
    losses: dict[str, str] = field(default_factory=dict)
    errors: list[tuple[str, str]] = field(default_factory=list)
    """Columns, each with what is wrong."""

    def settled(self, column: str, value: Any) -> Any:
        """A column's value as plain JSON data; what became of it is added here."""
        self.column = column
        return settled(value, column, self)

    @property
    def error(self) -> str | None:
        """The first error; None if there is none."""
        return self.errors[0][1] if self.errors else None

    @property
    def refused(self) -> str | None:
        """The first error where nothing names losses: there, a number that became null is one too."""
        if self.error is None and "not-finite" in self.losses:
            return f"{self.losses['not-finite']}: expected a number of JSON, found NaN or infinity"
        return self.error


def column_values(column: Any) -> list[Any]:
    """The values of a column, an Arrow array of one chunk or several; what JSON has not, as marks."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for chunk in chunks for value in read_array(chunk)]


def read_array(array: Any) -> list[Any]:
    """The values of an array by its type."""
    kind = array.type
    for fits, read in _READERS:
        if fits(kind):
            return read(array)
    return [
        None if value is None else Unread(f"a value of type {kind}", str(value))
        for value in array.to_pylist()
    ]


def settled(value: Any, path: str, report: RowReport) -> Any:
    """The value as plain JSON data, with what became of its marks in ``report``. ``path``: where it stands."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        out = {}
        for key, item in value.items():
            name = settled(key, path, report) if type(key) is not str else key
            out[name] = settled(item, f"{path}.{name}", report)
        return out
    if kind is list:
        return [settled(item, f"{path}[{place}]", report) for place, item in enumerate(value)]
    if kind is AsText:
        report.losses.setdefault("as-text", path)
        return str(value)
    if kind is Rounded:
        report.losses.setdefault("rounded", path)
        return float(value)
    if kind is float:
        if math.isfinite(value):
            return value
        report.losses.setdefault("not-finite", path)
        return None
    if kind is Unread:
        report.errors.append((report.column, f"{path}: expected a value that JSON has, found {value.what}"))
        return value.instead
    if isinstance(value, tuple):
        return settled(list(value), path, report)
    return value


def _plain(array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found


def _texts(array: Any) -> list[Any]:
    try:
        return _plain(array)
    except UnicodeDecodeError:
        return [_text(value) for value in array]


def _text(value: Any) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return Unread("text that is no UTF-8", base64.b64encode(value.as_buffer().to_pybytes()).decode())


def _bytes(array: Any) -> list[Any]:
    kind = str(array.type)
    return [
        None if value is None else Unread(f"bytes ({kind})", base64.b64encode(value).decode())
        for value in array.to_pylist()
    ]


def _decimals(array: Any) -> list[Any]:
    return [None if value is None else _number(value) for value in array.to_pylist()]


def _number(value: Decimal) -> int | float:
    if value.as_tuple().exponent == 0:
        return int(value)
    near = float(value)
    if math.isfinite(near) and Decimal(repr(near)) == value:
        return near
    return int(value) if value == value.to_integral_value() else Rounded(near)


def _ticks(array: Any) -> list[int | None]:
    """The numbers that a type of time counts."""
    wide = array.type.bit_width == 64
    found: list[int | None] = array.cast(pa.int64() if wide else pa.int32()).to_pylist()
    return found


def _fraction(ticks: int, digits: int) -> tuple[int, str]:
    """Whole seconds, and the text of the rest."""
    seconds, rest = divmod(ticks, 10**digits)
    return seconds, f".{rest:0{digits}}".rstrip("0") if rest else ""


def _timestamps(array: Any) -> list[Any]:
    digits, zone = _SECONDS[array.type.unit], _zone(array.type.tz)

    def text(ticks: int) -> str:
        seconds, rest = _fraction(ticks, digits)
        when = _EPOCH + timedelta(seconds=seconds)
        if zone is None:
            return when.replace(tzinfo=None).isoformat() + rest
        local = when.astimezone(zone).isoformat()
        return local[:19] + rest + local[19:]

    return _time_texts(array, text)


def _zone(name: str | None) -> Any:
    if name is None:
        return None
    try:
        offset = datetime.strptime(name, "%z").tzinfo
        return offset
    except ValueError:
        from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone on this machine: the same instant, as UTC has it
        return timezone.utc


def _dates(array: Any) -> list[Any]:
    days = 86_400_000 if _types.is_date64(array.type) else 1
    return _time_texts(array, lambda ticks: (date(1970, 1, 1) + timedelta(days=ticks // days)).isoformat())


def _times(array: Any) -> list[Any]:
    digits = _SECONDS[array.type.unit]

    def text(ticks: int) -> str:
        seconds, rest = _fraction(ticks, digits)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{rest}"

    return _time_texts(array, text)


def _durations(array: Any) -> list[Any]:
    digits = _SECONDS[array.type.unit]

    def text(ticks: int) -> str:
        seconds, rest = _fraction(abs(ticks), digits)
        return f"{'-' if ticks < 0 else ''}PT{seconds}{rest}S"

    return _time_texts(array, text)


def _time_texts(array: Any, text: Callable[[int], str]) -> list[Any]:
    out: list[Any] = []
    for ticks in _ticks(array):
        try:
            out.append(None if ticks is None else AsText(text(ticks)))
        except OverflowError:
            out.append(Unread(f"a time beyond the years 1 to 9999 ({array.type})", str(ticks)))
    return out


def _intervals(array: Any) -> list[Any]:
    def text(value: Any) -> str:
        seconds, rest = _fraction(abs(value.nanoseconds), 9)
        return f"P{value.months}M{value.days}DT{'-' if value.nanoseconds < 0 else ''}{seconds}{rest}S"

    return [None if value is None else AsText(text(value)) for value in array.to_pylist()]


def _lists(array: Any) -> list[Any]:
    """The lists by their offsets. (`flatten` of pyarrow 26 mixes up the bytes of views within extension types.)"""
    first, ends = _offsets(array)
    items = read_array(array.values.slice(first, ends[-1] if ends else 0))
    return _valid(array, [items[start:end] for start, end in pairwise(ends)])


def _offsets(array: Any) -> tuple[int, list[int]]:
    """Where the values of an array of lists or maps begin, and the offsets from there."""
    ends: list[int] = array.offsets.to_pylist()
    return ends[0], [end - ends[0] for end in ends]


def _fixed_lists(array: Any) -> list[Any]:
    size = array.type.list_size
    items = read_array(array.values.slice(array.offset * size, len(array) * size))
    return _valid(array, [items[at * size : (at + 1) * size] for at in range(len(array))])


def _list_views(array: Any) -> list[Any]:
    items = read_array(array.values)
    spans = zip(array.offsets.to_pylist(), array.sizes.to_pylist(), strict=True)
    return _valid(array, [items[start : start + size] for start, size in spans])


def _valid(array: Any, found: list[Any]) -> list[Any]:
    """The values, None where the array has null."""
    if not array.null_count:
        return found
    return [
        value if there else None for value, there in zip(found, array.is_valid().to_pylist(), strict=True)
    ]


def _structs(array: Any) -> list[Any]:
    names = [child.name for child in array.type]
    children = [read_array(array.field(place)) for place in range(len(names))]
    rows = zip(*children, strict=True) if children else iter([()] * len(array))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        return _valid(
            array, [_twice(f"an object with two fields {twice!r}", names, values) for values in rows]
        )
    return _valid(
        array,
        [
            {name: value for name, value in zip(names, values, strict=True) if value is not None}
            for values in rows
        ],
    )


def _maps(array: Any) -> list[Any]:
    first, ends = _offsets(array)
    keys = read_array(array.keys.slice(first, ends[-1]))
    items = read_array(array.items.slice(first, ends[-1]))
    out: list[Any] = []
    for start, end in pairwise(ends):
        names, values = [_key(key) for key in keys[start:end]], items[start:end]
        out.append(
            dict(zip(names, values, strict=True))
            if len(set(names)) == len(names)
            else _twice("a map with a key twice", names, values)
        )
    return _valid(array, out)


def _twice(what: str, names: Sequence[str], values: Sequence[Any]) -> Unread:
    return Unread(what, json.dumps([*zip(names, values, strict=True)], ensure_ascii=False, default=str))


def _key(key: Any) -> str:
    return key if isinstance(key, str) else AsText(json.dumps(key, default=str))


def _unions(array: Any) -> list[Any]:
    kind = array.type
    children = [read_array(array.field(place)) for place in range(kind.num_fields)]
    place_of = {code: place for place, code in enumerate(kind.type_codes)}
    at = array.offsets.to_pylist() if kind.mode == "dense" else range(len(array))
    codes = array.type_codes.to_pylist()
    return [children[place_of[code]][index] for code, index in zip(codes, at, strict=True)]


def _extensions(array: Any) -> list[Any]:
    name, found = array.type.extension_name, read_array(array.storage)
    if name == "arrow.json":
        return [_json(text) if isinstance(text, str) else text for text in found]
    if name == "arrow.uuid":
        return [None if raw is None else AsText(UUID(bytes=raw)) for raw in array.storage.to_pylist()]
    if name == "arrow.bool8":
        return [None if value is None else value != 0 for value in found]
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unread(f"text that is no JSON in a column of JSON ({error})", text)


def _any(*tests: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda kind: any(test(kind) for test in tests)


_is_list = _any(_types.is_list, _types.is_large_list)
_is_list_view = _any(_types.is_list_view, _types.is_large_list_view)
is_list = _any(_is_list, _types.is_fixed_size_list, _is_list_view)
"""Whether a type is one of lists."""
is_text = _any(_types.is_string, _types.is_large_string, _types.is_string_view)
"""Whether a type is one of texts."""
_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], list[Any]]], ...] = (
    (lambda kind: isinstance(kind, pa.BaseExtensionType), _extensions),
    (is_text, _texts),
    (_any(_types.is_null, _types.is_boolean, _types.is_integer, _types.is_floating), _plain),
    (_types.is_struct, _structs),
    (_types.is_map, _maps),
    (_is_list, _lists),
    (_types.is_fixed_size_list, _fixed_lists),
    (_is_list_view, _list_views),
    (_types.is_dictionary, lambda array: read_array(array.dictionary_decode())),
    (_types.is_run_end_encoded, lambda array: read_array(pa.compute.run_end_decode(array))),
    (_types.is_union, _unions),
    (_types.is_decimal, _decimals),
    (
        _any(_types.is_binary, _types.is_large_binary, _types.is_binary_view, _types.is_fixed_size_binary),
        _bytes,
    ),
    (_types.is_timestamp, _timestamps),
    (_types.is_date, _dates),
    (_types.is_time, _times),
    (_types.is_duration, _durations),
    (_types.is_interval, _intervals),
)
"""Which types there are, and how each is read."""


def rows_of(columns: Any) -> Any:
    """A list of objects that is written as an object of lists, as a list of its objects: `datasets` had sequences so.
    Anything else as it is."""
    if not isinstance(columns, Mapping) or not columns:
        return columns
    lists = list(columns.values())
    if not all(isinstance(values, list) for values in lists) or len({len(values) for values in lists}) > 1:
        return columns
    return [
        {key: value for key, value in zip(columns, values, strict=True) if value is not None}
        for values in zip(*lists, strict=True)
    ]
