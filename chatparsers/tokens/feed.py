"""Token ids on their way into a stream: special tokens become one character each, other ids their text.

Strategy: if a marker of the format is one added token, it becomes the character that the program expects
(core/machine/alphabet.py). Each other special token becomes a character of its own, from U+DC00 on. Text can spell
neither, so a marker in ordinary tokens never counts as a marker. The feed notes where each token begins, in the
machine's characters. So regions can be counted in tokens.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any, TypeAlias

from ..core.machine.alphabet import FIRST_HIDDEN, LAST_HIDDEN, Alphabet
from ..errors import RequestError
from ..streams.start import Start, StreamTurn, start
from .bound import Named
from .bound import bound_tokenizer as bound_tokenizer  # so a turn with a tokenizer imports what reads ids
from .detokenizer import Detokenizer
from .special import SpecialTokens
from .token_texts import TokenTexts
from .vocabulary import Pieces, Vocabulary, forgotten_with_tokenizers

_UNKNOWN = "\ufffd"
_NO_OFFSETS = array("I")
"""To copy it takes a third of the time of making a new one."""
_lone = re.compile("[\ud800-\udfff]")

_Recipe: TypeAlias = "tuple[tuple[str, ...], tuple[str, ...], frozenset[int], bool, bool]"

ORDINARY, NOT_AN_END, END, END_IN_VALUE = range(-1, 3)


class _TextsById(dict[int, str]):
    """The text of each id, found at its first use; ``""`` if it is special, unknown or only a part of a character."""

    __slots__ = ("_pieces", "special")

    def __init__(self, pieces: Pieces, special: dict[int, tuple[int, str]]) -> None:
        self._pieces = pieces
        self.special = special

    def __missing__(self, id: int) -> str:
        piece = "" if id in self.special else self._pieces[id]
        text = self[id] = piece if isinstance(piece, str) else ""
        return text


class _NoTexts(dict[int, str]):
    def __missing__(self, id: int) -> str:
        return ""


_NO_TEXTS = _NoTexts()


class IdFeed:
    """Turns ids into the machine's text.

    ``recipe``: the arguments of `_tables`, by which a pickle has its results. ``texts`` has the text of each ordinary
    id; its ``special`` maps each id that becomes one character to a kind of end and that character. `END` ends the
    turn. `END_IN_VALUE` ends it only inside a value: it is a marker of the format, and elsewhere the parser reads it.
    ``alphabet``: the markers that are single tokens.
    """

    __slots__ = (
        "_begin",
        "_detokenizer",
        "_marks",
        "_new",
        "_offsets",
        "_recipe",
        "_texts",
        "alphabet",
        "spelling",
        "texts",
        "tokenizer",
        "unknown",
    )

    def __init__(
        self,
        tokenizer: Any,
        detokenizer: Detokenizer,
        recipe: _Recipe,
        texts: _TextsById,
        alphabet: Alphabet,
        spelling: TokenTexts,
        begin: int,
    ) -> None:
        self.tokenizer = tokenizer
        self._detokenizer = detokenizer
        self._recipe = recipe
        self._texts = texts
        self.alphabet = alphabet
        self.spelling = spelling
        self._offsets = _NO_OFFSETS[:]
        self._new: list[str] = []
        """The texts of the last ids, whose offsets nobody has asked for. The first begins at ``_begin``."""
        self._begin = begin
        self._marks: list[int] = []
        self.unknown: list[tuple[int, int]] = []
        """The positions and ids of unknown tokens. Each becomes U+FFFD."""
        self.texts: Mapping[int, str] = texts
        """The texts of ordinary ids, as long as no part of a character is held."""
        self._look()

    @property
    def offsets(self) -> array[int]:
        """Where each token begins, in the machine's characters: four bytes a token, as many streams may be open."""
        self._settle()
        return self._offsets

    @property
    def marks(self) -> list[int]:
        """The positions of the characters that stand for tokens."""
        return self._marks

    def _settle(self) -> None:
        """Finds where the last ids begin."""
        new = self._new
        if new:
            begins = list(accumulate(map(len, new), initial=self._begin))
            if self._new is new:  # no other thread has asked for the regions of the same message
                self._new = []
                self._begin = begins.pop()
                self._offsets.fromlist(begins)

    @property
    def fed(self) -> int:
        """How many ids were fed."""
        return len(self._new) + len(self._offsets)

    def keep(self, count: int) -> int:
        """Keeps the first ``count`` ids; all others, one at least, are ordinary. Returns where the first of these
        began."""
        self._settle()
        self._begin = self._offsets[count]
        del self._offsets[count:]
        return self._begin

    def _look(self) -> None:
        """Sets `texts`."""
        self.texts = _NO_TEXTS if self._detokenizer.held else self._texts

    def ran(self, ids: list[int]) -> str:
        """The text of ``ids``, which all have one in `texts`, and come next."""
        texts = list(map(self._texts.__getitem__, ids))
        self._new += texts
        return "".join(texts)

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete character are held."""
        return self._detokenizer.pending

    def take_unknown(self) -> list[tuple[int, int]]:
        """The unknown ids since the last call."""
        found, self.unknown = self.unknown, []
        return found

    def copy(self) -> IdFeed:
        """An independent copy at this point."""
        detokenizer = self._detokenizer.copy()
        self._settle()
        other = IdFeed(
            self.tokenizer, detokenizer, self._recipe, self._texts, self.alphabet, self.spelling, self._begin
        )
        other._offsets, other._marks = self._offsets[:], self._marks[:]
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the tokenizer by name and the recipe of the tables, with the held bytes and the offsets."""
        made = Named(self.tokenizer), self._recipe, self._detokenizer.held
        return _restored, (*made, self.offsets, self.marks, self._begin)

    def is_marker(self, text: str) -> bool:
        """Whether the character stands for a marker of the format."""
        return ord(text) < FIRST_HIDDEN

    def text(self, id: int) -> str | None:
        """The text of an ordinary ``id``. Returns None and changes nothing if ``id`` is special."""
        text = self._texts[id]
        if not text and id in self._texts.special:
            return None
        if not text or self._detokenizer.held:
            self._settle()
            text = self._detokenizer.decode(id) or self._empty(id, self._begin)
            self._look()
        self._new.append(text)
        return text

    def _empty(self, id: int, position: int) -> str:
        """The text of an id that completes no character: ``""``, or U+FFFD if the tokenizer has no such id."""
        if self._detokenizer.vocabulary.has(id):
            return ""
        held = self._detokenizer.flush()
        self.unknown.append((position + len(held), id))
        return held + _UNKNOWN

    def decode(self, ids: Sequence[int]) -> list[tuple[int, str]]:
        """The text of ``ids``, cut before and after each token that may end the turn.

        Each part is a kind of end and its text. `ORDINARY` text has no special token. The character of an end comes
        alone. Bytes that a special id cuts off belong to the id before it.
        """
        self._settle()
        position = self._begin
        self._new = texts = list(map(self._texts.__getitem__, ids))
        parts: list[tuple[int, str]] = []
        kind, runs, begun = ORDINARY, [], 0
        place = self._next(0)
        while place < len(texts):
            special = self._texts.special.get(ids[place])
            if special is not None and (held := self._detokenizer.flush()):
                if place:
                    texts[place - 1] += held
                else:
                    runs.append(held)
                    position += len(held)
                    self._begin = position
            if begun < place:
                runs.append("".join(texts[begun:place]))
                position += len(runs[-1])
                begun = place
            if special is None:
                id = ids[place]
                texts[place] = self._detokenizer.decode(id) or self._empty(id, position)
            else:
                end, texts[place] = special
                self._marks.append(position)
                if end:
                    if runs:
                        parts.append((kind, "".join(runs)))
                    parts.append((end, texts[place]))
                    kind, runs = ORDINARY, []
                else:
                    runs.append(texts[place])
                    kind = NOT_AN_END
                position += 1
                begun = place + 1
            place = self._next(place + 1)
        runs += texts[begun:]
        if runs:
            parts.append((kind, "".join(runs)))
        self._look()
        return parts

    def _next(self, place: int) -> int:
        """The next id that is not just its text: it is special, has no text, or follows a part of a character."""
        if self._detokenizer.held:
            return place
        try:
            return self._new.index("", place)
        except ValueError:
            return len(self._new)

    def flush(self) -> str:
        """Returns the held bytes of an incomplete character as U+FFFD."""
        held = self._detokenizer.flush()
        self._look()
        return held


