"""The orders in which a call's arguments, or an object's members, may come.

Strategy: a small acyclic automaton, whose states say which members are still to come. Each state becomes a rule, so the
automaton must be small. Up to `FREE` members together, every order is generated: a state is a set (at most 2**FREE
states). Beyond that, up to `FREE_REQUIRED` required members come in any order, and the optional ones in the declared
order, anywhere between them: a state is a set and a position. Beyond that, the required and the optional members each
come in the declared order, freely merged: a state is a pair of positions. Past `MOST_PAIRS` pairs, all members come in
the declared order: a state is one position. Each member comes at most once, and every required one comes.

Where not every order is generated, the members may also come sorted by their names, as some templates write them: one
more position a member.

The automaton depends only on the number of members and on which are required. So it is made of numbers (`State`), once
for all tools of one shape, and a writer puts the members' rules in their places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from .ir import EMPTY, NOTHING, Ir, Order, Rep, Shared, State, Way, alt, seq

FREE = 6
"""Up to this many members, any order is generated."""

FREE_REQUIRED = 4
"""Up to this many required members, their order is free."""

LONGEST = 256
"""Up to this many members, the states of a declared order are kept for the next object like it."""

MOST_PAIRS = 1_000
"""Up to this many pairs of a required and an optional member, the two kinds are freely merged."""

Enough = Callable[[frozenset[str]], bool]


@dataclass(eq=False, slots=True)
class Member:
    """One member as it is written, with its name."""

    name: str
    node: Ir
    required: bool


def arrange(
    members: list[Member],
    separator: Ir = EMPTY,
    extra: Ir | None = None,
    enough: Enough | None = None,
    most: int | None = None,
) -> tuple[Ir, bool]:
    """The members in as many orders as there is room for, with ``separator`` between them; and whether the grammar
    enforces ``enough`` and ``most``.

    ``extra``: a member that may come any number of times, anywhere. ``enough``: tests the names that were written, to
    tell whether the members may end. ``most``: the most members. Both are enforced only if every order is generated.
    """
    counted = enough is not None or most is not None
    if not members:
        if extra is None:
            return EMPTY, not counted
        return Rep(seq(extra, Rep(seq(separator, extra), 0, None)), 0, 1), not counted
    nodes = {
        member.name: member.node if isinstance(member.node, Shared) else Shared("m", member.node)
        for member in members
    }

    def ordered(members: list[Member], states: tuple[State, ...], way: Way | None) -> Ir:
        must = tuple([member.required for member in members])
        return Order(tuple([nodes[member.name] for member in members]), separator, extra, states, way, must)

    if len(members) <= FREE:
        must = tuple(member.required for member in members)
        if counted:
            states = _sets(must, extra is not None, [member.name for member in members], enough, most)
        else:
            states = _sets_of(must, extra is not None)
        if not states:
            return NOTHING if states is None else EMPTY, True
        return ordered(members, states, None if counted else "free"), True
    declared = _declared if len(members) <= LONGEST else _declared.__wrapped__
    by_name = sorted(members, key=lambda member: member.name.lower())
    required = [member for member in members if member.required]
    optional = len(members) - len(required)
    if len(required) > FREE_REQUIRED and len(required) * optional > MOST_PAIRS:
        way: Way = "declared"
        states = declared(tuple(member.required for member in members), extra is not None)
    else:
        way = "declared"
        if required and (optional or len(required) <= FREE_REQUIRED):
            way = "required free" if len(required) <= FREE_REQUIRED else "merged"
        members = [*required, *(member for member in members if not member.required)]
        states = _merged(len(required), optional, extra is not None)
    found = [ordered(members, states, way)]
    if by_name != members:
        states = declared(tuple(member.required for member in by_name), extra is not None)
        found.append(ordered(by_name, states, "declared"))
    return alt(*found), not counted


class _Plan:
    """Collects the states of an automaton, each after the states that it leads to."""

    def __init__(self, members: int, extra: bool) -> None:
        self.extra = members
        """The number of the extra member. The states have the numbers after it."""
        self.has_extra = extra
        self.states: list[State] = []

    def state(self, options: list[tuple[int, ...]], begun: bool, may_end: bool) -> tuple[int, ...] | None:
        """How an option names a state: by nothing if nothing follows. None if the state has no end."""
        if not options and not may_end:
            return None
        if not options and not self.has_extra:
            return ()
        self.states.append(State(tuple(options), begun, may_end))
        return (self.extra + len(self.states),)

    def either(self, one: tuple[int, ...], rest: tuple[int, ...] | None) -> tuple[int, ...]:
        """One option or another, as one."""
        if rest is None:
            return one
        self.states.append(State((one, rest), False, False))
        return (self.extra + len(self.states),)


@lru_cache(maxsize=256)
def _sets_of(must: tuple[bool, ...], extra: bool) -> tuple[State, ...]:
    found = _sets(must, extra)
    assert found is not None
    return found


def _sets(
    must: tuple[bool, ...],
    extra: bool,
    names: list[str] | None = None,
    enough: Enough | None = None,
    most: int | None = None,
) -> tuple[State, ...] | None:
    """The states of every order; None if no order has enough members."""
    plan = _Plan(len(must), extra)
    known: dict[tuple[int, bool], tuple[int, ...] | None] = {}
    needed = sum(1 << index for index, required in enumerate(must) if required)

    def state(left: int, begun: bool) -> tuple[int, ...] | None:
        key = (left, begun)
        if key not in known:
            there = [index for index in range(len(must)) if not left >> index & 1]
            may_end = not left & needed
            if may_end and enough is not None and names is not None:
                may_end = enough(frozenset(names[index] for index in there))
            options: list[tuple[int, ...]] = []
            if most is None or len(there) < most:
                for index in range(len(must)):
                    if left >> index & 1:
                        then = state(left & ~(1 << index), True)
                        options += [] if then is None else [(index, *then)]
            if not begun and extra:
                then = state(left, True)
                options += [] if then is None else [(plan.extra, *then)]
            known[key] = plan.state(options, begun, may_end)
        return known[key]

    return None if state((1 << len(must)) - 1, False) is None else tuple(plan.states)


@lru_cache(maxsize=64)
def _merged(required: int, optional: int, extra: bool) -> tuple[State, ...]:
    """The states of the optional members (which come after the required ones in number) in the declared order, and of
    the required ones in any order, or in the declared order if they are many."""
    plan = _Plan(required + optional, extra)
    free = required <= FREE_REQUIRED
    whole = (1 << required) - 1
    # The required members that may be left, the fewest first.
    lefts = range(whole + 1) if free else [whole & -(1 << index) for index in range(required, -1, -1)]
    after: dict[int, tuple[int, ...]] = {}
    """The states after the first ``at`` optional members, by the required members that are left."""
    one_of: dict[int, tuple[int, ...] | None] = dict.fromkeys(lefts)
    """The states before one of the optional members from ``at`` on, by the required members that are left."""

    def options(left: int, begun: bool) -> list[tuple[int, ...]]:
        if free:
            first = [index for index in range(required) if left >> index & 1]
        else:
            first = [(left & -left).bit_length() - 1] if left else []
        found = [(index, *after[left & ~(1 << index)]) for index in first]
        others = one_of[left]
        found += [] if others is None else [others]
        return [*found, (plan.extra, *after[left])] if extra and not begun else found

    for at in range(optional, -1, -1):
        if at < optional:
            for left in lefts:
                one_of[left] = plan.either((required + at, *after[left]), one_of[left])
        after = {}
        for left in lefts:
            if extra or at or left != whole:
                after[left] = plan.state(options(left, True), True, not left) or ()
    plan.state(options(whole, False), False, not whole)
    return tuple(plan.states)


@lru_cache(maxsize=64)
def _declared(must: tuple[bool, ...], extra: bool) -> tuple[State, ...]:
    """The states of all members in the declared order."""
    plan = _Plan(len(must), extra)
    one_of: tuple[int, ...] | None = None
    """One of the members from ``at`` on."""
    may_end = True
    for at in range(len(must) - 1, -1, -1):
        options = [] if one_of is None else [one_of]
        after = plan.state(options, True, may_end) or ()
        one = (at, *after)
        one_of = one if must[at] else plan.either(one, one_of)
        may_end = may_end and not must[at]
    first = [] if one_of is None else [one_of]
    if extra:
        again = plan.state(first, True, may_end)
        first = [*first, (plan.extra, *(again or ()))]
    plan.state(first, False, may_end)
    return tuple(plan.states)
