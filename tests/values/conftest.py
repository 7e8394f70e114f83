"""How the tests of value transcoders read a text: in pieces, with what is left over put before the next piece."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from chatparsers.core.values.base import Transcoder


@dataclass
class Reading:
    """What a transcoder made of a text; equal where all is equal that must not depend on the cuts."""

    out: str
    done: bool
    error: str
    position: int
    notes: list[tuple[int, str, str]]
    outs: list[str] = field(compare=False)
    """What went out piece by piece."""
    most_held: int = field(compare=False)
    """The most characters that were left unconsumed behind a piece."""


Make = Callable[[], Transcoder]
Read = Callable[..., Reading]


def _same(scanner: Transcoder) -> Transcoder:
    return scanner


def _copied(scanner: Transcoder) -> Transcoder:
    """A copy; what becomes of the original must not matter."""
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

    ``last_empty``: its end is told with an empty piece. ``carry``: what becomes of the transcoder between pieces
    (``same``, ``copy``, ``pickle``). ``shortcut``: pieces that are ``plain`` go unscanned.
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
        # What stands before `start` must not matter.
        start = number % 3
        end = scanner.scan("\\'\""[:start] + fed, start, final) - start
        assert 0 <= end <= len(fed)
        outs.append(scanner.out)
        notes += [(position + index - start, expected, found) for index, expected, found in scanner.notes]
        position += end
        rest = fed[end:]
        if scanner.done or scanner.error:
            break
        most_held = max(most_held, len(rest))
    assert not (scanner.done and scanner.error)
    return Reading("".join(outs), scanner.done, scanner.error, position, notes, outs, most_held)


@pytest.fixture(scope="session")
def read() -> Read:
    """`_read`: a text through a transcoder, in pieces."""
    return _read
