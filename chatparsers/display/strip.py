"""The strip: a text as chips, each with its kind; diagnostics below, and the loss mask of a sample."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from html import escape
from itertools import groupby
from operator import itemgetter, sub
from typing import Any, cast

from ..answers.format import Turn
from ..chat.marks import answer_runs, token_runs
from ..chat.sample import Kind, Sample
from ..explaining.causes import Cause
from ..guide.guide import Guide, Origin
from ..public import public
from ..streams.message import Message
from .drawing import drawn_chips
from .looks import LOOKS, MOST, ORIGINS, coloured, cut, for_html, for_terminal
from .picture import Picture
from .tokens import MOST_TOKENS, Token, holds, states, texts_of

_LONG, _SEEN = 2_000, 600
"""The middle of a longer text is folded; so many characters before and after it are shown."""
_ROWS = 500
"""How many parts the table has."""
_SAID = 500
"""How many characters of a cause are shown."""
_IDS = 12
"""How many ids a tip lists."""


@public
@dataclass(frozen=True, slots=True)
class Chip:
    """A stretch of one kind. ``span``: its characters, or its tokens with ``unit`` ``"token"``. ``counted``: whether a
    loss counts it, None where there is no loss mask. ``ids``: those of its tokens. ``tokens``: the first tokens
    themselves, if it is known what each one spells. ``state``: how long a stream holds its text, if that is known.
    ``origin``: how its tokens came, where a guide tells."""

    text: str
    kind: Kind
    span: tuple[int, int]
    unit: str = "character"
    counted: bool | None = None
    ids: tuple[int, ...] = ()
    tokens: tuple[Token, ...] = ()
    state: str = ""
    origin: Origin | None = None

    @property
    def tip(self) -> str:
        """What hovering over it says."""
        mask = {None: "", True: ", counted by a loss", False: ", not counted"}[self.counted]
        listed = ", ".join(map(str, self.ids[:_IDS])) + ", …" * (len(self.ids) > _IDS)
        ids = f", ids {listed}" if self.ids else ""
        state = f", {self.state}" if self.state else ""
        state += f", {ORIGINS[self.origin]}" if self.origin else ""
        return f"{LOOKS[self.kind].name}, {self.unit}s {self.span[0]:,} to {self.span[1]:,}{mask}{ids}{state}"


@public
@dataclass(frozen=True, slots=True)
class Strip(Picture):
    """A text as chips. ``notes``: the diagnostics, each with its place in characters. ``rest``: what is not shown.
    ``causes``: why the text was not read as somebody expected, the likeliest first."""

    chips: tuple[Chip, ...]
    notes: tuple[tuple[int, str], ...] = ()
    rest: str = ""
    causes: tuple[Cause, ...] = ()

    def text(self, *, colour: bool = False) -> str:
        """A line a chip: its letter, its kind, its text; with a loss mask, 1 or 0 before them; of a guide, how it
        came."""
        lines = []
        shown = 0
        for chip in self.chips:
            look = LOOKS[chip.kind]
            mask = "" if chip.counted is None else f"{int(chip.counted)} "
            mask += f"{chip.origin:<8}" if chip.origin else ""
            lines.append(
                f"{mask}{look.letter} {look.name:<9} {coloured(for_terminal(chip.text), chip.kind, colour)}"
            )
            first, shown = shown, bisect_left(self.notes, chip.span[1], key=itemgetter(0))
            lines += self._note_lines(first, shown)
        lines += self._note_lines(shown, len(self.notes))
        lines += [self.rest] if self.rest else []
        return "\n".join([*lines, *(for_terminal(line) for cause in self.causes for line in cause.lines())])

    def _note_lines(self, first: int, after: int) -> list[str]:
        return [f"! character {place}: {for_terminal(note)}" for place, note in self.notes[first:after]]

    def body(self) -> str:
        kinds = {LOOKS[chip.kind].name: chip.kind for chip in self.chips}.values()  # two look alike
        legend = "".join(
            f'<span><span class="chip k{int(kind)}" data-l="{LOOKS[kind].letter}">{LOOKS[kind].name}</span></span>'
            for kind in kinds
        )
        legend += "".join(
            f'<span><span class="chip {origin}">{origin}</span> {ORIGINS[origin]}</span>'
            for origin in dict.fromkeys(chip.origin for chip in self.chips)
            if origin
        )
        write = _StripWriter(self.notes)
        chips = "".join(_chip(chip, write) for chip in self.chips) + write.rest()
        notes = "".join(
            f'<div class="note">!{number} character {place}: {for_html(note)}</div>'
            for number, (place, note) in enumerate(self.notes, 1)
        )
        rest = (f"<p>{for_html(self.rest)}</p>" if self.rest else "") + causes_html(self.causes)
        parts = f"<details><summary>every part in a table</summary>{self._table()}</details>{self._tokens()}"
        return f'<div class="legend">{legend}</div><div class="chips">{chips}</div>{notes}{rest}{parts}'

    def svg(self, title: str = "What each part of a text is") -> str:
        """The strip as a drawing of its own."""
        return drawn_chips([(chip.text, chip.kind, chip.origin) for chip in self.chips], title)

    def _table(self) -> str:
        """What the tips say, for those who point at nothing."""
        rows = [(LOOKS[chip.kind].letter, chip.tip, for_html(_begun(chip.text))) for chip in self.chips]
        return _table(("letter", "part", "begins"), rows)

    def _tokens(self) -> str:
        """The same of each token, if they are known."""
        tokens = [(token, LOOKS[chip.kind]) for chip in self.chips for token in chip.tokens]
        if not tokens:
            return ""
        rows = []
        for token, look in tokens:
            span, part = f"{token.span[0]:,} to {token.span[1]:,}", f"{look.letter} {look.name}"
            rows.append((f"{token.place:,}", str(token.id), for_html(token.text), part, span, token.state))
        table = _table(("token", "id", "text", "part", "characters", "state"), rows, ' class="tokens"')
        scroll = f'<div class="scroll" tabindex="0" role="region" aria-label="the tokens">{table}</div>'
        return f"<details><summary>every token in a table</summary>{scroll}</details>"


def causes_html(causes: Sequence[Cause]) -> str:
    """The causes as a list in HTML, each with what to do; nothing where nothing is wrong."""
    rows = [
        f"<li><b>{cause.code}</b>: {for_html(cut(cause.says, _SAID)[0])}<br>{for_html(cause.mend)}</li>"
        for cause in causes
    ]
    return f"<ol>{''.join(rows)}</ol>" if rows else ""


class _StripWriter:
    """Writes the text of a strip as HTML, from its begin to its end, with a mark where each note has its place."""

    def __init__(self, notes: Sequence[tuple[int, str]]) -> None:
        self.notes = notes
        self.marked = 0

    def __call__(self, text: str, start: int) -> str:
        """The text that begins at the character ``start``."""
        parts, done = [], 0
        while self.marked < len(self.notes) and (place := self.notes[self.marked][0]) < start + len(text):
            at = max(place - start, done)
            parts += [for_html(text[done:at]), self._mark()]
            done = at
        return "".join([*parts, for_html(text[done:])])

    def rest(self) -> str:
        """The marks of the notes after all text."""
        return "".join(self._mark() for _ in range(self.marked, len(self.notes)))

    def _mark(self) -> str:
        self.marked += 1
        said = escape(for_terminal(self.notes[self.marked - 1][1]))
        return f'<span class="at" data-l="!{self.marked}" title="{said}"></span>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], attributes: str = "") -> str:
    """The first rows as HTML, and how many more there are."""
    heads = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows[:_ROWS])
    left = f"<p>… {len(rows) - _ROWS:,} more</p>" if len(rows) > _ROWS else ""
    return f"<table{attributes}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{left}"


def _token_tip(token: Token, kind: Kind) -> str:
    start, end = token.span
    said = f", {token.state}" if token.state else ""
    return f"id {token.id}, token {token.place:,}, characters {start:,} to {end:,}, {LOOKS[kind].name}{said}"


def _begun(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"


def _chip(chip: Chip, write: _StripWriter) -> str:
    """The chip; its letter comes after leading line breaks, so that it is beside the text."""
    uncounted = " uncounted" if chip.counted is False else ""
    uncounted += f" {chip.origin}" if chip.origin else ""
    letter = f'<span data-l="{LOOKS[chip.kind].letter}"></span>'
    if chip.tokens:
        inside = _in_tokens(chip, letter, write)
    else:
        words = chip.text.lstrip("\n")
        after = chip.span[0] + len(chip.text) - len(words)
        inside = write(chip.text[: len(chip.text) - len(words)], chip.span[0])
        inside += (letter if words.strip() else "") + _folded(words, after, write)
    return f'<span class="chip k{int(chip.kind)}{uncounted}" title="{chip.tip}">{inside}</span>'


def _in_tokens(chip: Chip, letter: str, write: _StripWriter) -> str:
    """The chip's tokens, each with a tip."""
    parts: tuple[list[str], list[str], list[str]] = [], [], []
    at, size = 0, len(chip.text)
    for token in chip.tokens:
        text, start = token.text, token.span[0]
        words = text.lstrip("\n")
        shown = write(text[: len(text) - len(words)], start)
        if words:
            shown += letter
            letter = ""
        shown += write(words, start + len(text) - len(words))
        part = 0 if size <= _LONG or at < _SEEN else 1 if at < size - _SEEN else 2
        parts[part].append(f'<i title="{_token_tip(token, chip.kind)}">{shown or "⋯"}</i>')
        at += len(token.text)
    begin, middle, end = ("".join(each) for each in parts)
    folded = _fold(len(parts[1]), "tokens", middle) if middle else ""
    return begin + folded + end + _folded(chip.text[at:], chip.tokens[0].span[0] + at, write)


