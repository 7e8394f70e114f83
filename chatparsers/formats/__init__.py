"""The built-in formats, one module each, and the plugin that offers them.

A format's module imports ``chatparsers.core`` alone and defines ``FORMAT``, or ``FORMATS`` (a tuple) for several
records over one build. ``python -m chatparsers.formats`` writes the catalog of them, from which a format is found
without importing the others.

``chatparsers.formats`` is both this package and the function of the public API, whichever is imported first: the
module can be called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ..core.errors import DefinitionError
from ..core.format import Format
from ..core.lazy import load_reference

__all__ = ["FormatRef", "chatparsers_register_formats"]


@dataclass(frozen=True, slots=True)
class FormatRef:
    """A format that is imported when it is needed.

    ``target``: ``"module:ATTRIBUTE"``, a `Format` or several of which ``name`` picks one. The rest is what the format
    itself says, given here so that a listing and a detection need not import it: ``markers`` narrow the field of
    detection (all of them are in a rendering of this format; none: detection never names it).
    """

    name: str
    target: str
    title: str = ""
    url: str = ""
    aliases: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()

    def load(self) -> Format:
        """The format, its module imported now. Raises `DefinitionError` where that fails or finds no such format."""
        try:
            found = load_reference(self.target)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module may exit, or raise anything
            raise DefinitionError(
                f"format {self.name!r} cannot be loaded from {self.target!r}: {type(error).__name__}: {error}"
            ) from error
        several = found if isinstance(found, (tuple, list)) else (found,)
        for format in several:
            if isinstance(format, Format) and format.name == self.name:
                return format
        raise DefinitionError(
            f"format {self.name!r}: expected {self.target!r} to be a Format of that name, found "
            + ", ".join(f"Format {f.name!r}" if isinstance(f, Format) else repr(f) for f in several)
        )


def chatparsers_register_formats() -> Iterable[FormatRef]:
    """The plugin hook: the catalog as references, sorted by name."""
    # Imported here so that the generator can run where the catalog is broken.
    from ._catalog import FORMATS

    return tuple(FormatRef(*entry) for entry in FORMATS)


class _Callable(ModuleType):
    def __call__(self) -> list[Any]:
        """Every format there is: `chatparsers.registry.formats`."""
        found: list[Any] = load_reference("chatparsers.registry:formats")()
        return found


sys.modules[__name__].__class__ = _Callable
