"""A toy model: random logits over a vocabulary, under the mask of a real engine.

The toy vocabulary has every byte, some tokens of several characters that cut markers and JSON in awkward places, the
literals of a format as ordinary tokens, and its markers as added tokens. A real vocabulary works as well. The model
knows nothing: it takes any token that the mask allows. A bias towards the format's literals and the end of strings,
lists and turns lets most runs end. Now and then the model begins a literal and writes it token by token. In the second
half of its budget it ends the turn where it may, and often a value or a block of reasoning.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from engines import llguidance, xgrammar
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from chatparsers.answers.format import Format
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Body, Literal, Token, Value
from chatparsers.core.tree import walk
from chatparsers.tokens import Vocabulary
from chatparsers.values import Elements, Raw, Syntax

END = "<|toy_end|>"
_WORDS = (
    '{"', '":', '", "', '"}', '"}}', '."\n', '}"\n', '": "', "\n\n", "><", "</", ">\n", "<th", "_call", "tool", "name",
    "arguments", "parameters", "get", "weather", "city", "days", "true", "false", "null", "[{", "}]", "),", "='", '="',
    " the", " is", "Oslo", "Hm", "thought", "ok", "```", "json", "<", ">", "</think", "function", "parameter", "to=",
)  # fmt: skip


@lru_cache(maxsize=128)
def toy_tokenizer(format: Format, special: bool) -> Tokenizer:
    """A byte-level tokenizer with the markers of ``format`` as added tokens. ``special``: the markers' flag; the stops
    are special always, as in real tokenizers."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [word for word in dict.fromkeys(map(_spelt, (*_WORDS, *_literals(format)))) if len(word) > 1]
    vocabulary = {text: id for id, text in enumerate([*letters, *words])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in (END, *format.stops)])
    others = [text for text in format.preserved_tokens if text not in format.stops]
    tokenizer.add_tokens([AddedToken(text, special=special, normalized=False) for text in others])
    return tokenizer


def _literals(format: Format) -> Iterator[str]:
    """The literals that the format's calls and values are made of."""
    for node in walk(format.tree(Options(tools=True))):
        if isinstance(node, Literal):
            yield node.text
            yield node.text.strip()
        elif isinstance(node, Value):
            yield from _ends(node.syntax)


def _spelt(text: str) -> str:
    """``text`` in the letters of a byte-level vocabulary."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in level.pre_tokenize_str(text))


@lru_cache(maxsize=64)
def pieces(tokenizer: Tokenizer) -> list[bytes]:
    """The bytes of every id; empty for an id that the tokenizer does not have."""
    found = Vocabulary.of(tokenizer).pieces
    texts = (found[id] for id in range(tokenizer.get_vocab_size(with_added_tokens=True)))
    return [text.encode() if isinstance(text, str) else text for text in texts]


class Mask:
    """The state of an engine's matcher."""

    def allowed(self) -> np.ndarray:
        """A boolean for each id: whether the engine allows it next."""
        raise NotImplementedError

    def accept(self, id: int) -> bool:
        """Takes an id; False if the matcher refuses it."""
        raise NotImplementedError

    def would_accept(self, id: int) -> bool:
        """Whether the matcher takes an id. The state does not change."""
        raise NotImplementedError

    def fork(self) -> Mask:
        """A mask in the same state."""
        raise NotImplementedError


