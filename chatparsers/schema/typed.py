"""Python types as JSON Schemas, and the values of such types that JSON stands for."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints, is_typeddict

from ..errors import RequestError
from .functions import Definitions, record_fields, type_schema

_LISTS = (list, set, frozenset, tuple)
_NAMES = {str: "a string", bool: "true or false", type(None): "null", list: "a list", dict: "an object"}


class WrongValue(ValueError):
    """A value is none of its type: where, what was expected, what was found."""


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a Python type: a dataclass, a `TypedDict`, a pydantic model, or what annotations have, such
    as ``list[int]`` and ``Literal["a", "b"]``. Raises `RequestError` for a type that JSON cannot write."""
    defs = Definitions()
    schema = type_schema(kind, getattr(kind, "__name__", str(kind)), defs)
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if name and str(defs).count(f"'#/$defs/{name}'") == 0:  # nothing else refers to it
        schema = defs.pop(name)
    return {**schema, "$defs": dict(defs)} if defs else schema


def value_of(kind: Any, data: Any, at: str = "") -> Any:
    """The value of a type that ``data`` stands for, which is JSON. Raises `WrongValue` with the path in ``at``."""
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(kind, "__metadata__"):
        return value_of(inner[0], data, at)
    if kind is Any:
        return data
    if origin in (Union, UnionType):
        return _either(inner, data, at)
    if origin is Literal:
        found = next((one for one in inner if one == data and type(one) is type(data)), None)
        return found if found is not None or (None in inner and data is None) else _wrong(at, inner, data)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(data)
        except ValueError:
            _wrong(at, [one.value for one in kind], data)
    if isinstance(kind, type) and (is_dataclass(kind) or is_typeddict(kind)):
        return _record(kind, data, at)
    validate = getattr(kind, "model_validate", None)
    if callable(validate):
        return _model(validate, data, at)
    return _plain(kind, origin or kind, inner, data, at)


def arguments_of(function: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function that a call's JSON stands for. Raises `WrongValue`."""
    hints = get_type_hints(function, include_extras=True)
    return {name: value_of(hints.get(name, Any), value, name) for name, value in data.items()}


def _plain(kind: Any, origin: Any, inner: tuple[Any, ...], data: Any, at: str) -> Any:
    """A scalar, a list or an object."""
    if kind in (int, float):
        whole = isinstance(data, float) and data.is_integer()
        if isinstance(data, bool) or not (
            isinstance(data, int) or whole or (kind is float and type(data) is float)
        ):
            _wrong(at, "a whole number" if kind is int else "a number", data)
        return kind(data)
    if kind in (str, bool, type(None), None):
        named = type(None) if kind is None else kind
        return data if type(data) is named else _wrong(at, _NAMES[named], data)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            _wrong(at, "an object", data)
        one = inner[1] if inner else Any
        return {key: value_of(one, value, _path(at, key)) for key, value in data.items()}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        if not isinstance(data, list):
            _wrong(at, "a list", data)
        fixed = origin is tuple and inner and inner[-1] is not Ellipsis
        kinds = inner if fixed else (inner[:1] or (Any,)) * len(data)
        if len(kinds) != len(data):
            _wrong(at, f"{len(kinds)} elements", data)
        made = [
            value_of(one, value, f"{at}[{place}]")
            for place, (one, value) in enumerate(zip(kinds, data, strict=True))
        ]
        return origin(made) if origin in _LISTS else made
    raise RequestError(f"{at}: expected a type that JSON can write, found {kind!r}")


def _either(kinds: tuple[Any, ...], data: Any, at: str) -> Any:
    wrong: list[str] = []
    for kind in kinds:
        try:
            return value_of(kind, data, at)
        except WrongValue as error:
            wrong.append(str(error))
    raise WrongValue("; or ".join(dict.fromkeys(wrong)))


def _record(kind: Any, data: Any, at: str) -> Any:
    if not isinstance(data, Mapping):
        _wrong(at, "an object", data)
    members = record_fields(kind, kind.__name__)
    unknown = [key for key in data if key not in members]
    if unknown:
        raise WrongValue(f"{_path(at, unknown[0])}: expected one of {', '.join(members)}, found another name")
    for key, (_, required) in members.items():
        if required and key not in data:
            raise WrongValue(f"{_path(at, key)}: expected a value, found none")
    values = {key: value_of(members[key][0], value, _path(at, key)) for key, value in data.items()}
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # of its __post_init__
        raise WrongValue(f"{at or kind.__name__}: {error}") from error


def _model(validate: Any, data: Any, at: str) -> Any:
    """A value of a pydantic model, which says itself what is wrong."""
    try:
        return validate(data)
    except ValueError as error:
        found = getattr(error, "errors", None)
        first = found()[0] if callable(found) else {"loc": (), "msg": str(error)}
        path = at
        for key in first["loc"]:
            path = f"{path}[{key}]" if isinstance(key, int) else _path(path, key)
        raise WrongValue(f"{path or 'the answer'}: {first['msg']}") from error


def _path(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _wrong(at: str, expected: Any, data: Any) -> NoReturn:
    wanted = expected if isinstance(expected, str) else f"one of {', '.join(map(repr, expected))}"
    raise WrongValue(f"{at or 'the answer'}: expected {wanted}, found {data!r:.100}")
