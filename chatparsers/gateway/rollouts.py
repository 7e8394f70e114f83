"""The gateway as a recorder of rollouts: requests become steps of sessions, and sessions become samples.

Which session a request is of, its address says (``/sessions/{id}/v1/…``), else the header ``x-session-id``, else the
session's own key, else the key that it has in common with others: then lines are told apart by their messages alone.
All three APIs may mix in one session.

A request is prepared as every other, but that the session says what the engine gets. What it samples is written down
before the client has the last byte (`Recording.keep`), or when the client leaves (`Recording.over`).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..chat.chat import Chat
from ..plain import one_line
from ..serving import ApiError, Request
from ..serving.fields import whole_request
from ..sessions.log import Tell
from ..sessions.paths import Message
from ..sessions.samples import TWINS, rows_of, summary, to_arrow, to_lines
from ..sessions.session import NextAnswer, Sampled
from ..sessions.sessions import OWN_KEY, AnswerDetails, Asker, Entry, Sessions, digest
from ..storage.session_index import Elsewhere, SessionIndex
from .answer import Answer, Answers
from .apis import Api
from .engine import Batch, Engine, EngineError
from .guard import Guard, given_key
from .settings import Settings
from .store import Store

HEADER = "x-session-id"
_LEFT = "client_left"
_PATH = re.compile(r"/sessions/(?P<id>.+?)/(?P<path>v1/.*)", re.DOTALL)
_SCOPE = "chatparsers.session"
_SHARED = "shared"
"""The session of those who have no key."""

Handler = Callable[[HttpRequest, Any, Asker], Any]
Taking = Callable[[Sequence[int], Batch], None]


class Named:
    """Serves ``/sessions/{id}/v1/…`` as ``/v1/…``, and remembers the id. ``elsewhere``: as of `Rollouts`, for requests
    of sessions that other gateways have. ``refused``: makes their response."""

    def __init__(
        self,
        app: ASGIApp,
        elsewhere: Callable[[HttpRequest], Awaitable[ApiError | None]] | None,
        refused: Callable[[str, Any, ApiError], Response],
    ) -> None:
        self._app = app
        self._elsewhere = elsewhere
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app, found = self._app, _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is not None:
            path = f"/{found['path']}"
            scope = {**scope, "path": path, "raw_path": path.encode(), _SCOPE: found["id"]}
        if self._elsewhere is not None and scope["type"] == "http":
            http = HttpRequest(scope)
            error = await self._elsewhere(http)
            app = app if error is None else self._refused(http.url.path, http.headers, error)
        await app(scope, receive, send)


class Rollouts:
    """The sessions of a gateway, for its requests and for who trains on them."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def check(self, engine: Engine) -> list[str]:
        """What is to be said of an engine. Raises `EngineError` if it gives no ids."""
        if not engine.ids:
            said = "rollouts need an engine that gives ids (llama-server, vllm, sglang-generate, --gguf)"
            raise EngineError(said)
        return [] if engine.logprobs else ["the engine gives no log probabilities: rollouts have none"]

    # who asks

    async def entry(self, http: HttpRequest, asker: Asker) -> Entry:
        """The session of a request, which begins if there is none.

        Raises `ApiError` if there are too many, or if its key is of another session, or the session another key's."""
        key = given_key(http.headers)
        named, own = _named(http), self.sessions.of_key(key)
        if own is not None and named not in (None, own):
            raise ApiError(f"this key is of another session than {str(named)[:99]!r}", status=403)
        id = own or named or (f"key-{digest(key)[:16]}" if key else _SHARED)
        found = self.sessions.known(id)
        found = found if found is not None else await run_sync(self.sessions.named, id, asker.owner)
        if own is None and not asker.may(found.head):
            raise ApiError(
                f"the session {id[:99]!r} is another key's", status=403, code="session_of_another_key"
            )
        return found

    def ask(self, entry: Entry, request: Request, *, lenient_calls: bool) -> NextAnswer:
        """What a request asks the engine."""
        options = {name: value for name, value in request.prepare.items() if name != "messages"}
        options["lenient_calls"], previous = lenient_calls, request.body.get("previous_response_id")
        return self.sessions.ask(
            entry, request.messages, options, previous if isinstance(previous, str) else None
        )

    async def elsewhere(self, http: HttpRequest, guard: Guard) -> ApiError | None:
        """What is said to a request of a session that another gateway has."""
        index, named, key = self.sessions.index, _named(http), given_key(http.headers)
        own = key.startswith(OWN_KEY)
        if index is None or not (own or named):
            return None
        if (own and self.sessions.of_key(key)) or (named and self.sessions.known(named)):
            return None
        try:
            if not own:
                guard.check_key(http.headers)
            found = await run_sync(index.elsewhere, None if own else named, digest(key))
        except ApiError as error:
            return None if error.status == 401 else error
        return None if found is None else Elsewhere(found.id, found.gateway)

    # who trains

    def routes(self, endpoint: Callable[[Handler], Callable[[HttpRequest], Awaitable[Any]]]) -> list[Route]:
        """``endpoint``: makes what answers HTTP of a handler, which runs in a thread."""
        one = "/sessions/{id:path}"
        found: list[tuple[str, str, Handler]] = [
            ("POST", "/sessions", self._begin),
            ("GET", "/sessions", self._all),
            ("GET", f"{one}/samples", self._samples),
            ("POST", f"{one}/reward", self._reward),
            ("POST", f"{one}/close", self._close),
            ("GET", one, self._one),
            ("GET", "/samples", self._samples),
            ("POST", "/weights", self._weights),
        ]
        return [Route(path, endpoint(handler), methods=[method]) for method, path, handler in found]

    def _begin(self, http: HttpRequest, body: Any, asker: Asker) -> Response:
        given = whole_request(body) if body is not None else {}
        sampling = given.get("sampling")
        if sampling is not None and not isinstance(sampling, Mapping):
            raise ApiError("expected an object of the sampler's fields", param="sampling")
        named = {name: _text(given, name) for name in ("id", "group", "history")}
        entry, key = self.sessions.begin(
            **cast("Any", named), sampling=dict(sampling or {}), owner=asker.owner
        )
        base = f"{http.base_url}sessions/{entry.id}"
        return JSONResponse(
            {"id": entry.id, "base_url": f"{base}/v1", "anthropic_base_url": base, "api_key": key}
        )

    def _all(self, http: HttpRequest, body: Any, asker: Asker) -> Response:
        if self.sessions.index is None:
            heads = self.sessions.heads(asker)
            return JSONResponse({"data": [{"id": head.id, "group": head.group} for head in heads]})
        found = [one for one in self.sessions.index.all() if asker.may(one)]
        data = [{"id": one.id, "group": one.group, "gateway": one.gateway} for one in found]
        return JSONResponse({"data": data})

    def _one(self, http: HttpRequest, body: Any, asker: Asker) -> Response:
        entry = self.sessions.get(http.path_params["id"], asker)
        found, about = self.sessions.export(entry)
        told = {
            "group": about.group,
            "closed": entry.closed,
            "reward": about.reward,
            "rewards": dict(about.rewards),
            "damaged": entry.damaged,
        }
        return JSONResponse({"id": entry.id, **told, **summary([found])})

    def _samples(self, http: HttpRequest, body: Any, asker: Asker) -> Response:
        """The rows of a session, or of all of a group: JSON lines, or an Arrow stream."""
        query = http.query_params
        twins, kind = query.get("twins", "context"), query.get("format", "jsonl")
        if twins not in TWINS or kind not in ("jsonl", "arrow"):
            raise ApiError(f"expected twins={'|'.join(TWINS)} and format=jsonl|arrow", param="twins")
        if "id" in http.path_params:
            entries = [self.sessions.get(http.path_params["id"], asker)]
        else:
            group = query.get("group")
            heads = [
                head for head in self.sessions.heads(asker) if head.group == group or "group" not in query
            ]
            entries = [self.sessions.get(head.id) for head in heads]
        found = [self.sessions.export(entry, cast("Any", twins)) for entry in entries]
        rows = [row for export, about in found for row in rows_of(export, about)]
        told = {name: json.dumps(value) for name, value in summary([one for one, _ in found]).items()}
        told["damaged"] = str(sum(entry.damaged for entry in entries))
        headers = {f"x-{name.replace('_', '-')}": value for name, value in told.items()}
        if kind == "arrow":
            return Response(to_arrow(rows), media_type="application/vnd.apache.arrow.stream", headers=headers)
        return Response(to_lines(rows), media_type="application/x-ndjson", headers=headers)

    def _reward(self, http: HttpRequest, body: Any, asker: Asker) -> Response:
        given = whole_request(body)
        value, number = given.get("value"), given.get("answer")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ApiError("expected a number", param="value")
        if number is not None and type(number) is not int:
            raise ApiError("expected the number of an answer", param="answer")
        self.sessions.reward(self.sessions.get(http.path_params["id"], asker), value, number)
        return JSONResponse({"value": value, "answer": number})

    def _close(self, http: HttpRequest, body: Any, asker: Asker) -> Response:
        entry = self.sessions.get(http.path_params["id"], asker)
        self.sessions.end(entry)
        return JSONResponse({"id": entry.id, "closed": True})

    def _weights(self, http: HttpRequest, body: Any, asker: Asker) -> Response:
        version = whole_request(body).get("version")
        if type(version) is not int or version < 0:
            raise ApiError("expected a whole number", param="version")
        self.sessions.weights(version)
        return JSONResponse({"version": version})


