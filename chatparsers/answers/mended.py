"""The mends that rewrite a turn, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .mends.call_in_thought import call_in_thought
from .mends.empty_section import empty_section
from .mends.fence import fence
from .mends.known_closers import known_closers
from .mends.missing_opener import missing_opener
from .mends.stray_closer import stray_closer
from .mends.undeclared_thought import undeclared_thought
from .mends.whole_answer import whole_answer
from .outline import Turn

REWRITES: Mapping[str, Callable[[Turn], None]] = {
    "undeclared_thought": undeclared_thought,
    "fence": fence,
    "missing_opener": missing_opener,
    "whole_answer": whole_answer,
    "empty_section": empty_section,
    "stray_closer": stray_closer,
    "known_closers": known_closers,
    "call_in_thought": call_in_thought,
}
"""In this order. The others (`mends.NAMES`) are switches of a terminal."""