def _restored(
    tokenizer: Any, recipe: _Recipe, held: bytes, offsets: array[int], marks: list[int], begin: int
) -> IdFeed:
    vocabulary = Vocabulary.bare(tokenizer)
    feed = IdFeed(tokenizer, Detokenizer(vocabulary, held), recipe, *_tables(vocabulary, *recipe), begin)
    feed._offsets, feed._marks = offsets, marks
    return feed


@forgotten_with_tokenizers(64)
def _tables(
    vocabulary: Vocabulary,
    texts: tuple[str, ...],
    stops: tuple[str, ...],
    ends: frozenset[int],
    skip: bool,
    also_text: bool,
) -> tuple[_TextsById, Alphabet, TokenTexts]:
    """What all feeds of one recipe share: the texts of the ids, the alphabet, the texts of its characters."""
    single = vocabulary.single((*texts, *stops))
    added = vocabulary.added
    alphabet = Alphabet(single, also_text, [text for text, id in single.items() if added[id].special])
    special: dict[int, tuple[int, str]] = {}
    of_char: dict[str, str] = {}
    for text, character in alphabet.chars.items():
        end = END_IN_VALUE if text in texts else END
        special[single[text]] = (end if text in stops or single[text] in ends else NOT_AN_END, character)
        of_char[character] = text
    code = FIRST_HIDDEN
    for id, token in vocabulary.added.items():
        if id not in special and (token.special or id in ends) and code <= LAST_HIDDEN:
            special[id] = (END if id in ends else NOT_AN_END, chr(code))
            of_char[chr(code)] = token.text
            code += 1
    return _TextsById(vocabulary.pieces, special), alphabet, TokenTexts(of_char, skip)


