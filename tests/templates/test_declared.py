"""Tools in fewer words: everything that the page promises stands in the text, and hostile schemas stay small."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tool_schemas import TOOL_SCHEMAS

import chatparsers
from chatparsers import RequestError
from chatparsers.templates.rewrite.declared import ToolsAs, declared

WAYS: tuple[ToolsAs, ...] = ("compact", "typescript")
TOOLS = json.loads((Path(__file__).parents[2] / "docs" / "_tools.json").read_text(encoding="utf-8"))


def said(schema: Any) -> Iterator[str]:
    """The names, listed values and descriptions of a schema's members."""
    if not isinstance(schema, Mapping):
        return
    if isinstance(schema.get("description"), str):
        yield " ".join(schema["description"].split())
    if isinstance(schema.get("enum"), list) and "const" not in schema:
        yield from (value if isinstance(value, str) else json.dumps(value) for value in schema["enum"])
    members = schema.get("properties")
    for name, member in members.items() if isinstance(members, Mapping) else ():
        yield name
        yield from said(member)
    yield from said(schema.get("items"))


@pytest.mark.parametrize("how", WAYS)
def test_what_is_promised_is_there(how: ToolsAs) -> None:
    for tool in TOOLS:
        text = declared(tool, how)
        assert tool["name"] in text and len(text) < len(declared(tool, "json"))
        assert tool["description"].splitlines()[0] in text
        for word in said({**tool["parameters"], "description": ""}):
            assert word in text, (tool["name"], word)
        for name in tool["parameters"]["properties"]:
            assert (f"{name}?" in text) == (name not in tool["parameters"].get("required", ())), name


@pytest.mark.parametrize("how", WAYS)
def test_schemas_as_people_write_them(how: ToolsAs) -> None:
    for name, (schema, _) in TOOL_SCHEMAS.items():
        text = declared({"name": "f", "parameters": schema}, how)
        members = schema.get("properties") if isinstance(schema, Mapping) else None
        for member in members or ():
            assert member in text or json.dumps(member, ensure_ascii=False) in text, name


LAUGHS = {
    f"d{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "ab"}}
    for n in range(60)
}
DEEP: dict[str, Any] = {"type": "string"}
for _ in range(3_000):
    DEEP = {"type": "array", "items": DEEP}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": LAUGHS, "properties": {"a": {"$ref": "#/$defs/d0"}}},
        {"properties": {"a": {"$ref": "#"}}, "type": "object"},
        {"$ref": "#"},
        {"properties": {"a": DEEP}},
        {"properties": {"a": {"$ref": "https://example.com/x"}, "b": {"$ref": 5}}},
        {
            "properties": {"a": {"type": 5, "enum": 5, "anyOf": [], "items": [1]}, "b": False, "c": True},
            "required": 5,
        },
        {"properties": {"a": {"type": "integer", "minimum": True, "maximum": "x"}}},
        True,
        None,
    ],
    ids=range(9),
)
def test_hostile_schemas(schema: Any, how: ToolsAs) -> None:
    text = declared({"name": "f", "description": "*/ x", "parameters": schema}, how)
    assert "f" in text and len(text) < 20_000


def test_types() -> None:
    place = {"type": "object", "properties": {"x": {"type": "number", "maximum": 5}}, "required": ["x"]}
    schema = {
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File\nto read"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 9},
            "unit": {"enum": ["celsius", "2 x", "true", None]},
            "at": {"anyOf": [place, {"type": "null"}]},
            "list": {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 2, "maxItems": 2},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "node": {"$ref": "#/$defs/Node"},
            "pair": {"prefixItems": [{"type": "boolean"}, {"const": 3}], "type": "array"},
            "when": {"type": "string", "format": "date", "default": "now"},
            "size": {"type": "integer", "nullable": True},
            "near": {**place, "anyOf": [{"required": ["x"]}, {"type": "null"}]},
        },
        "required": ["path", "limit"],
    }
    compact = declared({"name": "f", "description": "Does it.", "parameters": schema}, "compact")
    assert compact.splitlines() == [
        "f: Does it.",
        '  path (string): File to read, limit: integer 1 to 9, unit?: celsius | "2 x" | "true" | null, '
        "at?: {x: number at most 5} | null, list?: (string | integer)[] (2 items), map?: {[name]: integer}, "
        'node?: Node, pair?: [boolean, 3], when? (string date): default "now", '
        "size?: integer | null, near?: {x: number at most 5} & (any | null)",
        "  Node = {next?: Node}",
    ]
    typescript = declared({"name": "a/b", "description": "Does it.", "parameters": schema}, "typescript")
    assert typescript.splitlines()[:8] == [
        "type Node = {",
        "  next?: Node;",
        "};",
        "// Does it.",
        'declare function "a/b"(args: {',
        "  // File to read",
        "  path: string;",
        "  limit: number /* integer, 1 to 9 */;",
    ]
    assert "  map?: Record<string, number /* integer */>;" in typescript


def test_the_polyfill_writes_them_and_the_calls_are_read() -> None:
    user = [{"role": "user", "content": "Hello"}]
    prompts = {}
    for how in ("json", *WAYS):
        chat = chatparsers.load(template="chatml", tools_as=how)
        turn = chat.prepare(user, tools=TOOLS)
        assert turn.polyfills == ("tools",) and "read_text_file" in turn.prompt
        prompts[how] = len(turn.prompt)
        assert turn.parse('<tool_call>\n{"name": "query", "arguments": {"sql": "x"}}\n</tool_call>').complete
    assert prompts["compact"] < prompts["typescript"] < prompts["json"]
    with pytest.raises(
        RequestError, match="tools_as: expected 'json', 'compact' or 'typescript', found 'yaml'"
    ):
        chatparsers.load(template="chatml", tools_as="yaml")  # type: ignore[arg-type]
