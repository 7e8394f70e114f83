"""Several engines of one model. A session stays with one of them, which has its prompts in the cache.

A new session goes to the engine that its name and the engine's address choose (rendezvous hashing), so several gateways
choose alike, and an engine that is lost or added moves its own sessions alone. One that cannot be reached is left out
for some seconds; a request that it has not begun to answer goes to the next. A draining one gets no new session.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import Any

import anyio

from ..chat.chat import Chat
from ..gateway.engine import Batch, Engine, EngineError, Job
from ..gateway.http_engine import HttpEngine
from ..grammar import Grammar

AWAY = 5.0
"""For how many seconds an engine that could not be reached is left out."""
_SESSIONS = 100_000
"""Of how many sessions it is known where they are."""
_OF_KIND = ("dialect", "reader", "takes_ids", "fields", "sampling", "logprobs", "images_by_ids")
_FOUND = ("images", "ids")
"""What an engine finds out, and must be the same of all."""


class Upstreams(Engine):
    """Engines of one kind that run one model. ``draining``: the addresses of those that get no new session."""

    def __init__(self, engines: Sequence[HttpEngine], draining: Collection[str] = ()) -> None:
        self._engines = [*engines]
        self._draining = {one for one in engines if one.url in {url.rstrip("/") for url in draining}}
        self._started: list[HttpEngine] = []
        self._chat: Chat | None = None
        self._starting = anyio.Lock()
        self._away: dict[HttpEngine, float] = {}
        self._sessions: OrderedDict[str, HttpEngine] = OrderedDict()
        for name in _OF_KIND:
            setattr(self, name, getattr(engines[0], name))

    async def start(self, chat: Chat) -> list[str]:
        """Starts all that answer. Raises `EngineError` if none does."""
        self._chat = chat
        warnings: list[str] = []
        errors: list[EngineError] = []
        for engine in self._engines:
            try:
                warnings += [one for one in await self._start(engine) if one not in warnings]
            except EngineError as error:
                errors.append(error)
                warnings.append(f"{engine.name} is not asked yet: {error}")
        if not self._started:
            raise errors[0]
        return warnings

    async def _start(self, engine: HttpEngine) -> list[str]:
        assert self._chat is not None
        async with self._starting:  # once, whoever asks
            return [] if engine in self._started else await self._begin(engine, self._chat)

    async def _begin(self, engine: HttpEngine, chat: Chat) -> list[str]:
        try:
            warnings = await engine.start(chat)
        except EngineError:
            self._away[engine] = time.monotonic() + AWAY
            raise
        if not self._started:
            for name in _FOUND:
                setattr(self, name, getattr(engine, name))
        elif other := [name for name in _FOUND if getattr(self, name) != getattr(engine, name)]:
            self._away[engine] = time.monotonic() + AWAY
            said = f"it differs from the other engines of the model in its {' and '.join(other)}"
            raise EngineError(f"{engine.name}: {said}")
        if engine.context is not None:
            self.context = engine.context if self.context is None else min(self.context, engine.context)
        self._started.append(engine)
        return warnings

    def chosen(self, session: str) -> Engine:
        return _Chosen(self, session)

    def order(self, session: str) -> Iterator[HttpEngine]:
        """The engines that may answer a session's request, the best first."""
        known = self._sessions.get(session)
        rest = sorted((one for one in self._engines if one is not known), key=lambda one: _rank(session, one))
        ranked = [*([] if known is None else [known]), *rest]
        open_to = [one for one in ranked if one is known or one not in self._draining] or ranked
        now = time.monotonic()
        here = [one for one in open_to if self._away.get(one, 0.0) <= now]
        return iter(here or open_to)  # if all are away, one may be back

    async def asked(self, session: str, engine: HttpEngine) -> None:
        """The session is this engine's from now on. Raises `EngineError` if it cannot be used."""
        if engine not in self._started:
            await self._start(engine)
        self._sessions[session] = engine
        self._sessions.move_to_end(session)
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)

    def lost(self, engine: HttpEngine) -> None:
        """It could not be reached."""
        self._away[engine] = time.monotonic() + AWAY

    def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        return self.chosen("").generate(job)

    def grammar(self, *given: Any, **named: Any) -> Grammar | None:
        return self._engines[0].grammar(*given, **named)

    async def tokenize(self, text: str) -> list[int] | None:
        """The ids of the first engine, or of the first that gives others: then they are not those of the chat."""
        found = [await engine.tokenize(text) for engine in self._started]
        return next((ids for ids in found if ids != found[0]), found[0])

    async def ready(self) -> bool:
        answers: list[bool] = []

        async def look(engine: HttpEngine) -> None:
            answers.append(await engine.ready())

        async with anyio.create_task_group() as tasks:
            for engine in self._engines:
                tasks.start_soon(look, engine)
        return any(answers)

    async def close(self) -> None:
        for engine in self._engines:
            with suppress(RuntimeError):
                await engine.close()


class _Chosen(Engine):
    """The engines as one request has them. ``name``: of the one that was asked last."""

    def __init__(self, upstreams: Upstreams, session: str) -> None:
        self._upstreams = upstreams
        self._session = session
        self._asked: HttpEngine | None = None

    @property
    def name(self) -> str:
        return "" if self._asked is None else self._asked.name

    async def start(self, chat: Chat) -> list[str]:
        return []

    def grammar(self, *given: Any, **named: Any) -> Grammar | None:
        return self._upstreams.grammar(*given, **named)

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        failed: EngineError | None = None
        for engine in self._upstreams.order(self._session):
            self._asked, begun = engine, False
            try:
                await self._upstreams.asked(self._session, engine)
                async with aclosing(engine.generate(job)) as batches:
                    async for batch in batches:
                        begun = True
                        yield batch
                return
            except EngineError as error:
                if begun or (error.where is None and error.code != "engine_ended" and error.status != 503):
                    raise
                self._upstreams.lost(engine)
                failed = error
        assert failed is not None
        raise failed


def _rank(session: str, engine: HttpEngine) -> bytes:
    return hashlib.blake2b(f"{session}\n{engine.url}".encode("utf-8", "replace"), digest_size=8).digest()