def _folded(text: str, start: int, write: _StripWriter) -> str:
    """The text as HTML; the middle of a long one is folded away."""
    if len(text) <= _LONG:
        return write(text, start)
    begin = write(text[:_SEEN], start)
    middle = write(text[_SEEN:-_SEEN], start + _SEEN)
    fold = _fold(len(text) - 2 * _SEEN, "characters", middle)
    return begin + fold + write(text[-_SEEN:], start + len(text) - _SEEN)


def _fold(number: int, what: str, html: str) -> str:
    return f"<details><summary>{number:,} more {what}</summary>{html}</details>"


@singledispatch
def strip(reading: Any, **options: Any) -> Strip:
    """The strip of a `Message`, of a `Sample`, or of a `Guide`: this one tells how each token came.

    With the ``turn`` that read a message, the tip of each part also says how long a stream holds it. A message that was
    read by ids needs these ``ids`` and the turn, to show each token with its id, its span and how long a stream holds
    it; without them the strip is of characters. A sample of tokens needs the
    ``tokenizer`` for the same, or ``decode``, a function from ids to text, to show its parts alone; without both the
    ids themselves are shown. Text beyond 200,000 characters is cut, with a note, and each of the first 4,000 tokens has
    a tip of its own. Raises TypeError for anything else.

    >>> from chatparsers import get_format
    >>> print(strip(get_format("qwen3").bind(prefix="<think>").parse("Hm.</think>Hi.")))
    R reasoning Hm.
    m markup    </think>
    C content   Hi.
    """
    raise TypeError(f"strip: expected a Message, a Sample or a Guide, found {type(reading).__name__}")


