"""Value syntaxes: each a class that reads one value as it arrives and passes it on as JSON text.

A new dialect of values is one more class and one more line here.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import DefinitionError, did_you_mean
from .base import Transcoder
from .json import JsonScanner, ObjectScanner, StringScanner
from .raw import StopFinder, raw_transcoder

__all__ = ["Transcoder", "transcoder"]

_NOWHERE = StopFinder(())

Maker = Callable[[StopFinder, "frozenset[str]", str, bool, bool], Transcoder]


def _python(stops: StopFinder, types: frozenset[str], quote: str, object: bool, spelt: bool) -> Transcoder:
    from .python import PythonScanner

    return PythonScanner()


def _gemma(stops: StopFinder, types: frozenset[str], quote: str, object: bool, spelt: bool) -> Transcoder:
    from .gemma import GemmaScanner

    return GemmaScanner(quote)


SYNTAXES: dict[str, Maker] = {
    "json": lambda stops, types, quote, object, spelt: ObjectScanner() if object else JsonScanner(),
    "text": lambda stops, types, quote, object, spelt: StringScanner(),
    "raw": lambda stops, types, quote, object, spelt: raw_transcoder(stops, types, spelt),
    "python": _python,
    "gemma": _gemma,
}


def transcoder(
    syntax: str,
    stops: StopFinder = _NOWHERE,
    types: frozenset[str] = frozenset(),
    quote: str = "",
    object: bool = False,
    python: bool = False,
) -> Transcoder:
    """A new transcoder for one value of ``syntax``.

    ``stops`` end it where it is raw text; ``types`` are those that its schema admits; ``quote`` is the marker
    around strings in syntaxes that have one; ``object``: it must be an object. ``python``: raw values that are
    no strings may be spelt as Python's ``str`` does.
    """
    make = SYNTAXES.get(syntax)
    if make is None:
        raise DefinitionError(f"no value syntax is named {syntax!r}: {did_you_mean(syntax, SYNTAXES)}")
    return make(stops, types, quote, object, python)
