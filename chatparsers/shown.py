"""What a notebook shows of the package's objects: their picture."""

from __future__ import annotations

from .lazy import load_reference


class Shown:
    """A base of what has a picture: a notebook shows it as HTML, and its ``repr`` as text."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """The picture that `chatparsers.display.show` makes; None without the package that draws it."""
        try:
            html: str = load_reference("chatparsers.display.show:show")(self).html()
        except ModuleNotFoundError:
            return None
        return html