@strip.register
def _(reading: Message, *, ids: Sequence[int] = (), turn: Turn | None = None) -> Strip:
    notes = tuple((note.position, str(note)) for note in reading.diagnostics)
    texts = texts_of(ids, turn.tokenizer) if ids and turn is not None else []
    if turn is not None and texts and "".join(texts) == reading.text:
        said = states(turn, ids, texts)
        runs = [(start, end, kind, None) for start, end, kind in token_runs(reading, texts)]
        return replace(_of_tokens(ids, texts, runs, said, "character"), notes=notes)
    shown, rest = cut(reading.text)
    known = holds(turn, reading) if turn is not None else []
    chips = tuple(
        Chip(shown[start:end], Kind(kind), (start, end), state=_delay(known, start, end))
        for start, end, kind in answer_runs(reading)
        if shown[start:end]
    )
    return Strip(chips, notes, rest)


def _delay(known: Sequence[int], start: int, end: int) -> str:
    """How long a stream holds the characters of a part, if `holds` knows it."""
    if not known:
        return ""
    if known[end - 1] == len(known):
        return "held until the end"
    longest = max(map(sub, known[start:end], range(start, end)))
    return f"held for up to {longest:,} character{'s' * (longest > 1)}" if longest else "known at once"


@strip.register
def _(
    reading: Sample, *, tokenizer: Any = None, decode: Callable[[Sequence[int]], str] | None = None
) -> Strip:
    runs = [(start, end, kind, bool(counted)) for (kind, counted), start, end in _runs(reading)]
    ids = reading.ids
    if tokenizer is not None and reading.unit == "token":
        said = ["counted by a loss" if counted else "not counted" for counted in reading.loss_mask]
        return _of_tokens(ids, texts_of(ids, tokenizer), runs, said, "token")
    text_of = decode or (_characters if reading.unit == "character" else _numbers)
    chips: list[Chip] = []
    size = 0
    for start, end, kind, counted in runs:
        text = text_of(ids[start:end])
        shown, rest = cut(text, max(MOST - size, 0))
        size += len(text)
        given = tuple(ids[start:end]) if reading.unit == "token" else ()
        chips.append(Chip(shown, Kind(kind), (start, end), reading.unit, counted, given))
        if rest:
            return Strip(tuple(chips), (), f"… {len(ids) - end:,} more {reading.unit}s are not shown")
    return Strip(tuple(chips))


