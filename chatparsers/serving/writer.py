"""What the writers of the three APIs share: the ids of calls, the whole answer of a message, the frames of a stream."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar
from uuid import uuid4

from ..core.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from ..core.message import FinishReason, Message, RegionKind
from ..core.parser.transcript import call_id as id_of_call
from ..templates import to_json
from .errors import ApiError
from .logprobs import FIELDS, Logprobs, TokenLogprob
from .usage import Usage
from .whole_calls import WholeCalls

Chunk = TypeVar("Chunk", bound=Mapping[str, Any])
Answer = TypeVar("Answer", bound=Mapping[str, Any])


class Writer(ABC, Generic[Chunk, Answer]):
    """Writes one answer in the form of one API.

    Call ``start``, then ``event`` for each event of the stream, then ``finish``; each returns a list of what the API
    streams, as JSON data. The list may be empty. ``answer`` is the whole answer so far, and final after ``finish``.

    A call has an id from its first delta on: the model's, if the model wrote one before the arguments that no earlier
    call of the turn has, else a generated one, which stays even if the model writes an id later.
    """

    named: ClassVar[bool] = True
    """Whether the API names its events in the frames of a stream."""
    end: ClassVar[str] = ""
    """The frame that ends the stream."""
    cut_calls: ClassVar[bool] = True
    """Whether the API can say that a call was cut off."""
    early_calls: ClassVar[bool] = False
    """Whether a stream shows the arguments of a call before it is whole: clients read them as text, at its end."""

    def __init__(
        self,
        model: str,
        *,
        id: str | None = None,
        created: int | None = None,
        call_id: Callable[[int], str] | None = None,
    ) -> None:
        """``model``: the name that the answer bears. ``id``: the answer's id; None: a random one. ``created``: seconds
        since 1970; None: now. ``call_id``: makes the id of the call at an index; ``turn.call_id`` gives those that
        the message has."""
        self.model = model
        self.id = id or self.new_id()
        self.created = int(time.time()) if created is None else created
        self.logprobs: Logprobs | None = None
        """What the engine says of the tokens so far, to which `tokens` adds; None: it is not kept, as in a stream."""
        self.prompt_token_ids: list[int] | None = None
        self.token_ids: list[int] | None = None
        """The ids of the prompt and of the answer so far; None if the request does not ask. `ids` adds to them."""
        self.unwanted: list[str] = []
        """How the calls begin that the model wrote though the request wants none. They are cut out of the answer, and
        shown in a field ``unwanted_calls`` of our own, so that nothing vanishes in silence. Set it before `finish`."""
        seed = uuid4().hex
        self._make_id = call_id or (lambda index: id_of_call(seed, index))
        self._ids: set[str] = set()

    @staticmethod
    @abstractmethod
    def new_id() -> str:
        """A random id of an answer."""

    @abstractmethod
    def start(self, prompt_tokens: int = 0) -> list[Chunk]:
        """Begins the answer. ``prompt_tokens``: the number of the prompt's tokens, for APIs that say it first."""

    @abstractmethod
    def event(self, event: Event) -> list[Chunk]:
        """Writes one event of the stream."""

    def frames(self, events: Iterable[Event]) -> str:
        """Writes events of the stream as frames: the same as `sse` of what `event` gives."""
        return sse([chunk for event in events for chunk in self.event(event)], named=self.named)

    def tokens(self, kind: RegionKind, found: list[TokenLogprob], chunks: list[Chunk]) -> list[Chunk]:
        """Writes what the engine says of tokens of one kind. ``chunks``: what their event became; [] if they have none.
        Returns the chunks with it, where the API streams it."""
        if self.logprobs is not None:
            self.logprobs.setdefault(FIELDS[kind], []).extend(found)
        return chunks

    def ids(self, found: list[int], chunks: list[Chunk]) -> None:
        """Writes more ids of the answer. ``chunks``: what came with them, at least one."""
        if self.token_ids is not None:
            self.token_ids += found

    @abstractmethod
    def finish(
        self,
        reason: FinishReason | None = None,
        usage: Usage | None = None,
        *,
        stop_sequence: str | None = None,
    ) -> list[Chunk]:
        """Ends the answer. ``reason``: as in `Stream.finish`. ``stop_sequence``: the client's stop that ended it."""

    @abstractmethod
    def fail(self, error: ApiError) -> list[dict[str, Any]]:
        """Ends the stream with an error, after `start`. An error before that is an HTTP status."""

    @property
    @abstractmethod
    def answer(self) -> Answer:
        """The whole answer, as the API gives it to a request that does not stream."""

    def whole(
        self, message: Message, reason: FinishReason | None = None, usage: Usage | None = None
    ) -> Answer:
        """The whole answer of a message. The writer is used up.

        The message has its texts joined, so the answer has the reasoning first, then the content, then the calls. A
        call that the model broke is content: its name, and what was read of its arguments.
        """
        self.start(usage.prompt if usage is not None else 0)
        calls = WholeCalls(partial(_told, message), cut=self.cut_calls)
        for event in calls.take(_events(message), reason == "length"):
            self.event(event)
        self.finish(reason, usage)
        return self.answer

    def text(self) -> str:
        """The whole answer as JSON text, the numbers of calls as the model wrote them."""
        return to_json(self.answer)

    def _call_id(self, start: CallStart) -> str:
        id = start.id
        if not id or id in self._ids:
            id = self._make_id(start.index)
        self._ids.add(id)
        return id


def sse(chunks: Iterable[Mapping[str, Any]], *, named: bool) -> str:
    """The frames of a stream of server-sent events. ``named``: each has the name of its ``type`` (`Writer.named`).

    >>> from chatparsers.serving import sse
    >>> sse([{"type": "ping"}], named=True)
    'event: ping\\ndata: {"type":"ping"}\\n\\n'
    """
    frames = []
    for chunk in chunks:
        data = to_data(chunk)
        frames.append(f"event: {chunk['type']}\ndata: {data}\n\n" if named else f"data: {data}\n\n")
    return "".join(frames)


def to_data(chunk: Mapping[str, Any]) -> str:
    """A chunk as JSON on one line."""
    data = _dumps(chunk)
    if not data.isascii():
        try:
            data.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return to_json(chunk, separators=(",", ":"))
    return data


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def _told(message: Message, index: int) -> str:
    call = message.tool_calls[index]
    return f"{call.name}{call.arguments}"


def _events(message: Message) -> Iterator[Event]:
    """The events of a whole message."""
    if message.reasoning:
        yield Reasoning(message.reasoning)
    if message.content:
        yield Content(message.content)
    for call in message.tool_calls:
        yield CallStart(call.index, call.name, call.id)
        if call.arguments:
            yield CallArguments(call.index, call.arguments)
        yield CallEnd(call.index, call.id, call.complete)