def id_start(
    turn: StreamTurn, inline: bool, skip_special_tokens: bool, token_text_fallback: bool
) -> tuple[Start, IdFeed]:
    """How a stream of ids begins, with a program in which markers are single tokens; and the feed of its ids.

    The options are those of `Turn.stream`; ``inline``: reasoning is content.
    """
    vocabulary, format = Vocabulary.bare(turn.tokenizer), turn.format
    ends = _ends(vocabulary, format.stops, turn.token_config, format.preserved_tokens)
    recipe = format.preserved_tokens, format.stops, ends, skip_special_tokens, token_text_fallback
    table, alphabet, spelling = _tables(vocabulary, *recipe)
    prefix = alphabet.encode(_lone.sub(_UNKNOWN, turn.prefix))  # a lone surrogate would be a token
    begin = start(format, turn.options, prefix, turn.tools, inline, alphabet.key)
    feed = IdFeed(turn.tokenizer, Detokenizer(vocabulary), recipe, table, alphabet, spelling, begin.origin)
    return begin, feed


def stop_ids(
    tokenizer: Any,
    stops: tuple[str, ...],
    config: Mapping[str, Any] | None = None,
    texts: tuple[str, ...] = (),
) -> frozenset[int]:
    """The ids that end the turn: those of the stops, and the ends of turn that ``config`` or the tokenizer name.

    ``texts``: the format's markers. A token that ends turns in other families is none here if it is one of them.
    """
    return _ends(Vocabulary.bare(tokenizer), stops, config, texts)


def _ends(
    vocabulary: Vocabulary, stops: tuple[str, ...], config: Mapping[str, Any] | None, texts: tuple[str, ...]
) -> frozenset[int]:
    said = {key: config[key] for key in _ENDS if config.get(key) is not None} if config else None
    return _kept_ends(vocabulary, stops, _encode(said) if said else "{}", texts)


_ENDS = ("eos_token", "eos_token_id")


def _plain(value: object) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)


_encode = json.JSONEncoder(default=_plain, skipkeys=True).encode


@forgotten_with_tokenizers(64)
def _kept_ends(
    vocabulary: Vocabulary, stops: tuple[str, ...], said: str, texts: tuple[str, ...]
) -> frozenset[int]:
    """``said``: what the configuration says of ends, as JSON."""
    config = json.loads(said)
    special = SpecialTokens.from_tokenizer(vocabulary, config)
    inner = () if config else vocabulary.single(text for text in texts if text not in stops).values()
    return special.end_of_turn(stops).difference(inner)


def marker_ids(tokenizer: Any, texts: Iterable[str]) -> dict[str, int]:
    """Maps each of ``texts`` that is one token to its id."""
    return Vocabulary.bare(tokenizer).single(texts)


def text_of(tokenizer: Any, ids: Iterable[int], markers: Mapping[str, int]) -> str:
    """The text of ``ids``. ``markers``: the texts that are one token each.

    Raises `RequestError` if no text tells what these ids say: if they end in a part of a character, or if ordinary ids
    spell a marker, which would be read as one.
    """
    vocabulary = Vocabulary.of(tokenizer)
    decoder = Detokenizer(vocabulary)
    parts: list[str] = []
    known = frozenset(markers.values())
    for marked, run in groupby(ids, known.__contains__):
        if not marked:
            parts.append(decoder.decode_all(run))
            marker = next((marker for marker in markers if marker in parts[-1]), None)
            if marker is not None:
                raise RequestError(
                    f"rest: expected ids of which a text tells, found {marker!r} in ordinary tokens: go on by ids, "
                    "with turn.guide().feed(ids)"
                )
        else:
            parts += [decoder.flush(), *map(vocabulary.text_of, run)]
    if decoder.pending:
        raise RequestError(
            "rest: expected whole characters, found ids that end in a part of one: leave the last id out"
        )
    return "".join(parts)
