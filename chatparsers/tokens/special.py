"""The special tokens of a model: the ids that begin, end and pad a turn, and those that users must not see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..public import public
from .vocabulary import AddedToken, TokenizerLike, Vocabulary

# Used if no configuration names them: added tokens that end a turn or a text in every vocabulary that has them.
# Tokens that end a turn in one family and a part of it in another (``<|end|>``, ``<|user|>``) are not here:
# the stops of the format name them.
_ENDS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|return|>",
    "<end_of_turn>",
    "<turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
    "<seed:eos>",
    "<|assistant_end|>",
    "[e~[",
    "</s>",
    "<eos>",
    "<EOS_TOKEN>",
    "[EOS]",
)
_BEGINS = (
    "<|begin_of_text|>",
    "<｜begin▁of▁sentence｜>",
    "<|startoftext|>",
    "<seed:bos>",
    "<bos>",
    "<BOS_TOKEN>",
    "<s>",
)
_PADS = ("<pad>", "<|pad|>", "<PAD>", "[PAD]", "<｜▁pad▁｜>", "<|finetune_right_pad_id|>")


@public
@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of one tokenizer."""

    bos: AddedToken | None
    """The token that begins a text, or None."""
    eos: tuple[AddedToken, ...]
    """The tokens that end a turn or a text, in the order of the configuration."""
    pad: AddedToken | None
    """The token that fills a batch, or None."""
    vocabulary: Vocabulary = field(repr=False, compare=False)
    _hidden: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = [token for token in (self.bos, self.pad, *self.eos) if token is not None]
        flagged = [token for token in self.vocabulary.added.values() if token.special]
        object.__setattr__(self, "_hidden", frozenset(token.id for token in named + flagged))

    @classmethod
    def from_tokenizer(
        cls, tok: TokenizerLike | Vocabulary, config: Mapping[str, Any] | None = None
    ) -> SpecialTokens:
        """The special tokens of ``tok``, as ``config`` names them.

        ``config`` has the keys of tokenizer_config.json (``bos_token``, ``eos_token``, ``pad_token``: a text,
        or a dict with ``content``) and of generation_config.json (``bos_token_id``, ``eos_token_id``,
        ``pad_token_id``: an id, for eos also a list). For a role that it does not name, the usual names are
        looked up among the added tokens.

        >>> special = chatparsers.SpecialTokens.from_tokenizer(tokenizer)
        >>> special.is_special(tokenizer.token_to_id("<tool_call>"))
        True
        """
        vocabulary = Vocabulary.of(tok)
        config = config or {}

        def named(role: str, usual: tuple[str, ...]) -> list[AddedToken]:
            texts, ids = f"{role}_token", f"{role}_token_id"
            found = [*_tokens(vocabulary, config.get(texts)), *_tokens(vocabulary, config.get(ids))]
            if config.get(texts) is None and config.get(ids) is None:
                found = _tokens(vocabulary, usual)
            return list({token.id: token for token in found}.values())

        begins, pads = named("bos", _BEGINS), named("pad", _PADS)
        return cls(
            bos=begins[0] if begins else None,
            eos=tuple(named("eos", _ENDS)),
            pad=pads[0] if pads else None,
            vocabulary=vocabulary,
        )

    @property
    def eos_ids(self) -> frozenset[int]:
        """The ids of ``eos``."""
        return frozenset(token.id for token in self.eos)

    @property
    def by_id(self) -> Mapping[int, AddedToken]:
        """Every added token by its id."""
        return self.vocabulary.added

    @property
    def by_text(self) -> dict[str, AddedToken]:
        """Every added token by its text."""
        return {token.text: token for token in self.vocabulary.added.values()}

    def ids_of(self, text: str) -> tuple[int, ...]:
        """The ids of a marker: one if it is an added token, else the sequence that spells it.

        Raises RequestError if a sequence is needed and the vocabulary came out of a pickle, which cannot encode.

        >>> special = chatparsers.SpecialTokens.from_tokenizer(tokenizer)
        >>> special.ids_of("<tool_call>") == (tokenizer.token_to_id("<tool_call>"),)
        True
        """
        return self.vocabulary.ids_of(text)

    def is_special(self, id: int) -> bool:
        """Whether ordinary text never spells ``id``: it is an added token, whatever its ``special`` flag.

        >>> special = chatparsers.SpecialTokens.from_tokenizer(tokenizer)
        >>> special.is_special(tokenizer.encode("a").ids[0])
        False
        """
        return id in self.vocabulary.added or id in self._hidden

    def should_stream(self, id: int) -> bool:
        """Whether users should see ``id``: it is not bos, eos or pad, and the tokenizer does not flag it ``special``.

        Markers without that flag are shown (Qwen3's ``<think>``), as with ``skip_special_tokens=True``.

        >>> special = chatparsers.SpecialTokens.from_tokenizer(tokenizer)
        >>> special.should_stream(tokenizer.encode("a").ids[0])
        True
        """
        return id not in self._hidden

    def end_of_turn(self, stops: Iterable[str]) -> frozenset[int]:
        """The ids that end a turn: eos, and each of ``stops`` that is one added token.

        >>> special = chatparsers.SpecialTokens.from_tokenizer(tokenizer)
        >>> tokenizer.token_to_id("<|im_end|>") in special.end_of_turn(["<|im_end|>"])
        True
        """
        return self.eos_ids.union(self.vocabulary.single(stops).values())


def _tokens(vocabulary: Vocabulary, value: object) -> list[AddedToken]:
    """The tokens that ``value`` names: an added token's text, an id, a dict with ``content``, or several."""
    if isinstance(value, Mapping):
        return _tokens(vocabulary, value.get("content"))
    if isinstance(value, (list, tuple)):
        return [token for one in value for token in _tokens(vocabulary, one)]
    if isinstance(value, str):
        value = vocabulary.id_of(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return [vocabulary.added.get(value) or AddedToken(value, vocabulary.text_of(value), True)]
    return []
