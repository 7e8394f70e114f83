"""What all guides of one turn share: the engine, the grammars, and the limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.message import Message
from ..core.parser.stream import Stream
from ..errors import RequestError, check_limit, lacks_tokenizers
from ..grammar import Grammar, write
from ..grammar.reading.request import check_call_within
from .closing import message_ids, sections, without_texts
from .engines import Compiled, EngineName, Matcher, engine_for
from .turn import Guided

_KEPT = 256
"""So many of the last ids can be taken back at once; to take back more, the stream reads again what is left."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The turn, what the engine made of it, and the limits."""

    turn: Guided
    compiled: Compiled
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
                "model's folder or .gguf file, or give bind(tokenizer=…)" + lacks_tokenizers()
            )
        if not turn.stop_ids:
            raise RequestError(
                "guide: expected a token that ends the turn, found none in the tokenizer: name it with load(…, "
                "eos_token=…)"
            )
        check_limit("thinking_tokens", thinking_tokens, least=0)
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
        stream = self.turn.stream(rollback=_KEPT)
        stream.feed([])
        return stream

    def matcher(self) -> Matcher | None:
        """A new matcher at the start of the turn; None if the turn constrains nothing."""
        return self._matcher(self.grammar)

    def _matcher(self, grammar: Grammar | None) -> Matcher | None:
        return None if grammar is None else self.compiled.matcher(str(grammar))

    @property
    def _options(self) -> dict[str, Any]:
        engine = self.compiled.engine
        return {"dialect": engine.dialect, "max_calls": self.max_calls, **engine.options}

    def spent(self, message: Message) -> Matcher | None:
        """A matcher of what may follow ``message`` if no further thought may begin. None if the present one has none
        either."""
        turn = self.turn._replace(prefix=self.turn.prefix + without_texts(message))
        try:
            return self._matcher(write(turn, **self._options, spent=True))
        except RequestError:  # no text tells what the ids say; a thought that begins is ended at once
            return None

    def call_next(self, spent: bool) -> Matcher | None:
        """A matcher of what may follow text if a call must come first. ``spent``: no thought may begin."""
        turn = self.turn._replace(prefix="")
        return self._matcher(write(turn, **self._options, spent=spent, call_next=True))
