"""A card: facts in rows, lines under headings, long texts in boxes, and other pictures below them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ..public import public
from .looks import cut, for_html, for_terminal
from .picture import Picture

_LINES = 40
"""How many lines of a long text a terminal shows."""


def box(heading: str, long: str, *, open: bool = True) -> str:
    """A long text as HTML, in a box that opens and closes."""
    shown, rest = cut(long)
    return (
        f"<details{' open' if open else ''}><summary>{for_html(heading)}</summary>"
        f'<div class="long" tabindex="0" role="region" aria-label="{escape(heading)}">'
        f"{for_html(shown, breaks=False)}{for_html(rest)}</div></details>"
    )


@public
@dataclass(frozen=True, slots=True)
class Card(Picture):
    """What is known of something. ``rows``: facts, each with its name. ``lists``: headings with lines below them.
    ``texts``: headings with a long text, such as a grammar. ``pictures``: headings with another picture."""

    title: str
    rows: tuple[tuple[str, str], ...] = ()
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    pictures: tuple[tuple[str, Picture], ...] = ()

    def text(self, *, colour: bool = False) -> str:
        """The facts in two columns, then each list, text and picture under its heading."""
        width = max((len(name) for name, _ in self.rows), default=0)
        lines = [
            for_terminal(self.title),
            *(f"  {name:<{width}}  {for_terminal(value)}" for name, value in self.rows),
        ]
        for heading, items in self.lists:
            lines += [f"{heading}:", *(f"  {for_terminal(item)}" for item in items)]
        for heading, long in self.texts:
            shown = long.split("\n")
            lines += [f"{heading}:", *(f"  {for_terminal(line)}" for line in shown[:_LINES])]
            lines += [f"  … {len(shown) - _LINES:,} more lines"] if len(shown) > _LINES else []
        for heading, picture in self.pictures:
            lines += [f"{heading}:", picture.text(colour=colour)]
        return "\n".join(lines)

    def body(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'>{for_html(name)}</th><td>{for_html(value)}</td></tr>"
            for name, value in self.rows
        )
        parts = [f"<p class='title'>{for_html(self.title)}</p>", f"<table>{rows}</table>" if rows else ""]
        for heading, items in self.lists:
            listed = "".join(f"<li>{for_html(item)}</li>" for item in items)
            parts.append(f"<p class='head'>{for_html(heading)}</p><ul>{listed}</ul>")
        for heading, long in self.texts:
            parts.append(box(heading, long))
        parts += [
            f"<p class='head'>{for_html(heading)}</p>{picture.body()}" for heading, picture in self.pictures
        ]
        return "".join(parts)
