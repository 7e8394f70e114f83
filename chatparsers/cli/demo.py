"""``chatparsers demo``: one answer piece by piece, in a few lines; and with names, the sample outputs of formats.

It shows each sample three times: as the model writes it, as the events of its stream, and as the grammar for it. Every
region has a label, so the demo can be read without colours.
"""

from __future__ import annotations

import random
import re
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from ..errors import UnknownFormat, did_you_mean
from ..plain import wants_colour
from ..streams.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from .files import Refused

if TYPE_CHECKING:
    from ..answers.format import Format, Turn
    from .demos import Sample

_SPEED = 70.0
_GRAMMAR_LINES = 4
_WIDTH = 100
_numbered = re.compile(r"-\d+$")
_STYLES = {
    "title": "1",
    "label": "2",
    "markup": "2",
    "reasoning": "2;3",
    "content": "",
    "name": "1;36",
    "arguments": "33",
    "good": "32",
    "bad": "31",
}


_PIECES = (
    "Weather, then.\n</th",
    "ink>\n\nLet me look.\n\n<tool_c",
    "all>\n<function=get_weather>\n<para",
    "meter=city>\nO",
    "slo\n</parameter>\n</function>\n</tool_call>",
)
_TOOL = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_NOW_YOURS = """
now yours:    chatparsers parse answer.txt --model model/ --tools tools.json
not read?     chatparsers explain answer.txt --model model/ --tools tools.json
as a server:  chatparsers serve --gguf model.gguf   (OpenAI's and Anthropic's APIs)
more to see:  chatparsers demo --all
"""


def run(arguments: Namespace) -> int:
    """Shows one answer in a few lines, or streams the samples of the formats that are named, or all of them."""
    from ..registry import get_format

    if not arguments.formats and not arguments.all:
        return _short()
    screen = _Screen(colour=wants_colour(sys.stdout, arguments.color), pause=_pause(arguments.speed))
    for sample in _chosen(arguments.formats):
        _show(screen, get_format(sample.format), sample)
    return 0


def _short() -> int:
    """What Qwen3-Coder writes, and what a program gets of each piece at once."""
    from ..registry import get_format, list_formats

    stream = get_format("qwen3-coder").bind(tools=[_TOOL], prefix="<think>\n").stream()
    print(f"{'a piece of what Qwen3-Coder writes':48}what your program gets at once")
    for piece in _PIECES:
        print(f"{piece!r:48}{'  '.join(filter(None, map(_said, stream.feed(piece))))}".rstrip())
    stream.finish()
    (call,) = stream.message.tool_calls
    print(
        f"\n{call.name}({call.arguments}), the same however the text is cut. {len(list_formats())} formats."
    )
    print(_NOW_YOURS, end="")
    return 0


def _said(event: Event) -> str:
    if isinstance(event, CallStart):
        return f"call {event.name}"
    if isinstance(event, CallEnd):
        return "end of the call"
    kinds = {Reasoning: "reasoning", Content: "content", CallArguments: "arguments"}
    return f"{kinds[type(event)]} {event.text!r}"


def _chosen(names: list[str]) -> list[Sample]:
    from ..registry import get_format
    from .demos import samples

    bundled = {sample.format: sample for sample in samples()}
    chosen = []
    for name in names:
        try:
            sample = bundled.get(get_format(name).name)
        except UnknownFormat:
            sample = None
        if sample is None:
            raise Refused(f"no sample output is bundled for {name!r}: {did_you_mean(name, bundled)}")
        chosen.append(sample)
    return chosen or list(bundled.values())


def _pause(speed: float | None) -> float:
    """Seconds between two pieces; 0 if the output is no terminal, unless the user asks for a speed."""
    if speed is None:
        speed = _SPEED if sys.stdout.isatty() else 0
    return 1 / speed if speed else 0.0


class _Screen:
    """Writes text in styles; ``pause``: seconds between two pieces."""

    def __init__(self, *, colour: bool, pause: float) -> None:
        self.colour = colour
        self.pause = pause
        self._in_line = False

    def write(self, text: str, style: str = "content") -> None:
        if not text:
            return
        code = _STYLES[style]
        sys.stdout.write(f"\x1b[{code}m{text}\x1b[0m" if self.colour and code else text)
        self._in_line = not text.endswith("\n")

    def fresh_line(self) -> None:
        if self._in_line:
            self.write("\n")

    def wait(self) -> None:
        if self.pause:
            sys.stdout.flush()
            time.sleep(self.pause)


