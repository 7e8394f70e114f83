"""When a stream knows what a part of a text is; and the tokens of a strip, what each one spells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..answers.format import Turn
from ..public import public
from ..streams.message import Message
from ..tokens.detokenizer import Detokenizer
from ..tokens.vocabulary import Vocabulary

MOST_TOKENS = 4_000
"""How many tokens of one text have a tip of their own."""
_MOST_CHARACTERS = 20_000
"""A longer text is not read character by character to see what a stream holds."""


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


def texts_of(ids: Sequence[int], tokenizer: Any) -> list[str]:
    """What each id spells; the last one also what it leaves open."""
    detokenizer = Detokenizer(Vocabulary.of(tokenizer))
    texts = [detokenizer.decode(id) for id in ids]
    if texts:
        texts[-1] += detokenizer.flush()
    return texts


def states(turn: Turn, ids: Sequence[int], texts: Sequence[str]) -> list[str]:
    """For each of the first tokens, whether a stream lets out at once what it spells, or with which later token."""
    stream, known = turn.stream(), list[int]()
    for place, id in enumerate(ids):
        if len(known) >= MOST_TOKENS:
            break
        stream.feed([id])
        known += [place] * len(stream.token_regions(len(known)))
    held = [f"held until token {out:,}" for out in known]
    held += ["held until the end"] * (min(len(ids), MOST_TOKENS) - len(known))
    for place, (text, out) in enumerate(zip(texts, known, strict=False)):
        if not text:
            held[place] = "no whole character yet"
        elif out == place:
            held[place] = "known at once"
    return held


def holds(turn: Turn, reading: Message) -> list[int]:
    """For each character of a text that was fed as text, with which character a stream knew its region; the text's
    length: not before the end. Nothing for a long text, or one that this turn reads in another way."""
    text = reading.text
    if len(text) > _MOST_CHARACTERS:
        return []
    stream, known = turn.stream(), list[int]()
    for place, character in enumerate(text):
        stream.feed(character)
        known += [place] * len(stream.token_regions(starts=range(len(known), place + 1)))
    stream.finish()
    known += [len(text)] * (len(text) - len(known))
    return known if stream.message.regions == reading.regions else []
