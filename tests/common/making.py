"""What tests of many folders make: a tool in OpenAI's form, and a tokenizer of single bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def tool(
    name: str,
    properties: Mapping[str, Any] | None = None,
    required: Iterable[str] | None = None,
    *,
    description: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A tool in OpenAI's form; what is not given is not in it. ``more``: further keywords of its schema."""
    parameters: dict[str, Any] = {"type": "object"}
    if properties is not None:
        parameters["properties"] = properties
    if required is not None:
        parameters["required"] = required
    function: dict[str, Any] = {"name": name}
    if description is not None:
        function["description"] = description
    return {"type": "function", "function": {**function, "parameters": {**parameters, **more}}}


def bytewise(*special: str, added: Iterable[str] = ()) -> Tokenizer:
    """One token for each byte, with these special tokens, and others that are added and not special."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: id for id, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    tokenizer.add_tokens(list(added))
    return tokenizer


KINDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "get_weather": (
        {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        ["city", "days"],
    ),
    "plan_trip": (
        {
            "stops": {
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "nights": {"enum": [1, 2, 3]}},
                    "required": ["name", "nights"],
                },
            },
            "flag": {"type": "boolean"},
        },
        ["stops", "flag"],
    ),
    "now": ({}, []),
}
"""Arguments of all kinds, by the tool: their schemas, and which are required. Engines and hosts sample such calls."""