def _show(screen: _Screen, format: Format, sample: Sample) -> None:
    from .demos import tools

    turn = format.bind(tools=tools(), prefix=sample.prefix, id_seed=sample.question)
    screen.write(f"━━ {format.title} ({format.name}) ━━\n", "title")
    screen.write(f"{sample.question}\n")
    screen.write("\n· as the model writes it\n", "label")
    screen.write(sample.output + "\n", "markup")
    screen.write("\n· as the events of its stream\n", "label")
    _stream(screen, turn, sample)
    screen.write("\n· the grammar that matches", "label")
    _grammar(screen, turn)
    screen.write("\n")


def _stream(screen: _Screen, turn: Turn, sample: Sample) -> None:
    stream = turn.stream()
    told = _EventPrinter(screen)
    pieces = 0
    for piece in _pieces(sample.output):
        pieces += 1
        for event in stream.feed(piece):
            told.event(event)
        screen.wait()
    for event in stream.finish():
        told.event(event)
    screen.fresh_line()
    message = stream.message
    calls = "1 call" if len(message.tool_calls) == 1 else f"{len(message.tool_calls)} calls"
    for diagnostic in message.diagnostics:
        screen.write(f"! {diagnostic}\n", "bad")
    screen.write(
        f"= {len(message.reasoning)} characters of reasoning, {len(message.content)} of content, "
        f"{calls}, out of {pieces} pieces\n",
        "label",
    )


def _pieces(text: str) -> Iterator[str]:
    """Cuts ``text`` into pieces of 1 to 7 characters, about as long as tokens; the same in each run."""
    sizes = random.Random(len(text))
    start = 0
    while start < len(text):
        end = start + sizes.randint(1, 7)
        yield text[start:end]
        start = end


class _EventPrinter:
    """Prints events as they come, each region after its label."""

    def __init__(self, screen: _Screen) -> None:
        self.screen = screen
        self.region: object = None

    def event(self, event: Event) -> None:
        screen = self.screen
        if isinstance(event, Reasoning):
            self._enter("reasoning")
            screen.write(event.text, "reasoning")
        elif isinstance(event, Content):
            self._enter("content")
            screen.write(event.text)
        elif isinstance(event, CallStart):
            self._enter(f"call {event.index}")
            screen.write(f"{event.name} ", "name")
        elif isinstance(event, CallArguments):
            screen.write(event.text, "arguments")
        else:
            self._end(event)

    def _enter(self, region: str) -> None:
        if region != self.region:
            self.screen.fresh_line()
            self.screen.write(f"[{region}] ", "label")
            self.region = region

    def _end(self, event: CallEnd) -> None:
        self.screen.write(" ✓" if event.complete else " incomplete", "good" if event.complete else "bad")
        self.screen.write(f" id {event.id}\n", "label")
        self.region = None


def _grammar(screen: _Screen, turn: Turn) -> None:
    grammar = turn.grammar()
    if grammar is None:
        screen.write(": there is no grammar, because this request constrains nothing\n", "label")
        return
    lines = str(grammar).splitlines()
    when = "once a call begins" if grammar.lazy else "from the first token on"
    screen.write(f" (GBNF, {len(lines)} lines, {when})\n", "label")
    shown = list(_shortened(lines))
    for line in shown[:_GRAMMAR_LINES]:
        screen.write((line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…") + "\n")
    if len(shown) > _GRAMMAR_LINES:
        more = f"… and so on: chatparsers grammar --model {turn.format.name} --tools FILE\n"
        screen.write(more, "label")


def _shortened(lines: list[str]) -> Iterator[str]:
    """Prints one line for neighbouring rules that differ only in a number, such as the states of an automaton."""
    for stem, group in groupby(lines, lambda line: _numbered.sub("", line.partition(" ::= ")[0])):
        alike = list(group)
        yield alike[0]
        if len(alike) == 2:
            yield alike[1]
        elif len(alike) > 2:
            yield f"… and {len(alike) - 1} more rules {stem}-…"
