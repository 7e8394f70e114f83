"""From the bytes of a request to what the engine is asked: the turn, its prompt and its grammar.

All of it runs in `chatparsers.gateway.fair_pool`, and `chatparsers.gateway.account` is asked before each step.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request as HttpRequest

from ..answers.format import Turn
from ..chat.request import Request as ChatRequest
from ..grammar import Grammar
from ..serving import ApiError, Image, ImageLimits, Request
from ..serving.compaction import summarizing
from ..serving.items import kept_items
from ..sessions.session import NextAnswer
from ..sessions.sessions import Entry
from .account import READING, Account
from .apis import COMPACT, COUNT_INPUT, RESPONSES, Api
from .body import read_body
from .defaults import with_all_thoughts, with_defaults
from .digest import digest
from .fair_pool import FairPool
from .fetch import Fetching
from .keys import ANYBODY, Caller
from .loops import Loops, loops_of
from .models import Model, Models
from .pictures import Picture
from .recent import RecentItems
from .refused import check, limited, unforced, without_thoughts
from .rollouts import Rollouts
from .seals import seals_of
from .settings import Settings
from .store import ResponseIds
from .storing import Asked, Storing
from .witness import Prompt, Seen, Witness, session_of
from .work import until_left


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request, and what the engine is asked. ``prompt``: ids, or text if the engine or the chat has no ids.
    ``max_tokens``: what the answer may have; None: the engine decides."""

    model: Model
    request: Request
    turn: Turn
    prompt: str | list[int]
    max_tokens: int | None
    grammar: Grammar | None
    asked: Asked | None = None
    """What is to be kept; None: nothing is."""
    pictures: Sequence[Picture] = ()
    held: ResponseIds | None = None
    """The ids of the prompt, to which those of the answer are to come; None: they are not kept."""
    step: NextAnswer | None = None
    """The step of a session that the answer is; None: it is recorded in none."""
    kept: Prompt | None = None
    """The prompt as the witness keeps it, and what it saw; None: it keeps none."""
    seen: Seen | None = None
    missed: dict[str, Any] | None = None
    """What the Messages API says of the cache, if the request asks."""
    loops: Loops | None = None
    """What is done about loops; None: nothing."""
    session: str = ""
    """What its session is called in the log: a digest, or the name under which it is recorded."""
    replaced: int = 0
    """How many texts and numbers of the body could not stay as they were (`read_body`)."""


@dataclass(frozen=True, slots=True)
class _Unfetched:
    """The images of a request, of which some are still to be fetched."""

    images: tuple[Image, ...]


