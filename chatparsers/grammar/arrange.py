"""The orders in which a call's arguments, or an object's members, may come.

Strategy: a small acyclic automaton, whose states say which members are still to come. Each state becomes a rule, so the
automaton must be small. Up to `FREE` members together, every order is generated: a state is a set (at most 2**FREE
states). Beyond that, up to `FREE_REQUIRED` required members come in any order, and the optional ones in the declared
order, anywhere between them: a state is a set and a position. Beyond that, the required and the optional members each
come in the declared order, freely merged: a state is a pair of positions. Past `MOST_PAIRS` pairs, all members come in
the declared order: a state is one position. Each member comes at most once, and every required one comes.

Where not every order is generated, the members may also come sorted by their names, as some templates write them: one
more position a member.

An engine whose rules have a parameter has no such states: up to as many members as the parameter has bits, every order
is generated (`AnyOrder`).

All of these are chains of members: those of a chain come one after the other, and the chains are freely merged. The
automaton depends only on the chains and on which members are required. So it is made of numbers (`State`), once for
all tools of one shape, and a writer puts the members' rules in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from operator import ge
from typing import Any

from .ir import (
    EMPTY,
    NOTHING,
    Alt,
    AnyOrder,
    Blank,
    Ir,
    Order,
    Rep,
    Seq,
    Shared,
    State,
    Text,
    alt,
    seq,
    unshared,
)

FREE = 6
"""Up to this many members, any order is generated."""

FREE_REQUIRED = 4
"""Up to this many required members, their order is free."""

LONGEST = 256
"""Up to this many members, the states of a declared order are kept for the next object like it."""

MOST_PAIRS = 1_000
"""Up to this many pairs of a required and an optional member, the two kinds are freely merged."""

Enough = Callable[[frozenset[str]], bool]
Chains = tuple[tuple[int, ...], ...]
"""The numbers of the members, in chains."""
_Option = tuple[int, ...]


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
    bits: int = 0,
) -> tuple[Ir, bool]:
    """The members in as many orders as there is room for, with ``separator`` between them; and whether the grammar
    enforces ``enough`` and ``most``.

    ``extra``: a member that may come any number of times, anywhere. ``enough``: tests the names that were written, to
    tell whether the members may end. ``most``: the most members. Both are enforced only of up to `FREE` members.
    ``bits``: those of the parameter that the engine's rules may have.
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

    def ordered(members: list[Member], chains: Chains, *limits: Any) -> Ir:
        must = tuple([member.required for member in members])
        made = _made if limits or len(members) > LONGEST else _states
        states = made(chains, must, extra is not None, *limits)
        if not states:
            return NOTHING if states is None else EMPTY
        written = tuple([nodes[member.name] for member in members])
        return Order(written, separator, extra, states, not limits and len(chains) == 1, must)

    def holds(numbers: Iterable[int]) -> bool:
        return enough is None or enough(frozenset(members[number].name for number in numbers))

    every = tuple(range(len(members)))
    required = [member for member in members if member.required]
    in_parts = [*required, *(member for member in members if not member.required)]
    count, others = len(required), len(members) - len(required)
    few = len(members) <= FREE
    if len(members) <= bits and not (few and counted) and (extra is not None or len(members) > 1):
        written = tuple([nodes[member.name] for member in in_parts])
        must = (True,) * count + (False,) * others
        return AnyOrder(written, separator, extra, must), not counted
    if few:
        return ordered(members, _each(every), *((holds, most) if counted else ())), True
    chains: Chains = (every,)
    if 0 < count <= FREE_REQUIRED:
        chains = (*_each(every[:count]), every[count:])
    elif 0 < count * others <= MOST_PAIRS:
        chains = (every[:count], every[count:])
    # by code points, as Jinja's tojson, Go and Python's sort_keys; and without case, as Jinja's dictsort
    by_name = sorted(members, key=lambda member: member.name)
    without_case = sorted(members, key=lambda member: member.name.lower())
    if len(chains) > 1:
        members = in_parts
    found = [ordered(members, chains)]
    for again in (by_name, *([without_case] if without_case != by_name else [])):
        if again != members:
            found.append(ordered(again, (every,)))
    return alt(*found), not counted


