"""Answers of OpenAI's Responses API.

An answer is a list of items: reasoning, a message with text, a call. One item is open at a time. Text that follows in
the open item's kind goes on in it; any other event closes it and opens the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict
from uuid import uuid4

from ..streams.message import RegionKind
from .errors import ApiError
from .items import item_id
from .logprobs import FIELDS, Logprobs, TokenLogprob
from .partial import partial_object
from .parts import Part, PartKind
from .sealed import ASKED, PLAIN, Seals
from .tools import Toolkit
from .writer import Writer

Status = Literal["in_progress", "completed", "incomplete", "failed"]
ItemType = Literal["reasoning", "message", "function_call", "custom_tool_call", "tool_search_call"]


class ResponseItem(TypedDict, total=False):
    """An item of the output. ``type``: ``reasoning``, ``message``, or a call's."""

    id: str
    type: ItemType
    status: Status
    role: Literal["assistant"]
    summary: list[Any]
    encrypted_content: str
    content: list[dict[str, Any]]
    call_id: str
    name: str
    namespace: str
    arguments: Any
    input: str
    execution: Literal["client"]


class Response(TypedDict, total=False):
    """A ``response``, with the fields of the request that the API repeats."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Status
    model: str
    output: list[ResponseItem]
    error: dict[str, Any] | None
    incomplete_details: dict[str, str] | None
    usage: dict[str, Any] | None


class ResponseEvent(TypedDict, total=False):
    """An event of the stream. ``type`` is its name; ``sequence_number`` counts the events from 0."""

    type: str
    sequence_number: int
    response: Response
    output_index: int
    content_index: int
    item_id: str
    item: ResponseItem
    part: dict[str, Any]
    delta: str
    text: str
    arguments: str
    name: str
    logprobs: list[Any]
    token_ids: list[int]


_DEFAULTS: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": None,
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}


class OpenAIResponses(Writer[ResponseEvent, Response]):
    """Writes a response. ``request``: the body of the request, whose fields the API repeats in the response.
    ``toolkit``: the request's tools; calls of freeform tools are written as one text. ``seals``: what seals thoughts,
    where the request asks for that.

    Log probabilities of the content are where the API has them. Those of other tokens are in ``token_logprobs`` of the
    whole response, which ends a stream. Ids are in its ``token_ids`` and ``prompt_token_ids``, and in ``token_ids`` of
    the events, each beside the text that it became.

    >>> from chatparsers.serving import OpenAIResponses
    >>> answer = OpenAIResponses("m").whole(chat.bind(tools=tools).parse(call))
    >>> [item["type"] for item in answer["output"]]
    ['function_call']
    """

    def __init__(
        self,
        model: str,
        *,
        id: str | None = None,
        created: int | None = None,
        call_id: Callable[[int], str] | None = None,
        request: Mapping[str, Any] | None = None,
        toolkit: Toolkit | None = None,
        seals: Seals = PLAIN,
    ) -> None:
        super().__init__(model, id=id, created=created, call_id=call_id)
        given = request or {}
        self._repeated = {
            name: given[name] if given.get(name) is not None else default
            for name, default in _DEFAULTS.items()
        }
        self._repeated["store"] = False
        self._seals = seals if ASKED in (given.get("include") or ()) else None
        self._toolkit = toolkit or Toolkit()
        self._due: list[TokenLogprob] = []
        """What the engine says of tokens of the open item that waits for the next piece of text."""
        self._apart: Logprobs = {}
        """What it says of tokens that no item has a place for."""
        self._number = 0
        self._head = ""
        """What comes before the number in the frames that add text to the open part."""
        self._error: dict[str, Any] | None = None

    @staticmethod
    def new_id() -> str:
        return f"resp_{uuid4().hex}"

    def start(self, prompt_tokens: int = 0) -> list[ResponseEvent]:
        return [self._whole("created"), self._whole("in_progress")]

    def _begun(self, part: Part) -> list[ResponseEvent]:
        part.key = item_id(_TYPE[part.kind])
        self._due = []
        added = self._event(
            "response.output_item.added", output_index=self._place, item=self._item(part, empty=True)
        )
        if part.is_call:
            return [added]
        return [added, self._event("response.content_part.added", **self._at(part), part=_text_part(part))]

    def _added(self, part: Part, text: str) -> ResponseEvent:
        event = self._event(_DELTA[part.kind], **self._at(part), delta=text)
        if part.kind == "content":
            event["logprobs"] = []
        return event

    def _around(self, part: Part) -> list[str]:
        number = self._number
        head, *rest = super()._around(part)
        self._number = number  # none was sent
        self._head, _, head = head.partition(f'"sequence_number":{number}')
        return [head, *rest]

    def _frame(self, part: Part, text: str) -> str:
        frame = super()._frame(part, text)
        self._number += 1
        return f'{self._head}"sequence_number":{self._number - 1}{frame}'

    def _ended(self, part: Part) -> list[ResponseEvent]:
        item = self._item(part)
        if part.kind == "search":
            return [self._event("response.output_item.done", output_index=self._place, item=item)]
        name, at = f"response.{_EVENT[part.kind]}.done", self._at(part)
        if part.kind == "call":
            ended = [self._event(name, **at, name=item["name"], arguments=part.text)]
        elif part.kind == "custom":
            ended = [self._event(name, **at, input=part.text)]
        else:
            more: dict[str, Any] = {"logprobs": [*part.tokens]} if part.kind == "content" else {}
            ended = [
                self._event(name, **at, text=part.text, **more),
                self._event("response.content_part.done", **at, part=item["content"][0]),
            ]
        return [*ended, self._event("response.output_item.done", output_index=self._place, item=item)]

    def _last(self) -> list[ResponseEvent]:
        return [self._whole(self._status)]

    def tokens(
        self, kind: RegionKind, found: list[TokenLogprob], chunks: list[ResponseEvent]
    ) -> list[ResponseEvent]:
        super().tokens(kind, found, chunks)
        if kind != "content" or self._open is None or self._open.kind != "content":
            self._apart.setdefault(FIELDS[kind], []).extend(found)
            return chunks
        self._open.tokens += found
        self._due += found
        for chunk in chunks[-1:]:
            chunk["logprobs"], self._due = self._due, []
        return chunks

    def ids(self, found: list[int], chunks: list[ResponseEvent]) -> None:
        super().ids(found, chunks)
        chunks[0]["token_ids"] = found

    def keeps(self, store: bool, *, conversation: str | None = None, background: bool = False) -> None:
        """Whether the server keeps the response, in which conversation, and whether it runs in the background."""
        self._repeated["store"] = store
        if conversation is not None:
            self._repeated["conversation"] = {"id": conversation}
        if background:
            self._repeated["background"] = True

    def fail(self, error: ApiError) -> list[dict[str, Any]]:
        events = self._close(complete=False)
        self._error = {"code": "server_error", "message": error.message}
        events.append(self._whole("failed"))
        named = {"code": error.code, "message": error.message, "param": error.param}
        return [*map(dict, events), {**self._event("error"), **named}]

    @property
    def _status(self) -> Status:
        if self._error is not None:
            return "failed"
        if not self._finished:
            return "in_progress"
        return "incomplete" if self._reason == "length" else "completed"

    @property
    def answer(self) -> Response:
        cut = {"reason": "max_output_tokens"} if self._status == "incomplete" else None
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": self._status,
            "error": self._error,
            "incomplete_details": cut,
            "model": self.model,
            "output": [self._item(part) for part in self._parts],
            "usage": self._usage.responses() if self._finished else None,
            **self._repeated,  # type: ignore[typeddict-item]
            **self._own,
            **({} if self.prompt_token_ids is None else {"prompt_token_ids": self.prompt_token_ids}),
            **({} if self.token_ids is None else {"token_ids": [*self.token_ids]}),
            **({"token_logprobs": self._apart} if self._apart else {}),
        }

    # items

    @property
    def _place(self) -> int:
        return len(self._parts) - 1

    def _at(self, part: Part) -> dict[str, Any]:
        """Where the text of the last part is."""
        place = {"item_id": part.key, "output_index": self._place}
        return place if part.is_call else {**place, "content_index": 0}

    def _event(self, type: str, **fields: Any) -> ResponseEvent:
        number = self._number
        self._number += 1
        return {"type": type, "sequence_number": number, **fields}  # type: ignore[typeddict-item]

    def _whole(self, name: str) -> ResponseEvent:
        """The event that has the whole response."""
        return self._event(f"response.{name}", response=self.answer)

    def _item(self, part: Part, empty: bool = False) -> ResponseItem:
        """The item of a part with the text that it has so far. ``empty``: as it begins."""
        status: Status = "completed" if part.complete else "incomplete"
        status = "in_progress" if part is self._open else status
        item: ResponseItem = {"id": part.key, "type": _TYPE[part.kind], "status": status}
        if part.is_call:
            item["call_id"] = part.id
            if part.kind == "search":
                return {**item, "execution": "client", "arguments": partial_object(part.text)}
            spelling = self._toolkit.spelling(part.name)
            item["name"] = spelling.name
            item["input" if part.kind == "custom" else "arguments"] = part.text
            if spelling.namespace is not None:
                item["namespace"] = spelling.namespace
            return item
        if part.kind == "content":
            item["role"] = "assistant"
        else:
            item["summary"] = []
            if self._seals is not None:
                item["encrypted_content"] = "" if part is self._open else part.sealed(self._seals)
        item["content"] = [] if empty else [_text_part(part)]
        return item


_TYPE: Mapping[PartKind, ItemType] = {
    "content": "message",
    "reasoning": "reasoning",
    "call": "function_call",
    "custom": "custom_tool_call",
    "search": "tool_search_call",
}
_EVENT: Mapping[PartKind, str] = {
    "content": "output_text",
    "reasoning": "reasoning_text",
    "call": "function_call_arguments",
    "custom": "custom_tool_call_input",
}
"""The events that have the text of an item."""
_DELTA: Mapping[PartKind, str] = {kind: f"response.{event}.delta" for kind, event in _EVENT.items()}


def _text_part(part: Part) -> dict[str, Any]:
    """The only part of an item of text."""
    text = {"type": _EVENT[part.kind], "text": part.text}
    return {**text, "annotations": [], "logprobs": [*part.tokens]} if part.kind == "content" else text
