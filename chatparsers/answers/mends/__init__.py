"""What models do to a format: each leniency is a file, with the real text that asks for it and a switch.

A mend is a rewrite of the turn before it is written as rules (`Turn`), or the switch of a terminal. `Format.mends` has
the names of those that a format reads with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..outline import Turn
from .call_in_thought import call_in_thought
from .empty_section import empty_section
from .fence import fence
from .missing_opener import missing_opener
from .stray_closer import stray_closer
from .thought_again import thought_again
from .undeclared_thought import undeclared_thought
from .whole_answer import whole_answer

REWRITES: Mapping[str, Callable[[Turn], None]] = {
    "undeclared_thought": undeclared_thought,
    "fence": fence,
    "missing_opener": missing_opener,
    "whole_answer": whole_answer,
    "empty_section": empty_section,
    "thought_again": thought_again,
    "stray_closer": stray_closer,
    "call_in_thought": call_in_thought,
}
NAMES = (*REWRITES, "whole_object", "any_order", "next_call", "odd_names", "closing_tag")
"""In the order in which they are tried."""
