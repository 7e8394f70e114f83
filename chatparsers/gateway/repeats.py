"""A request that comes again while it runs: it gets the answer that is being sampled, and none is sampled twice.

The vendors' SDKs give up waiting after a while, leave, and ask for the same once more. They say so: each request has
``x-stainless-retry-count``, and what comes again has more than 0. Agents name their session, and one session asks for
the same twice at a time only if it has lost the first answer. So the response to such a request is run for nobody in
particular (`Repeated.run`). It keeps what it sends, and everybody who asks for it is sent all of it, from the
beginning. If nobody listens for some seconds, it is stopped, as the response of any client that leaves.

A client that names no session gets only what its own client has left, and only if that is not streamed: of a stream
its SDK asks for no more once it has begun.

Where sessions are recorded, two equal requests are two samples, unless the client calls one a repetition.
"""

from __future__ import annotations

import asyncio
import hashlib
import traceback
from collections.abc import Hashable

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .witness import named_session
from .work import until_left

_HEADER = "x-stainless-retry-count"
AWAITED = 10.0
"""For how many seconds a client that left is awaited. The SDKs wait for 8 at most before they ask again."""
UNRECORDED = 2.0
"""So many where nothing is recorded: most who leave do not come again, and an agent asks again after half a second."""


class Again(BaseException):
    """The request runs already. ``running``: its response. It is no `Exception`, so that nothing takes it for a
    failure."""

    def __init__(self, running: Repeated) -> None:
        super().__init__()
        self.running = running


class Repeats:
    """The responses of a gateway that run, and may be asked for again. ``seconds``: how long a client is awaited."""

    def __init__(self, seconds: float = AWAITED) -> None:
        self.seconds = seconds
        self._known: dict[Hashable, list[Repeated]] = {}

    @property
    def running(self) -> int:
        """How many run."""
        return sum(map(len, self._known.values()))

    def of(self, headers: Headers, *, recorded: bool) -> Repeated | None:
        """The response to a request that may come again, or may have come before; None if its client says neither.
        ``recorded``: whether sessions are."""
        session = None if recorded else named_session(headers)
        if session is not None:
            return Repeated(self, again=True, session=session)
        given = headers.get(_HEADER)
        return None if given is None else Repeated(self, again=given not in ("", "0"), named=recorded)

    def begin(self, one: Repeated, key: Hashable) -> None:
        """It runs from now on. Raises `Again` if it is asked for once more."""
        running = self._known.setdefault(key, [])
        there = [
            other
            for other in running
            if one.again and not other.ending and (one.named or not other.followed())
        ]
        if there:
            raise Again(min(there, key=Repeated.followed))  # of equal ones, the one whose client left
        running.append(one)

    def end(self, one: Repeated, key: Hashable) -> None:
        """It runs no more."""
        self._known[key].remove(one)
        if not self._known[key]:
            del self._known[key]


class Repeated:
    """One response. `run` makes it, `follow` is the ASGI application of each client that asks for it. ``again``:
    whether it is asked for once more if it runs already. ``session``: as the client names it. ``named``: whether it is
    of a session. ``begun``: it is known by its body, and may be asked for again."""

    def __init__(self, repeats: Repeats, *, again: bool, session: str = "", named: bool = True) -> None:
        self.again = again
        self.named = named
        self.session = session
        self._repeats = repeats
        self._key: Hashable = None
        self._messages: list[Message] = []
        self._taken = 0
        """How many of the messages a client has."""
        self._followers = 0
        self._over = False
        self._error: Exception | None = None
        self._changed = anyio.Event()
        self._scope = anyio.CancelScope()
        self._leaving: asyncio.TimerHandle | None = None

    @property
    def begun(self) -> bool:
        """Whether its request is here."""
        return self._key is not None

    @property
    def ending(self) -> bool:
        """Whether it is stopped, as its client did not come again."""
        return self._scope.cancel_called

    def followed(self) -> int:
        """By how many clients it is followed."""
        return self._followers

    # the response

    def begin(self, asked: Hashable, body: bytes | bytearray) -> None:
        """The request is here. ``asked``: of whom, and for what. Raises `Again` if it runs already."""
        key = asked, hashlib.blake2b(body).digest()
        self._repeats.begin(self, key)
        self._key = key

    async def run(self, app: ASGIApp) -> None:
        """Runs what answers the request."""
        if not self._followers:
            self._left()
        with self._scope:
            try:
                await app({"type": "http"}, _never, self._send)
            except Exception as error:
                traceback.print_exception(error)
                self._error = error
        self.end()

    def end(self) -> None:
        """The response is over."""
        self._over = True
        self._stay()
        if self.begun:
            self._repeats.end(self, self._key)
        self._notify()

    async def _send(self, message: Message) -> None:
        """Keeps what is sent. It waits until a client has it: so a slow client slows the engine, and an answer of which
        nobody has the end is not delivered. With no client, only the end waits."""
        self._messages.append(message)
        self._notify()
        last = message["type"] == "http.response.body" and not message.get("more_body")
        while self._taken < len(self._messages) and (self._followers or last):
            await self._changed.wait()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    # those who ask for it

    async def follow(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends a client all of the response."""
        self._followers += 1
        self._stay()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_left, receive, tasks.cancel_scope)
                await self._play(send)
                tasks.cancel_scope.cancel()
        finally:
            self._followers -= 1
            if not self._followers and not self._over:
                self._left()
                self._notify()

    async def _play(self, send: Send) -> None:
        at = 0
        while at < len(self._messages) or not self._over:
            if at == len(self._messages):
                await self._changed.wait()
                continue
            await send({**self._messages[at]})  # what passes it on may change it
            at += 1
            self._taken = max(self._taken, at)
            self._notify()
        if self._error is not None:
            raise self._error

    async def _until_left(self, receive: Receive, scope: anyio.CancelScope) -> None:
        await until_left(receive)
        scope.cancel()

    def _left(self) -> None:
        """Nobody follows: it ends, unless somebody comes."""
        self._leaving = asyncio.get_running_loop().call_later(self._repeats.seconds, self._scope.cancel)

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()


async def _never() -> Message:
    await anyio.sleep_forever()
    raise AssertionError
