"""What models do to a format: each leniency is a file, with the real text that asks for it and a switch.

A mend is a rewrite of the turn before it is written as rules (`Turn`), or the switch of a terminal. `Format.mends` has
the names of those that a format reads with.
"""

NAMES = (
    "undeclared_thought",
    "fence",
    "missing_opener",
    "whole_answer",
    "empty_section",
    "stray_closer",
    "known_closers",
    "call_in_thought",
    "whole_object",
    "any_order",
    "next_call",
    "odd_names",
    "closing_tag",
)
"""In the order in which they are tried."""
