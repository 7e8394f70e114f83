"""The tokens of a strip: what each one spells, and when what it spells was known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.format import Turn
from ..core.public import public
from ..tokens.detokenizer import Detokenizer
from ..tokens.vocabulary import Vocabulary

__all__ = ["MOST_TOKENS", "Token", "spelt", "states"]

MOST_TOKENS = 4_000
"""How many tokens of one text have a tip of their own."""


@public
@dataclass(frozen=True, slots=True)
class Token:
    """One token of a strip. ``place``: its number in the answer or the sample. ``span``: its characters; a token that
    begins a character which later ones complete has none. ``state``: whether a loss counts it, or how long a stream
    holds what it spells."""

    id: int
    place: int
    text: str
    span: tuple[int, int]
    state: str = ""


def spelt(ids: Sequence[int], tokenizer: Any) -> list[str]:
    """What each id spells; the last one also what it leaves open."""
    detokenizer = Detokenizer(Vocabulary.of(tokenizer))
    texts = [detokenizer.decode(id) for id in ids]
    if texts:
        texts[-1] += detokenizer.flush()
    return texts


def states(turn: Turn, ids: Sequence[int], texts: Sequence[str]) -> list[str]:
    """For each of the first tokens, whether a stream lets out at once what it spells, or with which later token."""
    stream, known, end = turn.stream(), list[int](), 0
    for id in ids[:MOST_TOKENS]:
        stream.feed([id])
        known.append(max((region.end for region in stream.message.regions), default=0))
    found, out = [], 0
    for place, text in enumerate(texts[: len(known)]):
        end += len(text)
        out = max(out, place)
        while out < len(known) and known[out] < end:
            out += 1
        later = f"held until token {out:,}" if out < len(known) else "held until the end"
        found.append("no whole character yet" if not text else "known at once" if out == place else later)
    return found
