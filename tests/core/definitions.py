"""Runs one definition: the events, a character at a time; the grammar; random texts that it generates."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from making import tool

from chatparsers import CallArguments, CallEnd, CallStart, Content, Event, Message, Reasoning, Turn
from chatparsers.answers import Builder, Format, Node
from chatparsers.grammar import ir
from chatparsers.grammar.reading.place import At
from chatparsers.grammar.reading.read import Reader, Request, read
from chatparsers.grammar.schemas import Output

TOOL = tool("t", {"a": {"type": "boolean"}}, ["a"])
NO_ARGUMENTS = {"type": "function", "function": {"name": "t"}}


@dataclass(frozen=True)
class Row:
    """``events``: the events after each character of ``text`` and at the end (`stream`). ``grammar``: the grammar of a
    required call."""

    name: str
    build: Callable[[Builder], Node]
    text: str
    events: str
    grammar: str
    diagnostics: str

    @property
    def tool(self) -> object:
        return TOOL if "m ::=" in self.grammar else NO_ARGUMENTS


def format_of(build: Callable[[Builder], Node], stops: tuple[str, ...] = ()) -> Format:
    return Format(name="probe", title="Probe", url="https://probe.example", build=build, stops=stops)


def shown(events: Iterable[Event]) -> str:
    """Events as text: content unchanged, reasoning between tildes, a call as ``(name arguments)``, an incomplete call
    as ``(name arguments?)``."""
    out = ""
    for event in events:
        if isinstance(event, Content):
            out += event.text
        elif isinstance(event, Reasoning):
            out += f"~{event.text}~"
        elif isinstance(event, CallStart):
            out += f"({event.name} "
        elif isinstance(event, CallArguments):
            out += event.text
        elif isinstance(event, CallEnd):
            out += ")" if event.complete else "?)"
    return out


def stream(turn: Turn, text: str) -> tuple[str, Message]:
    """The events after each character and at the end, with ``|`` between them; and the message."""
    reader = turn.stream()
    steps = [shown(reader.feed(char)) for char in text]
    steps.append(shown(reader.finish()))
    return "|".join(steps), reader.message


def rules(turn: Turn) -> str:
    """The grammar, without the rules of white space and of text up to a marker, and without white space around the
    answer."""
    lines = str(turn.grammar()).replace("root ::= gap? ", "root ::= ", 1).splitlines()
    lines[0] = lines[0].removesuffix(" gap?")
    return "\n".join(line for line in lines if not line.startswith(("ws ::=", "gap ::=", "text")))


def generated(turn: Turn, number: int) -> list[str]:
    """Random texts of the turn's grammar."""
    reading = read(Request(turn._replace(prefix="")))
    assert reading is not None
    return [_walk(reading.root, reading.rules, random.Random(seed), 0) for seed in range(number)]


def random_text(node: Node, chance: random.Random) -> str:
    """A random text that the grammar of ``node`` has, which names no tool."""
    turn = format_of(lambda p: p.body()).bind()
    request = Request(turn)
    request.tree = node
    reader = Reader(request, Output())
    return _walk(reader.read(node, At(thoughts=True)), reader.rules, chance, 0)


def _walk(node: ir.Ir, rules: Mapping[str, ir.Ir], chance: random.Random, depth: int) -> str:
    def walk(inner: ir.Ir) -> str:
        return _walk(inner, rules, chance, depth + 1)

    if isinstance(node, (ir.Text, ir.TokenRef)):
        return node.text
    if isinstance(node, ir.Chars):
        return chr(chance.choice(node.ranges)[0])
    if isinstance(node, ir.Seq):
        return "".join(map(walk, node.items))
    if isinstance(node, ir.Alt):
        return walk(node.options[-1] if depth > 30 else chance.choice(node.options))
    if isinstance(node, ir.Rep):
        most = node.least + 2 if node.most is None else node.most
        return "".join(
            walk(node.node) for _ in range(node.least if depth > 30 else chance.randint(node.least, most))
        )
    if isinstance(node, ir.Shared):
        return walk(node.node)
    if isinstance(node, ir.Ref):
        return walk(rules[node.name])
    if isinstance(node, ir.Order):
        return walk(node.unfold())
    if isinstance(node, ir.Blank):
        return chance.choice(("", " ", "\n  "))
    assert isinstance(node, ir.Lang) and not node.parts, node
    inside = chance.choice(("q", "qz", "q z")) if node.most is None else "q" * node.most
    quote = '"' if node.encoding == "json" else ""
    return quote + inside + quote + "".join(map(walk, node.end))


def turn_of(build: Callable[[Builder], Node], tool: Any = NO_ARGUMENTS, **more: Any) -> Turn:
    return format_of(build, more.pop("stops", ())).bind(tools=[tool], **{"tool_choice": "required", **more})
