"""Pictures as SVG drawings: a strip, and a timeline with the regions of the whole text below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from ..chat.marks import answer_runs
from ..chat.sample import Kind
from ..guide.guide import Origin
from ..streams.message import Message
from .looks import LOOKS, ORIGINS, columns, for_terminal

_COLUMN, _HIGH, _STEP, _PAD, _GAP = 7.3, 22, 28, 6, 30
"""In pixels: a character's width, the height of a box, from a box to the next, inside a box, between columns."""
_MOST = 36
"""How many characters of one text a box shows."""
_LONGEST = 110
"""How many characters a line of a strip has."""
_WIDEST = 900
_EDGES: Mapping[Origin, str] = {
    "forced": ' stroke-dasharray="4 3"',
    "closed": ' stroke-width="3"',
}
_STYLE = (
    ".paper{fill:#fff}.say{fill:#1f2933}.dim{fill:#52606d}.line{stroke:#52606d}.held{fill:#e69f0026;stroke:#946200}"
    ".fed{fill:#76767618;stroke:#767676}"
    "@media(prefers-color-scheme:dark){.paper{fill:#16191d}.say{fill:#e6e9ec}.dim{fill:#a9b4bf}.line{stroke:#a9b4bf}"
    ".held{stroke:#e69f00}}"
)


def drawn_chips(chips: Sequence[tuple[str, Kind, Origin | None]], title: str) -> str:
    """The SVG of a strip. A line break begins a line, and a long line is broken."""
    boxes, y = _boxes(chips, 20.0, _WIDEST, by_line=True)
    legend = _legend((kind for _, kind, _ in chips), y + 34)
    origins = [origin for origin in dict.fromkeys(origin for *_, origin in chips) if origin]
    if origins:
        y += _STEP
        legend += _row(((ORIGINS[origin], "fed", origin) for origin in origins), y + 34)[0]
    return _drawing([*boxes, *legend], _WIDEST + 26, y + 72, title)


def drawn_steps(
    steps: Iterable[tuple[str, str, Sequence[tuple[Kind, str]]]], message: Message, title: str
) -> str:
    """The SVG of a stream. ``steps``: each piece, what was held after it, and what went out, with its kind."""
    rows = [
        (_short(piece), _short(held), [(_short(f"{LOOKS[kind].letter} {said}"), kind) for kind, said in out])
        for piece, held, out in steps
        if piece or out
    ]
    seconds = 44 + max([_wide("piece fed"), *(_wide(piece) for piece, _, _ in rows)]) + _GAP
    thirds = seconds + max([_wide("held after it"), *(_wide(held) for _, held, _ in rows)]) + _GAP
    edge = thirds + max([_wide("what goes out"), *(_wide(said) for _, _, out in rows for said, _ in out)])
    parts, y = [], 62.0
    for piece, held, out in rows:
        parts.append(_box(44, y, piece or "(the end)", "fed"))
        if held:
            parts.append(_box(seconds, y, held, "held"))
        for number, (said, kind) in enumerate(out):
            parts.append(_box(thirds, y + number * _STEP, said, kind))
        if not out:
            parts.append(_text(thirds + _PAD, y + 15, "nothing yet", "dim"))
        y += max(len(out), 1) * _STEP + 8
    wide = max(min(edge, _WIDEST), 620) + 26
    bottom, regions = y + 8, y + 40
    runs = [(message.text[start:end], Kind(kind), None) for start, end, kind in answer_runs(message)]
    boxes, regions = _boxes(runs, regions, wide - 26)
    heads = [
        _text(44, 40, "piece fed", "say b"),
        _text(seconds, 40, "held after it", "say b"),
        _text(thirds, 40, "what goes out", "say b"),
        _text(26, bottom + 20, "regions of the whole text", "say b"),
        f'<path class="line" d="M26 56V{bottom - 12:g}m-4-7l4 7 4-7" fill="none" stroke-width="1.5"/>',
    ]
    legend = _legend((kind for _, kind, _ in runs), regions + 34)
    return _drawing([*heads, *parts, *boxes, *legend], wide, regions + 72, title)


def _drawing(parts: Iterable[str], wide: float, high: float, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}" '
        f'role="img" aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}.b{{font-weight:bold}}"
        "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}</style>\n"
        f'<rect class="paper" width="{wide:g}" height="{high:g}" rx="8"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _legend(kinds: Iterable[Kind], y: float) -> list[str]:
    """The kinds in the drawing, each once."""
    named = {f"{LOOKS[kind].letter} {LOOKS[kind].name}": kind for kind in kinds}
    drawn, x = _row(((name, kind, None) for name, kind in named.items()), y)
    return [*drawn, _text(x + 6, y + 15, "⏎ is a line break", "dim")]


def _row(boxes: Iterable[tuple[str, Kind | str, Origin | None]], y: float) -> tuple[list[str], float]:
    """Boxes beside each other, and where the next one would be."""
    drawn, x = [], 26.0
    for text, look, origin in boxes:
        drawn.append(_box(x, y, text, look, origin))
        x += _wide(text) + 10
    return drawn, x


def _boxes(
    runs: Iterable[tuple[str, Kind, Origin | None]], y: float, most: float, *, by_line: bool = False
) -> tuple[list[str], float]:
    """The boxes of runs in lines, and where the last line is. ``by_line``: a line break begins a line."""
    boxes, x = [], 26.0
    broken = False
    for text, kind, origin in runs:
        for part in _broken(text, _LONGEST if by_line else _MOST, by_line):
            if broken or (x > 26 and x + _wide(part) > most):
                x, y = 26.0, y + _STEP
            boxes.append(_box(x, y, part, kind, origin))
            x += _wide(part)
            broken = by_line and part.endswith("\n")
    return boxes, y


def _broken(text: str, most: int, by_line: bool) -> Iterator[str]:
    for line in text.splitlines(keepends=True) if by_line else [text]:
        for at in range(0, len(line), most):
            yield line[at : at + most]


def _short(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def _wide(text: str) -> float:
    return columns(for_terminal(text)) * _COLUMN + 2 * _PAD


def _box(x: float, y: float, text: str, look: Kind | str, origin: Origin | None = None) -> str:
    paint = f'class="{look}"'
    if isinstance(look, Kind):
        colour = LOOKS[look].colour
        paint = f'fill="{colour}" fill-opacity=".16" stroke="{colour}"'
    paint += _EDGES.get(origin, "") if origin else ""
    wide = _wide(text)
    box = f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{_HIGH}" rx="4" {paint}/>'
    if origin == "budget":
        box += f'<path class="line" d="M{x + _PAD:g} {y + 19:g}h{wide - 2 * _PAD:g}" stroke-dasharray="1 3"/>'
    return box + _text(x + _PAD, y + 15, for_terminal(text), "say")


def _text(x: float, y: float, text: str, look: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{look}">{escape(text)}</text>'
