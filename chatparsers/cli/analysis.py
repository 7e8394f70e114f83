"""``chatparsers inspect --explain``: what the analysis of a template asked, saw and concluded; the module it makes."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..plain import wants_colour
from .files import Refused

if TYPE_CHECKING:
    from ..chat.chat import Chat
    from ..detection.analysis.probes import Rendering

_STYLES = {
    "title": "1",
    "label": "1;36",
    "asked": "32",
    "call": "33",
    "markup": "2",
    "marker": "1;35",
    "bad": "31",
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def explain_analysis(chat: Chat, arguments: Namespace) -> int:
    """Prints the questions, what the template wrote, the markers, the levels tried, the definition and its grammar."""
    from ..detection.analysis import analyse
    from .module_source import module_source

    paint = _Paint(wants_colour(sys.stdout, arguments.color))
    found = analyse(chat.template())
    print(paint(f"━━ {chat.files.source} ━━", "title"))
    print(paint("\n· what was asked, and what the template wrote", "label"))
    for answer in found.renderings:
        print(f"{answer.what}{_thinking(answer)}:\n  {_painted(answer, paint)}")
    print(paint("\n· what was tried", "label"))
    for level, why in found.levels:
        print(f"  {level}: {paint(why, 'bad') if why else f'holds, {found.proved} turns read back exactly'}")
    if found.analysis is None or found.format is None:
        return 1
    print(paint("\n· what was found", "label"))
    print(f"  variant: {found.analysis.variant}")
    share = f"{found.proved} turns are read back exactly; 1.0 if the template writes messages of all kinds"
    print(f"  confidence: {found.analysis.confidence} ({share})")
    if found.analysis.calls is not None:
        print(f"  several calls in a turn: {'yes' if found.analysis.parallel else 'no'}")
    print(f"  preserved tokens: {', '.join(found.format.preserved_tokens) or '–'}")
    for line in (*found.analysis.refused, *(f"not proved: {limit}" for limit in found.analysis.limits)):
        print(f"  {line}")
    markers = list(found.analysis.markers())
    width = max((len(use) for use, _ in markers), default=0)
    for use, marker in markers:
        texts = {answer.what: answer.opening + answer.wire for answer in found.renderings}
        shown = next((what for what, text in texts.items() if marker in text), None)
        around = ""
        if shown is not None:
            at = texts[shown].index(marker)
            around = f"   in {shown}: …{_line(texts[shown][max(at - 24, 0) : at + len(marker) + 24])}…"
        print(f"  {use:<{width}}  {paint(_line(marker), 'marker')}{paint(around, 'markup')}")
    print(paint("\n· the definition", "label"))
    print(module_source(found, found.analysis.variant, chat.format.stops))
    print(paint("· its grammar for one tool", "label"))
    turn = found.format.bind(tools=[_TOOL] if found.analysis.calls else None)
    print(turn.grammar() or "nothing is constrained")
    return 0


def emit_module(chat: Chat, file: str) -> None:
    """Writes the module that the analysis makes; its name is the file's. Raises `Refused` where nothing was found."""
    from ..detection.analysis import analyse
    from .module_source import module_source

    found = analyse(chat.template())
    if found.format is None:
        why = "; ".join(f"{level}: {why}" for level, why in found.levels)
        raise Refused(f"{file}: the analysis found no format to write ({why})")
    target = Path(file)
    if target.exists():
        raise Refused(f"{file}: there is such a file; remove it, or give another name")
    source = module_source(found, target.stem.replace("_", "-"), chat.format.stops)
    try:
        target.write_text(source, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{file}: cannot be written: {error.strerror}") from error
    print(
        f"{file}: written. Fill in its title, url and quirks. Then, in your program: import {target.stem}; "
        f"chatparsers.register({target.stem}.FORMAT). In a checkout of chatparsers: move it to chatparsers/formats/, "
        "and run python -m chatparsers.formats",
        file=sys.stderr,
    )


class _Paint:
    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and text else text


def _thinking(answer: Rendering) -> str:
    return "" if answer.thinking is None else f", thinking {'on' if answer.thinking else 'off'}"


def _line(text: str) -> str:
    """The text on one line."""
    return text.replace("\n", "⏎")


def _painted(answer: Rendering, paint: _Paint) -> str:
    """The turn in which what was asked for differs in colour from what the template wrote around it."""
    words = {answer.content: "asked", answer.reasoning: "asked"}
    for call in answer.calls:
        words.update({call.name: "call", call.id: "call"})
        words.update({str(text): "call" for pair in call.arguments.items() for text in pair})
    text, out, at = answer.wire, [paint(_line(answer.opening), "markup"), "│"], 0
    while at < len(text):
        places = [(place, -len(word), word) for word in words if word and (place := text.find(word, at)) >= 0]
        place, _, word = min(places, default=(len(text), 0, ""))
        out += [paint(_line(text[at:place]), "marker"), paint(_line(word), words.get(word, "asked"))]
        at = place + len(word)
    return "".join(out)
