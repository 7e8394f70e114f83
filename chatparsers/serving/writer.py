"""What the writers of the three APIs share: events become parts, calls get ids, chunks become the frames of a stream.

An API says how a part begins, goes on and ends (`parts` has the table), and what the whole answer of the parts is.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar
from uuid import uuid4

from ..errors import read_reason
from ..plain import whole_characters
from ..streams.call import call_id as id_of_call
from ..streams.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from ..streams.message import FinishReason, Message, RegionKind
from ..templates import to_json
from .errors import ApiError
from .freeform import FreeText
from .logprobs import FIELDS, Logprobs, TokenLogprob
from .parts import Part
from .sendable import Sendable
from .tools import Toolkit
from .usage import Usage
from .whole_calls import WholeCalls

_HERE: Any = {"here": "text"}
"""Where the text goes in the frame of a part. As JSON it has quotes, so that no text of a client spells it."""
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
        self.regions: list[dict[str, str]] | None = None
        """The parts of what the model wrote, each with its kind, for a field ``regions`` of our own in chat
        completions; None: they are not given. Set it before `finish`."""
        self.unwanted: list[str] = []
        """How the calls begin that the model wrote though the request wants none. They are cut out of the answer, and
        shown in a field ``unwanted_calls`` of our own, so that nothing vanishes in silence. Set it before `finish`."""
        self.warnings: Sequence[str] = ()
        """What of the request is not in the answer, for a field ``warnings`` of our own. Set it before `start`."""
        self.begun_call: str | None = None
        """The id of the answer's first call, if that finishes one that the client has. Set it before `event`."""
        self._make_id = call_id or partial(id_of_call, uuid4().hex)
        self._ids: set[str] = set()
        self._toolkit = Toolkit()
        self._parts: list[Part] = []
        self._open: Part | None = None
        """The last part, if more of it may come."""
        self._arguments: FreeText | Sendable | None = None
        """What reads the arguments of the open call."""
        self._framed: tuple[Part | None, list[str]] = None, []
        """A part, and what is around its text in the frames that add to it."""
        self._called = False
        """Whether a call is complete."""
        self._finished = False
        self._reason: FinishReason | None = None
        self._stop_sequence: str | None = None
        self._usage = Usage()

    @staticmethod
    @abstractmethod
    def new_id() -> str:
        """A random id of an answer."""

    @abstractmethod
    def start(self, prompt_tokens: int = 0) -> list[Chunk]:
        """Begins the answer. ``prompt_tokens``: the number of the prompt's tokens, for APIs that say it first."""

    def event(self, event: Event) -> list[Chunk]:
        """Writes one event of the stream."""
        part, text = self._open, self._goes_on(event)
        if text is None:
            return self._changes(event)
        return [self._added(part, text)] if part is not None and text and not part.silent else []

    def frames(self, events: Iterable[Event]) -> str:
        """Writes events of the stream as frames: the same as `sse` of what `event` gives."""
        frames = []
        for event in events:
            part, text = self._open, self._goes_on(event)
            if text is None:
                frames.append(sse(self._changes(event), named=self.named))
            elif text and part is not None and not part.silent:
                frames.append(self._frame(part, text))
        return "".join(frames)

    def take(self, events: Iterable[Event]) -> None:
        """Takes events of an answer that is not streamed."""
        for event in events:
            if self._goes_on(event) is None:
                self._changes(event)

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

    def finish(
        self,
        reason: FinishReason | str | None = None,
        usage: Usage | None = None,
        *,
        stop_sequence: str | None = None,
    ) -> list[Chunk]:
        """Ends the answer. ``reason``: as in `Stream.finish`. ``stop_sequence``: the client's stop that ended it."""
        reason = read_reason(reason)
        ended = self._close(complete=reason != "length")
        self._finished, self._reason = True, reason
        self._stop_sequence = stop_sequence if reason != "length" else None
        self._usage = usage or self._usage
        return [*ended, *self._last()]

    @property
    def _own(self) -> dict[str, Any]:
        """The fields of our own, of which an answer has those that say something."""
        fields = {"unwanted_calls": self.unwanted, "warnings": [*self.warnings]}
        return {name: value for name, value in fields.items() if value}

    @abstractmethod
    def fail(self, error: ApiError) -> list[dict[str, Any]]:
        """Ends the stream with an error, after `start`. An error before that is an HTTP status."""

    @property
    @abstractmethod
    def answer(self) -> Answer:
        """The whole answer, as the API gives it to a request that does not stream."""

    def whole(
        self, message: Message, reason: FinishReason | str | None = None, usage: Usage | None = None
    ) -> Answer:
        """The whole answer of a message. The writer is used up.

        The message has its texts joined, so the answer has the reasoning first, then the content, then the calls. A
        call that the model broke is content: its name, and what was read of its arguments.
        """
        reason = read_reason(reason)
        self.start(usage.prompt if usage is not None else 0)
        calls = WholeCalls(partial(_call_text, message), cut=self.cut_calls)
        self.take(calls.take(_events_of(message), reason == "length"))
        self.finish(reason, usage)
        return self.answer

    def text(self) -> str:
        """The whole answer as JSON text. The numbers of calls are as the model wrote them, but for those beyond a float
        (`Sendable`)."""
        return to_json(self.answer)

    # What an API says of a part.

    @abstractmethod
    def _begun(self, part: Part) -> list[Chunk]:
        """The chunks with which a part begins."""

    @abstractmethod
    def _added(self, part: Part, text: str) -> Chunk:
        """The chunk of more text of a part."""

    def _ended(self, part: Part) -> list[Chunk]:
        """The chunks with which a part ends."""
        return []

    @abstractmethod
    def _last(self) -> list[Chunk]:
        """The chunks with which the stream ends."""

    # events

    def _goes_on(self, event: Event) -> str | None:
        """The text that an event adds to the open part, which has it now; None if it does something else."""
        part = self._open
        if part is None or type(event) is not part.adds:
            return None
        text = event.text  # type: ignore[union-attr]
        if self._arguments is not None:
            text = self._arguments.take(text)
        if not text.isascii():
            text = whole_characters(text)
        if text:
            part.pieces.append(text)
        return text

    def _frame(self, part: Part, text: str) -> str:
        """The frame of more text of a part. All of a part are alike but for their texts, so the rest is made once."""
        of, around = self._framed
        if of is not part:
            around = self._around(part)
            self._framed = part, around
        return to_data(text).join(around)

    def _around(self, part: Part) -> list[str]:
        """What is around the text of a part in a frame. A frame may have the text several times."""
        return sse([self._added(part, _HERE)], named=self.named).split(to_data(_HERE))

    def _changes(self, event: Event) -> list[Chunk]:
        """The chunks of an event that does not just add to the open part."""
        match event:
            case Content(text=text):
                return [*self._begin(Part("content")), *self._more(text)]
            case Reasoning(text=text):
                return [*self._begin(Part("reasoning")), *self._more(text)]
            case CallStart(name=name):
                name = whole_characters(name)
                kind = self._toolkit.spelling(name).kind
                place = len(self._ids)  # of the calls that went out: a broken one may be text
                begun = self._begin(Part(kind, place, self._call_id(event), name))
                self._arguments = FreeText() if kind == "custom" else self._reader()
                return begun
            case CallEnd(complete=complete):
                self._called = self._called or complete
                left = self._more(self._arguments.finish()) if self._arguments is not None else []
                return [*left, *self._close(complete)]
        return []

    def _begin(self, part: Part) -> list[Chunk]:
        closed = self._close()
        self._open = part
        self._parts.append(part)
        return [*closed, *self._begun(part)]

    def _more(self, text: str) -> list[Chunk]:
        part = self._open
        if part is None or not text:
            return []
        text = whole_characters(text)
        part.pieces.append(text)
        return [] if part.silent else [self._added(part, text)]

    def _close(self, complete: bool = True) -> list[Chunk]:
        """Ends the open part, if there is one. ``complete``: whether it is whole."""
        part, self._open, self._arguments = self._open, None, None
        if part is None:
            return []
        part.complete = complete
        return self._ended(part)

    def _reader(self) -> Sendable:
        """What reads the arguments of a function's call."""
        return Sendable()

    def _calls(self) -> list[Part]:
        return [part for part in self._parts if part.is_call]

    def _call_id(self, start: CallStart) -> str:
        id = start.id
        if self.begun_call is not None and not start.index:
            id = self.begun_call
        if not id or id in self._ids:
            id = self._make_id(start.index)
        id = whole_characters(id)
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


def to_data(chunk: Mapping[str, Any] | str) -> str:
    """A chunk, or a text of it, as JSON on one line.

    U+0085, U+2028 and U+2029 are escaped: events do not end there, but httpx's ``iter_lines`` splits there, as Python's
    ``splitlines`` does. Half of a surrogate pair, which UTF-8 cannot spell, becomes U+FFFD.
    """
    data = _dumps(chunk)
    if data.isascii():
        return data
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", whole_characters(data))


_BREAKS = re.compile("[\x85\u2028\u2029]")
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def _call_text(message: Message, index: int) -> str:
    call = message.tool_calls[index]
    return f"{call.name}{call.arguments}"


def _events_of(message: Message) -> Iterator[Event]:
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
