"""What a grammar is written for: what its dialect and engine can say, and what the caller wants."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """The needs of one dialect for one engine.

    ``free``: the dialect has a form for text with calls in it. ``counts_text``: it counts the characters of text up to
    a marker. ``counts_escapes``: it counts all characters of a long string, and not only those before the first escape.
    ``open_objects``: members that a schema does not mention are generated, as JSON Schema says; the caller decides.
    """

    free: bool = False
    counts_text: bool = False
    counts_escapes: bool = True
    open_objects: bool = False
