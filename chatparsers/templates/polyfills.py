"""Polyfills write what a template cannot show in another way. Each rewrites a conversation and knows no template.

A rewrite takes OpenAI-shaped messages and returns new ones. It passes other messages on and changes no message in
place. ``plan.py`` finds the polyfills that a template needs for a conversation, by rendering needles. They run in the
order of `POLYFILLS`, so that each sees the output of those before it.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from .exact import to_json

__all__ = ["POLYFILLS", "Message", "Syntax", "apply", "flat_tools"]

Message = Mapping[str, Any]

_FOLLOWS = "\n\n"
_LONG = 65_536  # bytes: a longer text is written anew each time


class Syntax(Hashable, Protocol):
    """How the model writes a turn: a `Format`, as far as it is needed here."""

    def render(self, message: Message, tools: Iterable[Mapping[str, Any]] | None = None) -> str:
        """The turn as the model would have written it."""
        ...


@dataclass(frozen=True, slots=True)
class _Request:
    """The input of the rewrites beside the messages."""

    tools: Sequence[Mapping[str, Any]]
    syntax: Syntax


def apply(
    names: Iterable[str], messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], syntax: Syntax
) -> list[Message]:
    """The messages, rewritten by these polyfills."""
    chosen, request, out = frozenset(names), _Request(tools, syntax), list(messages)
    for name, rewrite in POLYFILLS.items():
        if name in chosen:
            out = rewrite(out, request)
    return out


# roles that a template does not know


def _developer_as_system(messages: list[Message], request: _Request) -> list[Message]:
    """A developer's message is a system message."""
    return [{**m, "role": "system"} if m.get("role") == "developer" else m for m in messages]


def _one_system(messages: list[Message], request: _Request) -> list[Message]:
    """The system messages at the beginning are one, a later one is a user's."""
    start = 0
    while start < len(messages) and messages[start].get("role") == "system":
        start += 1
    out: list[Message] = []
    if start:
        out = [{**messages[0], "content": _join(*(m.get("content") for m in messages[:start]))}]
    return out + [{**m, "role": "user"} if m.get("role") == "system" else m for m in messages[start:]]


def _system_in_user(messages: list[Message], request: _Request) -> list[Message]:
    """A system message stands at the head of the next user message, or is one."""
    out: list[Message] = []
    held: list[Any] = []
    for message in messages:
        if message.get("role") == "system":
            held.append(message.get("content"))
            continue
        if held and message.get("role") == "user":
            message = {**message, "content": _join(*held, message.get("content"))}
        elif held:
            out.append({"role": "user", "content": _join(*held)})
        held = []
        out.append(message)
    return [*out, {"role": "user", "content": _join(*held)}] if held else out


# tools and calls


