"""The orders in which a call's arguments, or an object's members, may stand.

Strategy: a small acyclic automaton whose states are what is still to come; each state is a shared rule, so its size is
what counts. Up to `FREE` members together, every order is generated: a state is a set (at most 2**FREE of them). Beyond
that, up to `FREE_REQUIRED` required members come in any order and the optional ones in the declared order, anywhere
between them: a state is a set and a position. Beyond that, both the required and the optional ones come in the declared
order, freely merged: a state is a pair of positions. Each is there at most once, and every required one is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .ir import EMPTY, NOTHING, Alt, Ir, Rep, Shared, alt, seq

__all__ = ["FREE", "FREE_REQUIRED", "Member", "arrange"]

FREE = 4
"""Up to this many members, any order is generated."""

FREE_REQUIRED = 3
"""Up to this many required members, theirs is free."""


@dataclass(eq=False, slots=True)
class Member:
    """One member as it is written, its name included."""

    name: str
    node: Ir
    required: bool


def arrange(
    members: list[Member],
    separator: Ir = EMPTY,
    extra: Ir | None = None,
    enough: Callable[[frozenset[str]], bool] | None = None,
    most: int | None = None,
) -> tuple[Ir, bool]:
    """The members in every order there is room for, ``separator`` between them, and whether ``enough`` and ``most`` hold.

    ``extra``: a member that may come any number of times, anywhere. ``enough``: a test of the names that are there, for the
    end; ``most``: how many there may be. Both hold only where every order is generated.
    """
    shared = [Member(m.name, m.node if isinstance(m.node, Shared) else Shared("m", m.node), m.required) for m in members]
    required = [m for m in shared if m.required]
    optional = [m for m in shared if not m.required]
    more = Rep(seq(separator, extra), 0, None) if extra is not None else EMPTY
    if not members:
        return (Rep(seq(extra, more), 0, 1) if extra is not None else EMPTY), enough is None and most is None
    if len(members) <= FREE:
        return _sets(shared, separator, extra, more, enough, most), True
    if len(required) <= FREE_REQUIRED:
        node = _sets_and_order(required, optional, separator, extra, more)
    else:
        node = _orders(required, optional, separator, extra, more)
    return node, enough is None and most is None


def _state(options: list[Ir], separator: Ir, begun: bool, more: Ir, may_end: bool) -> Ir:
    """A state: extra members, then one of ``options`` or the end."""
    node = alt(*options)
    if isinstance(node, Alt) and not node.options:
        return seq(more, EMPTY) if may_end and begun else EMPTY if may_end else NOTHING
    if begun:
        node = seq(separator, node)
    body = alt(node, EMPTY) if may_end else node
    return seq(more, body) if begun else body


def _with_extra_first(options: list[Ir], extra: Ir | None, again: Ir | None) -> list[Ir]:
    return [*options, seq(extra, again)] if extra is not None and again is not None else options


def _sets(
    members: list[Member],
    separator: Ir,
    extra: Ir | None,
    more: Ir,
    enough: Callable[[frozenset[str]], bool] | None,
    most: int | None,
) -> Ir:
    known: dict[tuple[frozenset[int], bool], Ir] = {}
    everything = frozenset(range(len(members)))

    def state(left: frozenset[int], begun: bool) -> Ir:
        found = known.get((left, begun))
        if found is None:
            there = everything - left
            may_end = not any(members[i].required for i in left)
            if may_end and enough is not None:
                may_end = enough(frozenset(members[i].name for i in there))
            options: list[Ir] = []
            if most is None or len(there) < most:
                options = [seq(members[i].node, state(left - {i}, True)) for i in sorted(left)]
            if not begun and extra is not None:
                options = _with_extra_first(options, extra, state(left, True))
            node = _state(options, separator, begun, more, may_end)
            found = known[left, begun] = Shared("s", node) if begun and not _small(node) else node
        return found

    return state(everything, False)


def _small(node: Ir) -> bool:
    return node is EMPTY or node is NOTHING


def _sets_and_order(required: list[Member], optional: list[Member], separator: Ir, extra: Ir | None, more: Ir) -> Ir:
    known: dict[tuple[frozenset[int], int, bool], Ir] = {}

    def state(left: frozenset[int], at: int, begun: bool) -> Ir:
        found = known.get((left, at, begun))
        if found is None:
            options = [seq(required[i].node, state(left - {i}, at, True)) for i in sorted(left)]
            options += [seq(optional[j].node, state(left, j + 1, True)) for j in range(at, len(optional))]
            if not begun and extra is not None:
                options = _with_extra_first(options, extra, state(left, at, True))
            node = _state(options, separator, begun, more, not left)
            found = known[left, at, begun] = Shared("s", node) if begun and not _small(node) else node
        return found

    return state(frozenset(range(len(required))), 0, False)


def _orders(required: list[Member], optional: list[Member], separator: Ir, extra: Ir | None, more: Ir) -> Ir:
    known: dict[tuple[int, int, bool], Ir] = {}

    def state(i: int, j: int, begun: bool) -> Ir:
        found = known.get((i, j, begun))
        if found is None:
            options = [seq(required[i].node, state(i + 1, j, True))] if i < len(required) else []
            options += [seq(optional[k].node, state(i, k + 1, True)) for k in range(j, len(optional))]
            if not begun and extra is not None:
                options = _with_extra_first(options, extra, state(i, j, True))
            node = _state(options, separator, begun, more, i == len(required))
            found = known[i, j, begun] = Shared("s", node) if begun and not _small(node) else node
        return found

    return state(0, 0, False)
