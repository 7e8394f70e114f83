"""What a grammar is written for: what its dialect and engine can say, and what the caller wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["TARGETS", "Target", "target_of"]


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


_COUNTED = 64
_COUNTED_TEXT = 24
"""With more (48, or 32 beside a pattern) llguidance gives up in the middle of a marker: too many expressions."""

TARGETS: Mapping[str, Mapping[str, Target]] = {
    "gbnf": {"llama.cpp": Target(), "xgrammar": Target(most_counted=_COUNTED)},
    "lark": {"llguidance": Target(free=True, counts_text=_COUNTED_TEXT)},
    "structural_tag": {"xgrammar": Target(free=True, most_counted=_COUNTED)},
}
"""The dialects, and the engines that read each; the first is the usual one."""


def target_of(dialect: str, engine: str, open_objects: bool) -> Target:
    """The needs of a dialect. Only GBNF has several engines: ``engine`` is one of these."""
    engines = TARGETS[dialect]
    found = engines[engine] if len(engines) > 1 else next(iter(engines.values()))
    return replace(found, open_objects=open_objects)
