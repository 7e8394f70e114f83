"""Random spellings of a format's calls, as the parser takes them: other members, other white space, other markers.

They come from the lenient reading of the tree, which the grammar does not generate. Names and values are right or wrong
at random.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from chatparsers.answers.nodes import (
    Args,
    Choice,
    EachArg,
    Header,
    JsonName,
    JsonText,
    JsonValue,
    Lenient,
    Literal,
    Many,
    Name,
    Node,
    Sequence,
    Space,
    Tag,
    Token,
    Value,
)
from chatparsers.answers.nodes import Chars as CharsNode
from chatparsers.core.tree import through
from chatparsers.values import Gemma, Json, Python

_NAMES = ("get_weather", "get_weather", "get-time", "nobody")
_ARGUMENTS = ("city", "city", "code", "foo")
_JSON = (
    '"Oslo"',
    "5",
    "null",
    '{"name": "get_weather", "arguments": {"city": 5}}',
    '["a", {"b": ""}]',
    '"}"',
)
_OBJECTS: Mapping[type, tuple[str, ...]] = {
    Json: ('{"city": "Oslo"}', '{"city": "Oslo"}', '{"city": 5}', "{}", '{"foo": 1}'),
    Gemma: ("{}", "{city:5}", "{foo:1}"),
}
_LETTERS = 'abzAZ059_-.: x{}[]<>"\n'


class Spelling:
    """Spells nodes with a random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def text(self, node: Node) -> str:
        """One text of ``node``, most of the time one that the parser takes."""
        one = _SPELT.get(type(node))
        if one is not None:
            return one(self, node)
        inner = through(node)
        return "" if inner is None else self.text(inner)

    def name(self, node: Name | JsonName | Header) -> str:
        return self.rng.choice(_ARGUMENTS if getattr(node, "tag", None) is Tag.ARG_NAME else _NAMES)

    def many(self, node: Many) -> str:
        most = max(node.least, 2 if node.most is None else node.most)
        return "".join(
            self.text(node.node) for _ in range(self.rng.randint(node.least, min(most, node.least + 2)))
        )

    def letters(self, node: CharsNode) -> str:
        there = [char for char in _LETTERS if re.fullmatch(f"[{node.ranges}]", char)] or ["a"]
        most = node.least + 3 if node.most is None else node.most
        return "".join(self.rng.choice(there) for _ in range(self.rng.randint(node.least, most)))

    def arguments(self, node: EachArg) -> str:
        separator = "" if node.separator is None else self.text(node.separator)
        return separator.join(self.text(node.any) for _ in range(self.rng.randint(0, node.most or 2)))

    def value(self, node: Value) -> str:
        if isinstance(node.syntax, (Json, Python)):
            return self.rng.choice(_JSON)
        return self.rng.choice(("Oslo", "5", "", "<x>"))


_SPELT: Mapping[type[Node], Callable[[Spelling, Any], str]] = {
    Literal: lambda spelling, node: node.text,
    Token: lambda spelling, node: spelling.rng.choice(node.names),
    Space: lambda spelling, node: spelling.rng.choice((node.text, "", " ", "\n", "\n  ")),
    Sequence: lambda spelling, node: "".join(map(spelling.text, node.items)),
    Choice: lambda spelling, node: spelling.text(spelling.rng.choice(node.options)),
    Lenient: lambda spelling, node: spelling.text(node.lenient),
    Many: Spelling.many,
    CharsNode: Spelling.letters,
    EachArg: Spelling.arguments,
    **dict.fromkeys((Name, JsonName, Header), Spelling.name),
    Args: lambda spelling, node: spelling.rng.choice(_OBJECTS.get(type(node.syntax), _OBJECTS[Json])),
    Value: Spelling.value,
    **dict.fromkeys((JsonValue, JsonText), lambda spelling, node: spelling.rng.choice(_JSON)),
}
