"""What a grammar is written for: what its dialect and engine can say, and what the caller wants."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """The needs of one dialect for one engine.

    ``free``: the dialect has a form for text with calls in it. ``counts_text``: so many characters of text up to a
    marker its engine counts in a terminal (0: the automaton counts them). ``most_counted``: strings up to so long are
    counted, because each character takes the engine time to compile (None: strings of any length).
    ``open_objects``: members that a schema does not mention are generated, as JSON Schema says; the caller decides.
    """

    free: bool = False
    counts_text: int = 0
    most_counted: int | None = None
    open_objects: bool = False
