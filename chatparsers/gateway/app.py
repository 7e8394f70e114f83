"""The ASGI application."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import quote

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from .. import __version__
from ..chat.chat import Chat
from ..errors import ChatParsersError
from ..plain import one_line
from ..serving import ApiError, Request
from ..sessions.sessions import Asker
from .about import About
from .answer import Answers
from .apis import CHAT, COMPACT, COUNT, COUNT_INPUT, MESSAGES, RESPONSES, Api, api_of
from .checked import middleware
from .engine import Engine, EngineError
from .fair_pool import Left
from .guard import Guard
from .http_engine import HttpEngine
from .jobs import answers_of, jobs_of
from .keys import Key
from .left_out import LeftOut
from .loops import Silent
from .metrics import Metrics
from .models import Model, Models
from .ollama_api import OllamaApi
from .pages import described, description, files, page, wants_page
from .passing import Passing
from .places import Places
from .prepare import Prepared, Preparing
from .recent import KeepItems, RecentItems
from .record import LEFT, Log, Record, Spans
from .refused import unknown_fields
from .repeats import AWAITED, UNRECORDED, Again, Repeated, Repeats
from .respond import Responding, watch
from .rollouts import Handler as RolloutHandler
from .rollouts import Recording, rollouts_of
from .same_ids import same_ids
from .settings import Settings
from .stored_paths import Asking, Handler, StoredPaths, answered
from .storing import Following, News, StoreAnswer, Storing, opened
from .websocket import ResponsesSocket
from .witness import client_of

THOUGHTS = b"x-chatparsers-thoughts"
"""The header that says what became of a wish for thoughts or effort."""
_AGAIN, _LATER = 5.0, 1.0
"""After how many seconds an engine that did not answer is asked again, and it is seen whether one is used no more."""
_SEEN = 1.0
"""How many seconds what was seen of the engine counts."""
_POSTED = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/responses/compact": COMPACT,
    "/v1/messages": MESSAGES,
}
_COUNTED = {"/v1/messages/count_tokens": COUNT, "/v1/responses/input_tokens": COUNT_INPUT}
_APIS = {path: api.name for path, api in {**_POSTED, **_COUNTED}.items()}


def create_app(chat: Chat, engine: Engine, settings: Settings | None = None) -> Starlette:
    """The gateway as an ASGI application, for uvicorn or any other server.

    When the server starts it, it asks the engine what it can do, and prints warnings on standard error; it does not
    start if the engine cannot be used. ``app.state.metrics`` has the counters. ``app.state.stop()`` ends all answers
    that are being given, each with its API's error, and returns how many these are.
    """
    settings = settings or Settings()
    return create_team_app([Model(chat, engine, settings)], settings)


def create_team_app(
    models: Sequence[Model], settings: Settings, keys: Sequence[Key] = (), spans: Spans | None = None
) -> Starlette:
    """The gateway of one model or several, and of keys with names. ``spans``: who traces requests.

    Of several models, one whose engine does not answer yet is asked again until it does; the others are served. What
    is done by ``await app.state.change(models, keys)``: these are served from then on, and what runs goes on.
    """
    gateway = _Gateway(models, settings, keys, spans)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await gateway.start()
        try:
            async with anyio.create_task_group() as gateway.tasks:
                tasks = gateway.tasks
                tasks.start_soon(watch, gateway.running, gateway.settings)
                tasks.start_soon(gateway.keep_starting)
                yield
                tasks.cancel_scope.cancel()
        finally:
            await gateway.close()

    async def listed(request: HttpRequest) -> Response:
        return gateway.about.models(request)

    async def health(request: HttpRequest) -> Response:
        return JSONResponse({"status": "ok"})  # also while an engine is away: a restart would mend nothing

    async def ready(request: HttpRequest) -> Response:
        return await gateway.ready()

    async def root(request: HttpRequest) -> Response:
        if wants_page(request):
            return page()
        return JSONResponse(gateway.about.shown(request, [*dict.fromkeys(route.path for route in routes)]))

    async def metrics(request: HttpRequest) -> Response:
        return PlainTextResponse(gateway.metrics.text())

    async def connected(socket: WebSocket) -> None:
        await gateway.sockets(socket)

    async def missing(request: HttpRequest, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        message = f"{request.method} {request.url.path}: this server has no such path or method"
        return gateway.refused(request.url.path, request.headers, ApiError(message, status=status))

    if gateway.settings.passed and not isinstance(gateway.models.first.engine, HttpEngine):
        raise ValueError("passed: expected an engine over HTTP, whose other paths can be asked")
    routes = [
        Route("/", root),
        *(Route(path, partial(gateway.respond, api), methods=["POST"]) for path, api in _POSTED.items()),
        *(
            Route(path, partial(gateway.count_tokens, api), methods=["POST"])
            for path, api in _COUNTED.items()
        ),
        Route("/v1/models", listed),
        Route("/v1/models/{name:path}", listed),
        *([] if gateway.storing is None else gateway.paths().routes(partial(partial, gateway.kept))),
        *([] if gateway.rollouts is None else gateway.rollouts.routes(partial(partial, gateway.trained))),
        *gateway.ollama.routes(),
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        *(Route(path, gateway.pass_on, methods=["POST"]) for path in gateway.settings.passed),
    ]
    paths = described(description(__version__, routes[1:], bool(gateway.guard.keys)))
    app = Starlette(
        routes=[*routes, *paths, *files(), WebSocketRoute("/v1/responses", connected)],
        middleware=middleware(gateway.settings, gateway.guard, gateway.refused, gateway.rollouts),
        lifespan=lifespan,
        exception_handlers={404: missing, 405: missing},
    )
    app.state.metrics = gateway.metrics
    app.state.end = gateway.end
    app.state.stop = gateway.stop
    app.state.change = gateway.change
    app.state.keys = gateway.guard.keys
    app.state.close_engines = gateway.close_engines
    app.state.storing = gateway.storing
    app.state.rollouts = gateway.rollouts
    app.state.repeats = gateway.repeats
    return app


class _Gateway:
    def __init__(
        self, models: Sequence[Model], settings: Settings, keys: Sequence[Key], spans: Spans | None
    ) -> None:
        self.models = Models(models)
        self._spans = spans
        self.settings = settings
        self.metrics = Metrics(settings.model)
        self.log: Log | None = None
        self._ready: tuple[float, dict[str, bool]] = (float("-inf"), {})
        self._asking = anyio.Lock()
        self.ending = False
        """Whether the server ends, and takes no more requests."""
        self.guard = Guard(settings, keys)
        self.about = About(self.models, settings, self.guard, self.metrics)
        self.storing = _storing(settings, self.metrics)
        store = None if self.storing is None else self.storing.store
        self.rollouts = rollouts_of(
            self.models.first.chat, settings, self.guard, store, News(self.metrics).tell
        )
        self.repeats = Repeats(AWAITED if self.rollouts is not None else UNRECORDED)
        self.recent = RecentItems()
        self._preparing = Preparing(self.models, settings, self.storing, self.rollouts, self.recent)
        self.tasks: TaskGroup | None = None
        """Where responses run in the background, while the server runs."""
        self._left_out = LeftOut(self.metrics)
        self.ollama = OllamaApi(
            self.models,
            respond=partial(self.respond, CHAT),
            check=self.guard.check_key,
            body=self._preparing.body,
        )
        self.sockets = ResponsesSocket(
            partial(self.respond, RESPONSES),
            self._counted,
            self.guard.check_key,
            RESPONSES.failed,
            stores=self.storing is not None,
            model=settings.model,
            most=settings.max_body,
        )
        self.running: set[Responding] = set()
        self.passing: set[Passing] = set()

    def end(self) -> None:
        """The server ends: `ready` says so from now on."""
        self.ending = True

    def stop(self) -> int:
        """Ends all answers."""
        running: list[Responding | Passing] = [*self.running, *self.passing]
        for responding in running:
            responding.stop()
        return len(running)

    def paths(self) -> StoredPaths:
        """What answers for the responses and conversations that are kept."""
        assert self.storing is not None
        return StoredPaths(self.storing, self.settings.max_body, self.settings.keep_alive)

    async def start(self) -> None:
        if self.settings.log is not None:
            self.log = Log(self.settings.log, self.metrics)
        for model in self.models.all:
            try:
                await self._start(model)
            except EngineError as error:
                if not self.models.several:
                    raise
                _warn(f"the model {model.name} is not served yet: {error}")

    async def _start(self, model: Model) -> None:
        """Finds out what the engine of a model can do. Raises `EngineError` if it cannot be used."""
        await self._preparing.warm(model)
        warnings = await model.engine.start(model.chat)
        warnings += await same_ids(model.chat, model.engine, trusted=model.settings.trust_ids)
        if self.rollouts is not None:
            warnings += self.rollouts.check(model.engine)
        model.started = True
        for warning in warnings:
            _warn(f"{model.name}: {warning}" if self.models.several else warning)

    async def keep_starting(self) -> None:
        """Starts the models whose engines did not answer before."""
        while True:
            await anyio.sleep(_AGAIN)
            for model in self.models.all:
                if not model.started:
                    with suppress(EngineError):
                        await self._start(model)

    async def change(self, models: Sequence[Model], keys: Sequence[Key]) -> None:
        """These models and keys are served from now on. Engines that are used no more are closed once no request
        runs on them."""
        before = {one.engine for one in self.models.all}
        for model in models:
            if not model.started:
                with suppress(EngineError):
                    await self._start(model)
        self.models.change(models)
        self.guard.change(keys)
        gone = before - {one.engine for one in models}
        if gone and self.tasks is not None:
            self.tasks.start_soon(self._close_later, gone, frozenset(self.running))

    async def _close_later(self, engines: set[Engine], running: frozenset[Responding]) -> None:
        while not running.isdisjoint(self.running):
            await anyio.sleep(_LATER)
        for engine in engines:
            await engine.close()

    async def close_engines(self) -> None:
        """Ends the connections to the engines."""
        for model in self.models.all:
            await model.engine.close()

    async def close(self) -> None:
        """Frees what it holds."""
        await self.close_engines()
        await self._preparing.close()
        if self.storing is not None:
            self.storing.store.close()
        if self.rollouts is not None:
            self.rollouts.sessions.close()
        if self.log is not None:
            self.log.close()

    async def ready(self) -> Response:
        """Whether requests can be answered: the engine of a model answers, as it was seen at most a second ago, and the
        server does not end."""
        async with self._asking:  # an engine that is slow to say so is asked once by all
            seen, there = self._ready
            if time.monotonic() - seen > _SEEN:
                there = {one.name: one.started and await one.engine.ready() for one in self.models.all}
                self._ready = time.monotonic(), there
        if self.ending:
            return JSONResponse({"status": "the server ends"}, 503)
        ready = any(there.values())
        more = {"models": there} if self.models.several else {}
        return JSONResponse(
            {"status": "ready" if ready else "the engine does not answer", **more}, 200 if ready else 503
        )

    async def pass_on(self, http: HttpRequest) -> Response | Passing:
        """The engine's own response to a request that is none of the three APIs."""
        record = self._record("passed", http.headers)
        places = Places(self.metrics, self.settings)
        try:
            record.caller = places.caller = self.guard.check_key(http.headers)
            places.caller.admit()
            raw = await self._preparing.raw(http, places.take)
        except BaseException as error:
            places.leave()
            if not isinstance(error, Exception):
                raise
            return self._failed(CHAT, error, record)
        engine = self.models.first.engine
        assert isinstance(engine, HttpEngine)
        return Passing(engine, raw, record, running=self.passing, over=places.leave)

    def refused(self, path: str, headers: Headers, error: ApiError) -> Response:
        """The response to a request that reaches no API."""
        record = self._record(_APIS.get(path, "other"), headers)
        return self._failed(api_of(path), error, record)

    # requests

    def _record(self, api: str, headers: Headers) -> Record:
        return Record(api, headers, self.metrics, self.log, self._spans)

    async def respond(self, api: Api, http: HttpRequest) -> ASGIApp:
        """The response to a request. In a session, one that comes again while it runs gets the one that runs."""
        repeated = self.repeats.of(http.headers, recorded=self.rollouts is not None)
        try:
            found = await self._respond(api, http, repeated)
        except Again as again:
            return again.running.follow
        except BaseException:
            if repeated is not None:
                repeated.end()
            raise
        if repeated is None or not repeated.begun:
            return found
        if not repeated.named and isinstance(found, Responding) and found.streams:
            repeated.end()
            return found
        assert self.tasks is not None
        self.tasks.start_soon(repeated.run, found)
        return repeated.follow

    async def _respond(
        self, api: Api, http: HttpRequest, repeated: Repeated | None
    ) -> Response | Responding | Following:
        """``repeated``: the response, if it may be asked for again."""
        places = Places(self.metrics, self.settings)
        record = self._record(api.name, http.headers)
        recording: Recording | None = None
        try:
            caller = record.caller = places.caller = self.guard.check_key(http.headers)
            owner = caller.owner
            caller.admit()
            asker = Asker(owner, caller.key.admin)
            entry = None if self.rollouts is None else await self.rollouts.entry(http, asker)

            def admit(body: bytearray) -> None:
                if repeated is not None:
                    session = repeated.session if entry is None else entry.id
                    repeated.begin((owner, session, api.name), body)
                places.take()

            prepared = await self._preparing.prepare(
                api, http, admit, caller, entry, watched=repeated is None
            )
            request, model = prepared.request, prepared.model
            record.model, record.session = model.name, prepared.session
            engine = record.engine = model.engine.chosen(prepared.session)
            self._left_out.dropped(request.dropped)
            self._left_out.ignored(unknown_fields(request), record)
            places.take(request.choices - 1)
            if self.rollouts is not None and entry is not None and prepared.step is not None:
                recording = Recording(self.rollouts, entry, prepared.step, api, request, model.engine)
            answers = answers_of(api, prepared, recording)
            keep = self._keep(prepared, answers)
            if keep is not None and keep.background:
                await keep.begin()
        except Again:
            record.fields["again"] = True
            record.end(200)
            raise
        except BaseException as error:
            places.leave()
            if recording is not None:
                recording.drop()
            if not isinstance(error, Exception):
                raise
            return self._failed(api, error, record)
        record.fields["stream"] = request.stream
        if request.images:
            record.fields["images"] = len(request.images)
        if prepared.max_tokens is not None:
            record.fields["max_tokens"] = prepared.max_tokens
            if request.max_tokens is not None and request.max_tokens > prepared.max_tokens:
                record.fields["max_tokens_asked"] = request.max_tokens
        if prepared.replaced:
            record.fields["replaced"] = prepared.replaced
        if prepared.turn.warnings:
            record.fields["warnings"] = prepared.turn.warnings
        headers = []
        seen = prepared.seen
        if seen is not None:
            record.saw(seen, client_of(http.headers))
            headers.append(seen.header())
        used = prepared.turn.thoughts
        if used is not None:
            record.fields["thoughts"] = str(used)
            headers.append((THOUGHTS, quote(str(used), safe=" ;=").encode()))
        background = keep is not None and keep.background
        responding = Responding(
            Silent() if prepared.loops is not None and prepared.loops.stuck else engine,
            jobs_of(prepared, record.passed_on, recording),
            answers,
            stream=request.stream or background,
            record=record,
            settings=self.settings,
            over=places.leave,
            failed=api.failed,
            running=self.running,
            keep=None if background else self._ends(api, owner, request, answers, keep),
            begun=background,
            recording=recording,
            headers=headers,
        )
        if keep is None or not background:
            return responding
        assert self.tasks is not None
        self.tasks.start_soon(keep.run, responding)
        if request.stream:
            return keep.following(self.settings.keep_alive)
        return JSONResponse(keep.begun)

    def _ends(
        self, api: Api, owner: str, request: Request, answers: Answers, keep: StoreAnswer | None
    ) -> Callable[[str], Awaitable[str]] | None:
        """What keeps a whole answer, if anything does."""
        if keep is not None:
            return keep.end
        if api is not RESPONSES or self.storing is not None or request.body.get("store") is False:
            return None
        return KeepItems(self.recent, owner, answers).end

    def _keep(self, prepared: Prepared, answers: Answers) -> StoreAnswer | None:
        """Keeps the answer to a request, if it is to be kept."""
        asked = prepared.asked
        if self.storing is None or asked is None or not asked.store:
            return None
        return StoreAnswer(self.storing, asked, answers.all[0], prepared.held)

    async def kept(self, handler: Handler, http: HttpRequest) -> Any:
        """The response to a request for what is kept."""
        record = self._record("kept", http.headers)
        try:
            caller = record.caller = self.guard.check_key(http.headers)
            body = await self._preparing.body(http) if http.method == "POST" else None
            found = await answered(handler, Asking(caller.owner, http, body))
        except Exception as error:
            return self._failed(RESPONSES, error, record)
        record.end(200)
        return found

    async def trained(self, handler: RolloutHandler, http: HttpRequest) -> Any:
        """The response to a request for what was recorded. A session's own key does not open it."""
        record = self._record("rollouts", http.headers)
        try:
            caller = record.caller = self.guard.check_key(http.headers, lent=False)
            body = await self._preparing.body(http) if http.method == "POST" else None
            found = await run_sync(handler, http, body, Asker(caller.owner, caller.key.admin))
        except Exception as error:
            return self._failed(CHAT, error, record)
        record.end(200)
        return found

    async def _counted(self, http: HttpRequest) -> int:
        """How many tokens the prompt of a response has. Raises `ApiError`."""
        try:
            return await self._preparing.count(COUNT_INPUT, http, self.guard.check_key(http.headers))
        except Exception as error:
            raise ApiError.of(error) from error

    async def count_tokens(self, api: Api, http: HttpRequest) -> Response:
        record = self._record(api.name, http.headers)
        try:
            caller = record.caller = self.guard.check_key(http.headers)
            caller.admit()
            count = await self._preparing.count(api, http, caller)
        except Exception as error:
            return self._failed(api, error, record)
        record.end(200)
        named = {"object": "response.input_tokens"} if api is COUNT_INPUT else {}
        return JSONResponse({**named, "input_tokens": count})

    def _failed(self, api: Api, error: Exception, record: Record) -> Response:
        """The response for an error before the engine was asked."""
        if isinstance(error, (ClientDisconnect, Left)):
            record.end(LEFT)
            return Response(status_code=400)  # nobody reads it
        if not isinstance(error, ChatParsersError):
            traceback.print_exception(error)
        found = ApiError.of(error)
        record.failed(found)
        return api.failed(found)


def _warn(text: str) -> None:
    print(f"chatparsers: warning: {one_line(text)}", file=sys.stderr)


def _storing(settings: Settings, metrics: Metrics) -> Storing | None:
    """What keeps responses. Raises `ValueError` if the store cannot be used."""
    if settings.store is None:
        return None
    return Storing(opened(settings, metrics), metrics, settings.max_body)