class XgrammarMask(Mask):
    """xgrammar over a tokenizer; ``stop``: the id that ends the turn."""

    def __init__(self, tokenizer: Tokenizer, text: str, dialect: str, stops: Sequence[int]) -> None:
        self.matcher = xgrammar().GrammarMatcher(_compiled(tokenizer, text, dialect, tuple(stops)))
        self.size = tokenizer.get_vocab_size(with_added_tokens=True)
        self.bits = np.zeros((1, (self.size + 31) // 32), dtype=np.int32)

    def allowed(self) -> np.ndarray:
        self.matcher.fill_next_token_bitmask(_as_tensor(self.bits))
        return np.unpackbits(self.bits.view(np.uint8), bitorder="little")[: self.size].astype(bool)

    def accept(self, id: int) -> bool:
        return bool(self.matcher.accept_token(id))

    def would_accept(self, id: int) -> bool:
        taken = bool(self.matcher.accept_token(id))
        if taken:
            self.matcher.rollback(1)
        return taken

    def fork(self) -> Mask:
        made = copy(self)
        made.matcher = self.matcher.fork()
        made.bits = self.bits.copy()
        return made


def _as_tensor(bits: np.ndarray) -> Any:
    import tvm_ffi

    return tvm_ffi.from_dlpack(bits)


@lru_cache(maxsize=64)
def _xgrammar_compiler(tokenizer: Tokenizer, stops: tuple[int, ...]) -> Any:
    xgr = xgrammar()
    texts = [
        text or b"\xff\xff" for text in pieces(tokenizer)
    ]  # an id without text: no grammar allows these bytes
    info = xgr.TokenizerInfo(texts, vocab_type=xgr.VocabType.RAW, stop_token_ids=list(stops))
    return xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)


@lru_cache(maxsize=2)
def _compiled(tokenizer: Tokenizer, text: str, dialect: str, stops: tuple[int, ...]) -> Any:
    compiler = _xgrammar_compiler(tokenizer, stops)
    make = compiler.compile_structural_tag if dialect == "structural_tag" else compiler.compile_grammar
    return make(text)


class LlguidanceMask(Mask):
    """llguidance over a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, text: str, stops: Sequence[int]) -> None:
        module = llguidance()
        self.stops = frozenset(stops)
        self.tokenizer = _llguidance_tokenizer(tokenizer, tuple(stops))
        self.matcher = module.LLMatcher(self.tokenizer, module.LLMatcher.grammar_from_lark(text), log_level=0)
        self.size = tokenizer.get_vocab_size(with_added_tokens=True)

    def allowed(self) -> np.ndarray:
        bits = np.frombuffer(self.matcher.compute_bitmask(), dtype=np.uint8)
        return np.unpackbits(bits, bitorder="little")[: self.size].astype(bool)

    def fork(self) -> Mask:
        made = copy(self)
        made.matcher = self.matcher.deep_copy()
        return made

    def accept(self, id: int) -> bool:
        return bool(self.matcher.consume_token(id))

    def would_accept(self, id: int) -> bool:
        if id in self.stops:  # validate_tokens leaves it out
            return bool(self.matcher.is_accepting())
        return bool(self.matcher.validate_tokens([id]) == 1)


@lru_cache(maxsize=64)
def _llguidance_tokenizer(tokenizer: Tokenizer, stops: tuple[int, ...]) -> Any:
    module = llguidance()
    texts = pieces(tokenizer)
    single = {text: id for id, text in enumerate(texts) if len(text) == 1}
    added = tokenizer.get_added_tokens_decoder()
    marked = {id for id, token in added.items() if token.special} | set(stops)
    specials = tuple(id for id, text in enumerate(texts) if not text or id in marked)

    class Wrapped:
        eos_token_id = stops[0]
        bos_token_id = stops[0]
        special_token_ids = specials

        def __call__(self, text: Any) -> list[int]:
            raw = text.encode() if isinstance(text, str) else bytes(text)
            return [single[bytes([value])] for value in raw]

    wrapped = Wrapped()
    wrapped.tokens = [text or f"<{id}>".encode() for id, text in enumerate(texts)]  # type: ignore[attr-defined]
    return module.LLTokenizer(
        module.TokenizerWrapper(wrapped), n_vocab=len(texts), eos_token=list(stops), slices=[]
    )


_CLOSERS = (b'"', b"}", b"]", b")", b"\n", b"<", b">", b",")
_USUAL = 340
"""About the size of a toy vocabulary. The bias is made for it."""


@lru_cache(maxsize=16)
def _weights(tokenizer: Tokenizer, format: Format, stops: frozenset[int]) -> tuple[np.ndarray, np.ndarray]:
    """The weight of each id, and their running sum."""
    texts = pieces(tokenizer)
    bias = np.zeros(len(texts))
    literals = {text.encode() for text in _literals(format)}
    markers = {*format.stops, *format.preserved_tokens}
    markers_ids = {
        id for id, token in tokenizer.get_added_tokens_decoder().items() if token.content in markers
    }
    more = math.log(max(1, len(texts) / _USUAL))  # as likely as in a toy vocabulary
    for id, text in enumerate(texts):
        if not text:
            bias[id] = -100
        elif id in stops or id in markers_ids:
            bias[id] = 3 + more
        elif len(text) > 3 and text in literals and not text.isalnum():  # a word may be a name as well
            bias[id] = 4 + more
        elif text in _CLOSERS:
            bias[id] = 2.5 + more
        elif text.isalnum() and text.isascii():
            bias[id] = 1
        elif any(value >= 128 for value in text):
            bias[id] = -3
    weights = np.exp(bias)
    return weights, weights.cumsum()


@lru_cache(maxsize=16)
def _value_ends(tokenizer: Tokenizer, format: Format) -> list[tuple[int, ...]]:
    """The texts that end an argument's raw value, and the markers that end a block of reasoning, in tokens."""
    nodes = list(walk(format.tree(Options(tools=True))))
    ends = [end for node in nodes if isinstance(node, Value) for end in _ends(node.syntax)]
    spans = [node.reasoning for node in nodes if isinstance(node, Body) and node.reasoning is not None]
    marks = [
        node.text
        for span in spans
        if span.close is not None
        for node in walk(span.close)
        if isinstance(node, Token)
    ]
    return _spelt_in(tokenizer, format, (*ends, *marks))


def _ends(syntax: Syntax) -> tuple[str, ...]:
    """The texts that end a raw value. An element's begin with a marker that many vocabularies lack, so no model that
    draws at random would write one."""
    if isinstance(syntax, Raw):
        return syntax.stops
    return (syntax.prefix,) if isinstance(syntax, Elements) else ()


@lru_cache(maxsize=16)
def _spelt_literals(tokenizer: Tokenizer, format: Format) -> list[tuple[int, ...]]:
    """The literals of the format in tokens."""
    return _spelt_in(tokenizer, format, _literals(format))


def _spelt_in(tokenizer: Tokenizer, format: Format, texts: Iterable[str]) -> list[tuple[int, ...]]:
    """Texts in tokens: one, if the vocabulary has one, and no marker is in the text."""
    vocabulary = Vocabulary.of(tokenizer)
    id_of = {text: id for id, text in enumerate(pieces(tokenizer))}

    def spelt(text: str) -> tuple[int, ...]:
        whole = id_of.get(text.encode())
        marked = any(marker in text and marker != text for marker in format.preserved_tokens)
        return vocabulary.ids_of(text) if whole is None or marked else (whole,)

    return [ids for text in dict.fromkeys(texts) if text.strip() and (ids := spelt(text))]


def sample(
    mask: Mask, tokenizer: Tokenizer, format: Format, stops: Iterable[int], seed: int, budget: int = 200
) -> tuple[list[int], str]:
    """The ids of one run, and how it came to its end: ``ended``, ``cut`` (no tokens left), ``stuck`` (the mask allows
    nothing) or ``refused`` (the matcher refuses an id that its mask allows)."""
    ends = frozenset(stops)
    weights, sums = _weights(tokenizer, format, ends)
    chance = random.Random(seed)

    def draw(sums: np.ndarray) -> int:
        return min(int(np.searchsorted(sums, chance.random() * sums[-1], "right")), len(sums) - 1)

    literals = _spelt_literals(tokenizer, format)
    value_ends = _value_ends(tokenizer, format)
    planned: tuple[int, ...] = ()
    ids: list[int] = []
    for _ in range(budget):
        allowed = mask.allowed()
        if literals and not (planned and allowed[planned[0]]):
            planned = chance.choice(literals) if chance.random() < 0.15 else ()
        end = next((id for id in ends if allowed[id]), None) if len(ids) > budget // 2 else None
        if value_ends and len(ids) > budget // 2 and not planned and chance.random() < 0.5:
            planned = chance.choice(value_ends)
        if end is not None:
            id = end
        elif planned and allowed[planned[0]]:
            id, planned = planned[0], planned[1:]
        else:
            id = next((id for id in (draw(sums) for _ in range(20)) if allowed[id]), -1)
        if id < 0:  # few are allowed
            inside = np.flatnonzero(allowed)
            if not len(inside):
                return ids, "stuck"
            id = int(inside[draw(weights[inside].cumsum())])
        if not mask.accept(id):
            return [*ids, id], "refused"
        ids.append(id)
        if id in ends:
            return ids, "ended"
    return ids, "cut"
