"""The text of every token id of a tokenizer.

Strategy: a tokenizer's decoder is read once, as data. Nearly every generative model has one of two kinds:
ByteLevel (each character of a token stands for one byte) or the SentencePiece chain (``▁`` is a space,
``<0xNN>`` one byte, then Fuse). For both, the bytes of an id follow from its token alone. So each id is computed
at its first use, and is a dict look-up afterwards. Any other decoder is measured: the piece of an id is the text
that it adds after an ordinary token.

Invariants:
- A piece is ``str`` if the id spells whole characters by itself, else the raw ``bytes``.
- Nothing is stripped at the start: a model's output continues a prompt, so its first ``▁`` is a real space.
- The table keeps the tokenizer's model and decoder, never the tokenizer itself. So it can be cached for as
  long as the tokenizer lives, without keeping it alive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import index
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary, finalize, ref

from ..errors import RequestError
from ..kept import SharedLock

Piece: TypeAlias = "str | bytes"

_A = TypeVar("_A")

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

    _Resolve: TypeAlias = Callable[[int], Piece]
    _Spell: TypeAlias = Callable[[str], Piece]


class TokenizerLike(Protocol):
    """The interface that a tokenizer must have; ``tokenizers.Tokenizer`` has it."""

    @property
    def model(self) -> Any: ...
    @property
    def decoder(self) -> Any: ...
    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = ..., add_special_tokens: bool = ...
    ) -> Any: ...
    def decode(self, ids: Any, skip_special_tokens: bool = ...) -> str: ...
    def get_added_tokens_decoder(self) -> Any: ...
    def get_vocab(self, with_added_tokens: bool = ...) -> dict[str, int]: ...
    def get_vocab_size(self, with_added_tokens: bool = ...) -> int: ...
    def id_to_token(self, id: int) -> str | None: ...


@dataclass(frozen=True, slots=True)
class AddedToken:
    """One entry of a tokenizer's added-token table: an id that no ordinary text spells.

    ``special`` is the tokenizer's own flag. Do not rely on it: Qwen3 and DeepSeek mark ``<think>`` as not
    special.
    """

    id: int
    text: str
    special: bool


class Pieces(dict[int, Piece]):
    """The piece of each id, computed at its first use; ``""`` for an id that the tokenizer does not have."""

    __slots__ = ("_resolve",)

    def __init__(self, resolve: _Resolve | None, known: Mapping[int, Piece] = MappingProxyType({})) -> None:
        super().__init__(known)
        self._resolve = resolve

    def __missing__(self, key: int) -> Piece:
        number = index(key)
        if number is not key and number in self:  # a zero-dimensional array, which hashes by identity
            return self[number]
        piece = self._resolve(number) if self._resolve is not None and 0 <= number < 1 << 32 else ""
        self[number] = piece
        return piece


class Vocabulary:
    """The pieces and the added tokens of one tokenizer."""

    __slots__ = ("__weakref__", "_ids", "_model", "_payload", "_tokenizer", "added", "bytewise", "pieces")

    added: Mapping[int, AddedToken]
    """Every added token by its id, whatever its ``special`` flag."""
    pieces: Pieces
    """The piece of each id: ``str`` for whole characters, ``bytes`` if a character is split over several ids."""
    bytewise: bool
    """Whether each broken byte becomes one U+FFFD (byte-fallback), or each broken sequence (ByteLevel)."""

    def __init__(
        self,
        added: Mapping[int, AddedToken],
        pieces: Pieces,
        bytewise: bool,
        tokenizer: TokenizerLike | None,
        model: Any = None,
    ) -> None:
        self.added = added
        self.pieces = pieces
        self.bytewise = bytewise
        self._ids = {token.text: token.id for token in added.values()}
        self._tokenizer = tokenizer
        self._model = model
        self._payload: bytes | None = None

    @classmethod
    def of(cls, tokenizer: TokenizerLike | Vocabulary) -> Vocabulary:
        """The vocabulary of ``tokenizer``, made once for as long as the tokenizer lives.

        ``tokenizer`` is a ``tokenizers.Tokenizer``, anything with the same attributes, or an object whose
        ``backend_tokenizer`` is one (the fast tokenizers of transformers). If tokens are added to it later,
        the next call sees them.
        """
        if isinstance(tokenizer, Vocabulary):
            return tokenizer
        entry, found = _entry_of(tokenizer)
        return entry.vocabulary(found)

    @classmethod
    def bare(cls, tokenizer: TokenizerLike | Vocabulary) -> Vocabulary:
        """As `of`, without the tokenizer: it cannot encode, and a cache may hold it (`forgotten_with_tokenizers`)."""
        entry = _known(tokenizer)
        if entry is not None:
            return entry.bare
        return tokenizer if isinstance(tokenizer, Vocabulary) else _entry_of(tokenizer)[0].bare

    def has(self, id: int) -> bool:
        """Whether the tokenizer has a token of that id."""
        if id in self.added or self.pieces[id]:
            return True
        if self._model is None or not 0 <= id < 1 << 32:
            return False
        return self._model.id_to_token(id) is not None

    def id_of(self, text: str) -> int | None:
        """The id of the added token that is exactly ``text``, or None."""
        return self._ids.get(text)

    def single(self, texts: Iterable[str]) -> dict[str, int]:
        """The ids of those of the texts that are one added token each."""
        ids = self._ids
        return {text: ids[text] for text in texts if text in ids}

    def text_of(self, id: int) -> str:
        """The text of ``id`` by itself, for people to read. Broken bytes become U+FFFD."""
        piece = self.pieces[id]
        return piece if isinstance(piece, str) else piece.decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``, without special tokens around it.

        Raises RequestError if the vocabulary came out of a pickle. A pickle holds the pieces, not the tokenizer.
        """
        if self._tokenizer is None:
            raise RequestError(
                "cannot encode: this vocabulary was unpickled without its tokenizer; "
                "make one with Vocabulary.of(tokenizer)"
            )
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def ids_of(self, text: str) -> tuple[int, ...]:
        """The ids that spell ``text`` inside a running text: one if it is an added token, else a sequence.

        SentencePiece tokenizers put a space before the text that they encode; the result leaves it out. If
        ``text`` is not one added token, raises RequestError as ``encode`` does.
        """
        if text in self._ids:
            return (self._ids[text],)
        plain = self.encode(text)
        if self._spells(plain, text):
            return tuple(plain)
        for anchor in ("\n", ".", "a"):
            head = self.encode(anchor)
            both = self.encode(anchor + text)
            if both[: len(head)] == head and self._spells(both[len(head) :], text):
                return tuple(both[len(head) :])
        return tuple(plain)

    def _spells(self, ids: list[int], text: str) -> bool:
        return b"".join(_to_bytes(self.pieces[number]) for number in ids) == text.encode()

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.added)} added tokens, {len(self.pieces)} pieces known)"

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: object) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the pieces of all ids: one or two megabytes, made once. The tokenizer is not pickled."""
        import pickle  # who pickles has it

        if self._payload is None:
            added = [(token.id, token.text, token.special) for token in self.added.values()]
            if self._tokenizer is not None:
                for number in self._tokenizer.get_vocab(True).values():
                    self.pieces[number]
            known = {number: piece for number, piece in sorted(self.pieces.items()) if piece}
            self._payload = pickle.dumps((added, known, self.bytewise), protocol=5)
        digest = blake2b(self._payload, digest_size=16).digest()
        _restored.setdefault(digest, self)
        return _restore, (digest, self._payload)


def forgotten_with_tokenizers(entries: int) -> Callable[[Callable[..., _A]], _lru_cache_wrapper[_A]]:
    """`functools.lru_cache` for functions of a `Vocabulary.bare`: when a tokenizer goes, what was kept goes with it."""

    def around(function: Callable[..., _A]) -> _lru_cache_wrapper[_A]:
        known = lru_cache(maxsize=entries)(function)
        _forgotten.append(known.cache_clear)
        return known

    return around


_forgotten: list[Callable[[], None]] = []


def _forget(identity: int) -> None:
    """A tokenizer went. What was kept of the others is soon found again."""
    _cache.pop(identity, None)
    for clear in _forgotten:
        clear()


class _Entry:
    """The cached data of a living tokenizer. ``alive`` is its Vocabulary while somebody holds one."""

    __slots__ = ("_next", "_there", "alive", "bare")

    def __init__(self, tokenizer: TokenizerLike) -> None:
        added = MappingProxyType(
            {
                number: AddedToken(number, token.content, bool(token.special))
                for number, token in tokenizer.get_added_tokens_decoder().items()
            }
        )
        # The id of the token that is added next, as `tokenizers` finds it. To count a tokenizer's tokens looks at each
        # added one, of which some tokenizers have a thousand.
        self._next = max(tokenizer.get_vocab_size(False), 1 + max(added, default=-1))
        self._there = tokenizer.id_to_token(self._next)
        self.bare = Vocabulary(added, *_table(tokenizer, added), None, tokenizer.model)
        self.alive: ref[Vocabulary] | None = None

    def holds(self, tokenizer: TokenizerLike) -> bool:
        """Whether no token was added since."""
        return tokenizer.id_to_token(self._next) == self._there

    def vocabulary(self, tokenizer: TokenizerLike) -> Vocabulary:
        vocabulary = self.alive() if self.alive is not None else None
        if vocabulary is None:
            bare = self.bare
            vocabulary = Vocabulary(bare.added, bare.pieces, bare.bytewise, tokenizer, bare._model)
            self.alive = ref(vocabulary)
        return vocabulary


def _known(tokenizer: Any) -> _Entry | None:
    """What is known of a tokenizer; without the lock, as it is asked for each stream."""
    entry = _cache.get(id(tokenizer))
    return entry if entry is not None and entry.holds(tokenizer) else None


def _entry_of(tokenizer: Any) -> tuple[_Entry, Any]:
    """What is known of a tokenizer, or is found now; and the tokenizer itself."""
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(tokenizer, "get_vocab_size"):
        raise RequestError(
            f"tokenizer: expected a tokenizers.Tokenizer or a fast tokenizer of transformers, found "
            f"{type(tokenizer).__name__}: load one with Tokenizer.from_file"
        )
    with _lock:
        entry = _known(tokenizer)
        if entry is None:
            entry = _Entry(tokenizer)
            with suppress(TypeError):  # an object that cannot be referred to weakly is not cached
                finalize(tokenizer, _forget, id(tokenizer)).atexit = False
                _cache[id(tokenizer)] = entry
        return entry, tokenizer


_cache: dict[int, _Entry] = {}
"""What is known of the living tokenizers, by their identity: to look up a weak reference takes five times as long."""
_restored: WeakValueDictionary[bytes, Vocabulary] = WeakValueDictionary()
_lock = SharedLock()


def _restore(digest: bytes, payload: bytes) -> Vocabulary:
    """Unpickles a vocabulary. Streams that carry equal ones share one object."""
    import pickle

    with _lock:
        vocabulary = _restored.get(digest)
        if vocabulary is None:
            added, known, bytewise = pickle.loads(payload)
            tokens = {number: AddedToken(number, text, special) for number, text, special in added}
            vocabulary = Vocabulary(MappingProxyType(tokens), Pieces(None, known), bytewise, None)
            vocabulary._payload = payload
            _restored[digest] = vocabulary
        return vocabulary


def _to_bytes(piece: Piece) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode()


def _to_piece(data: bytes) -> Piece:
    """``data`` as text if it is whole characters, else unchanged."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _table(tokenizer: TokenizerLike, added: Mapping[int, AddedToken]) -> tuple[Pieces, bool]:
    """The lazy table of pieces, and whether broken bytes are replaced one by one."""
    spell, bytewise = _speller(tokenizer.decoder, tokenizer.model)
    to_token: Callable[[int], str | None] = tokenizer.model.id_to_token

    def resolve(number: int) -> Piece:
        entry = added.get(number)
        if entry is not None:
            # An added token is its own text, as a template writes it into the prompt. Exception: a token of
            # space marks alone (Gemma 2 has thirty) is white space.
            return entry.text if entry.text.strip("▁") else spell(entry.text)
        token = to_token(number)
        return "" if token is None else spell(token)

    return Pieces(resolve), bytewise


