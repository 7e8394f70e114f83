"""What all guides of one turn share: the engine, the grammars, and the limits."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.message import Message
from ..core.parser.stream import Stream
from ..errors import RequestError
from ..grammar import Grammar, write
from .closing import message_ids
from .engines import Compiled, EngineName, Matcher, engine_for
from .turn import Guided


@dataclass(frozen=True, slots=True)
class Plan:
    """The turn, what the engine made of it, and the limits."""

    turn: Guided
    compiled: Compiled | None
    grammar: Grammar | None
    size: int
    """How many ids a mask has."""
    ends: frozenset[int]
    thinking_tokens: int | None
    message: tuple[int, ...]
    max_calls: int | None
    call_within: int | None

    @classmethod
    def of(
        cls,
        turn: Guided,
        engine: EngineName | None,
        thinking_tokens: int | None,
        thinking_message: str,
        max_calls: int | None,
        call_within: int | None,
    ) -> Plan:
        """The plan of a turn. Raises `RequestError` if the turn has no tokenizer or no id that ends it, if a limit is
        none, and if the engine is not installed."""
        if turn.tokenizer is None:
            raise RequestError(
                "guide: expected a turn with a tokenizer, because it steers by token ids, found none: load the "
                "model's folder or .gguf file, or give bind(tokenizer=…)"
            )
        if not turn.stop_ids:
            raise RequestError(
                "guide: expected a token that ends the turn, found none in the tokenizer: name it with load(…, "
                "eos_token=…)"
            )
        for name, number, least in (("thinking_tokens", thinking_tokens, 0), ("call_within", call_within, 1)):
            if number is not None and (type(number) is not int or number < least):
                raise RequestError(
                    f"{name}: expected a number from {least} on, or None, found {number!r:.60}"
                )
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
            max_calls,
            call_within,
        )

    @property
    def bytes(self) -> int:
        """The bytes of a mask."""
        return (self.size + 31) // 32 * 4

    @property
    def limited(self) -> bool:
        """Whether there are limits besides the grammar's."""
        return self.thinking_tokens is not None or self.call_within is not None

    def stream(self) -> Stream:
        """A new stream of ids."""
        stream = self.turn.stream()
        stream.feed([])
        return stream

    def matcher(self) -> Matcher | None:
        """A new matcher at the start of the turn; None if the turn constrains nothing."""
        if self.grammar is None or self.compiled is None:
            return None
        return self.compiled.matcher(str(self.grammar))

    def spent(self, message: Message) -> Matcher | None:
        """A matcher of what may follow ``message`` if no further thought may begin. None if the present one has none
        either."""
        assert self.compiled is not None
        return None
