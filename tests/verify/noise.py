"""A model for the judge's tests that knows nothing: it takes any token that the request's grammar allows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import lru_cache

import numpy as np

from chatparsers.adapters._masks import Mask, mask_maker
from chatparsers.chat.chat import Chat
from chatparsers.core.format import Turn
from chatparsers.gateway import Batch, End, Engine, Job
from chatparsers.testing.tiny import TinyModel


class Random(Engine):
    """Samples from the tiny model's biases. Only what the request forces is constrained, as llguidance does it."""

    ids = True

    def __init__(self, model: TinyModel) -> None:
        self.model = model
        self._masks = lru_cache(maxsize=None)(self._maker)

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        forced = job.turn.options.mode == "required" or job.turn.options.schema is not None
        make = self._masks(job.turn) if forced else None
        mask = None if make is None else make()
        biases, random = self.model._biases(), np.random.default_rng(job.sampling.get("seed", 0))
        most, count, reason = job.max_tokens or 900, 0, "length"
        while count < most:
            scores = biases + random.gumbel(size=len(biases))
            id = int((scores if mask is None else np.where(mask.allowed(), scores, -np.inf)).argmax())
            assert mask is None or mask.accept(id)
            count += 1
            yield Batch(ids=[id])
            if id in self.model.eos_ids:
                reason = "stop"
                break
        yield Batch(end=End(reason, prompt=len(job.prompt), completion=count))  # type: ignore[arg-type]

    def _maker(self, turn: Turn) -> Callable[[], Mask] | None:
        return mask_maker(turn, self.model.tokenizer.get_vocab_size(), "llguidance")
