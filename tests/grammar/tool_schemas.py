"""Parameters of tools as people write them, each with one valid call's arguments.

The shapes are those of public tool servers, written anew: by hand, by zod (draft 7), by pydantic (``$defs``, ``anyOf``
with null), from OpenAPI (``nullable``, formats of numbers), by Go and Rust generators (types in lists).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

STR, INT, NUM, BOOL = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
STRS = {"type": "array", "items": STR}
NULL = {"type": "null"}
DRAFT7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """An object's schema, as most tools have it."""
    return {"type": "object", "properties": properties, "required": list(required), **more}


WRITE_FILE = {
    "name": "write_file",
    "parameters": obj({"path": STR, "lines": INT, "text": STR, "tags": STRS}, "path"),
}
"""A tool with arguments of several types, of which one is required."""


def zod(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """As zod writes it."""
    found = {"type": "object", "properties": properties, "additionalProperties": False, **DRAFT7, **more}
    return found | ({"required": list(required)} if required else {})


def maybe(schema: dict[str, Any], default: Any = None) -> dict[str, Any]:
    """As pydantic writes an optional value."""
    return {"anyOf": [schema, NULL], "default": default, "title": "A Value"}


def one_of(*values: Any, **more: Any) -> dict[str, Any]:
    return {"type": "string", "enum": list(values), **more}


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


POINT = obj(
    {"lat": {**NUM, "minimum": -90, "maximum": 90}, "lon": {**NUM, "minimum": -180, "maximum": 180}},
    "lat",
    "lon",
)
PAGE = {"page": {**INT, "minimum": 1}, "per_page": {**INT, "minimum": 1, "maximum": 100}}
REPO = {
    "owner": {**STR, "description": "Repository owner"},
    "repo": {**STR, "description": "Repository name"},
}
EDIT = obj({"oldText": STR, "newText": STR}, "oldText", "newText", additionalProperties=False)
TREE = {
    "type": "object",
    "properties": {"name": STR, "children": array({"$ref": "#/$defs/Node"})},
    "required": ["name"],
}
FILTER = {"anyOf": [{"$ref": "#/$defs/Rule"}, {"$ref": "#/$defs/Group"}]}
RULE = obj(
    {"field": STR, "op": one_of("eq", "lt", "gt"), "value": {"type": ["string", "number", "boolean"]}},
    "field",
    "op",
)
GROUP = obj({"and": array({"$ref": "#/$defs/Filter"}, minItems=1)}, "and", additionalProperties=False)
CAT = obj({"kind": {"const": "cat", "type": "string"}, "lives": INT}, "kind", title="Cat")
DOG = obj({"kind": {"const": "dog", "type": "string"}, "name": STR}, "kind", "name", title="Dog")
RICH = array(
    obj({"type": {"const": "text"}, "text": obj({"content": {**STR, "maxLength": 2000}}, "content")}, "text"),
    maxItems=100,
)

TOOL_SCHEMAS: dict[str, tuple[Any, Any]] = {
    # by hand
    "nothing": ({"type": "object", "properties": {}}, {}),
    "nothing else": ({"type": "object", "properties": {}, "additionalProperties": False}, {}),
    "bare object": ({"type": "object"}, {"a": 1}),
    "weather": (
        obj({"location": STR, "unit": one_of("celsius", "fahrenheit")}, "location"),
        {"location": "Oslo, NO", "unit": "celsius"},
    ),
    "read file": (obj({"path": STR, "head": NUM, "tail": NUM}, "path"), {"path": "/tmp/a b.txt", "head": 10}),
    "write file": (
        obj({"path": STR, "content": STR}, "path", "content"),
        {"path": "a", "content": 'x\n\t"y"\\'},
    ),
    "edit file": (
        obj({"path": STR, "edits": array(EDIT), "dryRun": {**BOOL, "default": False}}, "path", "edits"),
        {"path": "a", "edits": [{"oldText": "", "newText": "b"}], "dryRun": True},
    ),
    "move": (
        obj({"source": STR, "destination": STR}, "source", "destination"),
        {"source": "a", "destination": "b"},
    ),
    "list issues": (
        obj({**REPO, "state": one_of("open", "closed", "all"), "labels": STRS, **PAGE}, "owner", "repo"),
        {"owner": "o", "repo": "r", "state": "all", "labels": ["bug"], "per_page": 100},
    ),
    "create issue": (
        obj(
            {**REPO, "title": STR, "body": STR, "assignees": STRS, "milestone": NUM}, "owner", "repo", "title"
        ),
        {"owner": "o", "repo": "r", "title": "t", "milestone": 3},
    ),
    "push files": (
        obj(
            {
                **REPO,
                "branch": STR,
                "files": array(obj({"path": STR, "content": STR}, "path", "content")),
                "message": STR,
            },
            "owner",
            "repo",
            "branch",
            "files",
            "message",
        ),
        {
            "owner": "o",
            "repo": "r",
            "branch": "main",
            "files": [{"path": "p", "content": ""}],
            "message": "m",
        },
    ),
    "merge": (
        obj(
            {**REPO, "pull_number": INT, "merge_method": one_of("merge", "squash", "rebase")},
            "owner",
            "repo",
            "pull_number",
        ),
        {"owner": "o", "repo": "r", "pull_number": 7},
    ),
    "search": (
        obj(
            {
                "query": {**STR, "minLength": 1},
                "count": {**INT, "minimum": 1, "maximum": 20, "default": 10},
                "offset": {**INT, "maximum": 9},
            },
            "query",
        ),
        {"query": "q", "count": 20},
    ),
    "sql": (
        obj({"sql": STR, "params": {"type": "array"}}, "sql"),
        {"sql": "select 1", "params": [1, "a", None]},
    ),
    "sql params": (
        obj({"sql": STR, "params": array({"type": ["string", "number", "boolean", "null"]})}, "sql"),
        {"sql": "select ?", "params": [1.5, "a", None, False]},
    ),
    "navigate": (
        obj({"url": {**STR, "format": "uri"}, "launchOptions": {"type": "object"}}, "url"),
        {"url": "https://a.b/c", "launchOptions": {"headless": True}},
    ),
    "screenshot": (
        obj({"name": STR, "selector": STR, "width": {**NUM, "exclusiveMinimum": 0}, "encoded": BOOL}, "name"),
        {"name": "s", "width": 800.5},
    ),
    "click": (
        obj(
            {
                "ref": STR,
                "button": one_of("left", "right", "middle"),
                "modifiers": array(one_of("Alt", "Control", "Meta", "Shift")),
            },
            "ref",
        ),
        {"ref": "e1", "modifiers": ["Alt", "Shift"]},
    ),
    "fill form": (
        obj(
            {
                "fields": array(
                    obj(
                        {"name": STR, "type": one_of("textbox", "checkbox", "radio"), "value": STR},
                        "name",
                        "type",
                        "value",
                    )
                )
            },
            "fields",
        ),
        {"fields": [{"name": "n", "type": "radio", "value": ""}]},
    ),
    "entities": (
        obj(
            {
                "entities": array(
                    obj(
                        {"name": STR, "entityType": STR, "observations": STRS},
                        "name",
                        "entityType",
                        "observations",
                    )
                )
            },
            "entities",
        ),
        {"entities": [{"name": "n", "entityType": "t", "observations": []}]},
    ),
    "thinking": (
        obj(
            {
                "thought": STR,
                "thoughtNumber": {**INT, "minimum": 1},
                "totalThoughts": {**INT, "minimum": 1},
                "nextThoughtNeeded": BOOL,
                "branchId": STR,
            },
            "thought",
            "thoughtNumber",
            "totalThoughts",
            "nextThoughtNeeded",
        ),
        {"thought": "t", "thoughtNumber": 1, "totalThoughts": 3, "nextThoughtNeeded": False},
    ),
    "time": (
        obj(
            {"source_timezone": STR, "time": {**STR, "pattern": "^([01]?[0-9]|2[0-3]):[0-5][0-9]$"}},
            "source_timezone",
            "time",
        ),
        {"source_timezone": "UTC", "time": "23:59"},
    ),
    "message": (
        obj(
            {
                "channel_id": STR,
                "text": {**STR, "maxLength": 40},
                "thread_ts": {**STR, "pattern": r"^\d{10}\.\d{6}$"},
            },
            "channel_id",
            "text",
        ),
        {"channel_id": "C1", "text": "hi", "thread_ts": "1234567890.123456"},
    ),
    "email": (
        obj(
            {
                "to": array({**STR, "format": "email"}, minItems=1),
                "subject": STR,
                "cc": array({**STR, "format": "email"}),
            },
            "to",
            "subject",
        ),
        {"to": ["a@b.org"], "subject": "s"},
    ),
    "event": (
        obj(
            {
                "start": {**STR, "format": "date"},
                "end": {**STR, "format": "date"},
                "attendees": array(obj({"email": STR}, "email")),
            },
            "start",
        ),
        {"start": "2024-02-29", "attendees": [{"email": "a"}]},
    ),
    "directions": (
        obj(
            {"origin": STR, "destination": STR, "mode": one_of("driving", "walking", "transit")},
            "origin",
            "destination",
        ),
        {"origin": "a", "destination": "b", "mode": "transit"},
    ),
    "places": (
        obj(
            {
                "query": STR,
                "location": obj({"latitude": NUM, "longitude": NUM}, "latitude", "longitude"),
                "radius": {**NUM, "maximum": 50000},
            },
            "query",
        ),
        {"query": "q", "location": {"latitude": 59.9, "longitude": 10.7}},
    ),
    "points": (
        obj({"points": array(POINT, minItems=2, maxItems=4)}, "points"),
        {"points": [{"lat": -90, "lon": 180}, {"lat": 0.5, "lon": 0}]},
    ),
    "calculator": (
        obj({"a": NUM, "b": NUM, "operation": one_of("add", "sub")}, "a", "b", "operation"),
        {"a": 1.5, "b": -2, "operation": "add"},
    ),
    "todo": (
        obj(
            {
                "todos": array(
                    obj(
                        {
                            "content": {**STR, "minLength": 1},
                            "status": one_of("pending", "in_progress", "completed"),
                            "id": STR,
                        },
                        "content",
                        "status",
                        "id",
                    )
                )
            },
            "todos",
        ),
        {"todos": [{"content": "c", "status": "pending", "id": "1"}]},
    ),
    "shell": (
        obj(
            {"command": array(STR, minItems=1), "workdir": STR, "timeout": NUM},
            "command",
            additionalProperties=False,
        ),
        {"command": ["ls", "-l"], "timeout": 1000},
    ),
    "headers": (
        obj({"url": STR, "headers": {"type": "object", "additionalProperties": STR}}, "url"),
        {"url": "u", "headers": {"X-A": "1"}},
    ),
    "http": (
        obj(
            {
                "url": STR,
                "method": {**one_of("GET", "POST"), "default": "GET"},
                "body": {"type": ["object", "string", "null"]},
            },
            "url",
        ),
        {"url": "u", "body": {"a": 1}},
    ),
    "matrix": (obj({"rows": array(array(NUM))}, "rows"), {"rows": [[1, 2.5], []]}),
    "range": (
        obj({"range": {"type": "array", "items": INT, "minItems": 2, "maxItems": 2}}, "range"),
        {"range": [1, -1]},
    ),
    "choices": (obj({"mode": {"enum": ["a", 1, True, None]}}, "mode"), {"mode": None}),
    "numbers in enum": (obj({"size": {"type": "integer", "enum": [256, 512, 1024]}}, "size"), {"size": 512}),
    "no required": ({"type": "object", "properties": {"limit": INT, "verbose": BOOL}}, {"limit": 5}),
    "no type": ({"properties": {"q": STR}, "required": ["q"]}, {"q": "x"}),
    "anything": (obj({"value": {"description": "Any JSON value"}}, "value"), {"value": {"a": [1, None]}}),
    "key value": (
        obj({"pairs": array(obj({"key": STR, "value": {}}, "key", "value"))}, "pairs"),
        {"pairs": [{"key": "k", "value": [1]}]},
    ),
    "unique": (obj({"tags": array(STR, uniqueItems=True, maxItems=3)}, "tags"), {"tags": ["a", "b"]}),
    "step": (
        obj({"brightness": {**INT, "minimum": 0, "maximum": 100, "multipleOf": 5}}, "brightness"),
        {"brightness": 55},
    ),
    "money": (
        obj(
            {"amount": {**NUM, "minimum": 0.01}, "currency": {**STR, "pattern": "^[A-Z]{3}$"}},
            "amount",
            "currency",
        ),
        {"amount": 12.5, "currency": "NOK"},
    ),
    "percent": (obj({"p": {**NUM, "exclusiveMinimum": 0, "exclusiveMaximum": 1}}, "p"), {"p": 0.5}),
    "unicode": (obj({"título": STR, "城市": STR}, "城市"), {"título": "ñ", "城市": "東京"}),
    "odd names": (
        obj({"a.b": INT, "x-y z": INT, "$top": INT, "@id": STR}, "a.b"),
        {"a.b": 1, "$top": 5, "@id": "q"},
    ),
    # zod
    "zod plain": (zod({"a": NUM, "b": {**NUM, "description": "second"}}, "a", "b"), {"a": 1, "b": 2.5}),
    "zod optional": (
        zod(
            {
                "q": {**STR, "minLength": 1, "maxLength": 5},
                "limit": {**INT, "exclusiveMinimum": 0, "maximum": 50, "default": 10},
            },
            "q",
        ),
        {"q": "abc", "limit": 1},
    ),
    "zod union": (zod({"id": {"type": ["string", "number"]}}, "id"), {"id": 5}),
    "zod union of objects": (
        zod({"target": {"anyOf": [zod({"x": NUM}, "x"), zod({"selector": STR}, "selector")]}}, "target"),
        {"target": {"selector": "#a"}},
    ),
    "zod nullable": (
        zod({"parent": {"type": ["string", "null"]}, "n": {"anyOf": [zod({"k": STR}, "k"), NULL]}}, "parent"),
        {"parent": None, "n": None},
    ),
    "zod record": (
        zod({"vars": {"type": "object", "additionalProperties": {"type": ["string", "number"]}}}),
        {"vars": {"a": 1}},
    ),
    "zod literal": (
        zod({"action": {"type": "string", "const": "go"}, "n": {"type": "number", "const": 2}}, "action"),
        {"action": "go", "n": 2},
    ),
    "zod ref": (
        zod({"from": POINT, "to": {"$ref": "#/properties/from"}}, "from", "to"),
        {"from": {"lat": 1, "lon": 2}, "to": {"lat": 3, "lon": 4}},
    ),
    "zod tuple": (
        zod({"size": {"type": "array", "minItems": 2, "maxItems": 2, "items": [NUM, NUM]}}, "size"),
        {"size": [1, 2]},
    ),
    "zod uuid": (
        zod({"id": {**STR, "format": "uuid"}, "url": {**STR, "format": "uri"}}, "id"),
        {"id": "123e4567-e89b-12d3-a456-426614174000", "url": "http://a.b"},
    ),
    "zod regex": (
        zod(
            {
                "slug": {**STR, "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$"},
                "hex": {**STR, "pattern": "^#(?:[0-9a-fA-F]{3}){1,2}$"},
            },
            "slug",
        ),
        {"slug": "a-b1", "hex": "#fff"},
    ),
    "zod starts": (zod({"path": {**STR, "pattern": "^\\/"}}, "path"), {"path": "/a"}),
    "zod and": (
        zod({"o": {"allOf": [obj({"a": STR}, "a"), obj({"b": STR}, "b")]}}, "o"),
        {"o": {"a": "1", "b": "2"}},
    ),
    "zod default": (
        zod({"opts": zod({"deep": {**BOOL, "default": True}}, default={})}),
        {"opts": {"deep": False}},
    ),
    "zod discriminated": (
        zod(
            {
                "op": {
                    "anyOf": [
                        zod({"type": {"type": "string", "const": "add"}, "v": NUM}, "type", "v"),
                        zod({"type": {"type": "string", "const": "del"}}, "type"),
                    ]
                }
            },
            "op",
        ),
        {"op": {"type": "add", "v": 1}},
    ),
    "zod not": (zod({"never": {"not": {}}, "a": STR}, "a"), {"a": "x"}),
    "zod nonempty": (zod({"ids": array({**INT, "exclusiveMinimum": 0}, minItems=1)}, "ids"), {"ids": [1, 2]}),
    "zod passthrough": (zod({"a": STR}, "a", additionalProperties=True), {"a": "x", "b": 1}),
    "zod email": (
        zod({"email": {**STR, "format": "email"}, "at": {**STR, "format": "date"}}, "email"),
        {"email": "x@y.org", "at": "2024-01-31"},
    ),
    # pydantic
    "pydantic optional": (
        obj({"q": {**STR, "title": "Q"}, "limit": maybe(INT), "tags": maybe(STRS)}, "q", title="Args"),
        {"q": "a", "limit": None, "tags": ["x"]},
    ),
    "pydantic ref": (
        obj(
            {"unit": {"$ref": "#/$defs/Unit"}},
            "unit",
            **{"$defs": {"Unit": {**one_of("c", "f"), "title": "Unit"}}},
        ),
        {"unit": "f"},
    ),
    "pydantic ref default": (
        obj({"unit": {"$ref": "#/$defs/Unit", "default": "c"}}, **{"$defs": {"Unit": one_of("c", "f")}}),
        {"unit": "f"},
    ),
    "pydantic allOf ref": (
        obj(
            {"unit": {"allOf": [{"$ref": "#/definitions/Unit"}], "default": "c"}},
            definitions={"Unit": one_of("c", "f")},
        ),
        {"unit": "c"},
    ),
    "pydantic nested": (
        obj(
            {"user": {"$ref": "#/$defs/User"}},
            "user",
            **{
                "$defs": {
                    "User": obj({"name": STR, "address": {"$ref": "#/$defs/Address"}}, "name", "address"),
                    "Address": obj({"city": STR, "zip": {**STR, "pattern": "^[0-9]{4}$"}}, "city"),
                }
            },
        ),
        {"user": {"name": "n", "address": {"city": "c", "zip": "0150"}}},
    ),
    "pydantic tree": (
        obj({"root": {"$ref": "#/$defs/Node"}}, "root", **{"$defs": {"Node": TREE}}),
        {"root": {"name": "a", "children": [{"name": "b"}]}},
    ),
    "pydantic union": (obj({"v": {"anyOf": [INT, NUM, STR, STRS]}}, "v"), {"v": ["a"]}),
    "pydantic discriminator": (
        obj(
            {
                "pet": {
                    "discriminator": {"propertyName": "kind"},
                    "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
                }
            },
            "pet",
            **{"$defs": {"Cat": CAT, "Dog": DOG}},
        ),
        {"pet": {"kind": "dog", "name": "Rex"}},
    ),
    "pydantic filter": (
        obj(
            {"where": {"$ref": "#/$defs/Filter"}},
            "where",
            **{"$defs": {"Filter": FILTER, "Rule": RULE, "Group": GROUP}},
        ),
        {"where": {"and": [{"field": "a", "op": "eq", "value": 1}]}},
    ),
    "pydantic dict": (
        obj({"scores": {"type": "object", "additionalProperties": NUM}}, "scores"),
        {"scores": {"a": 0.5}},
    ),
    "pydantic dict of models": (
        obj(
            {"people": {"type": "object", "additionalProperties": {"$ref": "#/$defs/P"}}},
            "people",
            **{"$defs": {"P": obj({"age": {**INT, "minimum": 0}}, "age")}},
        ),
        {"people": {"Bob": {"age": 3}}},
    ),
    "pydantic tuple": (
        obj({"pair": {"type": "array", "prefixItems": [STR, INT], "minItems": 2, "maxItems": 2}}, "pair"),
        {"pair": ["a", 1]},
    ),
    "pydantic set": (obj({"names": array(STR, uniqueItems=True)}, "names"), {"names": ["a"]}),
    "pydantic literal": (
        obj({"m": {"enum": ["r", "w"], "type": "string"}, "one": {"const": "x"}}, "m"),
        {"m": "r", "one": "x"},
    ),
    "pydantic bounds": (
        obj(
            {
                "k": {**INT, "exclusiveMinimum": 0, "maximum": 10},
                "t": maybe({**NUM, "minimum": 0, "maximum": 2}),
            },
            "k",
        ),
        {"k": 10, "t": 0.7},
    ),
    "pydantic length": (
        obj(
            {"s": {**STR, "minLength": 2, "maxLength": 4}, "l": array(INT, minItems=1, maxItems=2)}, "s", "l"
        ),
        {"s": "abc", "l": [1]},
    ),
    "pydantic forbid": (obj({"a": INT}, "a", additionalProperties=False), {"a": 1}),
    "pydantic datetime": (
        obj({"day": {**STR, "format": "date"}, "id": {**STR, "format": "uuid"}}, "day"),
        {"day": "2024-12-31"},
    ),
    "pydantic array of unions": (
        obj({"parts": array({"anyOf": [obj({"text": STR}, "text"), obj({"url": STR}, "url")]})}, "parts"),
        {"parts": [{"text": "a"}, {"url": "b"}]},
    ),
    "pydantic null only": (obj({"nothing": NULL, "a": maybe(BOOL)}, "nothing"), {"nothing": None, "a": True}),
    # OpenAPI and other generators
    "openapi ints": (
        obj(
            {
                "id": {**INT, "format": "int64"},
                "ratio": {**NUM, "format": "float"},
                "data": {**STR, "format": "byte"},
            },
            "id",
        ),
        {"id": 9007199254740993, "ratio": 0.25, "data": "YQ=="},
    ),
    "openapi example": (
        obj(
            {"name": {**STR, "example": "doggie"}, "status": {**one_of("available", "sold"), "x-order": 2}},
            "name",
        ),
        {"name": "d", "status": "sold"},
    ),
    "openapi read only": (
        obj({"id": {**INT, "readOnly": True}, "name": {**STR, "deprecated": True}}, "name"),
        {"id": 1, "name": "n"},
    ),
    "openapi all of": (
        obj(
            {
                "pet": {
                    "allOf": [{"$ref": "#/components/Pet"}, {"type": "object", "properties": {"age": INT}}]
                }
            },
            "pet",
            components={"Pet": obj({"name": STR}, "name")},
        ),
        {"pet": {"name": "n", "age": 2}},
    ),
    "openapi one of required": (
        obj({"id": INT, "name": STR}, anyOf=[{"required": ["id"]}, {"required": ["name"]}]),
        {"id": 1},
    ),
    "openapi pattern names": (
        obj(
            {
                "labels": {
                    "type": "object",
                    "patternProperties": {"^[a-z]+$": STR},
                    "additionalProperties": False,
                }
            },
            "labels",
        ),
        {"labels": {"app": "x"}},
    ),
    "openapi min properties": (
        obj(
            {
                "patch": {
                    "type": "object",
                    "properties": {"a": STR, "b": INT},
                    "minProperties": 1,
                    "additionalProperties": False,
                }
            },
            "patch",
        ),
        {"patch": {"b": 2}},
    ),
    "go slice": (
        obj(
            {"names": {"type": ["null", "array"], "items": STR}, "n": INT},
            "names",
            "n",
            additionalProperties=False,
        ),
        {"names": None, "n": 1},
    ),
    "rust unsigned": (
        obj(
            {
                "n": {**INT, "format": "uint32", "minimum": 0.0},
                "o": {"type": ["integer", "null"], "format": "uint8", "minimum": 0.0, "maximum": 255},
            },
            "n",
        ),
        {"n": 0, "o": 255},
    ),
    "rust enum": (
        obj(
            {
                "shape": {
                    "oneOf": [
                        {"type": "string", "enum": ["unit"]},
                        obj({"Circle": NUM}, "Circle", additionalProperties=False),
                    ]
                }
            },
            "shape",
        ),
        {"shape": {"Circle": 1.5}},
    ),
    "notion": (
        obj(
            {
                "parent": {
                    "oneOf": [obj({"page_id": STR}, "page_id"), obj({"database_id": STR}, "database_id")]
                },
                "title": RICH,
            },
            "parent",
        ),
        {"parent": {"page_id": "p"}, "title": [{"type": "text", "text": {"content": "c"}}]},
    ),
    "strict": (
        {
            "type": "object",
            "properties": {"a": STR, "b": {"type": ["string", "null"]}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        {"a": "x", "b": None},
    ),
    "conditional": (
        obj(
            {"kind": one_of("a", "b"), "x": INT},
            "kind",
            **{"if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["x"]}},
        ),
        {"kind": "a", "x": 1},
    ),
    "dependent": (
        obj({"user": STR, "password": STR}, dependentRequired={"user": ["password"]}),
        {"user": "u", "password": "p"},
    ),
    "lookahead": (
        obj({"password": {**STR, "pattern": "^(?=.*[0-9]).{4,}$"}}, "password"),
        {"password": "abc1"},
    ),
    "contains": (obj({"roles": array(STR, contains={"const": "admin"})}, "roles"), {"roles": ["a", "admin"]}),
    "property names": (
        obj(
            {
                "env": {
                    "type": "object",
                    "propertyNames": {"pattern": "^[A-Z_]+$"},
                    "additionalProperties": STR,
                }
            },
            "env",
        ),
        {"env": {"HOME": "/"}},
    ),
    "many": (
        obj({f"p{index}": (STR, INT, BOOL, NUM)[index % 4] for index in range(14)}, "p1", "p4"),
        {"p1": 1, "p4": "x", "p13": 2},
    ),
}
"""The schema and one valid object, by a name."""

_OTHERS: tuple[Any, ...] = (None, True, 0, -1, 1.5, 101, "", "x", "aé\n", [], ["x"], [0, 0], {}, {"x": 1})


def variants(valid: Any) -> Iterator[Any]:
    """The object, and objects that differ from it in one place: a member less or more, another value, an item less or
    twice. Some are valid as well."""
    yield valid
    yield from (other for other in _OTHERS if not isinstance(other, dict))
    for path, found in _places(valid, ()):
        if isinstance(found, dict):
            yield _with(valid, path, {**found, "unknown_member": 1})
            for name in found:
                yield _with(valid, path, {other: value for other, value in found.items() if other != name})
        if isinstance(found, list) and found:
            yield _with(valid, path, found[:-1])
            yield _with(valid, path, [*found, found[-1]])
        if path:
            for other in _OTHERS:
                yield _with(valid, path, other)


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _places(value[key], (*path, key))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    found = deepcopy(value)
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return found
