"""The JSON Schema of documents, written from the table of kinds."""

from __future__ import annotations

from typing import Any

from .classes import SCHEMA as CLASS
from .kinds import BY_KEY, USE
from .parts import VERSION

_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_TEXT = {"type": "string"}


def schema() -> dict[str, Any]:
    """The JSON Schema of documents."""
    kinds = {row.tells: row.schema for row in BY_KEY.values()}
    used = {"type": "object", "properties": {USE: _TEXT}, "required": [USE], "additionalProperties": False}
    sequence = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    nodes = [{"$ref": f"#/$defs/{tells}"} for tells in kinds]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "chat_format",
        "description": "How a family of chat models writes its answers (docs/formats-as-data.md).",
        "type": "object",
        "properties": {
            "chat_format": {"const": VERSION},
            "name": {"type": "string", "minLength": 1},
            "title": _TEXT,
            "url": _TEXT,
            "aliases": _TEXTS,
            "models": _TEXTS,
            "markers": _TEXTS,
            "stops": _TEXTS,
            "tree": {"$ref": "#/$defs/node"},
            "shared": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}},
            "samples": {"type": "array"},
        },
        "required": ["chat_format", "name", "tree"],
        "additionalProperties": False,
        "$defs": {"node": {"anyOf": [_TEXT, sequence, *nodes, used]}, "class": CLASS, **kinds},
    }
