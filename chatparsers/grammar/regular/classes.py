"""Classes of characters: those that no set of a language parts, so that an automaton has one move for all of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from ..ir import ANY, LAST, Chars, Ir, Ranges, Text, charset, children


def sets_of(node: Ir, found: dict[Ranges, None]) -> None:
    """Collects the sets of characters that a regular node has."""
    if isinstance(node, Text):
        found.update(dict.fromkeys(((ord(char), ord(char)),) for char in node.text))
    elif isinstance(node, Chars):
        found[node.ranges] = None
    else:
        for part in children(node):
            sets_of(part, found)


class Classes:
    """The characters in as few classes as possible, each inside or outside of every set.

    Making them takes ``steps``, which `charge` is asked for before. ``samples`` has one character of each class.
    """

    def __init__(self, sets: Iterable[Ranges], charge: Callable[[int], None]) -> None:
        points = {0}
        known = list(sets)
        for ranges in known:
            for low, high in ranges:
                points.add(low)
                points.add(high + 1)
        cuts = sorted(point for point in points if point <= LAST)
        places = [
            [range(bisect_left(cuts, low), bisect_right(cuts, high)) for low, high in ranges]
            for ranges in known
        ]
        charge(len(cuts) + sum(map(len, chain.from_iterable(places))))
        classes = [0] * len(cuts)
        count = 1
        for parts in places:  # those of a class that are in the set become a class of their own
            inside: dict[int, int] = {}
            for place in chain.from_iterable(parts):
                number = inside.get(classes[place])
                if number is None:
                    number = inside[classes[place]] = count
                    count += 1
                classes[place] = number
        order = {number: place for place, number in enumerate(dict.fromkeys(classes))}
        self.samples: list[int] = []
        self._spans: list[list[tuple[int, int]]] = [[] for _ in order]
        for place, low in enumerate(cuts):
            high = cuts[place + 1] - 1 if place + 1 < len(cuts) else LAST
            spans = self._spans[order[classes[place]]]
            if not spans:
                self.samples.append(low)
            spans.append((low, high))
        self._of = {
            ranges: sorted({order[classes[place]] for place in chain.from_iterable(parts)})
            for ranges, parts in zip(known, places, strict=True)
        }
        self._unions: dict[tuple[int, ...], Ranges] = {}

    def of(self, ranges: Ranges) -> Sequence[int]:
        """The numbers of the classes that a set consists of."""
        return range(len(self.samples)) if ranges == ANY else self._of[ranges]

    def union(self, numbers: tuple[int, ...]) -> Ranges:
        """The characters of some classes."""
        found = self._unions.get(numbers)
        if found is None:
            found = self._unions[numbers] = charset(
                span for number in numbers for span in self._spans[number]
            )
        return found
