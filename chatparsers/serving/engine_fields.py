"""Fields of engines' own servers, which their users send to every API.

What asks for JSON is a `response_format`. What an engine takes as it is, is in `Request.engine_fields`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import ApiError
from .fields import boolean, integer, kind_of, mapping, sequence, string

MOST = 1024
"""How many tokens one field may name."""
_FORMS = ("guided_json", "json_schema", "structured_outputs")
_STRUCTURED = ("json", "json_object", "regex", "choice", "grammar")
ENGINE_FIELDS = (*_FORMS, "min_tokens", "ignore_eos", "stop_token_ids", "logit_bias")
THINKING_BUDGETS = ("thinking_budget_tokens", "thinking_token_budget")
"""How many tokens thoughts may take, as llama.cpp and vLLM name it."""


def thinking_budget(body: Mapping[str, Any]) -> int | None:
    """How many tokens thoughts may take; None or -1: any number. Raises `ApiError` if two fields differ."""
    asked = [name for name in THINKING_BUDGETS if body.get(name) is not None]
    if len(asked) > 1 and body[asked[0]] != body[asked[1]]:
        raise ApiError(f"{asked[0]} says another number: send one of them", param=asked[1])
    most = integer(body, asked[0], -1) if asked else None
    return None if most == -1 else most


def asked_format(body: Mapping[str, Any]) -> Any:
    """The ``response_format`` of a body: its own, or what vLLM (``guided_json``, ``structured_outputs``), SGLang and
    llama.cpp (``json_schema``) have in its place. Raises `ApiError` if there are several, or for another form."""
    named = [name for name in ("response_format", *_FORMS) if body.get(name) not in (None, "", {})]
    if len(named) > 1:
        raise ApiError(f"{named[0]} asks for a form too: send one of them", param=named[1])
    name = named[0] if named else "response_format"
    schema = body.get(name)
    if name == "response_format":
        return schema
    if name == "structured_outputs":
        forms = {form: value for form, value in mapping(schema, name).items() if value not in (None, False)}
        if list(forms) == ["json_object"]:
            return {"type": "json_object"}
        if list(forms) == ["grammar"]:
            return {"type": "grammar", "grammar": string(forms["grammar"], f"{name}.grammar")}
        if list(forms) == ["regex"]:
            return {"type": "regex", "pattern": string(forms["regex"], f"{name}.regex")}
        if list(forms) == ["choice"]:
            texts = sequence(forms["choice"], f"{name}.choice")
            choices = [string(text, f"{name}.choice[{index}]") for index, text in enumerate(texts)]
            return {"type": "choice", "choices": choices}
        if list(forms) != ["json"]:
            named = [form for form in forms if form not in _STRUCTURED]
            found = ", ".join(map(str, forms)) or "nothing"
            raise ApiError(
                f"expected one of {', '.join(_STRUCTURED)} alone, found {found}",
                param=f"{name}.{str(named[0])[:60]}" if named else name,
                code="unsupported_parameter",
            )
        schema = forms["json"]
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise ApiError(f"expected a JSON Schema: {error}", param=name) from error
    if not isinstance(schema, (Mapping, bool)):
        raise ApiError(f"expected a JSON Schema, found {kind_of(schema)}", param=name)
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def engine_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields for the engine that ask for something."""
    if body.keys().isdisjoint(ENGINE_FIELDS):
        return {}
    found: dict[str, Any] = {
        "min_tokens": integer(body, "min_tokens", 0),
        "ignore_eos": boolean(body, "ignore_eos", False),
        "stop_token_ids": [
            _id(id, f"stop_token_ids[{index}]")
            for index, id in enumerate(sequence(body.get("stop_token_ids") or [], "stop_token_ids"))
        ],
        "logit_bias": {
            str(_id(int(id) if id.isascii() and id.isdigit() else id, "logit_bias")): _bias(value, id)
            for id, value in mapping(body.get("logit_bias") or {}, "logit_bias").items()
        },
    }
    for name, value in found.items():
        if isinstance(value, (list, dict)) and len(value) > MOST:
            raise ApiError(f"expected at most {MOST} tokens, found {len(value):,}", param=name)
    return {name: value for name, value in found.items() if value}


def _id(value: object, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ApiError("expected the id of a token", param=path)
    return value


def _bias(value: object, id: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -100 <= value <= 100:
        raise ApiError("expected a number from -100 to 100", param=f"logit_bias.{id[:20]}")
    return value
