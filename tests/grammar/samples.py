"""Tools of all kinds, and random walks through a grammar in an engine."""

from __future__ import annotations

import contextlib
import json
import random
import re
from typing import Any

import making
from engines import llguidance, xgrammar

import chatparsers


def tool(name: str, properties: dict[str, Any], required: list[str], **more: Any) -> dict[str, Any]:
    """A tool in OpenAI's form, with a description."""
    return making.tool(name, properties, required, description=f"Does {name}.", **more)


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

_LITERAL = re.compile(r'\[(?:[^\]\\\n]|\\.)*\]|Regex\("(?:[^"\\\n]|\\.)*"|"((?:[^"\\\n]|\\.)*)"')
"""A literal of a grammar. Skips classes of characters and regular expressions, because they may hold quotes."""


def closers(name: str) -> list[bytes]:
    """Texts that close open parts: ends of JSON, and what the format writes for all tools, and for ``now``."""
    plain = [tool("now", {"a": {"type": "string"}}, [])]
    turn = chatparsers.get_format(name).bind(tools=plain, tool_choice="required")
    pieces = [str(turn.grammar())]

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            pieces.extend([part["grammar"]] if part.get("type") == "grammar" else [])
            found.update(part[key] for key in ("begin", "end", "value") if isinstance(part.get(key), str))
            part = list(part.values())
        if isinstance(part, list):
            for item in part:
                collect(item)

    found: set[str] = set()
    collect(json.loads(str(turn.grammar("structural_tag"))))
    for piece in pieces:
        for text in filter(None, _LITERAL.findall(piece)):
            with contextlib.suppress(ValueError):
                found.add(json.loads(f'"{text}"'))
    ends = {text for text in found if text.strip() and not text.isalnum() and "\\" not in text}
    return [b'"', b"}", b"]", *sorted(text.encode() for text in ends - set('"}]'))]


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
        """For each id whether it may follow: an array of 0 and 1."""
        import numpy as np

        if self.engine == "xgrammar":
            self.mask.fill(-1)
            self.matcher.fill_next_token_bitmask(self.mask)
            words = self.mask.view(np.uint8)
        else:
            words = np.frombuffer(self.matcher.compute_bitmask(), dtype=np.uint8)
        return np.unpackbits(words, bitorder="little")[: len(self.tokens)]

    def take(self, token: int) -> bool:
        if self.engine == "xgrammar":
            return bool(self.matcher.accept_token(token))
        return bool(self.matcher.consume_token(token))

    def done(self) -> bool:
        if self.engine == "xgrammar":
            return bool(self.matcher.is_terminated())
        return bool(self.matcher.is_stopped())


def _unfinished(text: bytes) -> bytes | None:
    """The bytes of an unfinished character at the end of ``text``; None if no text begins so."""
    for count in range(4):
        for more in (b"\x80", b"\xbf") if count else (b"",):
            with contextlib.suppress(UnicodeDecodeError):
                found = (text + more * count).decode()
                return found[-1].encode()[:-count] if count else b""
    return None


def walk_bytes(
    walk: Walk, closers: list[bytes], seed: int, free: int = 60, limit: int = 20_000
) -> str | None:
    """A random text of the grammar, None if the walk did not end in ``limit`` tokens.

    The first ``free`` tokens are any that the mask allows. Then one of ``closers`` is written wherever one may
    follow. It closes an open part, or it is a little more text and another closer is tried. So the text ends,
    whatever the names of the tools and arguments. But a string that must match a pattern may go on and on.
    """
    chance = random.Random(seed)
    number = {bytes([byte]): walk.tokens.index(bytes([byte])) for byte in b"".join(closers)}
    spelt = [[number[bytes([byte])] for byte in text] for text in closers]
    out: list[bytes] = []
    closer: list[int] = []  # what is being written, of which so many tokens are
    written = 0
    begun = b""  # of a character that is not complete

    def fits(token: int) -> bool:
        """Whether the bytes of ``token`` may go on in UTF-8. Masks over bytes may admit any."""
        return token != walk.end and _unfinished(begun + walk.tokens[token]) is not None

    for count in range(limit):
        may = walk.allowed()
        if not may.any():
            break
        if not begun and may[walk.end] and (count > free or chance.random() < 0.3 or may.sum() == 1):
            break
        if written == len(closer):
            closer, written = [], 0
        token = -1
        if written or (not begun and (count > free or chance.random() < 0.25)):
            # What is begun and cannot go on may be the beginning of another.
            fitting = [
                one
                for one in spelt
                if len(one) > written and may[one[written]] and one[:written] == closer[:written]
            ]
            if not written and chance.random() < 0.5:
                fitting = [one for one in fitting if len(one) == 1] or fitting
            if fitting and (written or chance.random() < 0.9):
                closer = closer if closer in fitting else chance.choice(fitting)
                token = closer[written]
        written += 1
        if token < 0:
            closer, written = [], 0
            ids = may.nonzero()[0].tolist()
            fits_in = (one for one in chance.choices(ids, k=20) if fits(one))
            token = next(fits_in, next((one for one in ids if fits(one)), -1))
            if token < 0:
                return None
        if not walk.take(token):
            text = b"".join(out)
            raise AssertionError(f"the engine's mask allows token {token} and then refuses it after {text!r}")
        out.append(walk.tokens[token])
        begun = _unfinished(begun + walk.tokens[token]) or b""
    else:
        return None
    return b"".join(out).decode()
