"""Token ids on their way into a stream: special tokens become one character each, other ids their text.

Strategy: a marker of the format that the tokenizer has as one added token is the character that the program expects
(core/alphabet.py); any other special token is a character of its own, from U+DC00 on, made when it is first met.
Neither can be spelt by text, so what the model merely spells is never taken for a marker. Where each token begins, in
the machine's characters, is kept, so that regions can be told in tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..core.alphabet import Alphabet
from ..core.tokenizer import Named
from .detokenizer import Detokenizer
from .special import SpecialTokens
from .vocabulary import Vocabulary

__all__ = ["IdFeed", "Spelling", "id_feed", "marker_ids", "stop_ids"]

_UNKNOWN = "\ufffd"
_FIRST_OTHER = 0xDC00
_LAST_OTHER = 0xDFFF
_characters = re.compile("[\ud800-\udfff]")
_runs = re.compile("([\udc00-\udfff]+)")

ORDINARY, NOT_AN_END, END, END_IN_VALUE = range(-1, 3)


class Spelling:
    """What the characters that stand for tokens spell; ``skip``: special tokens that are no markers are left out of
    content and reasoning."""

    __slots__ = ("skip", "texts")

    def __init__(self, texts: dict[str, str], skip: bool) -> None:
        self.texts = texts
        self.skip = skip

    def full(self, text: str) -> str:
        """All of it, as the tokenizer spells it."""
        return _characters.sub(lambda found: self.texts[found.group()], text)

    def text(self, text: str) -> str:
        """What of it is content or reasoning."""
        return _characters.sub(self._shown, text)

    def json(self, text: str) -> str:
        """All of it, inside a JSON string: of an argument nothing is left out."""
        return _characters.sub(
            lambda found: json.dumps(self.texts[found.group()], ensure_ascii=False)[1:-1], text
        )

    def runs(self, text: str) -> Iterator[tuple[bool, str]]:
        """Its stretches: whether each is left out, and its characters."""
        if not self.skip:
            yield False, text
            return
        for place, run in enumerate(_runs.split(text)):
            if run:
                yield place % 2 == 1, run

    def _shown(self, found: re.Match[str]) -> str:
        character = found.group()
        return "" if self.skip and ord(character) >= _FIRST_OTHER else self.texts[character]


class IdFeed:
    """Turns ids into the machine's text.

    ``alphabet``: the markers that are single tokens. ``special``: the ids that are a character of their own,
    each with that character and whether it ends the turn (`END`), or does so only inside a value
    (`END_IN_VALUE`: the format's own marker, which elsewhere the parser reads).
    """

    __slots__ = ("_detokenizer", "_special", "alphabet", "offsets", "spelling", "tokenizer", "unknown")

    def __init__(
        self,
        tokenizer: Any,
        detokenizer: Detokenizer,
        special: dict[int, tuple[int, str]],
        alphabet: Alphabet,
        spelling: Spelling,
    ) -> None:
        self.tokenizer = tokenizer
        self._detokenizer = detokenizer
        self._special = special
        self.alphabet = alphabet
        self.spelling = spelling
        self.offsets: list[int] = []
        """Where each token begins, in the machine's characters."""
        self.unknown: list[tuple[int, int]] = []
        """Ids that the tokenizer does not have, each with its position: they spell U+FFFD."""

    def take_unknown(self) -> list[tuple[int, int]]:
        """The unknown ids since it was last asked."""
        found, self.unknown = self.unknown, []
        return found

    def copy(self) -> IdFeed:
        """An independent copy at this point."""
        detokenizer = self._detokenizer.copy()
        other = IdFeed(self.tokenizer, detokenizer, self._special, self.alphabet, self.spelling)
        other.offsets = self.offsets[:]
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """The tokenizer by name, and what was held and read."""
        made = Named(self.tokenizer), self._special, self.alphabet.key, self.spelling
        return _restored, (*made, self._detokenizer.held, self.offsets)

    def is_marker(self, text: str) -> bool:
        """Whether the character is one that the format's program knows."""
        return ord(text) < _FIRST_OTHER

    def text(self, id: int, position: int) -> str | None:
        """The text of an ordinary ``id``; None, and nothing done, for a special one."""
        if id in self._special:
            return None
        self.offsets.append(position)
        return self._detokenizer.decode(id) or self._empty(id, position)

    def _empty(self, id: int, position: int) -> str:
        """What an id spells that completes no character: nothing, or U+FFFD where the tokenizer does not have it."""
        if self._detokenizer.vocabulary.has(id):
            return ""
        held = self._detokenizer.flush()
        self.unknown.append((position + len(held), id))
        return held + _UNKNOWN

    def decode(self, ids: Iterable[int], position: int) -> Iterator[tuple[int, str]]:
        """The text of ``ids``, which begins at ``position``, cut behind each token that may end the turn: what kind of
        end it is, and the text. `ORDINARY`: none, and no special token is in it. An end's character comes alone."""
        texts: list[str] = []
        kind = ORDINARY
        special, offsets, decode = self._special, self.offsets, self._detokenizer.decode
        for id in ids:
            offsets.append(position)
            found = special.get(id)
            if found is None:
                text = decode(id) or self._empty(id, position)
                texts.append(text)
            else:
                end, text = found
                held = self._detokenizer.flush()
                if held:
                    position += len(held)
                    texts.append(held)
                    offsets[-1] = position
                if end:
                    if texts:
                        yield kind, "".join(texts)
                        texts, kind = [], ORDINARY
                    yield end, text
                else:
                    texts.append(text)
                    kind = NOT_AN_END
            position += len(text)
        yield kind, "".join(texts)

    def flush(self) -> str:
        """What was held of a character that is not whole, as U+FFFD."""
        return self._detokenizer.flush()


def _restored(
    tokenizer: Any,
    special: dict[int, tuple[int, str]],
    alphabet: tuple[tuple[str, ...], bool],
    spelling: Spelling,
    held: bytes,
    offsets: list[int],
) -> IdFeed:
    detokenizer = Detokenizer(Vocabulary.of(tokenizer), held)
    feed = IdFeed(tokenizer, detokenizer, special, Alphabet(*alphabet), spelling)
    feed.offsets = offsets
    return feed


@lru_cache(maxsize=64)
def _special_ids(
    vocabulary: Vocabulary,
    texts: tuple[str, ...],
    stops: tuple[str, ...],
    ends: frozenset[int],
    skip: bool,
    also_text: bool,
) -> tuple[dict[int, tuple[int, str]], Alphabet, Spelling]:
    single = {
        text: id for text in dict.fromkeys((*texts, *stops)) if (id := vocabulary.id_of(text)) is not None
    }
    added = vocabulary.added
    alphabet = Alphabet(single, also_text, [text for text, id in single.items() if added[id].special])
    special: dict[int, tuple[int, str]] = {}
    spelt: dict[str, str] = {}
    for text, character in alphabet.chars.items():
        end = END_IN_VALUE if text in texts else END
        special[single[text]] = (end if text in stops or single[text] in ends else NOT_AN_END, character)
        spelt[character] = text
    code = _FIRST_OTHER
    for id, token in vocabulary.added.items():
        if id not in special and (token.special or id in ends) and code <= _LAST_OTHER:
            special[id] = (END if id in ends else NOT_AN_END, chr(code))
            spelt[chr(code)] = token.text
            code += 1
    return special, alphabet, Spelling(spelt, skip)


def id_feed(
    tokenizer: Any,
    texts: tuple[str, ...],
    stops: tuple[str, ...],
    *,
    config: Mapping[str, Any] | None = None,
    skip_special_tokens: bool = True,
    token_text_fallback: bool = False,
) -> IdFeed:
    """A feed for one stream.

    ``texts``: the format's markers; ``stops``: what ends the turn; ``config``: as in generation_config.json,
    for the ids that end it. ``token_text_fallback``: a marker that the model spells out as ordinary text counts
    as well.
    """
    vocabulary = Vocabulary.of(tokenizer)
    ends = stop_ids(vocabulary, stops, config)
    found = _special_ids(vocabulary, texts, stops, ends, skip_special_tokens, token_text_fallback)
    return IdFeed(tokenizer, Detokenizer(vocabulary), *found)


def stop_ids(
    tokenizer: Any, stops: tuple[str, ...], config: Mapping[str, Any] | None = None
) -> frozenset[int]:
    """The ids that end the turn: the stops, and what ``config`` or the tokenizer name as the end of a turn."""
    return SpecialTokens.from_tokenizer(tokenizer, config).end_of_turn(stops)


def marker_ids(tokenizer: Any, texts: Iterable[str]) -> dict[str, int]:
    """The id of each of ``texts`` that the tokenizer has as one token."""
    vocabulary = Vocabulary.of(tokenizer)
    return {text: id for text in texts if (id := vocabulary.id_of(text)) is not None}
