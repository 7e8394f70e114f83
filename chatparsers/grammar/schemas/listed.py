"""Values that a schema lists (``enum``, ``const``): whether they are JSON, and which are equal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import SchemaError

_DEEPEST = 64
"""The deepest nesting of a listed value."""
_MOST_BITS = 4_096
"""How large a listed integer may be."""
_HALF = re.compile("[\ud800-\udfff]").search


def check_text(text: Any, path: str) -> None:
    """Raises `SchemaError` if ``text`` is not a text, or cannot be written."""
    if not isinstance(text, str):
        raise SchemaError(f"expected a text, found {type(text).__name__}", path)
    if not text.isascii() and _HALF(text):
        raise SchemaError("expected a text of Unicode, found half of a surrogate pair in it", path)


def check_value(value: Any, path: str) -> None:
    """Raises `SchemaError` if a value is not JSON, or too large to be written."""
    todo = [(value, 0)]
    while todo:
        part, depth = todo.pop()
        if isinstance(part, str):
            check_text(part, path)
        elif isinstance(part, float):
            if part != part or abs(part) == float("inf"):
                raise SchemaError(f"expected a finite number, found {part}", path)
        elif isinstance(part, int):
            if part.bit_length() > _MOST_BITS:
                raise SchemaError(f"expected a number of at most {_MOST_BITS} bits, found a larger one", path)
        elif isinstance(part, (Mapping, list, tuple)):
            if depth > _DEEPEST:
                raise SchemaError(
                    f"expected a value nested at most {_DEEPEST} deep, found a deeper one", path
                )
            if isinstance(part, Mapping):
                for name in part:
                    check_text(name, path)
            todo += [(inner, depth + 1) for inner in (part.values() if isinstance(part, Mapping) else part)]
        elif part is not None:
            raise SchemaError(f"expected a value of JSON, found {type(part).__name__}", path)


def identity(value: Any) -> Any:
    """A key that is the same for equal JSON values. Numbers are equal by value, booleans are not numbers, and the order
    of members does not count."""
    if isinstance(value, (bool, str)) or value is None:
        return (type(value), value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, Mapping):
        return frozenset((name, identity(part)) for name, part in value.items())
    return tuple(map(identity, value))


def identities(values: Iterable[Any], path: str, keyword: str) -> frozenset[Any]:
    """The identities of listed values. Raises `SchemaError` if one is not JSON."""
    found = []
    for value in values:
        check_value(value, f"{path}.{keyword}")
        found.append(identity(value))
    return frozenset(found)
