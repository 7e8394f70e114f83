"""Checks of single fields. Each raises `ApiError` with the path of the field that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ApiError

LONGEST_NAME = 1_000
"""How many characters the name of a model may have."""


def whole_request(body: object) -> Mapping[str, Any]:
    """The body of a request, which must be an object."""
    if not isinstance(body, Mapping):
        raise ApiError(f"expected a JSON object, found {kind_of(body)}")
    return body


def mapping(value: object, path: str) -> Mapping[str, Any]:
    """An object."""
    if not isinstance(value, Mapping):
        raise ApiError(f"expected an object, found {kind_of(value)}", param=path)
    return value


def sequence(value: object, path: str, expected: str = "a list") -> list[Any]:
    """A list. ``expected``: all that the caller takes there."""
    if not isinstance(value, list):
        raise ApiError(f"expected {expected}, found {kind_of(value)}", param=path)
    return value


def string(value: object, path: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ApiError(f"expected a string, found {kind_of(value)}", param=path)
    return value


def model_name(body: Mapping[str, Any]) -> str:
    """The name of the model, "" if there is none. It is repeated in every chunk of a stream, so it has a bound."""
    name = string(body.get("model", ""), "model")
    if len(name) > LONGEST_NAME:
        said = f"expected a name of at most {LONGEST_NAME} characters, found {len(name):,}"
        raise ApiError(said, param="model")
    return name


def boolean(body: Mapping[str, Any], name: str, default: bool) -> bool:
    """A field that is true or false."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ApiError(f"expected true or false, found {kind_of(value)}", param=name)
    return value


def integer(body: Mapping[str, Any], name: str, least: int) -> int | None:
    """A field that is a whole number of at least ``least``; None if it is not there."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        found = kind_of(value) if isinstance(value, bool) or not isinstance(value, (int, float)) else value
        raise ApiError(f"expected a whole number of at least {least}, found {found}", param=name)
    return value


def is_null(value: object) -> bool:
    """Whether a field is left out, or given as null or as an empty list."""
    return value is None or value == []


def kind_of(value: object) -> str:
    """What a value is, for an error."""
    if value is None:
        return "nothing"
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")
