"""transformers: events from ``model.generate``, under the grammar of a turn.

    turn = chat.prepare(messages, tools=tools)
    prompt = tokenizer(turn.prompt, add_special_tokens=False, return_tensors="pt")
    streamer = TurnStreamer(turn)
    model.generate(**prompt, **streamer.options(), max_new_tokens=500)
    print(streamer.message)

`TurnMask` alone is a logits processor, also for batches. A guide in place of the turn sets limits:
``streamer.options(guide=turn.guide(thinking_tokens=200))``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import Queue
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria
from transformers.generation.streamers import BaseStreamer

from ..answers.format import Turn
from ..errors import RequestError
from ..guide import Guide
from ..streams.events import Event
from ..streams.message import Message
from ._answer import Answer
from ._masks import Rows, Steered

__all__ = ["TurnMask", "TurnStreamer"]


class TurnMask(LogitsProcessor):  # type: ignore[misc]
    """Allows what a guide allows. A new one for each call of ``generate``.

    ``steered``: a turn or a guide (`Turn.guide`, which names the engine and sets limits) for all rows of the batch, or
    one for each prompt. Raises `RequestError` if there is no engine, or no tokenizer in a turn.
    """

    def __init__(self, steered: Steered | Iterable[Steered]) -> None:
        self._rows = Rows(steered)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        size = scores.shape[-1]
        for row, mask in enumerate(self._rows.masks(input_ids.tolist(), size)):
            if mask is not None:
                allowed = torch.from_numpy(mask).to(scores.device)
                scores[row] = scores[row].masked_fill(~allowed, float("-inf"))
        return scores


class TurnStreamer(BaseStreamer):  # type: ignore[misc]
    """Reads the ids of one ``generate`` as events.

    Iterate over it while ``generate`` runs in another thread, or run ``generate`` first. ``message`` is the message so
    far. ``timeout``: the seconds that the iteration waits for the next ids. ``stream``: options of `Turn.stream`.
    """

    def __init__(self, turn: Turn, *, timeout: float | None = None, **stream: Any) -> None:
        self.turn = turn
        self._answer = Answer(turn, **stream)
        self._queue: Queue[list[Event] | None] = Queue()
        self._timeout = timeout
        self._prompt = True

    @property
    def message(self) -> Message:
        """The message so far; whole after the end of ``generate``."""
        return self._answer.message

    def options(self, *, guide: Guide | None = None, constrained: bool = True) -> dict[str, Any]:
        """The arguments of ``generate`` for this turn: the streamer, the mask and the ends of turn.

        ``constrained``: whether anything steers. ``guide``: a guide of the turn; None: one without limits.
        """
        mask = {"logits_processor": [TurnMask(guide or self.turn)]} if constrained else {}
        ends = {"eos_token_id": list(self.turn.stop_ids), "stopping_criteria": [_Ended(self._answer)]}
        return {"streamer": self, **ends, **mask}

    def put(self, value: Any) -> None:
        """Called by ``generate``: first with the prompt, then with new ids."""
        if value.dim() > 1 and value.shape[0] > 1:
            raise RequestError(f"streamer: expected one prompt, found a batch of {value.shape[0]}")
        if self._prompt:
            self._prompt = False
            return
        events = [event for id in value.flatten().tolist() for event in self._answer.feed(id)]
        if events:
            self._queue.put(events)

    def end(self) -> None:
        """Called by ``generate`` at its end."""
        self._queue.put(self._answer.finish())
        self._queue.put(None)

    def __iter__(self) -> Iterator[Event]:
        while (events := self._queue.get(timeout=self._timeout)) is not None:
            yield from events


class _Ended(StoppingCriteria):  # type: ignore[misc]
    """Stops at an end of turn that is text, which no id shows."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        return torch.full(
            (input_ids.shape[0],), self._answer.ended, dtype=torch.bool, device=input_ids.device
        )
