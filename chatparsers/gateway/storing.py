"""What the Responses API keeps: it finds what a request goes on from, keeps its answer, and runs it in the background.

Strategy. A response that is answered at once is kept when it is whole, before the client reads that it is. So what a
client has seen to the end is there for its next request, whichever process that reaches. One in the background is kept
from its beginning. Its task writes the frames of its stream into the store, and everybody who follows it reads them
there, from any number on. A beat says that it still runs, and asks whether it may: so any process can cancel it, and
one that was killed leaves no response that runs for ever.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.types import Message, Receive, Scope, Send

from ..plain import one_line
from ..serving import ApiError, OpenAIResponses, Request, read_responses, sse
from ..serving.fields import boolean, mapping, string, whole_request
from ..serving.items import kept_items
from ..serving.writer import to_data
from .answer import Answer
from .apis import ending
from .metrics import Metrics
from .respond import HEADERS, Responding
from .settings import Settings
from .store import URLS, ResponseIds, Store, StoredResponse, StoreFull
from .work import until_left

_LOOK, _BEAT = 0.1, 5
"""How often frames are written and looked for, in seconds, and how many such looks are a beat."""
_SELDOM = 0.5
"""How often is looked where nothing comes."""
_QUIET = 60.0
_COMMENT = ": waiting\n\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks to be kept. ``items``: its input. ``history``: what stood before. ``last``: the response
    that it goes on from, whose answer is the last of the history."""

    owner: str
    store: bool
    background: bool
    items: list[dict[str, Any]]
    history: list[dict[str, Any]] = field(default_factory=list)
    parent: str | None = None
    conversation: str | None = None
    last: str | None = None

    def kept(self, response: Mapping[str, Any], running: bool = False) -> StoredResponse:
        """The response as it is kept."""
        return StoredResponse(
            response["id"], dict(response), self.items, self.parent, self.conversation, running
        )


