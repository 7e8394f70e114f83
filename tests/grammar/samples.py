"""Tools of all kinds, and random walks through a grammar in an engine."""

from __future__ import annotations

import contextlib
import json
import random
import re
from typing import Any

from engines import llguidance, xgrammar

__all__ = ["MANY", "TOOLS", "many_tools", "tool", "walk_bytes"]


def tool(name: str, properties: dict[str, Any], required: list[str], **more: Any) -> dict[str, Any]:
    """A tool as OpenAI has it."""
    parameters = {"type": "object", "properties": properties, "required": required, **more}
    return {
        "type": "function",
        "function": {"name": name, "description": f"Does {name}.", "parameters": parameters},
    }


TOOLS = [
    tool(
        "get_weather",
        {
            "city": {"type": "string", "description": "The city"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        ["city"],
    ),
    tool(
        "plan_trip",
        {
            "stops": {
                "type": "array",
                "minItems": 1,
                "maxItems": 3,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "maxLength": 8},
                        "nights": {"type": "integer", "minimum": 0},
                    },
                    "required": ["name"],
                },
            },
            "start": {"type": "string", "format": "date"},
            "budget": {"type": ["number", "null"], "minimum": 0.5},
            "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
            "flag": {"type": "boolean"},
        },
        ["stops", "start", "flag"],
    ),
    tool("now", {}, []),
    tool(
        "set_value",
        {
            "key": {"type": "string", "minLength": 1},
            "value": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "tree": {"$ref": "#/$defs/node"},
            "even": {"type": "integer", "multipleOf": 2, "exclusiveMaximum": 100},
            "extra": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        ["key", "value"],
        **{
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "label": {"const": "n"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
                    },
                    "required": ["label"],
                }
            }
        },
    ),
]


def many_tools(count: int, parameters: int = 6) -> list[dict[str, Any]]:
    """Tools like those of large servers: names with common beginnings, parameters of all types."""
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "integer"},
        {"type": "string", "enum": ["asc", "desc"]},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "number"},
        {
            "type": "object",
            "properties": {"id": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["id"],
        },
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ]
    verbs = ("get", "list", "create", "update", "delete")
    nouns = (
        "issue",
        "repository",
        "pull_request",
        "branch",
        "commit",
        "user",
        "label",
        "release",
        "file",
        "comment",
        "team",
        "tag",
    )
    tools = []
    for index in range(count):
        noun = nouns[index // len(verbs) % len(nouns)]
        round_ = index // (len(verbs) * len(nouns))
        name = f"{verbs[index % len(verbs)]}_{noun}" + (f"_{round_ + 1}" if round_ else "")
        properties = {
            f"{nouns[(index + place) % len(nouns)]}_{place}": {
                **kinds[(index + place) % len(kinds)],
                "description": f"The {place}.",
            }
            for place in range(parameters)
        }
        tools.append(tool(name, properties, list(properties)[: index % 4]))
    return tools


MANY = many_tools(100)

_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals(grammar: str, tag: str) -> list[bytes]:
    """The literal texts of a grammar, which bring a walk to its end: those that close before those that open."""
    pieces: list[str] = [grammar]

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            pieces.extend([part["grammar"]] if part.get("type") == "grammar" else [])
            found.update(part[key] for key in ("begin", "end", "value") if isinstance(part.get(key), str))
            part = list(part.values())
        if isinstance(part, list):
            for item in part:
                collect(item)

    found: set[str] = set()
    collect(json.loads(tag))
    for piece in pieces:
        for text in _LITERAL.findall(piece):
            with contextlib.suppress(ValueError):
                found.add(json.loads(f'"{text}"'))
    return sorted(text.encode() for text in found if text.strip())


class Walk:
    """A position in a grammar in an engine, over some vocabulary: `allowed`, `take`, `done`."""

    def __init__(self, engine: str, compiled: Any, tokens: list[bytes], end: int) -> None:
        self.engine = engine
        self.tokens = tokens
        self.end = end
        if engine == "xgrammar":
            import numpy as np

            self.mask = np.zeros((1, (len(tokens) + 31) // 32), dtype=np.int32)
            self.matcher = xgrammar().GrammarMatcher(compiled)
        else:
            tokenizer, grammar = compiled
            self.matcher = llguidance().LLMatcher(tokenizer, grammar, log_level=0)

    def allowed(self) -> Any:
        """The ids that may follow, as an array."""
        import numpy as np

        if self.engine == "xgrammar":
            self.mask.fill(-1)
            self.matcher.fill_next_token_bitmask(self.mask)
            bits = np.unpackbits(self.mask.view(np.uint8), bitorder="little")
        else:
            bits = np.unpackbits(
                np.frombuffer(self.matcher.compute_bitmask(), dtype=np.uint8), bitorder="little"
            )
        return np.nonzero(bits[: len(self.tokens)])[0]

    def take(self, token: int) -> bool:
        if self.engine == "xgrammar":
            return bool(self.matcher.accept_token(token))
        return bool(self.matcher.consume_token(token))

    def done(self) -> bool:
        if self.engine == "xgrammar":
            return bool(self.matcher.is_terminated())
        return bool(self.matcher.is_stopped())


def walk_bytes(
    walk: Walk, closers: list[list[int]], seed: int, free: int = 60, limit: int = 1_500
) -> str | None:
    """A random text of the grammar, None where none was finished in ``limit`` tokens.

    The first ``free`` tokens are any the mask allows; then what the grammar spells itself is preferred, so
    that the text ends.
    """
    chance = random.Random(seed)
    brackets = [[walk.tokens.index(text)] for text in (b'"', b"}", b"]")]
    out: list[bytes] = []
    plan: list[int] = []
    for count in range(limit):
        ids = walk.allowed()
        if len(ids) == 0:
            break
        options = set(ids.tolist()) if len(ids) < 4096 else None

        def may(token: int, ids: Any = ids, options: set[int] | None = options) -> bool:
            return token in options if options is not None else bool((ids == token).any())

        if may(walk.end) and (len(ids) == 1 or count > free or chance.random() < 0.3):
            break
        if plan and may(plan[0]):
            token = plan.pop(0)
        else:
            plan = []
            token = -1
            if count > free or chance.random() < 0.25:
                first = chance.sample(brackets, len(brackets)) if chance.random() < 0.5 else []
                for closer in [*first, *chance.sample(closers, min(len(closers), 60))]:
                    if may(closer[0]):
                        token, *plan = closer
                        break
            if token < 0:
                for _ in range(20):
                    token = int(ids[chance.randrange(len(ids))])
                    if token != walk.end:
                        break
        if token == walk.end:
            break
        if not walk.take(token):
            raise AssertionError(
                f"the engine's mask allows token {token} and then refuses it after {b''.join(out)!r}"
            )
        out.append(walk.tokens[token])
    else:
        return None
    try:
        return b"".join(out).decode()
    except UnicodeDecodeError:
        return None
