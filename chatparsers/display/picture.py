"""What all pictures share: text for terminals, HTML for notebooks and pages."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .looks import STYLE


class Picture(ABC):
    """A picture. ``str()`` is its text without colours; a notebook shows its HTML."""

    @abstractmethod
    def text(self, *, colour: bool = False) -> str:
        """The picture for a terminal. Every control character of the model is escaped."""

    @abstractmethod
    def body(self) -> str:
        """The picture as HTML, without its style."""

    def html(self) -> str:
        """The picture as a piece of HTML that needs nothing else."""
        return f'<div class="cp"><style>{STYLE}</style>{self.body()}</div>'

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


def page(title: str, *pictures: Picture | str) -> str:
    """A whole page with pictures one below the other, a text being a heading; several headings are listed above.
    It asks no other host for anything."""
    from html import escape

    heads = [part for part in pictures if isinstance(part, str)]
    listed = "".join(f'<li><a href="#part-{n}">{escape(head)}</a></li>' for n, head in enumerate(heads, 1))
    number, parts = 0, []
    for part in pictures:
        if isinstance(part, str):
            number += 1
            parts.append(f'<h2 id="part-{number}">{escape(part)}</h2>')
        else:
            parts.append(f"<div>{part.body()}</div>")
    contents = f'<nav aria-label="contents"><ol>{listed}</ol></nav>' if len(heads) > 1 else ""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>:root {{ color-scheme: light dark; }}{STYLE}</style>"
        f'<main class="cp"><h1>{escape(title)}</h1>{contents}{"".join(parts)}</main></html>\n'
    )
