"""The timeline of a stream: for each piece, what came out, what is held, and the region that the stream is in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..answers.format import Turn
from ..chat.sample import Kind
from ..public import public
from ..streams.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from ..streams.message import Message
from .drawing import drawn_steps
from .looks import LOOKS, coloured, columns, for_html, for_terminal
from .picture import Picture

_WIDEST = 32
"""In columns: an arrow is drawn no further to the right, but for longer pieces."""
_KINDS: dict[type, Kind] = {
    Content: Kind.CONTENT,
    Reasoning: Kind.REASONING,
    CallStart: Kind.CALL,
    CallArguments: Kind.ARGUMENT,
    CallEnd: Kind.CALL,
}
_REGIONS = {
    "reasoning": Kind.REASONING,
    "content": Kind.CONTENT,
    "call": Kind.ARGUMENT,
    "markup": Kind.ANSWER_MARKUP,
}


@public
@dataclass(frozen=True, slots=True)
class Step:
    """One piece. ``held``: the text that the stream keeps back, as its meaning is open. ``region``: where it is."""

    piece: str
    events: tuple[Event, ...]
    held: str
    region: str


@public
@dataclass(frozen=True, slots=True)
class Timeline(Picture):
    """A stream, piece by piece; the last step is its end. ``message``: what the stream said of the whole."""

    steps: tuple[Step, ...]
    message: Message = field(default_factory=Message, repr=False)

    def text(self, *, colour: bool = False) -> str:
        """A line a piece: the piece, what went out, what is held."""
        pieces = [for_terminal(step.piece) or "(end)" for step in self.steps]
        wide = min(max(map(columns, pieces), default=0), _WIDEST)
        lines = []
        for step, piece in zip(self.steps, pieces, strict=True):
            out = "  ".join(
                coloured(for_terminal(_text_of(event)), _kind(event), colour) for event in step.events
            )
            held = f"  [held {for_terminal(step.held)}]" if step.held else ""
            lines.append(f"{piece}{' ' * (wide - columns(piece))}  →  {out or '·'}{held}")
        return "\n".join(lines)

    def body(self) -> str:
        last = len(self.steps) - 1
        slider = (
            f'<label>up to piece <input type="range" min="0" max="{last}" value="{last}" oninput="'
            "for (const r of this.closest('.steps').querySelectorAll('tbody tr')) "
            'r.hidden = Number(r.dataset.n) > Number(this.value)"></label>'
        )
        return f'<div class="steps">{slider}{self.table()}</div>'

    def table(self) -> str:
        """The steps as an HTML table, without the slider: a row a piece, with its number in ``data-n``."""
        rows = "".join(_row(number, step) for number, step in enumerate(self.steps))
        head = "<tr><th>#</th><th>piece</th><th>went out</th><th>held</th><th>in</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        return f'<div class="scroll" tabindex="0" role="region" aria-label="the steps">{table}</div>'

    def svg(self, title: str = "A stream over time") -> str:
        """The timeline as a drawing of its own: the pieces, what was held after each, what went out, and below them
        the regions of the whole text."""
        rows = [
            (step.piece, step.held, [(_kind(event), _text_of(event)) for event in step.events])
            for step in self.steps
        ]
        return drawn_steps(rows, self.message, title)


def _row(number: int, step: Step) -> str:
    out = " ".join(
        f'<span class="chip k{int(kind)}" data-l="{LOOKS[kind].letter}">{for_html(_text_of(event))}</span>'
        for event, kind in ((event, _kind(event)) for event in step.events)
    )
    region = LOOKS[_REGIONS[step.region]].name
    piece = for_html(step.piece) or "<i>end</i>"
    return (
        f'<tr data-n="{number}"><td class="line">{number + 1}</td><td class="chips">{piece}</td>'
        f'<td class="chips">{out}</td><td class="chips">{for_html(step.held)}</td><td class="line">{region}</td></tr>'
    )


def _kind(event: Event) -> Kind:
    return _KINDS[type(event)]


def _text_of(event: Event) -> str:
    if isinstance(event, CallStart):
        return f"call {event.index}: {event.name}"
    if isinstance(event, CallEnd):
        return f"call {event.index} {'complete' if event.complete else 'broken'}"
    return event.text


def timeline(turn: Turn, pieces: Iterable[Any], *, most: int = 2_000) -> Timeline:
    """The timeline of an output that arrives in ``pieces``, text or ids; the last step is the end of the stream.

    ``most``: how many steps are kept; further pieces are fed, and make one step. Raises as `Stream.feed` does.

    >>> from chatparsers import display
    >>> print(display.timeline(chatparsers.get_format("qwen3").bind(prefix="<think>"), ["Hm.</th", "ink>Hi"]))
    Hm.</th  →  Hm.  [held </th]
    ink>Hi   →  Hi
    (end)    →  ·
    """
    stream = turn.stream()
    steps: list[Step] = []
    fed = ""
    rest: list[Event] = []
    left = 0
    for piece in pieces:
        events = stream.feed(piece)
        text = (
            piece if isinstance(piece, str) else turn.tokenizer.decode(_ids(piece), skip_special_tokens=False)
        )
        fed += text
        if len(steps) < most:
            steps.append(Step(text, tuple(events), _unread(stream.message, fed), stream.region))
        else:
            rest += events
            left += 1
    if left:
        steps.append(Step(f"… {left:,} more pieces", (), "", stream.region))
    ended = tuple(stream.finish())
    return Timeline((*steps, Step("", ended, "", "markup")), stream.message)


def _ids(piece: Any) -> list[int]:
    return [int(piece)] if not hasattr(piece, "__len__") else [int(id) for id in piece]


def _unread(message: Message, fed: str) -> str:
    """What was fed and belongs to no region yet."""
    known = max((region.end for region in message.regions), default=0)
    return fed[known:]
