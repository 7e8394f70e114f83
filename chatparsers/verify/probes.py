"""What a server is asked: conversations whose prompt is judged, and requests whose answer is.

A probe is the body of a chat-completions request, without the model and the sampling. The other APIs get the same
request in their own shape (`chatparsers.verify.apis`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..chat.chat import Chat

MOST = 200
"""How many tokens an answer may have."""
_CUT_START, _THOUGHT_CUT = 3, 8


@dataclass(frozen=True, slots=True)
class Probe:
    """One request. ``prompt``: one token is asked for, and the prompt is judged. ``calls``: how many calls a good model
    writes, None if that says nothing. ``says``: a word that a good model's answer has. ``private``: the request is a
    user's own, so its texts stay out of reports."""

    name: str
    body: Mapping[str, Any]
    prompt: bool = False
    calls: int | None = None
    says: str = ""
    private: bool = field(default=False)

    @property
    def tools(self) -> dict[str, Any]:
        """The schema of each tool's arguments, by name."""
        functions = [tool.get("function") or {} for tool in self.body.get("tools") or ()]
        return {str(each.get("name")): each.get("parameters") or {} for each in functions}

    @property
    def choice(self) -> str:
        """auto, none, required or named."""
        choice = self.body.get("tool_choice", "auto")
        return "named" if isinstance(choice, Mapping) else str(choice)

    @property
    def named(self) -> str | None:
        """The tool that must be called."""
        choice = self.body.get("tool_choice")
        return str(choice["function"]["name"]) if isinstance(choice, dict) else None

    @property
    def forced(self) -> bool:
        """Whether there must be a call."""
        return self.choice in ("required", "named")

    @property
    def schema(self) -> Any:
        """The JSON Schema that the content must follow; None if there is none."""
        wanted = self.body.get("response_format") or {}
        return (wanted.get("json_schema") or {}).get("schema") if isinstance(wanted, Mapping) else None

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end the answer, which the client never sees."""
        stop = self.body.get("stop") or ()
        return (stop,) if isinstance(stop, str) else tuple(stop)


def _tool(name: str, says: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": says, "parameters": parameters}}


_TEXT, _WHOLE = {"type": "string"}, {"type": "integer"}
_TRAIN = _tool("find_train", "Finds a train.", ["to"], to=_TEXT, seats=_WHOLE)
_CLOCK = _tool("read_clock", "Says what time it is.", ["zone"], zone=_TEXT)
_NOTE = _tool("keep_note", "Keeps a note.", ["title", "text"], title=_TEXT, text=_TEXT)
_STAY = _tool(
    "book_stay",
    "Books a room.",
    ["guests", "view", "room", "nights", "address"],
    guests=_WHOLE,
    view={"type": "boolean"},
    room={"enum": ["single", "double"]},
    nights={"type": "array", "items": _TEXT},
    address={"type": "object", "properties": {"city": _TEXT, "zip": _WHOLE}, "required": ["city"]},
)
_TOOLS = [_TRAIN, _CLOCK]
_CITY = {
    "type": "object",
    "properties": {"city": _TEXT, "people": _WHOLE},
    "required": ["city", "people"],
    "additionalProperties": False,
}
HARD = 'She said "</tool_call>" & <b>\\n</b>\n\tgrün 🙂 {"a": [1]}'
"""A text with what ends calls and strings, controls, and characters of several bytes."""


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _called(number: int, name: str, arguments: str) -> dict[str, Any]:
    return {
        "id": f"call{number:05}",  # nine letters and digits, as Mistral's templates want them
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call{number:05}", "content": text}


_ASKED = user("Is there a train to Bergen?")
_CALL = _called(1, "find_train", '{"to": "Bergen", "seats": 2}')
_FOUND = _result(1, '{"leaves": "8:25"}')
_PAST = [_ASKED, {"role": "assistant", "content": None, "tool_calls": [_CALL]}, _FOUND]
_TWICE = [
    user("A train to Bergen, and the time?"),
    {
        "role": "assistant",
        "content": "I look both up.",
        "tool_calls": [
            _called(1, "find_train", '{"to": "Bergen"}'),
            _called(2, "read_clock", '{"zone": "CET"}'),
        ],
    },
    _result(1, "8:25"),
    _result(2, "7:10"),
]
_PARTS = [{"type": "text", "text": "Good morning."}, {"type": "text", "text": "Good night."}]


def conversations(chat: Chat) -> Iterator[Probe]:
    """The probes whose prompt is judged."""

    def probe(name: str, *messages: Any, **more: Any) -> Probe:
        return Probe(f"prompt/{name}", {"messages": list(messages), **more}, prompt=True)

    system = {"role": "system", "content": "Answer in few words."}
    yield probe("user", user("Good morning."))
    yield probe("system", system, user("Good morning."))
    yield probe("unicode", user("Grüße, 東京 🙂 <b>&amp;\n\n  two  blanks"))
    yield probe("parts", {"role": "user", "content": _PARTS})
    yield probe("tools", _ASKED, tools=_TOOLS)
    yield probe("nested-tool", system, user("Book a room."), tools=[_STAY])
    yield probe("past-call", *_PAST, tools=_TOOLS)
    answered = {"role": "assistant", "content": "At 8:25."}
    yield probe(
        "empty-content",
        _ASKED,
        {**_PAST[1], "content": ""},
        _FOUND,
        answered,
        user("And to Oslo?"),
        tools=_TOOLS,
    )
    yield probe("two-past-calls", *_TWICE, tools=_TOOLS)
    if thinks(chat):
        thought = {**_PAST[1], "reasoning_content": "The tool knows."}
        yield probe("past-thought", _ASKED, thought, _FOUND, tools=_TOOLS)
    off = thinking(chat, False)
    if off:
        yield probe("thinking-off", user("Good morning."), chat_template_kwargs=off)


def answers(chat: Chat) -> Iterator[Probe]:
    """The probes whose answer is judged, whole and streamed."""

    def probe(name: str, *messages: Any, calls: int | None = None, says: str = "", **body: Any) -> Probe:
        return Probe(name, {"messages": list(messages), **body}, calls=calls, says=says)

    must: dict[str, Any] = {"tools": _TOOLS, "tool_choice": "required"}
    one: dict[str, Any] = {"tool_choice": "required", "parallel_tool_calls": False}
    yield probe("text", user("Greet Ingrid in one sentence."), says="Ingrid")
    yield probe("auto", user("Find a train to Bergen. Use the tool."), tools=_TOOLS, calls=1)
    shown = [*_PAST, {"role": "assistant", "content": "At 8:25."}]
    yield probe("auto-shown", *shown, user("And a train to Oslo, for 3?"), tools=_TOOLS, calls=1)
    yield probe("two", user("Find a train to Bergen and one to Oslo: make two calls."), calls=2, **must)
    yield probe("required", user("Find a train to Bergen now."), tools=_TOOLS, calls=1, **one)
    named = {"type": "function", "function": {"name": "read_clock"}}
    yield probe("named", user("Find a train to Bergen today."), tools=_TOOLS, tool_choice=named, calls=1)
    yield probe("none", user("Is a train to Bergen cheap?"), tools=_TOOLS, tool_choice="none")
    stay = "Book a double room with a view for 2 guests, the nights of 1 and 2 May, in Oslo, zip 150."
    yield probe("deep", user(stay), tools=[_STAY], calls=1, **one)
    yield probe("hard-text", user(f"Keep this text as a note: {HARD}"), tools=[_NOTE], calls=1, **one)
    strict = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": _CITY}}
    yield probe("json", user("Name a city and how many people live there."), response_format=strict)
    yield probe("stop", user("Count from 1 to 9, with commas."), stop=["5"])
    yield probe("cut-start", user("Find a train to Bergen tomorrow."), max_tokens=_CUT_START, **must)
    if thinks(chat):
        yield probe("only-thought", user("Think about trains."), max_tokens=_THOUGHT_CUT)
    for name, switch in (("thinking-off", False), ("thinking-on", True)):
        variables = thinking(chat, switch)
        if variables:
            yield probe(name, user("Greet Ingrid briefly."), says="Ingrid", chat_template_kwargs=variables)


_CUT, _CUT_NAME, SENT_BACK = LATER = (
    Probe("cut", {"messages": []}),
    Probe("cut-name", {"messages": []}),
    Probe("prompt/sent-back", {"messages": []}, prompt=True),
)
"""The probes that are made of an answer with calls: that request again, cut inside the call; the answer sent back."""


def cuts(probe: Probe, start: int, end: int) -> Iterator[Probe]:
    """The request again, with so few tokens that its call is cut off: in its middle, and where it begins. ``start``,
    ``end``: the tokens of the call."""
    yield replace(_CUT, body={**probe.body, "max_tokens": max((start + end) // 2, 1)})
    yield replace(_CUT_NAME, body={**probe.body, "max_tokens": start + 2})


def sent_back(probe: Probe, content: str, reasoning: str, calls: list[dict[str, Any]]) -> Probe:
    """The server's own answer, sent back with a result for each call, as clients do."""
    said: dict[str, Any] = {"role": "assistant", "content": content or None, "tool_calls": calls}
    if reasoning:
        said["reasoning_content"] = reasoning
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "8:25"} for call in calls]
    body = {"messages": [*probe.body["messages"], said, *results], "tools": probe.body["tools"]}
    return replace(SENT_BACK, body=body)


def with_short_ids(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request with ids of calls as the probes have them, in the place of those that a server gave."""
    given = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    text = json.dumps(body)
    for number, id in enumerate(given):
        text = text.replace(json.dumps(id), json.dumps(f"call{number:05}"))
    found: dict[str, Any] = json.loads(text)
    return found


def thinks(chat: Chat) -> bool:
    """Whether the model writes reasoning."""
    return chat.format.features.reasoning


def thinking(chat: Chat, on: bool) -> dict[str, Any]:
    """The template's variables that turn thinking on or off; empty if it has no such switch."""
    return chat.template().thinking_kwargs(on) if thinks(chat) else {}
