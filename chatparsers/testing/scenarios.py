"""The messages that every format is tested with: what a model may say in one turn.

A scenario is a message and the request that it answers. A template writes the text on the wire
(`chatparsers.testing.rendering`), so no scenario knows any format. The scenario about a format's own markers takes them
from the format's tree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..answers.format import Format
from ..answers.idioms import Options
from ..answers.nodes import Args, Literal, Token, Value
from ..core.tree import once
from ..values import Raw
from .needles import ARGUMENT, CONTENT, REASONING, needle, prose


def _tool(name: str, properties: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    described = {key: {**schema, "description": f"The {key}."} for key, schema in properties.items()}
    parameters = {"type": "object", "properties": described, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": f"Calls {name}.", "parameters": parameters},
    }


_TEXT = {"type": "string"}
_PLACE = {
    "type": "object",
    "properties": {"name": _TEXT, "height": {"type": "number"}, "tags": {"type": "array"}},
}

TOOLS: tuple[dict[str, Any], ...] = (
    _tool("get_weather", {"city": _TEXT, "days": {"type": "integer"}}, ["city"]),
    _tool("get_time", {}),
    _tool("write_file", {"path": _TEXT, "text": _TEXT}, ["path", "text"]),
    _tool(
        "plan_route", {"start": _PLACE, "stops": {"type": "array", "items": _PLACE}, "name": _TEXT}, ["start"]
    ),
    _tool("add_numbers", {key: {"type": "number"} for key in ("a", "b", "c", "d", "e", "f")}, ["a"]),
    _tool(
        "set_options",
        {
            "on": {"type": "boolean"},
            "off": {"type": "boolean"},
            "nothing": {"type": "null"},
            "empty": _TEXT,
            "none": {"type": "array", "items": _TEXT},
            "blank": {"type": "object"},
        },
        ["on"],
    ),
    _tool("keep_texts", {key: _TEXT for key in ("a", "b", "c", "d", "e", "f", "g", "h")}, ["a"]),
)
"""The tools of most scenarios: OpenAI's shape, with a description in each place where a template may print one."""

