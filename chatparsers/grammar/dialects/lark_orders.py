"""The states of an order of members as numbers, which are the parameter of a rule in llguidance's Lark."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


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
        found.append(f"{place + 1}%if {f'and(ge(_,{needed}), {before})' if needed else before}")
        needed = place + 1 if must else needed
    return Steps(found, f"ge(_,{needed})" if needed else "", f"lt(_,{len(required)})")


@lru_cache(maxsize=256)
def any_order(count: int, required: int) -> Steps:
    """Any order. The number has a bit for each member that was written. The first ones are ``required``."""
    members = [f"set_bit({bit})%if bit_clear({bit})" for bit in range(count)]
    return Steps(members, f"is_ones([0:{required}])" if required else "", f"not(is_ones([0:{count}]))")
