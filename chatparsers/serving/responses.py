"""Answers of OpenAI's Responses API.

An answer is a list of items: reasoning, a message with text, a call. One item is open at a time. Text that follows in
the open item's kind goes on in it; any other event closes it and opens the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict
from uuid import uuid4

from ..core.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from ..core.message import FinishReason, RegionKind
from ..core.parser.stream import check_reason
from .errors import ApiError
from .freeform import FreeText
from .logprobs import FIELDS, Logprobs, TokenLogprob
from .tools import Toolkit
from .usage import Usage
from .writer import Writer

Status = Literal["in_progress", "completed", "incomplete", "failed"]


class ResponseItem(TypedDict, total=False):
    """An item of the output. ``type``: ``reasoning``, ``message``, ``function_call`` or ``custom_tool_call``."""

    id: str
    type: Literal["reasoning", "message", "function_call", "custom_tool_call"]
    status: Status
    role: Literal["assistant"]
    summary: list[Any]
    content: list[dict[str, Any]]
    call_id: str
    name: str
    namespace: str
    arguments: str
    input: str


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
    ``toolkit``: the request's tools; calls of freeform tools are written as one text.

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
    ) -> None:
        super().__init__(model, id=id, created=created, call_id=call_id)
        given = request or {}
        self._repeated = {
            name: given[name] if given.get(name) is not None else default
            for name, default in _DEFAULTS.items()
        }
        self._repeated["store"] = False
        self._toolkit = toolkit or Toolkit()
        self._free: FreeText | None = None
        """Reads the text of the open call, if its tool is freeform."""
        self._output: list[ResponseItem] = []
        self._open: ResponseItem | None = None
        self._pieces: list[str] = []
        """The text of the open item."""
        self._said: list[TokenLogprob] = []
        """What the engine says of the tokens of the open item."""
        self._due: list[TokenLogprob] = []
        """Those of them that wait for the next piece of text."""
        self._apart: Logprobs = {}
        """What it says of tokens that no item has a place for."""
        self._complete = True
        """Whether the open item is a call that is not known to be incomplete."""
        self._number = 0
        self._status: Status = "in_progress"
        self._error: dict[str, Any] | None = None
        self._usage: Usage | None = None

    @staticmethod
    def new_id() -> str:
        return f"resp_{uuid4().hex}"

    def start(self, prompt_tokens: int = 0) -> list[ResponseEvent]:
        return [
            self._event("response.created", response=self.answer),
            self._event("response.in_progress", response=self.answer),
        ]

    def event(self, event: Event) -> list[ResponseEvent]:
        match event:
            case Content(text=text):
                opened = self._opened("message")
                self._pieces.append(text)
                delta = self._event("response.output_text.delta", **self._part, delta=text, logprobs=[])
                return [*opened, delta]
            case Reasoning(text=text):
                opened = self._opened("reasoning")
                self._pieces.append(text)
                return [*opened, self._event("response.reasoning_text.delta", **self._part, delta=text)]
            case CallStart(name=name):
                closed = self._close()
                spelling = self._toolkit.spelling(name)
                self._free = FreeText() if spelling.custom else None
                item: ResponseItem = {
                    "id": f"{'ctc' if spelling.custom else 'fc'}_{uuid4().hex}",
                    "type": "custom_tool_call" if spelling.custom else "function_call",
                    "status": "in_progress",
                    "call_id": self._call_id(event),
                    "name": spelling.name,
                }
                item["input" if spelling.custom else "arguments"] = ""
                if spelling.namespace is not None:
                    item["namespace"] = spelling.namespace
                return [*closed, self._add(item)]
            case CallArguments(text=text):
                if self._free is not None:
                    return self._text(self._free.take(text))
                self._pieces.append(text)
                return [self._event("response.function_call_arguments.delta", **self._place, delta=text)]
            case CallEnd(complete=complete):
                self._complete = complete
                left = self._text(self._free.finish()) if self._free is not None else []
                self._free = None
                return [*left, *self._close()]
        return []

    def tokens(
        self, kind: RegionKind, found: list[TokenLogprob], chunks: list[ResponseEvent]
    ) -> list[ResponseEvent]:
        super().tokens(kind, found, chunks)
        if kind != "content" or self._open is None or self._open["type"] != "message":
            self._apart.setdefault(FIELDS[kind], []).extend(found)
            return chunks
        self._said += found
        self._due += found
        for chunk in chunks[-1:]:
            chunk["logprobs"], self._due = self._due, []
        return chunks

    def ids(self, found: list[int], chunks: list[ResponseEvent]) -> None:
        super().ids(found, chunks)
        chunks[0]["token_ids"] = found

    def _text(self, text: str) -> list[ResponseEvent]:
        """More of the text of a freeform call."""
        if not text:
            return []
        self._pieces.append(text)
        return [self._event("response.custom_tool_call_input.delta", **self._place, delta=text)]

    def finish(
        self,
        reason: FinishReason | None = None,
        usage: Usage | None = None,
        *,
        stop_sequence: str | None = None,
    ) -> list[ResponseEvent]:
        check_reason(reason)
        self._complete = reason != "length"
        closed = self._close()
        self._usage = usage or Usage()
        self._status = "incomplete" if reason == "length" else "completed"
        return [*closed, self._event(f"response.{self._status}", response=self.answer)]

    def fail(self, error: ApiError) -> list[dict[str, Any]]:
        self._complete = False
        events = self._close()
        self._status = "failed"
        self._error = {"code": "server_error", "message": error.message}
        events.append(self._event("response.failed", response=self.answer))
        named = {"code": error.code, "message": error.message, "param": error.param}
        return [*map(dict, events), {**self._event("error"), **named}]

    @property
    def answer(self) -> Response:
        output = [*self._output, self._closed(self._open)] if self._open is not None else [*self._output]
        cut = {"reason": "max_output_tokens"} if self._status == "incomplete" else None
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": self._status,
            "error": self._error,
            "incomplete_details": cut,
            "model": self.model,
            "output": output,
            "usage": None if self._usage is None else self._usage.responses(),
            **self._repeated,  # type: ignore[typeddict-item]
            **({"unwanted_calls": self.unwanted} if self.unwanted else {}),
            **({} if self.prompt_token_ids is None else {"prompt_token_ids": self.prompt_token_ids}),
            **({} if self.token_ids is None else {"token_ids": [*self.token_ids]}),
            **({"token_logprobs": self._apart} if self._apart else {}),
        }

    # items

    @property
    def _place(self) -> dict[str, Any]:
        assert self._open is not None
        return {"item_id": self._open["id"], "output_index": len(self._output)}

    @property
    def _part(self) -> dict[str, Any]:
        return {**self._place, "content_index": 0}

    def _opened(self, kind: Literal["message", "reasoning"]) -> list[ResponseEvent]:
        """The events that open an item of text, unless it is open."""
        if self._open is not None and self._open["type"] == kind:
            return []
        closed = self._close()
        item: ResponseItem
        if kind == "message":
            item = {"id": f"msg_{uuid4().hex}", "type": "message", "status": "in_progress"}
            item["role"] = "assistant"
        else:
            item = {"id": f"rs_{uuid4().hex}", "type": "reasoning", "status": "in_progress", "summary": []}
        item["content"] = []
        added = self._add(item)
        part = _PART[kind]("", [])
        return [*closed, added, self._event("response.content_part.added", **self._part, part=part)]

    def _add(self, item: ResponseItem) -> ResponseEvent:
        self._open = item
        self._pieces = []
        self._said, self._due = [], []
        self._complete = True
        return self._event("response.output_item.added", output_index=len(self._output), item=item)

    def _close(self) -> list[ResponseEvent]:
        """The events that close the open item, if there is one."""
        item = self._open
        if item is None:
            return []
        done = self._closed(item)
        done["status"] = "completed" if self._complete else "incomplete"
        text = "".join(self._pieces)
        events: list[ResponseEvent] = []
        if item["type"] == "function_call":
            name = "response.function_call_arguments.done"
            events = [self._event(name, **self._place, name=item["name"], arguments=text)]
        elif item["type"] == "custom_tool_call":
            events = [self._event("response.custom_tool_call_input.done", **self._place, input=text)]
        else:
            name = "output_text" if item["type"] == "message" else "reasoning_text"
            more: dict[str, Any] = {"logprobs": self._said} if item["type"] == "message" else {}
            events = [
                self._event(f"response.{name}.done", **self._part, text=text, **more),
                self._event("response.content_part.done", **self._part, part=done["content"][0]),
            ]
        events.append(
            self._event("response.output_item.done", output_index=len(self._output), item=done),
        )
        self._output.append(done)
        self._open = None
        return events

    def _closed(self, item: ResponseItem) -> ResponseItem:
        """The item with the text that it has so far."""
        text = "".join(self._pieces)
        done = item.copy()
        if item["type"] == "function_call":
            done["arguments"] = text
        elif item["type"] == "custom_tool_call":
            done["input"] = text
        else:
            done["content"] = [_PART[item["type"]](text, self._said)]
        return done

    def _event(self, type: str, **fields: Any) -> ResponseEvent:
        number = self._number
        self._number += 1
        return {"type": type, "sequence_number": number, **fields}  # type: ignore[typeddict-item]


_PART: Mapping[str, Callable[[str, list[TokenLogprob]], dict[str, Any]]] = {
    "message": lambda text, said: {"type": "output_text", "text": text, "annotations": [], "logprobs": said},
    "reasoning": lambda text, said: {"type": "reasoning_text", "text": text},
}
