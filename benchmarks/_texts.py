"""The texts that the benchmarks feed: plain texts, calls in each syntax of values, and the wire around them.

They are made here from a few lines of prose and code, by repetition, so a run depends on no file. A `Wire` is a text of
one kind in one format. The text before it is fed before the clock starts.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from chatparsers import Message, Turn, get_format
from chatparsers.answers.format import Format

__all__ = ["KINDS", "TOOLS", "Wire", "argument_wire", "many_tools"]

_PROSE = """\
The ship left harbour at dawn with salt and timber for the north, and came home late in the year. Her log says:

- *three* weeks to the cape, where the wind turned (see `log.md`, page 12);
- 42 barrels traded for 7 bolts of cloth, i.e. < 10 % of the cargo -- "a poor bargain", as the mate wrote;
- on the way home, fog: the crew heard bells and couldn't tell where they rang.

```python
if speed < limit and cargo["salt"] > 0:
    print(f"{speed:.1f} knots")
```

So the answer is **yes**: with a fair wind a crossing takes nine days, and twelve without.

"""
_THOUGHT = """\
The user wants to know how long the crossing takes. First, the distance: about 700 miles, so at 5 knots it's nearly
six days. But wait, the log says the wind turned at the cape; that adds a day or two, if x < y.

Let me check the other source. It says "nine days", which fits. I should look it up with a tool to be sure, then answer.