class Recording:
    """The answers to one request, on their way into a session. ``asked``: one for each."""

    def __init__(
        self,
        rollouts: Rollouts,
        entry: Entry,
        asked: NextAnswer,
        api: Api,
        request: Request,
        engine: Engine,
    ) -> None:
        self._sessions, self._entry, self._api, self._request = rollouts.sessions, entry, api, request
        self._asked = [asked, *(asked.twin() for _ in range(request.choices - 1))]
        self._sampled = [Sampled() for _ in self._asked]
        self._probable = engine.logprobs
        self._pending = [*range(len(self._asked))]
        """The answers that are not in the log."""
        entry.running += 1

    @property
    def sampling(self) -> Mapping[str, Any]:
        """What the session asks of the sampler, whatever the request does."""
        return self._entry.head.sampling

    @property
    def logprobs(self) -> int | None:
        """How many of the likeliest tokens are asked for at each place."""
        asked = self._request.logprobs
        return 0 if asked is None and self._probable else asked

    def drop(self) -> None:
        """The engine is not asked."""
        self._entry.running -= 1

    def taking(self, index: int) -> Taking:
        """What takes the ids of the answer at an index."""

        def take(ids: Sequence[int], batch: Batch) -> None:
            logprobs = _logprobs(batch, len(ids)) if self._probable else None
            self._sampled[index].add(ids, logprobs, self._sessions.version)

        return take

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What the response says of the session."""
        first = self._asked[0]
        told = {
            HEADER: self._entry.id,
            "x-session-answer": ",".join(str(asked.number) for asked in self._asked),
            "x-session-parent": "" if first.parent is None else str(first.parent.number),
            "x-session-reason": first.reason,
        }
        return [(name.encode(), value.encode("ascii", "backslashreplace")) for name, value in told.items()]

    async def keep(self, answers: Answers) -> None:
        """Writes the answers down, before the client has them whole."""
        await run_sync(self._record, answers, None)

    async def over(self, answers: Answers, *, sent: bool, error: ApiError | None) -> None:
        """The request is over. ``sent``: the client has all of it."""
        try:
            if self._pending or not sent:
                with anyio.CancelScope(shield=True):  # its client may have left
                    await run_sync(self._not_sent, answers, error)
        finally:
            self._entry.running -= 1

    def _not_sent(self, answers: Answers, error: ApiError | None) -> None:
        """Writes down that the client has not all of the answers, and those that are not in the log."""
        try:
            if self._pending:
                self._record(answers, error or ApiError("the client left", code=_LEFT))
            else:
                for asked in self._asked:
                    self._sessions.undelivered(self._entry, asked.number)
        except OSError as wrong:
            said = f"the answers {[asked.number for asked in self._asked]} of {self._entry.id!r} are not in the log"
            print(f"chatparsers: warning: {one_line(f'{said}: {wrong}')}", file=sys.stderr)

    def _record(self, answers: Answers, error: ApiError | None) -> None:
        while self._pending:
            index = self._pending[0]
            asked, sampled, answer = self._asked[index], self._sampled[index], answers.all[index]
            sampled.cut = answer.reason in (None, "length")
            sampled.add_versions(answer.versions)
            told = self._echo(answer)
            said = AnswerDetails(
                self._api.name,
                answer.reason,
                {**self._request.sampling, **self._entry.head.sampling},
                told,
                answer.writer.id,
                delivered=error is None,
                error=None if error is None or error.code == _LEFT else error.code or error.message,
            )
            self._sessions.record(self._entry, asked, sampled, said)
            del self._pending[0]

    def _echo(self, answer: Answer) -> Message | None:
        """The answer as a client that sends it back has it; None if its API cannot say it."""
        if self._request.continue_final_message:
            return None
        try:
            return self._api.echo(answer.writer.answer, self._request.body)
        except ApiError:
            return None


def _logprobs(batch: Batch, count: int) -> list[float]:
    """What the engine says of the first ids of a batch. Raises `EngineError` if it does not say it of each."""
    placed = [(place, one["logprob"]) for place, one in batch.logprobs or () if place < count]
    if [place for place, _ in placed] != [*range(count)]:
        raise EngineError(
            f"the engine sent {count} ids and {len(placed)} log probabilities: no sample can be made of them"
        )
    return [value for _, value in placed]


def rollouts_of(
    chat: Chat, settings: Settings, guard: Guard, store: Store | None, tell: Tell
) -> Rollouts | None:
    """What records the sessions of a gateway, if any; their keys are keys of the gateway. ``store``: has their index.
    ``tell``: as of `Logs`. Raises `ValueError` if the folder or the store cannot be used."""
    folder, name = settings.rollouts, settings.rollouts_name
    if folder is None:
        return None
    index = None if store is None or name is None else SessionIndex(store.base, name, tell)
    try:
        sessions = Sessions(chat, folder, settings.rules, index=index, tell=tell)
    except BlockingIOError:
        raise ValueError(f"rollouts {folder}: another gateway records there: name another folder") from None
    except (OSError, ApiError) as error:
        raise ValueError(f"rollouts {folder}: {error}") from error

    def lender(key: str) -> str | None:
        id = sessions.of_key(key)
        found = None if id is None else sessions.known(id)
        return None if found is None else found.head.owner or ""

    guard.lends = lender
    return Rollouts(sessions)


def _named(http: HttpRequest) -> str | None:
    found = http.scope.get(_SCOPE) or http.headers.get(HEADER)
    return None if not found else str(found)


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise ApiError("expected a text", param=name)
    return value
