"""The states of an order of members as numbers, which are the parameter of a rule in llguidance's Lark."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from .. import ir

MOST_BITS = 64
"""The bits of a rule's parameter."""


class Steps(NamedTuple):
    """The states of an order as a number, the parameter of a rule.

    ``members``: for each member the next number, and when it may come. ``end``: when the order may end, "" for always.
    ``more``: when another member may come.
    """

    members: list[str]
    end: str
    more: str


def declared(required: tuple[bool, ...]) -> Steps:
    """The declared order. The number is the place after the last member that was written."""
    found: list[str] = []
    needed = 0
    """The place after the last required member before this one."""
    for place, must in enumerate(required):
        before = f"le(_,{place})"
        found.append(f"{place + 1} %if {f'and(ge(_,{needed}), {before})' if needed else before}")
        needed = place + 1 if must else needed
    return Steps(found, f"ge(_,{needed})" if needed else "", f"lt(_,{len(required)})")


def by_bits(way: ir.Way, required: tuple[bool, ...]) -> Steps:
    """The other orders. The number has a bit for each member that was written."""
    count = len(required)
    found: list[str] = []
    before: list[str] = []
    """The required members that an end needs: of those in the declared order, the last one."""
    for bit, must in enumerate(required):
        free = must or way == "free"
        condition = f"bit_clear({bit})" if free else f"lt(_,{1 << bit})"  # no bit from this one on is set
        in_order = way == "merged" and must
        found.append(f"set_bit({bit}) %if {_all([*before, condition]) if in_order else condition}")
        if must:
            before = [*([] if in_order else before), f"bit_set({bit})"]
    any_last = count if way == "free" else sum(required)  # each of so many may come last, and the last of all
    done = [f"is_ones([0:{any_last}])", *([f"bit_set({count - 1})"] if any_last < count else [])]
    return Steps(found, _all(before) if before else "", f"not({_all(done)})")


def _all(conditions: list[str]) -> str:
    """All of the conditions, as one."""
    return reduce(lambda one, other: f"and({one}, {other})", conditions)