"""
_CODE = '''\
def crossing(miles: float, knots: float = 5.0) -> str:
    """Days at sea, as text."""
    if knots <= 0 or miles < 0:
        raise ValueError(f"not a voyage: {miles!r} miles at {knots!r} knots")
    days = [miles / knots / 24 for _ in range(2)]
    table = {"ship": "Aurora", 'days': days[0], "log": r"C:\\logs\\aurora.txt"}
\treturn "<b>" + str(table["days"]) + "</b>\\n"  # markup && all


'''


def _endless(text: str, characters: int) -> str:
    return (text * (characters // len(text) + 1))[:characters]


def _lines() -> Iterator[str]:
    return iter(_CODE.splitlines(keepends=True))


def _edits() -> Iterator[dict[str, Any]]:
    """Changes to files as an agent makes them: code in strings, and nested objects with short members."""
    for number in count():
        yield {
            "path": f"src/app/views_{number}.py",
            "mode": "replace",
            "range": {"start": number, "end": number + 12},
            "flags": {"dry_run": False, "backup": True, "note": None, "tags": ["a", "b2"], "weight": 0.5},
            "old": "".join(islice(_lines(), number % 4, number % 4 + 2)),
            "new": _CODE,
        }


def _points() -> Iterator[dict[str, Any]]:
    """Many short members with hardly any text: the worst case, as each piece holds little of each member."""
    for number in count():
        yield {"id": number, "x": -0.5, "ok": True, "t": [1, 2, 30], "s": "ab", "p": {"u": None, "v": [{}]}}


def _listed(items: Iterator[Any], write: Callable[[Any], str], characters: int) -> str:
    """The inside of a list: whole items, at least ``characters`` long."""
    texts: list[str] = []
    length = 0
    while length < characters:
        texts.append(write(next(items)))
        length += len(texts[-1]) + 2
    return ", ".join(texts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _code(characters: int) -> str:
    return _endless(_CODE, characters)


def _escaped_code(characters: int) -> str:
    return _json(_code(characters))[1:-1]


def _gemma(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_gemma(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_gemma, value)) + "]"
    return f"<escape>{value}<escape>" if isinstance(value, str) else _json(value)


TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "edit_files",
            "description": "Edits files.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "items": {"type": "array"}},
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
]
"""The tools of the calls that are measured."""


def many_tools(number: int, parameters: int = 10, mark: str = "") -> list[dict[str, Any]]:
    """A list of tools, each with its own names, types and descriptions. ``mark`` makes the list unlike all others."""
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "string"},
        {"type": "integer"},
        {"type": "string", "enum": ["low", "middle", "high"]},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "number"},
        {"type": ["string", "null"]},
        {
            "type": "object",
            "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
            "required": ["lat"],
        },
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "string", "maxLength": 40},
    )
    tools = []
    for number_of_tool in range(number):
        properties = {
            f"{mark}p{number_of_tool}_{place}": {
                **kinds[place % len(kinds)],
                "description": f"Parameter {place}.",
            }
            for place in range(parameters)
        }
        function = {
            "name": f"{mark}tool_{number_of_tool}",
            "description": f"Does number {number_of_tool}.",
            "parameters": {"type": "object", "properties": properties, "required": list(properties)[::2]},
        }
        tools.append({"type": "function", "function": function})
    return tools


@dataclass(frozen=True)
class Wire:
    """A text of one kind, in one format: ``head + text(n) + tail`` is an output of the model.

    ``text(n)`` has at least ``n`` characters (whole members if it is a list). ``part`` is the part of the message that
    it becomes: ``content``, ``reasoning`` or ``arguments``.
    """

    kind: str
    format: str
    part: str
    head: str
    text: Callable[[int], str]
    tail: str
    prefix: str = ""
    tools: list[dict[str, Any]] = field(default_factory=lambda: TOOLS)

    def turn(self, **options: Any) -> Turn:
        return get_format(self.format).bind(
            tools=self.tools, prefix=self.prefix, id_seed="benchmark", **options
        )

    def found(self, message: Message) -> str:
        """The part of a message that this text became."""
        if self.part == "arguments":
            return message.tool_calls[0].arguments if message.tool_calls else ""
        return str(getattr(message, self.part))

    def check(self, characters: int) -> None:
        """Raises AssertionError if the format reads the whole output in another way than intended."""
        text = self.text(characters)
        message = self.turn().parse(self.head + text + self.tail)
        assert message.complete, (self.kind, self.format, message.diagnostics)
        found = self.found(message)
        if self.part == "arguments":
            assert all(call.complete for call in message.tool_calls), (self.kind, self.format)
            json.loads(found)
        assert len(found) >= 0.8 * len(text), (self.kind, self.format, len(found))


_JSON_HEAD = '<tool_call>\n{"name": "edit_files", "arguments": '
_JSON_TAIL = "}\n</tool_call>"

KINDS: tuple[Wire, ...] = (
    Wire("content", "qwen3", "content", "", lambda n: _endless(_PROSE, n), ""),
    Wire(
        "reasoning",
        "qwen3",
        "reasoning",
        "",
        lambda n: _endless(_THOUGHT, n),
        "\n</think>\n\n",
        prefix="<think>\n",
    ),
    Wire(
        "JSON arguments",
        "hermes-2-pro",
        "arguments",
        _JSON_HEAD + '{"items": [',
        lambda n: _listed(_edits(), _json, n),
        "]}" + _JSON_TAIL,
    ),
    Wire(
        "JSON, one string",
        "hermes-2-pro",
        "arguments",
        _JSON_HEAD + '{"text": "',
        _escaped_code,
        '"}' + _JSON_TAIL,
    ),
    Wire(
        "JSON, dense",
        "hermes-2-pro",
        "arguments",
        _JSON_HEAD + '{"items": [',
        lambda n: _listed(_points(), _json, n),
        "]}" + _JSON_TAIL,
    ),
    Wire(
        "tagged arguments",
        "qwen3-coder",
        "arguments",
        "<tool_call>\n<function=edit_files>\n<parameter=text>\n",
        _code,
        "\n</parameter>\n</function>\n</tool_call>",
    ),
    Wire(
        "Python-style",
        "lfm2",
        "arguments",
        "<|tool_call_start|>[edit_files(items=[",
        lambda n: _listed(_edits(), repr, n),
        "])]<|tool_call_end|>",
    ),
    Wire(
        "Gemma-style",
        "function-gemma",
        "arguments",
        "<start_function_call>call:edit_files{items:[",
        lambda n: _listed(_edits(), _gemma, n),
        "]}<end_function_call>",
    ),
)
"""The kinds of text that a stream reads, each in a format that is typical of it."""


def argument_wire(format: Format) -> Wire | None:
    """One long string argument in the wire text of ``format``; None if no sample of the format has a call.

    It is the sample in the docstring of the format's module, with code in place of the string ``Oslo``. Inside quotes
    the code is escaped.
    """
    turn = format.bind(tools=TOOLS)
    for sample in _samples(format):
        regions = turn.parse(sample).regions
        for found in _value.finditer(sample):
            at, end = found.span()
            if any(region.kind == "call" and region.start <= at < region.end for region in regions):
                text = _IN_QUOTES.get(sample[at - 1], _code)
                return Wire("one string", format.name, "arguments", sample[:at], text, sample[end:])
    return None


def _samples(format: Format) -> list[str]:
    """The outputs in the docstring of the format's module: its indented blocks, and the parts of each block between
    empty lines (a block may be one output or several)."""
    blocks: list[list[str]] = [[]]
    for line in (inspect.getdoc(sys.modules[format.build.__module__]) or "").split("\n"):
        if line.startswith("    ") or not line.strip():
            blocks[-1].append(line)
        else:
            blocks.append([])
    texts = [textwrap.dedent("\n".join(block)).strip("\n") for block in blocks]
    return [output for text in texts if text for output in (text, *text.split("\n\n"))]


_IN_QUOTES: dict[str, Callable[[int], str]] = {
    '"': _escaped_code,
    "'": lambda characters: _escaped_code(characters).replace("'", "\\'"),
}

# The whole of a value: between quotes, tags or markers.
_value = re.compile(r"(?<=[\"'>\n])Oslo(?=[\"'<\n])")