def _speller(decoder: Any, model: Any) -> tuple[_Spell, bool]:
    """A function that spells the tokens of this decoder, and whether the decoder has byte-fallback."""
    steps = _steps(decoder)
    kinds = [step.get("type") for step in steps]
    bytewise = "ByteFallback" in kinds
    swaps: list[tuple[str, str]] = []
    byte_level = False
    fused = False
    for step in steps:
        match step:
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if not (
                fused or byte_level
            ):
                swaps.append((old, new))
            case {"type": "Metaspace", "replacement": str(mark)} if not (fused or byte_level):
                swaps.append((mark, " "))
            case {"type": "ByteFallback"} if not (fused or byte_level):
                pass
            case {"type": "ByteLevel"} if not (fused or bytewise):
                byte_level = True
            case {"type": "Fuse"}:
                fused = True
            case {"type": "Strip", "stop": 0} if fused or byte_level:
                pass  # the start of the whole text, which is the prompt's
            case _:
                return _measured(decoder, model, bytewise), bytewise
    if not steps:
        return _measured(decoder, model, bytewise), bytewise

    def spell(token: str) -> Piece:
        for old, new in swaps:
            token = token.replace(old, new)
        if byte_level:
            try:
                return _to_piece(bytes([_BYTE_OF[character] for character in token]))
            except KeyError:  # not written in the byte alphabet: unchanged
                return token
        return _fallback_byte(token) if bytewise else token

    return spell, bytewise


