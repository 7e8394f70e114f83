"""Ways to cut a text into pieces."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32


def at(text: str, cuts: Iterable[int]) -> list[str]:
    """The pieces between ``cuts`` (positions in characters), empty ones left out."""
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(text)}), len(text)]
    return [text[start:end] for start, end in pairwise(bounds) if end > start]


def characters(text: str) -> list[str]:
    """Every character by itself."""
    return list(text)


def random_cuts(text: str, number: int, *, most: int = 24, seed: int = 0) -> Iterator[list[str]]:
    """``number`` ways to cut, the same for the same text and seed: between one and ``most`` cuts each, half
    of them near one another, so that a marker is often cut twice."""
    chance = random.Random(crc32(text.encode("utf-8", "surrogatepass")) ^ seed)
    for turn in range(number):
        cuts = {chance.randrange(1, max(len(text), 2)) for _ in range(chance.randint(1, most))}
        if turn % 2:
            start = chance.randrange(1, max(len(text), 2))
            cuts |= {start + chance.randrange(12) for _ in range(4)}
        yield at(text, cuts)


def token_ends(tokenizer: Any, text: str) -> list[int]:
    """The ends of the tokens of ``text``, in characters. If several tokens share a character, the last one counts."""
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    return sorted({end for _, end in offsets if 0 < end <= len(text)})


def token_pieces(text: str, ends: Sequence[int], several: int = 1) -> list[str]:
    """``text`` cut after every ``several`` tokens."""
    return at(text, ends[several - 1 :: several])
