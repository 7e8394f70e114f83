"""Lists of turns: a role and a text each, under whatever names. Most datasets are this, with small differences."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...answers.format import Format
from .talk import Call, Talk, Unreadable, json_text, read_json
from .tools import openai_tools, tools_in_text
from .wire import read_answer

CALLS = "calls"
RESULTS = "tool"

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "developer",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "agent": "assistant",
    "function_call": CALLS,
    "tool_call": CALLS,
    "tool": RESULTS,
    "observation": RESULTS,
    "environment": RESULTS,
    "function": RESULTS,
    "function_response": RESULTS,
    "tool_response": RESULTS,
    "ipython": RESULTS,
}
"""The roles of datasets, and what each stands for."""

_ROLE = ("role", "from")
_TEXT = ("content", "value", "text")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_MASKS = ("train", "train_detail", "training", "mask", "loss", "weight")
_OBSERVATION = re.compile(r"OBSERVATION:\n")
_RESPONSES = re.compile(r"<tool_response>\n?(.*?)\n?</tool_response>", re.DOTALL)


@dataclass(frozen=True)
class Turns:
    """How a dataset's turns are read. ``roles``: names of roles beside `ROLES`. ``role``, ``text``: their keys, tried
    before the usual ones. ``wire``: the format of the assistants' texts. ``python_calls``: the format that reads a
    text of bare calls, which ``open`` and ``close`` go around."""

    roles: Mapping[str, str] = field(default_factory=dict)
    role: str | None = None
    text: str | None = None
    wire: Format | None = None
    observations: bool = False
    bare_calls: Format | None = None


def read_turns(turns: Any, talk: Talk, how: Turns) -> None:
    """Adds a list of turns to the conversation. Raises `Unreadable` if it is none."""
    if isinstance(turns, str):
        try:
            turns = json.loads(turns)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"expected a list of turns, found {turns!r:.60}: {error}") from error
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise Unreadable(f"expected a list of turns, found {type(turns).__name__}")
    for place, turn in enumerate(turns):
        if not isinstance(turn, Mapping):
            raise Unreadable(f"turn {place}: expected an object with a role, found {turn!r:.60}")
        rest = dict(turn)
        named = _taken(rest, (how.role, *_ROLE))
        role = {**ROLES, **how.roles}.get(str(named).strip())
        if role is None:
            raise Unreadable(f"turn {place}: no role is named {named!r}: known are {', '.join(ROLES)}")
        _TURN[role](talk, rest, how)
        _leftovers(talk, rest)


def _taken(rest: dict[str, Any], keys: Sequence[str | None]) -> Any:
    """Takes the first of the keys that is there; also drops the others if they are null."""
    found = None
    for key in keys:
        if key is not None and key in rest and (found is None or rest[key] is None):
            value = rest.pop(key)
            found = value if found is None else found
    return found


def _leftovers(talk: Talk, rest: dict[str, Any]) -> None:
    left = {key: value for key, value in rest.items() if value is not None and value != []}
    if any(left.get(key) is not None for key in _MASKS):
        talk.lose("train-mask")
    talk.keep_of_message(left)


def content_of(value: Any) -> Any:
    """A content as text if it is text, else the list of its parts. Numbers and objects are text as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [_part(part) for part in value]
        if all(text is not None for text in texts):
            return "".join(text for text in texts if text is not None)
        return value
    return json_text(value)


