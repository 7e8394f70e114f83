"""Reads the document of a format, which a stranger may have written.

A document is measured before it is read, and read without recursion deeper than it is. What it means is checked as any
definition is (`answers/check.py`). Each error says where it is, as a JSON path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..answers import nodes as n
from ..answers.check import check, check_model
from ..answers.idioms import Builder, Options
from ..answers.nodes import Node
from ..core.wrong import check_characters
from ..errors import DefinitionError, did_you_mean
from ..schema.tools import ANY_ARGUMENT, ANY_TOOL, Argument, Tool
from .kinds import BY_KEY, USE
from .parts import VERSION, Data, located
from .refusals import below, refuse
from .text import MOST

DEEPEST = 100
"""The most arrays and objects inside each other."""

_TEXTS = ("aliases", "models", "markers", "stops")
_KEYS = ("chat_format", "name", "title", "url", *_TEXTS, "tree", "shared", "samples")
_MODEL = re.compile(r"(?:(?:[a-z0-9-]|\[[a-z0-9-]+\]|\))\??|\.\*|\((?:\?[:!])?|\|)+")
"""What a pattern for a name may be made of: nothing in it can take long."""


def header_of(data: Data) -> dict[str, Any]:
    """The fields of the format that a document describes, its definition among them. Raises `DefinitionError`, which
    says where it is, for a document that is none."""
    _check_size(data)
    if not isinstance(data, dict):
        refuse("$", "an object", data)
    version = data.get("chat_format")
    if type(version) is not int or version < 1:
        refuse("$.chat_format", f"the version of the document, {VERSION}", version)
    if version > VERSION:
        raise DefinitionError(
            f"$.chat_format: it is written for chat_format {version}, and this reads {VERSION}; install a newer "
            "chatparsers"
        )
    for key in data:
        if key not in _KEYS:
            raise DefinitionError(f"{below('$', key)}: there is no such key: {did_you_mean(key, _KEYS)}")
    for key in ("name", "tree"):
        if key not in data:
            raise DefinitionError(f"$: expected the key {key!r}; write it")
    found = {key: _text(data.get(key, ""), f"$.{key}") for key in ("name", "title", "url")}
    if not found["name"]:
        refuse("$.name", "the name of the format", data["name"])
    lists = {key: _texts(data.get(key, []), f"$.{key}") for key in _TEXTS}
    for place, pattern in enumerate(lists["models"]):
        if not _MODEL.fullmatch(pattern) or pattern.count(".*") > 2:
            mend = "letters, digits and -, with ?, (a|b), [4-6], (?!…) and at most two .*"
            refuse(f"$.models[{place}]", "a pattern for a model's name", pattern, mend)
        check_model(f"$.models[{place}]", pattern)
    if not isinstance(data.get("samples", []), list):
        refuse("$.samples", "a list", data["samples"])
    body = {"tree": data["tree"], **({"shared": data["shared"]} if "shared" in data else {})}
    return {**found, **lists, "build": Document(json.dumps(body, ensure_ascii=False, separators=(",", ":")))}


def read_document(data: Data) -> dict[str, Any]:
    """As `header_of`, and the definition is checked."""
    found = header_of(data)
    for tools in (True, False):
        places: dict[int, tuple[Node | None, str]] = {}
        try:
            check(_Reader(data, Builder(Options(tools=tools), found["stops"]), places).tree())
        except DefinitionError as error:
            node = error.node.node if isinstance(error.node, n.Tagged) else error.node
            _, at = places.get(id(node), (None, "$.tree"))
            raise located(at, error) from error.__cause__
    return found


@dataclass(frozen=True)
class Document:
    """What builds a format's tree from its document. ``text``: the document's ``tree`` and ``shared``, as JSON."""

    text: str

    def __call__(self, p: Builder) -> Node:
        return _Reader(json.loads(self.text), p).tree()


def _text(data: Data, at: str) -> str:
    if not isinstance(data, str) or not data.isprintable() or len(data) > 500:
        refuse(at, "a line of text", data)
    return data


def _texts(data: Data, at: str) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(text, str) and text for text in data):
        refuse(at, "a list of texts that are not empty", data)
    return tuple(data)


def _check_size(data: Data) -> None:
    """Refuses what is no JSON, and what is too large or too deep to be read."""
    left = [(iter([data]), "$")]
    size = 0
    while left:
        values, at = left[-1]
        value = next(values, left)
        if value is left:
            left.pop()
            continue
        size += 1 + (len(value) if isinstance(value, str) else 0)
        if size > MOST:
            raise DefinitionError(
                f"$: it has more than {MOST:,} characters and values; say it in fewer nodes"
            )
        if isinstance(value, (dict, list)):
            if len(left) > DEEPEST:
                raise DefinitionError(
                    f"{at}: it stands inside {DEEPEST} others; put parts of it under $.shared"
                )
            if isinstance(value, dict):
                for key in value:
                    if not isinstance(key, str):
                        refuse(at, "keys that are texts", key)
                    size += len(key)
                    check_characters(at, key)
            left.append((iter(value.values() if isinstance(value, dict) else value), at))
        elif isinstance(value, str):
            check_characters(at, value)
        elif value is not None and not isinstance(value, (bool, int, float)):
            raise DefinitionError(
                f"{at}: expected JSON, found {type(value).__name__}; write texts, lists and objects"
            )


class _Scope:
    """A place in a document, at which ``tool`` and ``arg`` are the tool and the argument."""

    def __init__(self, reader: _Reader, tool: Tool, arg: Argument) -> None:
        self.reader = reader
        self.p = reader.p
        self.tool = tool
        self.arg = arg
        self.kept: dict[str, Node] = {}
        """The shared nodes, as they were read here."""
        self.names: list[str] = []
        """The names of those that are being read."""
        self.deep = 0
        """How many nodes are being read, each inside the one before."""

    def node(self, data: Data, at: str) -> Node:
        found = self.section(data, at)
        if found is None:
            raise DefinitionError(f"{at}: expected the key 'else', as this is no part of a body; write it")
        return found

    def section(self, data: Data, at: str) -> Node | None:
        self.deep += 1
        if self.deep > DEEPEST:
            raise DefinitionError(f"{at}: it stands inside {DEEPEST} other nodes; repeat or choose instead")
        found: Node | None
        if isinstance(data, str):
            found = n.Literal(data)
        elif isinstance(data, list):
            found = n.Sequence(tuple(self.node(item, below(at, place)) for place, item in enumerate(data)))
        elif isinstance(data, dict) and USE in data:
            found = self.used(data, at)
        else:
            found = BY_KEY[_kind(data, at)].read(self, data, at)
        self.deep -= 1
        if self.reader.places is not None:
            self.reader.places.setdefault(id(found), (found, at))
        return found

    def used(self, data: dict[str, Data], at: str) -> Node:
        name = data[USE]
        if len(data) > 1 or not isinstance(name, str):
            refuse(at, f'{{"{USE}": "a name under $.shared"}}', data)
        found = self.kept.get(name)
        if found is None:
            if name in self.names:
                way = " → ".join((*self.names[self.names.index(name) :], name))
                what = f"it stands in itself ({way:.200})"
                raise DefinitionError(f"{at}: {what}; write a rule and a ref for what recurs")
            self.names.append(name)
            found = self.kept[name] = self.node(self.reader.named(name, at), below("$.shared", name))
            self.names.pop()
        return found

    def half(self, data: Data, at: str) -> Node:
        # It is the same for each tool, and read before any is asked for.
        halves = self.reader.halves
        if id(data) not in halves:
            halves[id(data)] = self.reader.any.node(data, at)
        return halves[id(data)]

    def call(self, data: Data, at: str) -> Callable[[Tool], Node]:
        return lambda tool: self.given(tool, ANY_ARGUMENT).node(data, at)

    def argument(self, data: Data, at: str) -> Callable[[Argument], Node]:
        return lambda arg: self.given(self.tool, arg).node(data, at)

    def given(self, tool: Tool, arg: Argument) -> _Scope:
        return self.reader.any if (tool, arg) == (ANY_TOOL, ANY_ARGUMENT) else _Scope(self.reader, tool, arg)


def _kind(data: Data, at: str) -> str:
    """The key that tells what kind of node ``data`` is."""
    if not isinstance(data, dict):
        refuse(at, "a node: a text, an array or an object", data)
    found: list[str] = [key for key in data if key in BY_KEY]
    if len(found) != 1:
        if found:
            mend = f"its kinds are told by {' and '.join(map(repr, found))}; keep one"
        else:
            mend = did_you_mean(next(iter(data), ""), (*BY_KEY, USE))
        refuse(at, "a node, an object with one key that tells its kind", data, mend)
    return found[0]


class _Reader:
    """Reads one document for one request's options. ``places``: where each node is, if that is asked for."""

    def __init__(
        self, data: dict[str, Data], p: Builder, places: dict[int, tuple[Node | None, str]] | None = None
    ) -> None:
        self.p = p
        self.data = data
        self.places = places
        self.halves: dict[int, Node] = {}
        """What is parsed alone, by the place of its data in memory."""
        self.used: set[str] = set()
        self.any = _Scope(self, ANY_TOOL, ANY_ARGUMENT)
        """The scope of what is parsed."""

    def tree(self) -> Node:
        """The tree. Raises `DefinitionError`, which says where it is, for a document that has none."""
        shared = self.data.get("shared", {})
        if not isinstance(shared, dict):
            refuse("$.shared", "an object of nodes by their names", shared)
        found = self.any.node(self.data["tree"], "$.tree")
        for name in shared:
            if name not in self.used:
                raise DefinitionError(f"{below('$.shared', name)}: nothing uses it; leave it out")
        return found

    def named(self, name: str, at: str) -> Data:
        """What stands for ``name``."""
        shared = self.data.get("shared", {})
        if name not in shared:
            raise DefinitionError(
                f"{at}: there is no {name!r:.60} under $.shared: {did_you_mean(name, shared)}"
            )
        self.used.add(name)
        return shared[name]
