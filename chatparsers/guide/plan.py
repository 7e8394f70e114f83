"""What all guides of one turn share: the engine, the grammars, and the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import RequestError, check_limit, lacks_tokenizers
from ..grammar import Grammar, write
from ..grammar.reading.request import check_call_within
from ..streams.message import Message
from ..streams.stream import Stream
from .closing import message_ids, sections, without_texts
from .engines import Compiled, EngineName, Matcher, engine_for
from .turn import Guided

Due: TypeAlias = "Callable[[list[list[int]]], object]"
"""Is called where an open thought has taken all its tokens, with the ways to end it: ids each, the best first."""
OnLoop: TypeAlias = Literal["close", "stop"]
"""What becomes of a loop: an open thought is closed, or the answer ends."""
_KEPT = 256
"""So many of the last ids can be taken back at once; to take back more, the stream reads again what is left."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The turn, what the engine made of it, and the limits."""

    turn: Guided
    compiled: Compiled | None
    """None: nothing is enforced here."""
    grammar: Grammar | None
    size: int
    """How many ids a mask has."""
    ends: frozenset[int]
    thinking_tokens: int | None
    message: tuple[int, ...]
    sections: frozenset[int]
    """The ids that end a thought because they begin a section."""
    max_calls: int | None
    call_within: int | None
    on_loop: OnLoop | None = None
    due: Due | None = None
    """Who chooses how a thought is ended, and ends it; None: the guide does."""

    @classmethod
    def counting(
        cls, turn: Guided, thinking_tokens: int | None, due: Due, on_loop: OnLoop | None = None
    ) -> Plan:
        """The plan of a guide that enforces nothing, and only counts thoughts."""
        ends = frozenset(turn.stop_ids)
        return cls(turn, None, None, 0, ends, thinking_tokens, (), sections(turn), None, None, on_loop, due)

    @classmethod
    def of(
        cls,
        turn: Guided,
        engine: EngineName | None,
        thinking_tokens: int | None = None,
        thinking_message: str = "",
        max_calls: int | None = None,
        call_within: int | None = None,
        on_loop: OnLoop | None = None,
    ) -> Plan:
        """The plan of a turn. Raises `RequestError` if the turn has no tokenizer or no id that ends it, if a limit is
        none, and if the engine is not installed."""
        if turn.tokenizer is None:
            raise RequestError(
                "guide: expected a turn with a tokenizer, because it steers by token ids, found none: load the "
                "model's folder or .gguf file, or give bind(tokenizer=…)" + lacks_tokenizers()
            )
        if not turn.stop_ids:
            raise RequestError(
                "guide: expected a token that ends the turn, found none in the tokenizer: name it with load(…, "
                "eos_token=…)"
            )
        if thinking_tokens is None and turn.thoughts is not None:
            thinking_tokens = turn.thoughts.budget
        check_limit("thinking_tokens", thinking_tokens, least=0)
        if on_loop not in (None, "close", "stop"):
            raise RequestError(f"on_loop: expected 'close', 'stop' or None, found {on_loop!r:.40}")
        if call_within is None:
            call_within = turn.call_within
        check_call_within(turn, call_within)
        if turn.call_within is not None:  # the guide counts, not its grammar
            turn = turn._replace(call_within=None)
        compiled = engine_for(turn.tokenizer, turn.stop_ids, engine)
        grammar = write(turn, compiled.engine.dialect, max_calls=max_calls, **compiled.engine.options)
        return cls(
            turn,
            compiled,
            grammar,
            compiled.engine.size,
            frozenset(turn.stop_ids),
            thinking_tokens,
            message_ids(turn, thinking_message),
            sections(turn),
            max_calls,
            call_within,
            on_loop,
        )

    @property
    def limited(self) -> bool:
        """Whether there are limits besides the grammar's."""
        return any(limit is not None for limit in (self.thinking_tokens, self.call_within, self.on_loop))

    def stream(self) -> Stream:
        """A new stream of ids."""
        stream = self.turn.stream(rollback=0 if self.compiled is None else _KEPT)
        stream.feed([])
        return stream

    def matcher(self) -> Matcher | None:
        """A new matcher at the start of the turn; None if the turn constrains nothing."""
        return self._matcher(self.grammar)

    def _matcher(self, grammar: Grammar | None) -> Matcher | None:
        return None if grammar is None or self.compiled is None else self.compiled.matcher(str(grammar))

    def _narrower(self, turn: Guided, **how: Any) -> Matcher | None:
        """A matcher of a narrower grammar; None if nothing is enforced."""
        if self.compiled is None:
            return None
        engine = self.compiled.engine
        grammar = write(turn, engine.dialect, max_calls=self.max_calls, **engine.options, **how)
        return self._matcher(grammar)

    def spent(self, message: Message) -> Matcher | None:
        """A matcher of what may follow ``message`` if no further thought may begin. None if the present one has none
        either."""
        turn = self.turn._replace(prefix=self.turn.prefix + without_texts(message))
        try:
            return self._narrower(turn, spent=True)
        except RequestError:  # no text tells what the ids say; a thought that begins is ended at once
            return None

    def call_next(self, spent: bool) -> Matcher | None:
        """A matcher of what may follow text if a call must come first. ``spent``: no thought may begin."""
        turn = self.turn._replace(prefix="")
        return self._narrower(turn, spent=spent, call_next=True)