def _part(part: Any) -> str | None:
    """The text of a part; None if it is more than text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
        return None
    return str(part["text"]) if part.get("type", "text") in ("text", "input_text", "output_text") else None


def _user(talk: Talk, rest: dict[str, Any], how: Turns) -> None:
    content = content_of(_taken(rest, (how.text, *_TEXT)))
    if how.observations and isinstance(content, str) and (found := _OBSERVATION.match(content)):
        talk.result(content[found.end() :])
        return
    talk.say("user", content)


def _system(talk: Talk, rest: dict[str, Any], how: Turns) -> None:
    content = content_of(_taken(rest, (how.text, *_TEXT, "system_prompt")))
    functions = rest.pop("functions", None)
    if functions:
        talk.tools = talk.tools or openai_tools(functions)
    read_system(talk, content)


def read_system(talk: Talk, content: Any, role: str = "system") -> None:
    """Adds a system text. One that declares the tools as JSON, for the wire of its dataset, goes to ``extra``."""
    if isinstance(content, str):
        found = tools_in_text(content)
        if found:
            talk.tools = talk.tools or found
            if {t["function"]["name"] for t in found} <= {t["function"]["name"] for t in talk.tools}:
                talk.keep("system", content)
                return
    if content:
        talk.say(role, content)


def _developer(talk: Talk, rest: dict[str, Any], how: Turns) -> None:
    read_system(talk, content_of(_taken(rest, (how.text, *_TEXT))), "developer")


def _assistant(talk: Talk, rest: dict[str, Any], how: Turns) -> None:
    content = content_of(_taken(rest, (how.text, *_TEXT)))
    reasoning = next((rest.pop(key) for key in _REASONING if isinstance(rest.get(key), str)), "")
    calls = calls_of(rest.pop("tool_calls", None) or rest.pop("function_call", None))
    written = rest.pop("function_calls", None)
    if isinstance(written, str) and written.strip() and how.bare_calls is not None:
        calls += _bare_calls(talk, written, how.bare_calls)
    if calls or not isinstance(content, str):
        talk.answer(content, reasoning, calls)
    else:
        read_answer(talk, how.wire, content, reasoning)


def _bare_calls(talk: Talk, text: str, format: Format) -> list[Call]:
    """The calls of a text that has them alone, one a line."""
    turn = format.bind(tools=talk.tools or [{"name": "any"}], id_seed="")
    message = turn.parse(f"<function_calls>{text}</function_calls>")
    if not message.tool_calls or not all(call.complete for call in message.tool_calls):
        talk.lose("arguments-not-json")
        talk.keep("function_calls", text)
        talk.fail(f"function_calls: expected calls in Python, found {text!r:.60}")
        return []
    return [(None, call.name, call.arguments) for call in message.tool_calls]


def calls_of(value: Any) -> list[Call]:
    """The calls of a field: a list or one object, also as JSON text. Raises `Unreadable` for anything else."""
    value = read_json(value, "expected calls as JSON")
    if not value:
        return []
    calls: list[Call] = []
    for call in value if isinstance(value, list) else [value]:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if isinstance(function, str):
            function = {**call, "name": function}
        name = function.get("name", function.get("function_name")) if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str):
            raise Unreadable(f"expected a call with a name and arguments, found {call!r:.60}")
        id = next((call[key] for key in ("id", "tool_call_id") if isinstance(call.get(key), str)), None)
        keys = ("arguments", "parameters", "kwargs", "args", "input")
        calls.append((id, name, next((function[key] for key in keys if key in function), None)))
    return calls


def _calls(talk: Talk, rest: dict[str, Any], how: Turns) -> None:
    """A turn that is one call, or a list of calls; several in a row belong to one message."""
    text = _taken(rest, (how.text, *_TEXT))
    try:
        calls = calls_of(text)
    except Unreadable as error:
        talk.lose("arguments-not-json")
        talk.answer(text)
        talk.fail(str(error))
        return
    last = talk.messages[-1] if talk.messages else None
    if last is None or last["role"] != "assistant":
        talk.answer("", "", calls)
    else:
        talk.call(*calls)


def _result(talk: Talk, rest: dict[str, Any], how: Turns) -> None:
    content = content_of(_taken(rest, (how.text, *_TEXT)))
    id = rest.pop("tool_call_id", None)
    name = rest.pop("name", None)
    if id is None and name is None and isinstance(content, str):
        blocks = _RESPONSES.findall(content)
        if blocks and not _RESPONSES.sub("", content).strip():
            if len(blocks) == 1:
                talk.result(blocks[0])
            else:
                talk.results(blocks, content)
            return
        if talk.waiting > 1 and how.bare_calls is not None:
            talk.results(content.split("\n"), content)
            return
    talk.result(content, id, name)


_TURN = {
    "system": _system,
    "developer": _developer,
    "user": _user,
    "assistant": _assistant,
    CALLS: _calls,
    RESULTS: _result,
}