UNIONS = _tool(
    "set_value",
    {
        "key": {"type": ["string", "null"]},
        "limit": {"type": ["integer", "null"]},
        "value": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]},
        "other": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]},
        "more": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]},
    },
    ["key"],
)
"""Apart from the rest, as not every template can print such types."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call; ``arguments`` is JSON text, so that a number can be any."""

    name: str
    arguments: str = "{}"

    @staticmethod
    def of(name: str, **arguments: Any) -> Call:
        """The call of a tool with these arguments, which become JSON."""
        return Call(name, json.dumps(arguments, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A message and the request it answers.

    ``thinking``: the request's option. ``opened``: ``"reasoning"`` or ``"content"`` if the prompt ends inside it;
    the prompt may have written the ``continued`` text, which comes before the message's. ``after``: text after the
    calls, which no template writes. ``heavy``: too long to be cut in every way.
    """

    name: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str = "auto"
    parallel: bool = True
    response_format: dict[str, Any] | None = None
    thinking: bool | None = None
    opened: str = ""
    continued: str = ""
    after: str = ""
    heavy: bool = False

    def message(self) -> dict[str, Any]:
        """The assistant's message as the chat-completions API has it, the ``continued`` text included."""
        content, reasoning = self.content, self.reasoning
        if self.opened == "content":
            content = self.continued + content
        elif self.opened == "reasoning":
            reasoning = self.continued + reasoning
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if reasoning:
            message["reasoning_content"] = reasoning
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": f"needle{number:03d}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for number, call in enumerate(self.calls)
            ]
        return message


@lru_cache(maxsize=256)
def raw_stops(format: Format) -> tuple[str, ...]:
    """The texts that would end a string argument of this format. There are no such texts if strings are escaped."""
    found: dict[str, None] = {}
    for node in once(format.tree(Options(tools=True))):
        if isinstance(node, Value) and isinstance(node.syntax, Raw):
            found.update(dict.fromkeys(stop.strip() for stop in node.syntax.stops))
        if isinstance(node, (Value, Args)):
            found.update(dict.fromkeys(node.syntax.tokens))
    return tuple(found)


@lru_cache(maxsize=256)
def own_markers(format: Format) -> tuple[str, ...]:
    """The markers of a format that a string argument may contain: its tokens and literals, not what ends a value."""
    tree = format.tree(Options(tools=True))
    texts = dict.fromkeys(node.text for node in once(tree) if isinstance(node, (Token, Literal)))
    stops = raw_stops(format)
    usable = [text.strip() for text in (*texts, *format.markers)]
    return tuple(dict.fromkeys(t for t in usable if len(t) > 1 and not any(stop in t for stop in stops)))


def scenarios(format: Format) -> list[Scenario]:
    """Every scenario, in the order of the matrix."""
    markers = " ".join(own_markers(format))
    return [*_turns(), *_values(markers), *_unions(), *_long(), *_formatted(), *_opened()]


_ANSWER = needle(CONTENT, "The answer\n\nis *here*: 42 < 43.")
_THOUGHT = needle(REASONING, "First this,\n\nthen that: 1 < 2.")
_WEATHER = Call.of("get_weather", city=needle(ARGUMENT, "Oslo"), days=3)
_WEATHER_2 = Call.of("get_weather", city=needle(ARGUMENT, "Bergen", 2))
_CODE = 'def f(s):\n\t"""D \'s."""\n\n return {"k": "\\n\\\\d+\\"", \'x\': [s]}  # </tool_call> </think> &amp;\n\n'


def _calling(name: str, *calls: Call, **more: Any) -> Scenario:
    return Scenario(name, **{"calls": calls, "tools": TOOLS, **more})


def _turns() -> list[Scenario]:
    """Content, reasoning and calls in each order, under each request."""
    return [
        Scenario("content-no-tools", _ANSWER),
        Scenario("content-with-reasoning", _ANSWER, _THOUGHT, thinking=True),
        Scenario("reasoning-only", "", _THOUGHT, thinking=True),
        Scenario("thinking-disabled", _ANSWER, thinking=False),
        _calling("tool-auto-single", _WEATHER),
        _calling("tool-required-only", _WEATHER, tool_choice="required"),
        _calling("parallel-tool-calls", _WEATHER, _WEATHER_2),
        _calling("tool-with-reasoning", _WEATHER, reasoning=_THOUGHT, thinking=True),
        _calling("content-with-tools", content=_ANSWER),
        _calling("text-before-call", _WEATHER, content=_ANSWER),
        _calling("text-before-calls", _WEATHER, _WEATHER_2, content=_ANSWER),
        _calling("text-after-call", _WEATHER, after=_ANSWER),
        _calling("reasoning-text-call", _WEATHER, content=_ANSWER, reasoning=_THOUGHT, thinking=True),
        _calling("tool-thinking-disabled", _WEATHER, thinking=False),
        _calling("single-not-parallel", _WEATHER, parallel=False),
    ]


def _values(markers: str) -> list[Scenario]:
    """Calls with arguments of every kind."""
    return [
        _calling("zero-arguments", Call("get_time")),
        _calling("zero-and-more", Call("get_time"), _WEATHER),
        _calling(
            "nested",
            Call.of(
                "plan_route",
                start={
                    "name": needle(ARGUMENT, "A {}[],:"),
                    "height": 1.5,
                    "tags": [[], {}, [[1, "x"], {"y": [None]}]],
                },
                stops=[{"name": "B"}, {"name": "C", "tags": ["]", "}"]}],
            ),
        ),
        _calling(
            "numbers",
            Call(
                "add_numbers",
                '{"a": 1e400, "b": -0.0, "c": 9223372036854775808, "d": 0.1, "e": -5, "f": 1E+2}',
            ),
        ),
        _calling(
            "literals",
            Call.of("set_options", on=True, off=False, nothing=None, empty="", none=[], blank={}),
        ),
        _calling("code", Call.of("write_file", path="src/$1.py", text=needle(ARGUMENT, _CODE))),
        _calling("markers-in-argument", Call.of("write_file", path="a", text=needle(ARGUMENT, markers))),
        _calling(
            "unicode",
            Call.of(
                "write_file",
                path="naïve/日本語",
                text=needle(ARGUMENT, "\ufeff😀👩‍👩‍👧 e\u0301 שלום‏ عربى \u2028 \U0010fffd ｜▁"),
            ),
        ),
        Scenario("unicode-content", needle(CONTENT, "😀👩‍👩‍👧 e\u0301 שלום‏ عربى \ufeff \u2028 \U0010fffd")),
        _calling(
            "look-alikes",
            Call.of(
                "keep_texts",
                a="42",
                b="true",
                c="null",
                d='{"a": 1}',
                e="[1, 2]",
                f="1e5",
                g='"quoted"',
                h="None",
            ),
        ),
        _calling("white-space", Call.of("keep_texts", a=" padded ", b="\tx", c="two\n\nlines", d="a \\ b")),
        _calling("optional-left-out", Call.of("add_numbers", a=7)),
    ]


def _unions() -> list[Scenario]:
    """Arguments that may have several types."""
    return [
        Scenario(
            "unions",
            calls=(
                Call.of(
                    "set_value",
                    key=None,
                    limit=None,
                    value=5,
                    other=needle(ARGUMENT, "five"),
                    more={"a": [1]},
                ),
                Call.of("set_value", key=needle(ARGUMENT, "k", 2), limit=12),
            ),
            tools=(UNIONS,),
        ),
        Scenario(
            "nullable",
            calls=(
                Call.of("set_value", key=needle(ARGUMENT, "k"), limit=None, value=needle(ARGUMENT, "v", 2)),
            ),
            tools=(UNIONS,),
        ),
    ]


def _long() -> list[Scenario]:
    return [
        _calling(
            "64-calls",
            *(Call.of("get_weather", city=needle(ARGUMENT, f"place {n}", n)) for n in range(64)),
            heavy=True,
        ),
        _calling(
            "long-texts",
            Call.of("write_file", path="p", text=needle(ARGUMENT, prose(1500))),
            heavy=True,
        ),
        Scenario("long-content", needle(CONTENT, prose(1500)), heavy=True),
        Scenario("long-reasoning", _ANSWER, needle(REASONING, prose(1500)), thinking=True, heavy=True),
        _calling(
            "1-MB-argument",
            Call.of("write_file", path="p", text=needle(ARGUMENT, (prose(900) + '\n\t"<x>\\') * 1100)),
            heavy=True,
        ),
    ]


def _formatted() -> list[Scenario]:
    """Answers to a request with a ``response_format``."""
    answer = json.dumps({"city": needle(CONTENT, "Oslo"), "list": [1, {"a": "}"}], "t": 'a\nb"c'}, indent=1)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    as_json = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return [
        Scenario("response-format", answer, response_format=as_json),
        Scenario("response-format-reasoning", answer, _THOUGHT, response_format=as_json, thinking=True),
    ]


def _opened() -> list[Scenario]:
    """Answers that the prompt began."""
    return [
        Scenario("already-opened", _ANSWER, _THOUGHT, thinking=True, opened="reasoning"),
        Scenario(
            "continue-reasoning",
            _ANSWER,
            _THOUGHT,
            thinking=True,
            opened="reasoning",
            continued="So far,\n\nso good:",
        ),
        Scenario("continue-content", _ANSWER, opened="content", continued="It was said,\n\nquote:"),
        Scenario(
            "continue-behind-reasoning",
            _ANSWER,
            _THOUGHT,
            thinking=True,
            opened="content",
            continued="It was said,\n\nquote:",
        ),
    ]
