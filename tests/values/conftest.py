"""Reads a text with a value transcoder, in pieces. Unconsumed text is put before the next piece."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from chatparsers.core.machine.value import Transcoder


@dataclass
class Reading:
    """The result of a transcoder. Two are equal if all fields are equal that must not depend on the cuts."""

    out: str
    done: bool
    error: str
    position: int
    unwanted: int
    """Where the value begins, if it is whole, but not what is wanted; else -1."""
    notes: list[tuple[int, str, str]]
    outs: list[str] = field(compare=False)
    """The output for each piece."""
    most_held: int = field(compare=False)
    """The largest number of characters left unconsumed after a piece."""


Make = Callable[[], Transcoder]
Read = Callable[..., Reading]


def _same(scanner: Transcoder) -> Transcoder:
    return scanner


def _copied(scanner: Transcoder) -> Transcoder:
    """A copy. Later changes of the original must not reach it."""
    copy = scanner.copy()
    scanner.scan("x\"]}'1 ", 0, True)
    return copy


def _pickled(scanner: Transcoder) -> Transcoder:
    copy = pickle.loads(pickle.dumps(scanner))
    assert isinstance(copy, type(scanner))
    return copy


_CARRY = {"same": _same, "copy": _copied, "pickle": _pickled}


def _read(
    make: Make,
    text: str,
    cuts: Iterable[int] = (),
    *,
    last_empty: bool = False,
    carry: str = "same",
    shortcut: bool = False,
) -> Reading:
    """Reads ``text`` cut at ``cuts``.

    ``last_empty``: an empty last piece marks the end. ``carry``: between pieces, the transcoder is kept, copied or
    pickled (``same``, ``copy``, ``pickle``). ``shortcut``: ``plain`` pieces are not scanned.
    """
    bounds = [0, *sorted(cut for cut in cuts if 0 <= cut <= len(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(bounds)]
    if last_empty:
        pieces.append("")
    scanner = make()
    rest = ""
    position = most_held = 0
    outs: list[str] = []
    notes: list[tuple[int, str, str]] = []
    for number, piece in enumerate(pieces):
        final = number == len(pieces) - 1
        if shortcut and not final and not rest and scanner.plain is not None and scanner.plain(piece) is None:
            outs.append(piece)
            position += len(piece)
            continue
        if number:
            scanner = _CARRY[carry](scanner)
        fed = rest + piece
        holds = bool(rest) and not final and scanner.holds(fed)
        # The text before `start` must not matter.
        start = number % 3
        end = scanner.scan("\\'\""[:start] + fed, start, final) - start
        assert 0 <= end <= len(fed)
        assert scanner.plain is None or end == len(fed)
        assert not holds or (end, scanner.out, scanner.notes, scanner.done) == (0, "", [], False)
        outs.append(scanner.out)
        notes += [(position + index - start, expected, found) for index, expected, found in scanner.notes]
        position += end
        rest = fed[end:]
        if scanner.done or scanner.error:
            break
        most_held = max(most_held, len(rest))
    assert not (scanner.done and scanner.error) or scanner.length > 0  # whole, but not what is wanted
    unwanted = position - scanner.length if scanner.done and scanner.error else -1
    return Reading("".join(outs), scanner.done, scanner.error, position, unwanted, notes, outs, most_held)


@pytest.fixture(scope="session")
def read() -> Read:
    """`_read`: a text through a transcoder, in pieces."""
    return _read