def _tools_in_system(messages: list[Message], request: _Request) -> list[Message]:
    """The tools are described in the first system message."""
    if not request.tools:
        return messages
    text = describe(request.tools, request.syntax)
    if messages and messages[0].get("role") in ("system", "developer"):
        return [{**messages[0], "content": _join(messages[0].get("content"), text)}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def describe(tools: Sequence[Mapping[str, Any]], syntax: Syntax) -> str:
    """The text that describes the tools to the model: their schemas, and a call as its format writes it."""
    return _kept(_description, list(tools), syntax)


def _description(tools: Sequence[Mapping[str, Any]], syntax: Syntax) -> str:
    functions = [tool.get("function", tool) for tool in tools]
    lines = "\n".join(to_json(function) for function in functions)
    properties = {"argument_name": {"type": "string"}}
    sample = {
        "name": "tool_name",
        "arguments": '{"argument_name": "value"}',
        "parameters": {"type": "object", "properties": properties},
    }
    call = {"id": "call00000", "type": "function", "function": sample}
    example = syntax.render({"role": "assistant", "content": "", "tool_calls": [call]}, [sample])
    return (
        "You can call tools. They are described here as JSON, one on each line:\n\n"
        f"{lines}\n\n"
        "Call a tool where it helps to answer, and only then. To call it, write its name and its arguments in exactly "
        f"this form, then wait for the result:\n\n{example.strip()}"
    )


def _flat_calls(messages: list[Message], request: _Request) -> list[Message]:
    """A call's name and arguments stand in the call itself as well, for templates that do not look into `function`."""

    def flat(call: Any) -> Any:
        function = call.get("function") if isinstance(call, Mapping) else None
        return {**function, **call} if isinstance(function, Mapping) else call

    return [
        {**m, "tool_calls": [flat(call) for call in m["tool_calls"]]}
        if isinstance(m.get("tool_calls"), list)
        else m
        for m in messages
    ]


def flat_tools(tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tools with a function's fields in the tool itself as well."""
    return [
        {**tool["function"], **tool} if isinstance(tool.get("function"), Mapping) else tool for tool in tools
    ]


def _text_calls(messages: list[Message], request: _Request) -> list[Message]:
    """Calls of the history stand in the assistant's text, as the format writes them."""
    return [_written(m, request.syntax, request.tools) if m.get("tool_calls") else m for m in messages]


def _written(message: Message, syntax: Syntax, tools: Sequence[Mapping[str, Any]]) -> Message:
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    plain = {
        "role": "assistant",
        "content": _text(message.get("content")),
        "tool_calls": message["tool_calls"],
    }
    called = {
        call.get("function", call).get("name") for call in message["tool_calls"] if isinstance(call, Mapping)
    }
    used = [tool for tool in tools if tool.get("function", tool).get("name") in called]
    return {**rest, "content": _kept(_turn, [plain, used], syntax)}


def _turn(given: Sequence[Any], syntax: Syntax) -> str:
    return syntax.render(given[0], given[1])


def _kept(write: Callable[[Any, Syntax], str], given: Any, syntax: Syntax) -> str:
    """``write(given, syntax)``, remembered: the tools are the same in each request, a history grows at its end."""
    try:
        key = marshal.dumps(given)
    except ValueError:  # no plain data
        return write(given, syntax)
    return _remembered(write, key, syntax) if len(key) < _LONG else write(given, syntax)


@lru_cache(maxsize=512)
def _remembered(write: Callable[[Any, Syntax], str], key: bytes, syntax: Syntax) -> str:
    return write(marshal.loads(key), syntax)


def _text_apart(messages: list[Message], request: _Request) -> list[Message]:
    """Text beside a call is a turn of its own, before the call's."""
    out: list[Message] = []
    for message in messages:
        if message.get("tool_calls") and message.get("content"):
            out.append({key: value for key, value in message.items() if key != "tool_calls"})
            message = {"role": message["role"], "content": "", "tool_calls": message["tool_calls"]}
        out.append(message)
    return out


def _one_call_a_turn(messages: list[Message], request: _Request) -> list[Message]:
    """Several calls of a turn are as many turns, each followed by its result."""
    out: list[Message] = []
    place = 0
    while place < len(messages):
        message = messages[place]
        calls = message.get("tool_calls") or ()
        place += 1
        if not isinstance(calls, (list, tuple)) or len(calls) < 2:
            out.append(message)
            continue
        end = place
        while end < len(messages) and messages[end].get("role") == "tool":
            end += 1
        answers = _answers(calls, messages[place:end])
        for number, call in enumerate(calls):
            first = message if number == 0 else {"role": message["role"], "content": ""}
            out.append({**first, "tool_calls": [call]})
            out += [result for at, result in answers if at == number]
        out += [result for at, result in answers if at is None]
        place = end
    return out


def _answers(calls: Sequence[Any], results: Sequence[Message]) -> list[tuple[int | None, Message]]:
    """Each result with the place of the call that it answers: by its id, else by its order."""
    ids = [call.get("id") if isinstance(call, Mapping) else None for call in calls]
    free = list(range(len(calls)))
    found: list[tuple[int | None, Message]] = []
    for result in results:
        id = result.get("tool_call_id")
        at = ids.index(id) if id is not None and id in ids else (free[0] if free else None)
        if at in free:
            free.remove(at)
        found.append((at, result))
    return found


def _results_as_user(messages: list[Message], request: _Request) -> list[Message]:
    """Results of calls are a user message that says which call each of them answers."""
    out: list[Message] = []
    calls: Sequence[Any] = ()
    place = 0
    while place < len(messages):
        message = messages[place]
        if message.get("role") != "tool":
            calls = message.get("tool_calls") or ()
            out.append(message)
            place += 1
            continue
        end = place
        while end < len(messages) and messages[end].get("role") == "tool":
            end += 1
        texts: list[Any] = []
        for at, result in _answers(calls, messages[place:end]):
            texts += [_title(calls, at, result), result.get("content")]
        pairs = [
            _join(title, content, between="\n")
            for title, content in zip(texts[::2], texts[1::2], strict=True)
        ]
        out.append({"role": "user", "content": _join(*pairs)})
        place = end
    return out


def _title(calls: Sequence[Any], at: int | None, result: Message) -> str:
    call = calls[at] if at is not None else {}
    function = call.get("function", call) if isinstance(call, Mapping) else {}
    name = result.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
    several = f" (call {at + 1} of {len(calls)})" if at is not None and len(calls) > 1 else ""
    return f"Result of {name or 'the call'}{several}:"


def _alternate(messages: list[Message], request: _Request) -> list[Message]:
    """Messages of one role that follow one another are one message."""
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else {}
        same = message.get("role") == last.get("role") and message.get("role") in ("user", "assistant")
        if same and not last.get("tool_calls"):
            out[-1] = {**last, **message, "content": _join(last.get("content"), message.get("content"))}
        else:
            out.append(message)
    return out


# contents


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") if isinstance(part, Mapping) else str(part) for part in content)
    return "" if content is None else str(content)


def _join(*contents: Any, between: str = _FOLLOWS) -> Any:
    """Joins contents: to a text, or to a list of parts if one of them holds more than text."""
    given = [content for content in contents if content]
    if not any(isinstance(content, list) and not all(map(_is_text, content)) for content in given):
        return between.join(map(_text, given))
    parts: list[Any] = []
    for content in given:
        if parts:
            parts.append({"type": "text", "text": between})
        parts += content if isinstance(content, list) else [{"type": "text", "text": content}]
    return parts


def _is_text(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and isinstance(part.get("text"), str))


POLYFILLS: dict[str, Callable[[list[Message], _Request], list[Message]]] = {
    "flat": _flat_calls,
    "developer_role": _developer_as_system,
    "several_systems": _one_system,
    "tools": _tools_in_system,
    "system_role": _system_in_user,
    "text_beside_calls": _text_apart,
    "parallel_calls": _one_call_a_turn,
    "tool_role": _results_as_user,
    "tool_calls": _text_calls,
    "alternation": _alternate,
}
"""The rewrites by name, in the order in which they run."""