def _steps(decoder: Any) -> list[dict[str, Any]]:
    """The decoder's steps as in its file; empty if the decoder is missing or written in Python."""
    if decoder is None:
        return []
    state: object = None
    with suppress(Exception):  # what tokenizers raises for a decoder that cannot be written down
        state = json.loads(decoder.__getstate__())
    if not isinstance(state, dict):
        return []
    steps = state.get("decoders", [state])
    return [step if isinstance(step, dict) else {} for step in steps]


def _fallback_byte(token: str) -> Piece:
    """The byte that ``<0xNN>`` stands for, any other token unchanged."""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return _to_piece(bytes.fromhex(token[3:5]))
        except ValueError:
            return token
    return token


def _measured(decoder: Any, model: Any, bytewise: bool) -> _Spell:
    """Spells by trial: the text that the decoder adds for a token after an ordinary token.

    This is right for every decoder that reads tokens one by one, whatever it does at the start of a text.
    """

    def join(tokens: list[str]) -> str:
        return " ".join(tokens) if decoder is None else str(decoder.decode(tokens))

    anchor = ""
    for number in range(1000):
        token = model.id_to_token(number)
        if token and token.isascii() and token.isalpha() and join([token]).strip() == token:
            anchor = token
            break

    def spell(token: str) -> Piece:
        byte = _fallback_byte(token) if bytewise else token
        if byte != token:
            return byte
        if anchor:
            before, both = join([anchor]), join([anchor, token])
            if both.startswith(before):
                return both[len(before) :]
        return join([token])

    return spell


def _byte_alphabet() -> dict[str, int]:
    """Maps the characters that GPT-2's byte-level BPE writes for the 256 bytes to these bytes.

    A printable byte of Latin-1 is written as itself. The other bytes are written as the characters from U+0100
    on, in order (openai/gpt-2, ``encoder.py``).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + place): byte for place, byte in enumerate(others)
    }


_BYTE_OF = _byte_alphabet()
