"""A schema as tool authors write it, in the words of today's JSON Schema.

A keyword that is null is an absent one: Go writes an empty list so. Draft 3 is read too: ``type: "any"`` says nothing,
``required: true`` inside a property is the object's ``required``, ``divisibleBy`` is ``multipleOf``, ``extends`` is
``allOf`` and ``disallow`` is ``not``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .document import inside
from .keywords import KEYWORDS, NOTES

_VALUES = frozenset({"const", *NOTES})
"""The keywords of which null is a value."""
_MOVED = {"divisibleBy": "multipleOf", "extends": "allOf", "disallow": "not"}
_MAYBE = frozenset({"type", "required", *_MOVED})
"""The keywords that are old words, or have values that are."""


def modern(root: Any) -> Any:
    """The schema in today's words: itself if it has no other."""
    return _copied(root) if _old(root) else root


def _old(root: Any) -> bool:
    todo, seen = [root], set[int]()
    while todo:
        schema = todo.pop()
        if not isinstance(schema, (dict, Mapping)) or id(schema) in seen:
            continue
        seen.add(id(schema))
        for keyword, value in schema.items():
            if (value is None or keyword in _MAYBE) and _is_old(keyword, value):
                return True
        todo += [part for _, _, part in inside(schema)]
    return False


def _is_old(keyword: str, value: Any) -> bool:
    if value is None:
        return keyword in KEYWORDS and keyword not in _VALUES
    if keyword == "type":
        return value == "any" or (isinstance(value, list) and "any" in value)
    return keyword in _MOVED or (keyword == "required" and value is True)


def _copied(root: Any) -> Any:
    """A copy without old words. Its steps are on a list, so that a deep schema does not deepen Python's stack."""
    made: dict[str, Any] = {}
    todo: list[tuple[Any, Any, Any]] = [(root, made, "root")]
    while todo:
        schema, holder, key = todo.pop()
        if not isinstance(schema, Mapping):
            holder[key] = schema
            continue
        copy = holder[key] = _renewed(schema)
        for keyword, value in list(copy.items()):
            row = KEYWORDS.get(keyword)
            places = row.schemas if row is not None else ()
            if "names" in places and isinstance(value, Mapping):
                named: dict[str, Any] = {}
                copy[keyword] = named
                for name, part in value.items():
                    named[name] = part
                    todo.append((part, named, name))
            elif "list" in places and isinstance(value, (list, tuple)):
                listed = copy[keyword] = list(value)
                todo += [(part, listed, place) for place, part in enumerate(value)]
            elif "one" in places:
                todo.append((value, copy, keyword))
    return made["root"]


def _renewed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """One schema in today's words; those within are not looked at, but for who is required."""
    new = {key: value for key, value in schema.items() if not _is_old(key, value)}
    step = schema.get("divisibleBy")
    if step is not None:
        new.setdefault("multipleOf", step)
    base = schema.get("extends")
    if base is not None:
        new["allOf"] = [*new.get("allOf", ()), *(base if isinstance(base, list) else [base])]
    refused = schema.get("disallow")
    if refused is not None:
        kinds = refused if isinstance(refused, list) else [refused]
        parts = [{"type": kind} if isinstance(kind, str) else kind for kind in kinds]
        if any(part == {"type": "any"} for part in parts):
            parts = [True]
        new["not"] = {"anyOf": parts} if len(parts) > 1 else parts[0]
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        needed = [
            name
            for name, part in properties.items()
            if isinstance(part, Mapping) and part.get("required") is True
        ]
        listed = new.get("required")
        if needed and (listed is None or isinstance(listed, list)):
            new["required"] = list(dict.fromkeys([*(listed or ()), *needed]))
    return new
