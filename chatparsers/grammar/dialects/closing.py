"""Orders in which a string takes in the comma after it.

Strategy: a token that holds the quote at the end of a string and the comma after it runs through two rules. So xgrammar
tries it at run time, for each mask inside the string. If the comma belongs to the string's rule, xgrammar decides about
the token once, when it compiles. So a member that ends in a string has two forms: one with the comma, where another
member follows, and one without. The orders stay the same.
"""

from __future__ import annotations

from functools import lru_cache

from ..ir import State


@lru_cache(maxsize=256)
def closing(states: tuple[State, ...], count: int, closed: tuple[int, ...]) -> tuple[State, ...]:
    """The states of the same orders, with a second form of the members ``closed``.

    ``count``: how many members there are. The second forms have the numbers after theirs, then comes the extra member
    (which these orders do not have), then the states.
    """
    second = {member: count + index for index, member in enumerate(closed)}
    entered: set[int] = set()
    """The states that come after a second form."""
    reached = {count + len(states)}
    """The states that come after anything else, and the start."""
    for state in states:
        for first, *then in state.options:
            (entered if first in second and then else reached).update(then or (first,))
    made: list[State] = []
    whole: dict[int, int] = {}
    """The new numbers of the states, by the old ones."""
    inner: dict[int, int] = {}
    """The numbers of the states as they are after a comma, by the old numbers."""

    def add(options: list[tuple[int, ...]], begun: bool, may_end: bool) -> int:
        made.append(State(tuple(options), begun, may_end))
        return count + len(closed) + len(made)

    for at, state in enumerate(states, count + 1):
        options: list[tuple[int, ...]] = []
        for first, *then in state.options:
            if first in second and then:
                options.append((second[first], inner[then[0]]))
                if states[then[0] - count - 1].may_end:
                    options.append((first,))
            else:
                options.append((whole.get(first, first), *(whole[number] for number in then)))
        if at in entered:
            inner[at] = add(options, False, False)
            options = [(inner[at],)]
        if at in reached:
            whole[at] = add(options, state.begun, state.may_end)
    return tuple(made)