def loosely(members: list[Member], separator: Ir, extra: Ir | None = None) -> Ir:
    """The members in any order, each any number of times: no state says which were written. The names of those with
    equal values are one piece, so that the size of a row is that of the schemas."""
    alike: dict[tuple[object, ...], tuple[list[Ir], tuple[Ir, ...], tuple[Ir, ...]]] = {}
    for member in members:
        node = unshared(member.node)
        items = node.items if isinstance(node, Seq) and node.items else (node,)
        at = int(isinstance(items[0], Blank))
        before, name, rest = items[:at], items[at], items[at + 1 :]
        key = tuple([_same(item) for item in ((*before, *rest) if isinstance(name, Text) else items)])
        alike.setdefault(key, ([], before, rest))[0].append(name)
    one = alt(
        *(seq(*before, alt(*names), *rest) for names, before, rest in alike.values()),
        *([extra] if extra else []),
    )
    one = Shared("member", one)
    return Rep(seq(one, Rep(seq(separator, one), 0, None)), 0, 1)


def apart(members: Ir) -> tuple[Ir, bool]:
    """The members without the choice of none, and whether none was a choice."""
    if members is EMPTY:
        return NOTHING, True
    if isinstance(members, Order) and members.states[-1].may_end:
        return replace(members, states=_some(members.states)), True
    if isinstance(members, AnyOrder) and not any(members.required):
        parts = members.members, members.separator, members.extra, members.required, members.begun
        return AnyOrder(*parts, some=True), True
    if isinstance(members, Rep) and (members.least, members.most) == (0, 1):
        return members.node, True
    if isinstance(members, Alt):
        found = [*map(apart, members.options)]
        return alt(*(some for some, _ in found)), any(none for _, none in found)
    return members, False


@lru_cache(maxsize=256)
def _some(states: tuple[State, ...]) -> tuple[State, ...]:
    """The states of the same orders, which do not end before a member."""
    return (*states[:-1], states[-1]._replace(may_end=False))


def _same(node: Ir) -> object:
    """What equal nodes share: a literal its text, any other its identity."""
    if isinstance(node, Text):
        return node.text
    return type(node) if isinstance(node, Blank) else id(node)


def _each(numbers: tuple[int, ...]) -> Chains:
    return tuple([(number,) for number in numbers])


def _made(
    chains: Chains,
    must: tuple[bool, ...],
    extra: bool,
    enough: Callable[[Iterable[int]], bool] | None = None,
    most: int | None = None,
) -> tuple[State, ...] | None:
    """The states of the orders in which the members of each chain come one after the other; None if no order has
    enough members.

    A state is a place in each chain, with the members before it written. Those further on come first, so what a state
    leads to is known.
    """
    states: list[State] = []

    def add(options: list[_Option], begun: bool, may_end: bool) -> _Option | None:
        """How an option names a new state: by nothing if nothing follows. None if the state has no end."""
        if not options and not may_end:
            return None
        if not options and not extra:
            return ()
        states.append(State(tuple(options), begun, may_end))
        return (len(must) + len(states),)

    needed = [max((at + 1 for at, member in enumerate(chain) if must[member]), default=0) for chain in chains]
    sizes = [len(chain) + 1 for chain in chains]
    steps = [prod(sizes[number + 1 :]) for number in range(len(chains))]
    """How much further the next place of each chain is, where all states have numbers."""
    after: dict[int, _Option | None] = {}
    one_of: dict[tuple[int, int], _Option | None] = {}
    """One of the members of a chain from its place on."""
    here, may_end = prod(sizes), False
    options: list[_Option] = []
    for places in product(*(range(len(chain), -1, -1) for chain in chains)):
        here -= 1
        left = None if most is None else most - sum(places)
        if left is not None and left < 0:
            continue
        options = []
        for chain, at, step in zip(chains, places, steps, strict=True):
            if at == len(chain) or left == 0:
                continue
            member, then = chain[at], after[here + step]
            one = None if then is None else (member, *then)
            if not must[member] and (other := one_of.get((step, here + step))):
                one = add([one, other], False, False) if one else other
            one_of[step, here] = one
            options += [one] if one else []
        may_end = all(map(ge, places, needed))
        if may_end and enough is not None:
            may_end = enough(
                member for chain, at in zip(chains, places, strict=True) for member in chain[:at]
            )
        if extra or here:
            after[here] = add(options, True, may_end)
    if extra and (then := after[here]) is not None:
        options.append((len(must), *then))
    return None if add(options, False, may_end) is None else tuple(states)


_states = lru_cache(maxsize=256)(_made)
