"""mlx-lm: events from ``generate_step``, under the grammar of a turn.

    turn = chat.prepare(messages, tools=tools)
    answer = generate(model, turn, max_tokens=500)
    for event in answer:
        ...
    print(answer.message)

`TurnMask` alone is a logits processor for loops of your own. A guide sets limits:
``generate(model, turn, guide=turn.guide(thinking_tokens=200))``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mlx.core as mx
from mlx_lm.generate import generate_step

from ..answers.format import Turn
from ..guide import Guide
from ..streams.events import Event
from ..streams.message import Message
from ._answer import Answer
from ._masks import Rows, Steered

__all__ = ["Generation", "TurnMask", "generate"]


class TurnMask:
    """A logits processor that allows what a guide allows. A new one for each generation.

    ``steered``: a turn, or a guide (`Turn.guide`, which names the engine and sets limits).
    """

    def __init__(self, steered: Steered) -> None:
        self._rows = Rows(steered)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        (mask,) = self._rows.masks([tokens.tolist()], logits.shape[-1])
        return logits if mask is None else mx.where(mx.array(mask), logits, -float("inf"))


class Generation:
    """A generation that runs while it is iterated over. ``message`` is the message so far."""

    def __init__(self, answer: Answer, tokens: Iterable[tuple[Any, Any]]) -> None:
        self._answer = answer
        self._tokens = tokens

    @property
    def message(self) -> Message:
        """The message so far; whole after the iteration."""
        return self._answer.message

    def __iter__(self) -> Iterator[Event]:
        for id, _ in self._tokens:
            yield from self._answer.feed(int(id))
            if self._answer.ended:
                break
        yield from self._answer.finish()


def generate(
    model: Any,
    turn: Turn,
    *,
    max_tokens: int = 1024,
    stop: Iterable[str] = (),
    constrained: bool = True,
    guide: Guide | None = None,
    **options: Any,
) -> Generation:
    """Begins the answer to ``turn``. Iterate over it for the events.

    ``max_tokens``: the most that the model may write. ``stop``: more texts that end the answer. ``constrained``:
    whether anything steers. ``guide``: a guide of the turn; None: one without limits. ``options``: those of
    ``mlx_lm.generate.generate_step``, such as ``sampler``. Raises
    `RequestError` if the turn has no tokenizer, or if there is no engine for the grammar.
    """
    answer = Answer(turn, stop)
    prompt = mx.array(turn.prompt_ids)
    processors = list(options.pop("logits_processors", None) or ())
    if constrained:
        processors.append(TurnMask(guide or turn))
    tokens = generate_step(prompt, model, max_tokens=max_tokens, logits_processors=processors, **options)
    return Generation(answer, tokens)
