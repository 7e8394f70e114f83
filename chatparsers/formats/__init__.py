"""The built-in formats, one module each, and the plugin that offers them.

A format's module imports only ``chatparsers.answers``. It defines ``FORMAT``, or ``FORMATS`` (a tuple) for several records
over one build. ``python -m chatparsers.formats`` writes the catalog. With the catalog, a format is found without
importing the others. `chatparsers.list_formats` lists them, with those of plugins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..answers.format import Format
from ..errors import DefinitionError
from ..lazy import load_reference
from ..public import public

__all__ = ["FormatRef", "chatparsers_register_formats"]


@public
@dataclass(frozen=True, slots=True)
class FormatRef:
    """A reference to a format, whose module is imported when it is needed.

    ``target``: ``"module:ATTRIBUTE"``, a `Format` or a tuple of them, from which ``name`` picks one; or
    ``"package:FILE.json"``, a document in a package (docs/formats-as-data.md). The other fields
    repeat the format's own, so that a listing or a detection need not import it. ``markers`` are texts that every
    rendering of this format holds. Detection tries first the formats whose markers are all there. ``models``: regular
    expressions for the names of its models, such as ``"qwen3.*coder"``. They are searched in the name in lower case,
    with ``-`` for every run of signs that are no letters or digits. The leftmost match
    of all formats wins; at equal positions, the longest.
    """

    name: str
    target: str
    title: str = ""
    url: str = ""
    aliases: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    def load(self) -> Format:
        """The format; imports its module. Raises `DefinitionError` if the import fails or the format is not there.

        >>> chatparsers.FormatRef("qwen3", "chatparsers.formats.qwen3:FORMAT").load().name
        'qwen3'
        """
        try:
            found = self._found()
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

    def _found(self) -> Any:
        package, _, name = self.target.partition(":")
        if not name.endswith(".json"):
            return load_reference(self.target)
        from ._files import read_resource

        return read_resource(package, name)


def chatparsers_register_formats() -> Iterable[FormatRef]:
    """The plugin hook: the catalog as references, sorted by name."""
    # Imported here, so that the generator can run if the catalog is broken.
    from ._catalog import FORMATS

    return tuple(FormatRef(*entry) for entry in FORMATS)
