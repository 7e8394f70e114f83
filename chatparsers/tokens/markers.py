"""The added tokens of a vocabulary as one regular expression.

Strategy. A plain alternative of some hundred texts is tried text by text at each place. So texts that begin alike are
grouped by what they share, and a search looks at few of them.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

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


def may_spell(tokenizer: Any, data: Any) -> bool:
    """Whether a text in plain data may spell an added token of ``tokenizer``, which may be None: all texts are searched
    at once, in the bytes of a dump. Other data may."""
    pattern = None if tokenizer is None else _markers_in_bytes(Vocabulary.bare(tokenizer))
    if pattern is None:
        return False
    try:
        return pattern.search(marshal.dumps(data)) is not None
    except ValueError:
        return True
