"""A model for the judge's tests that knows nothing: it takes any token that the request's grammar allows."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import numpy as np

from chatparsers.adapters._masks import allowed
from chatparsers.chat.chat import Chat
from chatparsers.gateway import Batch, End, Engine, Job
from chatparsers.testing.tiny import TinyModel


class Random(Engine):
    """Samples from the tiny model's biases. Only what the request forces is constrained, as llguidance does it."""

    ids = True

    def __init__(self, model: TinyModel) -> None:
        self.model = model

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        forced = job.turn.options.mode == "required" or job.turn.options.schema is not None
        guide = job.turn.guide("llguidance") if forced else None
        biases, random = self.model._biases(), np.random.default_rng(job.sampling.get("seed", 0))
        most, count, reason = job.max_tokens or 900, 0, "length"
        while count < most:
            scores = biases + random.gumbel(size=len(biases))
            mask = None if guide is None else allowed(guide, len(scores))
            id = int((scores if mask is None else np.where(mask, scores, -np.inf)).argmax())
            if guide is not None:
                guide.feed(id)
            count += 1
            yield Batch(ids=[id])
            if id in self.model.eos_ids:
                reason = "stop"
                break
        yield Batch(end=End(reason, prompt=len(job.prompt), completion=count))  # type: ignore[arg-type]