@strip.register
def _(reading: Guide) -> Strip:
    turn, ids, origins = cast(Turn, reading.turn), reading.ids, reading.origins()
    whole = strip(reading.message, ids=ids, turn=turn)
    if not ids or not any(chip.tokens for chip in whole.chips):
        return whole
    chips: list[Chip] = []
    for chip in whole.chips:
        by = groupby(chip.tokens, lambda token: origins[token.place])
        chips += (_part(chip, tuple(tokens), origin) for origin, tokens in by)
    return replace(whole, chips=tuple(chips))


def _part(chip: Chip, tokens: tuple[Token, ...], origin: Origin) -> Chip:
    """A part of a chip whose tokens came in one way."""
    text, span = "".join(token.text for token in tokens), (tokens[0].span[0], tokens[-1].span[1])
    ids = tuple(token.id for token in tokens)
    return replace(chip, text=text, span=span, ids=ids, tokens=tokens, origin=origin)


def _of_tokens(
    ids: Sequence[int],
    texts: Sequence[str],
    runs: Iterable[tuple[int, int, int, bool | None]],
    said: Sequence[str],
    unit: str,
) -> Strip:
    """The strip of these ids. ``runs``: first token, token after the last, kind, whether it is counted. ``said``: the
    state of each token. ``unit``: what a chip's span counts."""
    chips: list[Chip] = []
    at = shown = 0
    for first, after, kind, counted in runs:
        begun, place, own = at, first, []
        while place < after and at <= MOST:
            text = texts[place]
            if place < MOST_TOKENS:
                own.append(Token(ids[place], place, text, (at, at + len(text)), said[place]))
            at += len(text)
            place += 1
        if place > first:
            span = (begun, at) if unit == "character" else (first, place)
            text, given = "".join(texts[first:place]), tuple(ids[first:place])
            chips.append(Chip(text, Kind(kind), span, unit, counted, given, tuple(own)))
            shown = place
    left = len(ids) - shown
    more = [f"… {left:,} more tokens are not shown"] if left else []
    if shown > MOST_TOKENS:
        more.insert(0, f"from token {MOST_TOKENS:,} on, a tip tells of its part, not of a token")
    return Strip(tuple(chips), rest="; ".join(more))


def _runs(sample: Sample) -> Iterator[tuple[tuple[int, int], int, int]]:
    at = 0
    for marks, run in groupby(zip(sample.kinds, sample.loss_mask, strict=True)):
        length = sum(1 for _ in run)
        yield marks, at, at + length
        at += length


def _characters(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


def _numbers(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids)) + " "
