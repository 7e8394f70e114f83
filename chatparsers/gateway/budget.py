"""A budget for thoughts, and an end of those that repeat, before an engine that knows neither.

Strategy: a guide of the turn counts the ids of thoughts while they come, and says when none is left and how the thought
can be ended (`chatparsers.guide.counting`). Then the engine is stopped, the shortest closer comes in the model's place,
and the same engine goes on after it, by a second request: prompt and answer so far are its prompt, and its grammar is
that of the rest, in which no further thought may begin. A thought that begins all the same, where no grammar holds, is
ended at once in the same way. So the reader sees one answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from itertools import product
from typing import Literal

from anyio.to_thread import run_sync

from ..errors import RequestError
from ..grammar import Grammar
from ..guide import counting
from ..guide.closing import without_texts
from ..streams.message import Message
from .engine import Batch, End, Engine, Job

_CLOSED = 32
"""So many thoughts of one answer are closed. Each costs a request, and a model may open them without end."""


def within_budget(engine: Engine, job: Job) -> AsyncGenerator[Batch, None]:
    """`Engine.generate`, with thoughts of at most ``job.thinking_tokens`` ids, of which none repeats without end if
    ``job.close_loops``."""
    if job.thinking_tokens is None and not job.close_loops:
        return engine.generate(job)
    return _parts(_Budget(engine, job))


async def _parts(budget: _Budget) -> AsyncGenerator[Batch, None]:
    """The batches of one answer, from as many requests as it takes."""
    forced = await budget.closer()
    while True:
        if forced:
            yield Batch(ids=forced)
        if not budget.room:
            yield Batch(end=End("length", completion=budget.count))
            return
        async with aclosing(budget.engine.generate(budget.job)) as batches:
            async for batch in batches:
                taken, forced = await budget.take(batch)
                yield taken
                if forced:
                    break
            else:
                return


class _Budget:
    """One answer. ``count``: how many ids came, or were forced. ``job``: what the engine is asked next."""

    def __init__(self, engine: Engine, job: Job) -> None:
        self.engine = engine
        self.job = self._first = job
        self.count = 0
        self._said = False
        """Whether the engine has said what it had of the prompt."""
        self._had: int | None = None
        """How much of the prompt it had, once it has read the prompt for this answer; None: it has not."""
        self._closed = 0
        """How many thoughts were closed."""
        self._before = 0
        """How many ids there were when the engine was asked last."""
        self._ways: list[list[int]] = []
        """How the thought can be ended, once it must end."""
        on_loop: Literal["close"] | None = "close" if job.close_loops else None
        self._guide = counting(job.turn, job.thinking_tokens, self._due, on_loop)

    def _due(self, ways: list[list[int]]) -> None:
        self._ways = ways

    @property
    def room(self) -> bool:
        """Whether the answer may go on."""
        return self._closed < _CLOSED and (self.job.max_tokens is None or self.job.max_tokens > 0)

    async def take(self, batch: Batch) -> tuple[Batch, list[int]]:
        """A batch up to where the budget ends, and the ids that end the thought there."""
        end = self._counted(batch.end)
        for place, id in enumerate(batch.ids or ()):
            self._feed(id)
            if forced := await self.closer():
                self._had = self._first.known
                said = None if end is None else End(None, cached=end.cached)
                return Batch(ids=(batch.ids or [])[: place + 1], end=said), forced
        return replace(batch, end=end), []

    async def closer(self) -> list[int]:
        """The ids that end a thought that has taken all its tokens; empty if it has not, or if none ends it here."""
        ways, most = self._ways, self._first.max_tokens
        if not ways or (most is not None and self.count >= most):  # there the engine ends
            return []
        return await run_sync(self._close, ways)  # to write a grammar takes a while

    def _feed(self, id: int) -> None:
        self._ways = []
        self.count += 1
        self._guide.feed(id)

    def _close(self, ways: list[list[int]]) -> list[int]:
        # Rather one that the format writes here than one of another kind of thought, which the parser would read too.
        for anew, ids in product((False, True), ways):
            if any(other[: len(ids)] == ids for other in ways if len(other) > len(ids)):
                continue  # only the beginning of a closer: nothing may hold the engine to its rest
            stream = self._guide.stream.fork()
            stream.feed(ids)
            try:
                grammar = self._grammar(stream.message, anew)
            except RequestError:  # it may not come here
                continue
            return self._go_on(ids, grammar)
        return []

    def _go_on(self, ids: list[int], grammar: Grammar | None) -> list[int]:
        """Sets what the engine is asked after ``ids``. Returns these, as far as the answer may have them."""
        first, most = self._first, self._first.max_tokens
        ids = ids if most is None else ids[: most - self.count]
        for id in ids:
            self._feed(id)
        self._ways = []
        sampling = dict(first.sampling)
        if "min_tokens" in sampling:
            sampling["min_tokens"] = max(sampling["min_tokens"] - self.count, 0)
        self._closed += 1
        self._before = self.count
        prompt = first.prompt
        prompt = prompt + self._guide.message.text if isinstance(prompt, str) else [*prompt, *self._guide.ids]
        self.job = replace(
            first,
            prompt=prompt,
            grammar=grammar,
            max_tokens=None if most is None else most - self.count,
            sampling=sampling,
        )
        return ids

    def _grammar(self, message: Message, anew: bool) -> Grammar | None:
        """The grammar of what comes after ``message``. The words of thoughts do not matter for it."""
        if self._first.grammar is None:
            return None
        turn = self._first.turn
        rest = turn._replace(prefix=turn.prefix + without_texts(message))
        return self.engine.grammar(rest, spent=True, anew=anew) or self.engine.grammar(rest, anew=anew)

    def _counted(self, end: End | None) -> End | None:
        """An end with the counts of the whole answer. What the engine had of the prompt is what it said of the first
        request. If it says that only at the end, it is what it has now, as far as a prompt before had it too; all of
        it, where the thought was closed before the engine was asked."""
        if end is None:
            return None
        if not self._before:
            self._said = self._said or end.cached is not None
            return end
        prompt, completion, cached = end.prompt, end.completion, end.cached
        return End(
            end.reason,
            None if prompt is None else max(prompt - self._before, 0),
            None if completion is None else completion + self._before,
            None if self._said or cached is None else cached if self._had is None else min(cached, self._had),
        )
