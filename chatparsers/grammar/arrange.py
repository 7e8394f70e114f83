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

from .ir import EMPTY, NOTHING, Alt, Ir, Rep, Seq, Shared, alt, seq

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
    """The members in every order there is room for, ``separator`` between them, and whether ``enough`` and
    ``most`` hold.

    ``extra``: a member that may come any number of times, anywhere. ``enough``: a test of the names that are
    there, for the end; ``most``: how many there may be. Both hold only where every order is generated.
    """
    shared = [
        Member(m.name, m.node if isinstance(m.node, Shared) else Shared("m", m.node), m.required)
        for m in members
    ]
    required = [m for m in shared if m.required]
    optional = [m for m in shared if not m.required]
    more = Rep(seq(separator, extra), 0, None) if extra is not None else EMPTY
    if not members:
        return (Rep(seq(extra, more), 0, 1) if extra is not None else EMPTY), enough is None and most is None
    states = _States(separator, extra, more)
    if len(members) <= FREE:
        return _sets(shared, states, enough, most), True
    return _ordered(
        required, optional, states, len(required) <= FREE_REQUIRED
    ), enough is None and most is None


class _States:
    """Makes the states of an automaton: what may follow, once each."""

    def __init__(self, separator: Ir, extra: Ir | None, more: Ir) -> None:
        self.lead = separator.items if isinstance(separator, Seq) else (separator,)
        self.extra = extra
        self.more = () if extra is None else (more,)

    def after(self, member: Ir, state: Ir) -> Ir:
        """``member``, then ``state``."""
        return Seq((member,)) if state is EMPTY else Seq((member, state))

    def make(self, options: list[Ir], begun: bool, may_end: bool) -> Ir:
        """A state with these options; ``begun``: members stand before it."""
        options = [option for option in options if option is not NOTHING]
        if not options:
            end = Seq(self.more) if begun and self.more else EMPTY
            return end if may_end else NOTHING
        node: Ir = options[0] if len(options) == 1 else Alt(tuple(options))
        if begun and self.lead:
            node = Seq((*self.lead, node))
        if may_end:
            node = alt(node, EMPTY)
        if not begun:
            return node
        return Shared("s", Seq((*self.more, node)) if self.more else node)


def _sets(
    members: list[Member],
    states: _States,
    enough: Callable[[frozenset[str]], bool] | None,
    most: int | None,
) -> Ir:
    known: dict[tuple[int, bool], Ir] = {}
    must = sum(1 << index for index, member in enumerate(members) if member.required)

    def state(left: int, begun: bool) -> Ir:
        found = known.get((left, begun))
        if found is None:
            there = [index for index in range(len(members)) if not left >> index & 1]
            may_end = not left & must
            if may_end and enough is not None:
                may_end = enough(frozenset(members[index].name for index in there))
            options: list[Ir] = []
            if most is None or len(there) < most:
                for index, member in enumerate(members):
                    if left >> index & 1:
                        then = state(left & ~(1 << index), True)
                        options.append(NOTHING if then is NOTHING else states.after(member.node, then))
            if not begun and states.extra is not None:
                options.append(states.after(states.extra, state(left, True)))
            found = known[left, begun] = states.make(options, begun, may_end)
        return found

    return state((1 << len(members)) - 1, False)


def _ordered(required: list[Member], optional: list[Member], states: _States, free: bool) -> Ir:
    """The optional ones in order, the required ones in any (``free``) or in theirs."""
    known: dict[tuple[int, int, bool], Ir] = {}
    chains: dict[tuple[int, int], Ir] = {}

    def chain(left: int, at: int) -> Ir:
        """One of the optional members from ``at`` on."""
        if at == len(optional):
            return NOTHING
        found = chains.get((left, at))
        if found is None:
            one = states.after(optional[at].node, state(left, at + 1, True))
            rest = chain(left, at + 1)
            found = chains[left, at] = one if rest is NOTHING else Shared("o", Alt((one, rest)))
        return found

    def state(left: int, at: int, begun: bool) -> Ir:
        found = known.get((left, at, begun))
        if found is None:
            options: list[Ir] = []
            for index, member in enumerate(required):
                if left >> index & 1:
                    options.append(states.after(member.node, state(left & ~(1 << index), at, True)))
                    if not free:
                        break
            options.append(chain(left, at))
            if not begun and states.extra is not None:
                options.append(states.after(states.extra, state(left, at, True)))
            found = known[left, at, begun] = states.make(options, begun, not left)
        return found

    return state((1 << len(required)) - 1, 0, False)
