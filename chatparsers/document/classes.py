"""Classes of characters as data: a list of characters, ranges and named sets, or all others: ``{"not": [...]}``.

The inside of a class, as `p.chars` takes it, is Python's: what ``\\s`` means differs from engine to engine. In a
document the three named sets are fixed:

- ``space``: the 29 characters of Python's ``str.isspace``;
- ``word``: letters and numbers (Unicode's categories L and N), and ``_``;
- ``digit``: decimal digits (Unicode's Nd).
"""

from __future__ import annotations

import re
from typing import Any

from ..core.wrong import wrong
from ..errors import did_you_mean
from .refusals import refuse

_SETS = {"space": r"\s", "word": r"\w", "digit": r"\d"}
_NAMES = {code: name for name, code in _SETS.items()}
_LETTERS = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\f": "\f", r"\v": "\v"}
_ESCAPED = {char: code for code, char in _LETTERS.items()}
_MARKED = r"\]^[-"
"""The characters that have a backslash in a class."""
_item = re.compile(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", re.DOTALL)

SCHEMA: dict[str, Any] = {
    "description": "Characters, ranges such as a-z, and the sets space, word and digit; or all others.",
    "oneOf": [
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        {
            "type": "object",
            "properties": {"not": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
            "required": ["not"],
            "additionalProperties": False,
        },
    ],
}


def written(inside: str) -> Any:
    """The class with this inside, such as ``^<\\s``, as data. Raises `DefinitionError` if data cannot say it."""
    others = inside.startswith("^")
    items = [
        _written(inside, match[1])
        if match[2] is None
        else "-".join(_written(inside, one) for one in match.groups())
        for match in _item.finditer(inside, others)
    ]
    return {"not": items} if others else items


def _written(inside: str, item: str) -> str:
    if item in _NAMES:
        return _NAMES[item]
    char = _LETTERS.get(item, item[-1:])
    if item[0] == "\\" and item not in _LETTERS and char.isalnum():
        what = f"a document cannot say {item} in a class of characters"
        wrong(f"p.chars({inside!r})", what, r"write characters, ranges, \s, \w and \d")
    return char


def read(data: Any, at: str) -> str:
    """The inside of the class that ``data`` says."""
    others = isinstance(data, dict)
    items = data.get("not") if others and set(data) == {"not"} else data
    if not isinstance(items, list) or not items:
        refuse(at, 'a class of characters, such as ["a-z", "_"] or {"not": ["<", "space"]}', data)
    return ("^" if others else "") + "".join(dict.fromkeys(_read(item, at) for item in items))


def _read(item: Any, at: str) -> str:
    if isinstance(item, str):
        if item in _SETS:
            return _SETS[item]
        if len(item) == 1:
            return escaped_char(item)
        if len(item) == 3 and item[1] == "-" and item[0] <= item[2]:
            return f"{escaped_char(item[0])}-{escaped_char(item[2])}"
    expected = "a character, a range such as 'a-z', or a set"
    refuse(
        at, expected, item, did_you_mean(str(item), _SETS) if isinstance(item, str) else "write it as text"
    )


def escaped_char(char: str) -> str:
    """A character as it is in a class."""
    return _ESCAPED.get(char, "\\" + char if char in _MARKED else char)