class Preparing:
    """Prepares the requests of a gateway."""

    def __init__(
        self,
        models: Models,
        settings: Settings,
        storing: Storing | None = None,
        rollouts: Rollouts | None = None,
        recent: RecentItems | None = None,
    ) -> None:
        self._models = models
        self._rollouts = rollouts
        self._storing = storing
        self._recent = recent or RecentItems()
        self._settings = settings
        self._witness = Witness(settings.cache_watch) if settings.cache_watch else None
        self._pool = FairPool(settings.max_cpu)
        self._limits = ImageLimits(settings.max_images, settings.max_body, hosts=settings.fetch_images)
        self._fetching = Fetching(self._limits, settings.max_body) if settings.fetch_images else None
        self._seals = seals_of(settings.seal_key_file)
        self._arriving = 0

    async def warm(self, model: Model) -> None:
        """Does what a first request for a model would do."""
        await self._pool.run(model.chat.warm)

    async def close(self) -> None:
        """Ends its threads and connections."""
        self._pool.close()
        if self._fetching is not None:
            await self._fetching.close()

    async def prepare(
        self,
        api: Api,
        http: HttpRequest,
        admit: Callable[[bytearray], None],
        caller: Caller = ANYBODY,
        entry: Entry | None = None,
        *,
        watched: bool = True,
    ) -> Prepared:
        """The request in the body. ``admit``: called with the whole body; it may raise. ``caller``: who asks.
        ``entry``: the session that it is of. ``watched``: whether it is given up when the client leaves.

        Raises `ApiError`, `Left`, or ``ClientDisconnect``.
        """
        account, raw = Account(self._settings), bytearray()
        try:
            await self._body(http, account, raw)
            admit(raw)
            left = partial(until_left, http.receive) if watched else None
            found = await self._pool.run(self._work(api, account, raw, caller, entry, http.headers), left)
            if isinstance(found, _Unfetched):
                assert self._fetching is not None
                images = await self._fetching.fetched(found.images)
                work = self._work(api, account, raw, caller, entry, http.headers, images)
                found = await self._pool.run(work, left)
            assert isinstance(found, Prepared)
            return found
        finally:
            self._forget(account, raw)

    async def count(self, api: Api, http: HttpRequest, caller: Caller) -> int:
        """How many tokens the prompt of a request has."""
        account, raw = Account(self._settings), bytearray()

        def work() -> int:
            model, body = self._asked(account, raw, caller)
            if model.chat.tokenizer is None:
                raise ApiError("this server has no tokenizer, so it cannot count tokens", status=501)
            request, _ = self._request(api, account, model, body, caller.owner)
            if request.images:
                said = "how many tokens an image takes, only the engine knows: leave images out to count the rest"
                raise ApiError(said, status=501, param=request.images[0].path)
            return len(model.prompting.encoded(request, model.prompting.turn(request, account)))

        try:
            await self._body(http, account, raw)
            return await self._pool.run(work, partial(until_left, http.receive), caller.owner)
        finally:
            self._forget(account, raw)

    async def body(self, http: HttpRequest) -> Any:
        """The JSON of a small body; None if it is empty."""
        account, raw = Account(self._settings), bytearray()
        try:
            await self._body(http, account, raw)
            return read_body(bytes(raw), account) if raw else None
        finally:
            self._forget(account, raw)

    async def raw(self, http: HttpRequest, admit: Callable[[], None]) -> bytes:
        """The bytes of a body that is passed on as it is. ``admit``: as for `prepare`."""
        account, raw = Account(self._settings), bytearray()
        try:
            await self._body(http, account, raw)
            admit()
            return bytes(raw)
        finally:
            self._forget(account, raw)

    def _forget(self, account: Account, raw: bytearray) -> None:
        """A body is needed no more. A thread may still hold the work that read it."""
        raw.clear()
        self._arriving -= account.size

    async def _body(self, http: HttpRequest, account: Account, raw: bytearray) -> None:
        """Reads the bytes of the body. A client has some seconds for it, and all bodies together have a limit.

        Of a body that is too large, once more as much is read and forgotten: a client that is cut off while it sends
        does not read why.
        """
        most = self._settings.max_body
        try:
            with anyio.fail_after(self._settings.body_timeout):
                async for piece in http.stream():
                    account.size += len(piece)
                    self._arriving += len(piece)
                    if self._arriving > READING * most:
                        raise ApiError("too many large requests arrive at once: try again later", status=429)
                    if account.size <= most:
                        raw += piece
                    elif account.size > 2 * most:
                        break
            account.arrived()
        except TimeoutError as error:
            said = f"the request's body did not arrive in {self._settings.body_timeout:g} seconds"
            raise ApiError(said, status=408, code="request_timeout") from error

    def _work(
        self,
        api: Api,
        account: Account,
        raw: bytearray,
        caller: Caller,
        entry: Entry | None,
        headers: Headers,
        images: tuple[Image, ...] | None = None,
    ) -> Callable[[], Prepared | _Unfetched]:
        """``images``: of the request, once they are fetched."""

        def work() -> Prepared | _Unfetched:
            model, body = self._asked(account, raw, caller)
            engine, settings, prompting = model.engine, model.settings, model.prompting
            request, asked = self._request(api, account, model, body, caller.owner)
            if images is not None:
                request = replace(request, images=images)
            elif any(image.url is not None for image in request.images):
                return _Unfetched(request.images)
            check(request, engine, by_ids=prompting.by_ids, strict=settings.strict_fields)
            request = limited(
                request,
                engine,
                grammar=settings.grammar,
                recorded=entry is not None,
                drops=settings.drop_unsupported,
            )
            step = self._step(model, entry, request)
            last = self._held(model, request, asked) if step is None else None
            rest = None if last is None else prompting.resumed(request, last)
            prompt: str | list[int]
            placed: Sequence[Picture] = ()
            if step is not None:
                turn, prompt = step.turn, step.rollout.ids
            elif rest is not None and last is not None:
                turn, prompt = rest, [*last.given, *last.sampled]
            else:
                turn = prompting.turn(request, account)
                prompt, placed = prompting.prompt(request, turn, last)
            request = without_thoughts(
                request,
                turn,
                engine,
                grammar=settings.grammar,
                recorded=entry is not None,
                drops=settings.drop_unsupported,
            )
            forces = not unforced(request, engine, entry is not None)
            grammar = prompting.grammar(turn, None if forces else request.thinking_tokens)
            if not forces and request.thinking_tokens is not None:
                request = replace(request, thinking_tokens=None)
            most = request.max_tokens if request.max_tokens is not None else settings.max_tokens
            count = prompting.count(request, turn, prompt)
            if count is not None:
                left = account.room(count, most, engine.context, api.prompt)
                most = most if placed else left  # how many tokens images take, only the engine knows
            held = None
            keeps = asked is not None and asked.store and engine.ids and not placed and step is None
            if keeps and isinstance(prompt, list):
                known = prompting.digest(turn.prompt)
                held = last if rest is not None else ResponseIds(known, array("I", prompt), ())
            session = session_of(headers, request, f"{caller.owner} {model.name}")
            kept, seen, missed = self._see(session, request, prompt)
            return Prepared(
                model,
                request,
                turn,
                prompt,
                most,
                grammar,
                asked,
                placed,
                held,
                step,
                kept,
                seen,
                missed,
                loops_of(settings.loops, request.messages, counted=forces, recorded=entry is not None),
                digest(session)[:16] if entry is None else entry.id,
                account.replaced,
            )

        return work

    def _see(
        self, session: str, request: Request, prompt: str | list[int]
    ) -> tuple[Prompt | None, Seen | None, dict[str, Any] | None]:
        """What the witness keeps of a prompt, what it saw in it, and what it says if it is asked."""
        if self._witness is None or isinstance(prompt, str):
            return None, None, None
        kept = Prompt.of(prompt, request)
        asked = request.body.get("diagnostics")
        before = asked.get("previous_message_id") if isinstance(asked, Mapping) else None
        missed = self._witness.since(before, kept) if isinstance(before, str) else None
        return kept, self._witness.see(session, kept), missed

    def _step(self, model: Model, entry: Entry | None, request: Request) -> NextAnswer | None:
        if entry is None or self._rollouts is None:
            return None
        if not model.prompting.by_ids:
            raise ApiError("rollouts need an engine that takes ids, and its tokenizer here", status=502)
        if request.images:
            raise ApiError("rollouts record ids, and an image has none here: leave images out")
        return self._rollouts.ask(entry, request, lenient_calls=model.settings.lenient_calls)

    def _held(self, model: Model, request: Request, asked: Asked | None) -> ResponseIds | None:
        """The ids of the answer that the history ends with, if they are held and the engine gets ids."""
        if asked is None or self._storing is None or request.images or not model.prompting.by_ids:
            return None
        return self._storing.held(asked)

    def _asked(self, account: Account, raw: bytearray, caller: Caller) -> tuple[Model, Any]:
        """The JSON of a body, and the model that it asks."""
        body = read_body(bytes(raw), account)
        named = body.get("model") if isinstance(body, dict) else None
        return self._models.of(named, caller), body

    def _request(
        self, api: Api, account: Account, model: Model, body: Any, owner: str
    ) -> tuple[Request, Asked | None]:
        drops, asked = model.settings.drop_unsupported, None
        images = self._limits if model.prompting.takes_images else None
        how: dict[str, Any] = {"drop_unsupported": drops, "images": images, "seals": self._seals}
        if self._storing is not None and api in (RESPONSES, COUNT_INPUT, COMPACT):
            request, asked = self._storing.read(owner, body, **how)
        else:
            refers = api in (RESPONSES, COUNT_INPUT, COMPACT)
            request = api.read(self._recent.resolved(owner, body) if refers else body, **how)
        request = with_all_thoughts(request, model.chat.template())
        messages = ChatRequest(model.chat, {}).read(request.messages)
        if messages is not request.messages:
            request = replace(request, messages=[dict(message) for message in messages])
        if api is COMPACT:
            if asked is not None:
                items: list[Any] = [*asked.history, *asked.items]
            else:
                items = kept_items(request.body["input"])
            request, asked = summarizing(request, items), None
        request = with_defaults(request, model.settings)
        account.schemas(request)
        account.messages(request.messages)
        return request, asked