class News:
    """Tells what the store lacks: in the metrics, and at most once a minute of each kind on standard error."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._said: dict[str, tuple[float, int]] = {}

    def tell(self, why: str, said: str, number: int) -> None:
        """``number``: how many rows, writes or entries."""
        self._metrics.count("store_gone", number, why=why)
        now = time.monotonic()
        last, before = self._said.get(why, (float("-inf"), 0))
        if now - last < _QUIET:
            self._said[why] = last, before + number
            return
        self._said[why] = now, 0
        print(f"chatparsers: warning: {one_line(said)} ({before + number:,} {why})", file=sys.stderr)


def opened(settings: Settings, metrics: Metrics) -> Store:
    """The store of a gateway. Raises `ValueError` if it cannot be used."""
    assert settings.store is not None
    bounds = {"entries": settings.store_entries, "size": settings.store_size}
    try:
        return Store(settings.store, **bounds, age=settings.store_age, tell=News(metrics).tell)
    except (OSError, sqlite3.Error) as error:
        named = "" if settings.store.startswith(URLS) else f" {settings.store}"  # a URL may hold a password
        raise ValueError(f"store{named}: {error}") from error


class Storing:
    """The store of a gateway. ``most``: how many bytes the history of a request may have."""

    def __init__(self, store: Store, metrics: Metrics, most: int) -> None:
        self.store = store
        self._metrics = metrics
        self._most = most

    # requests

    def read(self, owner: str, body: object, **how: Any) -> tuple[Request, Asked]:
        """The request of a body, and what of it is to be kept. ``how``: options of `read_responses`. Raises
        `ApiError`."""
        body = whole_request(body)
        asked = self._asked(owner, body)
        given = {**body, "input": asked.items} if body.get("input") is not None else body
        request = read_responses(given, history=asked.history, **how)
        if asked.last is not None:
            self._try(self.store.use, owner, asked.last)
        return request, asked

    def _asked(self, owner: str, body: Mapping[str, Any]) -> Asked:
        previous, named = body.get("previous_response_id"), body.get("conversation")
        store, background = boolean(body, "store", True), boolean(body, "background", False)
        if background and not store:
            raise ApiError("a response in the background is kept: leave store out", param="store")
        if previous is not None and named is not None:
            raise ApiError("send conversation or previous_response_id, not both", param="conversation")
        given = body.get("input")
        items = [] if given is None else kept_items(given)
        items = [self._referred(owner, item, f"input[{index}]") for index, item in enumerate(items)]
        if previous is not None:
            id = string(previous, "previous_response_id")
            return Asked(owner, store, background, items, self._before(owner, id), parent=id, last=id)
        if named is not None:
            id = string(
                named if isinstance(named, str) else mapping(named, "conversation").get("id"), "conversation"
            )
            found = self.store.conversation(owner, id)
            if found is None:
                raise ApiError(f"no conversation {id[:99]!r} is kept here", status=404, param="conversation")
            history = self.store.items(id, self._most)
            return Asked(owner, store, background, items, history, conversation=id, last=found[1])
        return Asked(owner, store, background, items)

    def _before(self, owner: str, id: str) -> list[dict[str, Any]]:
        """The items up to the end of a response."""
        path = "previous_response_id"
        chain = self.store.chain(owner, id, self._most)
        if not chain:
            said = (
                f"no response {id[:99]!r} is kept here, with all that it goes on from: send the whole input"
            )
            raise ApiError(said, param=path, code="previous_response_not_found")
        if chain[-1].running:
            raise ApiError("the response is not yet whole: wait for its end", param=path)
        if chain[-1].conversation is not None:
            raise ApiError("the response is of a conversation: send conversation", param=path)
        return [item for kept in chain for item in (*kept.input, *kept.response.get("output", []))]

    def _referred(self, owner: str, item: dict[str, Any], path: str) -> dict[str, Any]:
        """The item that an `item_reference` means, else the item itself."""
        if item.get("type") != "item_reference":
            return item
        found = self.store.item(owner, string(item.get("id"), f"{path}.id"))
        if found is None:
            raise ApiError(f"no item {item['id'][:99]!r} is kept here", status=404, param=path)
        return found

    def held(self, asked: Asked) -> ResponseIds | None:
        """The ids of the answer that the history ends with, if they are held."""
        return None if asked.last is None else self.store.held(asked.owner, asked.last)

    # answers

    def _try(self, write: Callable[..., None], *given: Any, **named: Any) -> bool:
        """Whether it was written. If not, it is counted, and said once."""
        try:
            write(*given, **named)
        except StoreFull as error:
            if not self._metrics.value("store_failures"):
                print(
                    f"chatparsers: warning: the store cannot be written: {one_line(str(error))}",
                    file=sys.stderr,
                )
            self._metrics.count("store_failures")
            return False
        return True

    def keep(
        self, asked: Asked, response: Mapping[str, Any], held: ResponseIds | None, ran: bool = False
    ) -> bool:
        """Keeps a whole response. Whether it could be."""
        return self._try(self.store.keep, asked.owner, asked.kept(response), held, ran=ran)

    def begin(self, asked: Asked, response: Mapping[str, Any]) -> bool:
        """Keeps a response that begins in the background. Whether it could be."""
        return self._try(self.store.begin, asked.owner, asked.kept(response, running=True))

    def add_frames(self, id: str, frames: list[tuple[int, str]]) -> bool:
        """Keeps more of the stream of a response. Whether it could be."""
        return self._try(self.store.add_frames, id, frames)


class StoreAnswer:
    """Keeps one answer. ``held``: the ids of its prompt, if ids are held."""

    def __init__(self, storing: Storing, asked: Asked, answer: Answer, held: ResponseIds | None) -> None:
        self._storing, self._asked, self._answer, self._held = storing, asked, answer, held
        self.background = asked.background
        writer = answer.writer
        assert isinstance(writer, OpenAIResponses)
        self._writer = writer
        writer.keeps(True, conversation=asked.conversation, background=asked.background)

    def _ids(self) -> ResponseIds | None:
        """The ids of prompt and answer."""
        held = self._held
        return None if held is None else replace(held, sampled=[*held.sampled, *self._answer.sampled])

    async def end(self, frames: str) -> str:
        """Keeps the whole answer. The last frame says so if that fails."""
        if await run_sync(self._storing.keep, self._asked, self._writer.answer, self._ids()):
            return frames
        self._writer.keeps(False)
        head, _, last = frames[:-2].rpartition("\n\n")
        name, mark, data = last.partition("\ndata: ")
        if not mark:
            return frames  # it is not streamed
        event = {**json.loads(data), "response": self._writer.answer}
        return f"{head}\n\n{name}{mark}{to_data(event)}\n\n"

    # in the background

    @property
    def begun(self) -> dict[str, Any]:
        """The response as it begins."""
        return {**self._writer.answer, "status": "queued"}

    async def begin(self) -> None:
        """Keeps the response that begins. Raises `ApiError` if that fails."""
        if not await run_sync(self._storing.begin, self._asked, self.begun):
            raise ApiError("the store cannot be written: try again later", status=507, code="store_full")

    def following(self, keep_alive: float) -> Following:
        """The stream of the response."""
        return Following(self._storing.store, self._asked.owner, self._writer.id, -1, keep_alive)

    async def run(self, responding: Responding) -> None:
        """Runs the response, and keeps it and the frames of its stream. What fails here ends no other response."""
        try:
            await self._run(responding)
        except Exception as error:
            traceback.print_exception(error)

    async def _run(self, responding: Responding) -> None:
        frames = _Frames(self._storing, self._writer.id)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(frames.write, tasks.cancel_scope)
                await responding({"type": "http"}, _never, frames.send)
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(self._ended, frames)

    def _ended(self, frames: _Frames) -> None:
        writer = self._writer
        if writer.answer["status"] == "in_progress":  # it was stopped
            frames.take(sse(writer.fail(ending()), named=True))
        response: dict[str, Any] = dict(writer.answer)
        if frames.cancelled:
            response |= {"status": "cancelled", "error": None}
        frames.flush()
        whole = response["status"] in ("completed", "incomplete")
        self._storing.keep(self._asked, response, self._ids() if whole else None, ran=True)


class _Frames:
    """The frames of a response in the background, on their way to the store. ``cancelled``: it may not go on."""

    def __init__(self, storing: Storing, id: str) -> None:
        self._storing, self._id = storing, id
        self._waiting: list[tuple[int, str]] = []
        self._number = 0
        self.cancelled = False

    async def send(self, message: Message) -> None:
        """As a server sends: takes what is sent."""
        self.take(message.get("body", b"").decode())

    def take(self, frames: str) -> None:
        """Takes frames; comments have no number."""
        for frame in frames.split("\n\n"):
            if frame and not frame.startswith(":"):
                self._waiting.append((self._number, f"{frame}\n\n"))
                self._number += 1

    def flush(self) -> None:
        """Writes what waits."""
        frames, self._waiting = self._waiting, []
        if frames and not self._storing.add_frames(self._id, frames):
            self._waiting[:0] = frames  # the next look tries again

    async def write(self, scope: anyio.CancelScope) -> None:
        """Writes what comes, and asks whether the response may go on; if not, it is cancelled."""
        looks = 0
        while not self.cancelled:
            await anyio.sleep(_LOOK)
            looks += 1
            if self._waiting:
                await run_sync(self.flush)
            if looks % _BEAT == 0:
                self.cancelled = not await run_sync(self._may_go_on)
        scope.cancel()

    def _may_go_on(self) -> bool:
        try:
            return self._storing.store.beat(self._id)
        except StoreFull:
            return True


class Following:
    """An ASGI application that sends the stream of a response in the background, after the frame of a number."""

    def __init__(self, store: Store, owner: str, id: str, after: int, keep_alive: float) -> None:
        self._store, self._owner, self._id = store, owner, id
        self._after, self._keep_alive = after, keep_alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._left, receive, tasks.cancel_scope)
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            silent, wait = 0.0, _LOOK
            while True:
                running, frames = await run_sync(self._look)
                text = "".join(frames)
                silent, wait = (0.0, _LOOK) if frames else (silent + wait, min(1.5 * wait, _SELDOM))
                if silent >= self._keep_alive:
                    silent, text = 0.0, _COMMENT
                if text or not running:
                    await send({"type": "http.response.body", "body": text.encode(), "more_body": running})
                if not running:
                    break
                await anyio.sleep(wait)
            tasks.cancel_scope.cancel()

    def _look(self) -> tuple[bool, list[str]]:
        try:
            kept = self._store.response(self._owner, self._id)  # first, or the last frames could be missed
            frames = self._store.frames(self._id, self._after)
        except ApiError as error:
            said = {"type": "error", "code": error.code, "message": error.message, "param": None}
            return False, [sse([{**said, "sequence_number": self._after + 1}], named=True)]
        self._after = frames[-1][0] if frames else self._after
        return kept is not None and kept.running, [frame for _, frame in frames]

    async def _left(self, receive: Receive, scope: anyio.CancelScope) -> None:
        await until_left(receive)
        scope.cancel()


async def _never() -> Message:
    await anyio.sleep_forever()
    raise AssertionError
