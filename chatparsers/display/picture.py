"""What all pictures share: text for terminals, HTML for notebooks and pages."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .looks import STYLE

__all__ = ["Picture", "page"]


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
    """A whole page with pictures one below the other. It asks no other host for anything."""
    from html import escape

    parts = "".join(
        f"<h2>{escape(part)}</h2>" if isinstance(part, str) else f"<div>{part.body()}</div>"
        for part in pictures
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>:root {{ color-scheme: light dark; }}{STYLE}</style>"
        f'<main class="cp"><h1>{escape(title)}</h1>{parts}</main></html>\n'
    )
