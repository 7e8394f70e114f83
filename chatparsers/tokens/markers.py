"""The added tokens of a vocabulary, and which texts may spell one.

Strategy. They are one regular expression. A plain alternative of some hundred texts is tried text by text at each
place. So texts that begin alike are grouped by what they share, and a search looks at few of them.

A text may also spell a part of a token, and a template the rest beside it: ``<`` and ``>`` around a declared name. So
the parts of all tokens are known, each with its rest. A part begins and ends where letters do, and its rest counts only
if the template has the words of it.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from .vocabulary import Vocabulary, forgotten_with_tokenizers


def marker_pattern(texts: Iterable[str]) -> re.Pattern[str] | None:
    """Matches the longest of these texts at a place; None if there are none.

    >>> marker_pattern(["<a>", "<a>b", "<c>"]).findall("<a>bc <c>")
    ['<a>b', '<c>']
    """
    found = sorted({text for text in texts if text})
    return re.compile(_choice(found)) if found else None


def _choice(texts: list[str]) -> str:
    """The expression of sorted texts."""
    groups = [list(group) for _, group in groupby(texts, lambda text: text[:1])]
    return "|".join(map(_alike, reversed(groups)))  # an empty text sorts first and is tried last


def _alike(texts: list[str]) -> str:
    """The expression of sorted texts that begin alike."""
    if len(texts) == 1:
        return re.escape(texts[0])
    # Of sorted texts, the first and the last differ most.
    pairs = enumerate(zip(texts[0], texts[-1], strict=False))
    shared = next((place for place, (one, other) in pairs if one != other), len(texts[0]))
    return f"{re.escape(texts[0][:shared])}(?:{_choice([text[shared:] for text in texts])})"


@forgotten_with_tokenizers(64)
def markers_of(vocabulary: Vocabulary) -> re.Pattern[str] | None:
    """Matches each added token that is more than white space; None if there are none."""
    return marker_pattern(token.text for token in vocabulary.added.values() if token.text.strip())


@forgotten_with_tokenizers(64)
def _markers_in_bytes(vocabulary: Vocabulary) -> re.Pattern[bytes] | None:
    """The same in UTF-8."""
    found = markers_of(vocabulary)
    return None if found is None else re.compile(found.pattern.encode())


def may_spell(tokenizer: Any, data: Any, beside: str = "") -> bool:
    """Whether a text in plain data may spell an added token of ``tokenizer``, which may be None, alone or together with
    a template of the source ``beside``. All texts are searched at once for whole tokens, in the bytes of a dump. Other
    data than plain may."""
    pattern = None if tokenizer is None else _markers_in_bytes(Vocabulary.bare(tokenizer))
    if pattern is None:
        return False
    try:
        if pattern.search(marshal.dumps(data)) is not None:
            return True
    except ValueError:
        return True
    return any(map(spelling_part(tokenizer, beside), texts_in(data)))


def spelling_part(tokenizer: Any, beside: str) -> Callable[[str], bool]:
    """Tells of a text whether its beginning, its end or the whole of it may spell a part of an added token, whose rest
    a template of the source ``beside`` may write."""
    parts = _parts_of(Vocabulary.bare(tokenizer), beside)
    known: dict[str, bool] = {}

    def tells(text: str) -> bool:
        found = known.get(text)
        if found is None:
            bare = text.strip()
            head, tail = bare[: parts.longest], bare[-parts.longest :]
            found = known[text] = (
                bare in parts.texts
                or any(tail[tail.rfind(sign) :] in parts.texts for sign in parts.first if sign in tail)
                or any(head[: head.find(sign) + 1] in parts.texts for sign in parts.last if sign in head)
            )
        return found

    return tells


class _Parts(NamedTuple):
    """The parts of added tokens that a text may spell. ``first`` and ``last``: the characters with which tokens begin
    and end; ``longest``: how long they are at most."""

    texts: frozenset[str]
    first: frozenset[str]
    last: frozenset[str]
    longest: int


_PIECE = re.compile(r"[^\W_]+|.", re.DOTALL)
"""A word of a token, or a sign."""


@forgotten_with_tokenizers(16)
def _parts_of(vocabulary: Vocabulary, beside: str) -> _Parts:
    tokens = [token.text for token in vocabulary.added.values() if token.text.strip()]
    found = frozenset(part for text in tokens for part in _parts(text, beside))
    first, last = frozenset(text[0] for text in tokens), frozenset(text[-1] for text in tokens)
    return _Parts(found, first, last, max(map(len, tokens), default=0))


def _parts(token: str, beside: str) -> Iterator[str]:
    """The parts of a token with all its words that are not in ``beside``."""
    pieces = _PIECE.findall(token)
    own = [place for place, piece in enumerate(pieces) if piece[0].isalnum() and piece not in beside]
    first, last = (own[0], own[-1]) if own else (len(pieces), 0)
    for start in range(min(first + 1, len(pieces))):
        for end in range(max(last, start) + 1, len(pieces) + (start > 0)):
            yield "".join(pieces[start:end])


def texts_in(data: Any) -> Iterator[str]:
    """The texts in plain data, keys too, in their order."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for pair in data.items():
            yield from texts_in(pair)
    elif isinstance(data, (list, tuple)):
        for item in data:
            yield from texts_in(item)
