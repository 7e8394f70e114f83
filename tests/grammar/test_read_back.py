"""Parser and grammar agree on every text of a format: what a grammar generates is read as it is written.

Other tests try texts that a sampler or an engine makes. This one walks all of them (languages.py), for each format and
request: no diagnostic, each call a call with its arguments, and nothing else where a request allows nothing else. Where
the two differ on purpose, `read_otherwise.json` says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from languages import ORDINARY, OVER, Automaton, Reading, Seen, Walk
from test_matrix import TOOL_FORMATS

import chatparsers
from chatparsers.answers.format import Format
from chatparsers.answers.nodes import Node
from chatparsers.core.tree import once
from chatparsers.grammar import ir
from chatparsers.grammar.reading import read as reader
from chatparsers.grammar.reading.place import At
from chatparsers.grammar.reading.request import Request
from chatparsers.grammar.schemas import Output
from chatparsers.grammar.target import target_of
from chatparsers.schema.tools import Tool
from chatparsers.streams.start import start

ONE = {
    "type": "object",
    "properties": {"city": {"const": "Oslo"}},
    "required": ["city"],
    "additionalProperties": False,
}
"""Allows one value."""
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": ONE}} for name in ("get_weather", "now")
]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ONE}}
NAMED = {"type": "function", "function": {"name": "now"}}
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "auto": {"tools": TOOLS},
    "one call": {"tools": TOOLS, "parallel_tool_calls": False},
    "none": {"tools": TOOLS, "tool_choice": "none"},
    "required": {"tools": TOOLS, "tool_choice": "required"},
    "single": {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
    "named": {"tools": TOOLS, "tool_choice": NAMED},
    "schema": {"response_format": SCHEMA},
    "schema and tools": {"tools": TOOLS, "response_format": SCHEMA},
}
FREE = ("auto", "one call", "none")
KNOWN = json.loads(Path(__file__).with_name("read_otherwise.json").read_text("utf-8"))


class Marked(reader.Reader):
    """As the grammar's own reader, with a mark after each call."""

    def _call(self, call: Node, tool: Tool, at: At) -> ir.Ir:
        return ir.seq(super()._call(call, tool, at), OVER)


def walk(format: Format, asked: str, thinking: bool, readings: dict[Any, Reading], limit: int) -> Walk | None:
    """None if the request constrains nothing."""
    turn = format.bind(**REQUESTS[asked], thinking=thinking)
    free = asked in FREE
    target = target_of("lark", "llguidance") if free else target_of("gbnf", "llama.cpp")
    made = reader.read(Request(turn, max_calls=None if free else 2), Output(target=target))
    if made is None:
        return None
    assert not made.weakened
    # Nothing of the other options matters to the parser.
    options = turn.options._replace(
        thinking=None, mode="auto", parallel=True, schema=turn.options.schema and True
    )
    if options not in readings:
        machine = start(format, options, "", turn.tools).machine.copy()
        machine.tools = turn.tools
        readings[options] = Reading(machine)
    texts = (name for node in once(turn.tree) for name in getattr(node, "names", ()))
    grammar = Automaton(made.root, made.rules, "".join((ORDINARY, *texts, *turn.stops)))
    return Walk(grammar, readings[options], '"city":"Oslo"', _wrong(asked, thinking), limit)


def _wrong(asked: str, thinking: bool) -> Callable[[Seen], str]:
    forced = asked in ("required", "single", "named")
    most = 0 if asked in ("none", "schema") else 1 if asked in ("one call", "single") else 2

    def wrong(seen: Seen) -> str:
        if seen.calls > most or (forced and not seen.calls):
            return f"{seen.calls} calls"
        if seen.content and forced:
            return "content beside calls"
        return "a thought" if seen.thought and not thinking else ""

    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_what_is_generated_is_read(
    name: str, monkeypatch: pytest.MonkeyPatch, amount: Callable[[int, int, int], int]
) -> None:
    """Free text, which takes ten seconds a format, is walked by ``--nightly`` alone."""
    monkeypatch.setattr(reader, "Reader", Marked)
    format = chatparsers.get_format(name)
    readings: dict[Any, Reading] = {}
    found: dict[str, str] = {}
    limit = amount(1000, 3000, 10_000)
    for asked in [asked for asked in REQUESTS if asked not in FREE or amount(0, 0, 1)]:
        for thinking in (True, False):
            made = walk(format, asked, thinking, readings, limit)
            for why, text in (made.faults if made is not None else {}).items():
                if not any(
                    known["fault"] == why and asked in known["requests"] and known.get("text", "") in text
                    for known in KNOWN
                ):
                    found[f"{asked}, {thinking=}: {why}"] = text
    assert not found
