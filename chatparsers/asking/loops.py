"""The loops of `Chat.ask` and `Chat.run`, without I/O.

Each is a generator. It yields what is to be done next: a `Generation`, to which its `Answer` is sent, or a `Use` of a
function, to which a `CallResult` is sent. What it returns is what the caller gets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from ..answers.format import Turn
from ..chat.asking import CallResult, NoAnswer, RunResult
from ..errors import RequestError
from ..schema.typed import WrongValue, arguments_of, schema_of, value_of
from ..streams.message import Message, ToolCall

_LONGEST = 100_000
"""How many characters of a result the model reads."""


@dataclass(frozen=True, slots=True)
class Generation:
    """An answer that is to be generated. ``quoted``: where words of the prompt spell special tokens."""

    turn: Turn
    quoted: Callable[[], Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. ``content``: its text, with that of calls that the model broke. ``cut``: it reached the limit."""

    message: Message
    content: str
    cut: bool = False

    def written(self) -> dict[str, Any]:
        """The message for the history: broken calls are text, so that the model sees what it wrote."""
        return {**self.message.to_openai("drop"), "content": self.content}


@dataclass(frozen=True, slots=True)
class Use:
    """A call of a function that is to be made."""

    call: ToolCall
    function: Callable[..., Any]
    arguments: Mapping[str, Any]


def asking(
    chat: Any, messages: Any, kind: Any, tries: int, request: Mapping[str, Any]
) -> Generator[Generation, Answer, Any]:
    """Asks for a value of a type. Raises `NoAnswer` if none came in so many tries."""
    schema = dict(kind) if isinstance(kind, Mapping) else schema_of(kind)
    asked = _with_schema(_messages(messages), schema)
    name = getattr(kind, "__name__", "answer")
    response_format = {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
    why = ""
    for _ in range(max(tries, 1)):
        said = yield _generation(chat, asked, {**request, "response_format": response_format})
        asked.append(said.written())
        try:
            data = json.loads(said.content)
            return data if isinstance(kind, Mapping) else value_of(kind, data)
        except WrongValue as error:
            why = str(error)
        except (ValueError, RecursionError) as error:
            why = "the answer was cut off" if said.cut else f"the answer is no JSON: {error}"
        asked.append(_user(f"That was not right: {why}. Answer again, with the JSON alone."))
    raise NoAnswer(f"no value of {name} in {max(tries, 1)} tries: {why}", asked)


def running(
    chat: Any, messages: Any, functions: Sequence[Callable[..., Any]], steps: int, request: Mapping[str, Any]
) -> Generator[Generation | Use, Any, RunResult]:
    """Lets the model call functions until it answers without a call. Raises `NoAnswer` after so many steps."""
    named = _named(functions)
    asked, results = _messages(messages), []
    for _ in range(max(steps, 1)):
        said: Answer = yield _generation(chat, asked, {**request, "tools": list(functions)})
        asked.append(said.written())
        calls = [call for call in said.message.tool_calls if call.complete]
        for call in calls:
            result = yield from _used(call, named)
            results.append(result)
            asked.append(
                {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": _text(result)}
            )
        wrong = _broken(said)
        if wrong:
            asked.append(_user(f"The call was not understood: {wrong}. Write the whole call again."))
        elif not calls:
            return RunResult(said.message, asked, results)
    raise NoAnswer(f"the model still calls after {max(steps, 1)} steps", asked)


def _used(call: ToolCall, named: Mapping[str, Callable[..., Any]]) -> Generator[Use, Any, CallResult]:
    function = named.get(call.name)
    if function is None:
        known = ", ".join(named) or "none"
        return CallResult(call, error=WrongValue(f"there is no function {call.name!r}, but: {known}"))
    try:
        arguments = arguments_of(function, call.parsed_arguments or {})
    except WrongValue as error:
        return CallResult(call, error=error)
    found: CallResult = yield Use(call, function, arguments)
    return found


def _broken(said: Answer) -> str:
    """What is wrong with calls that the model broke; "" if it broke none."""
    calls = [call for call in said.message.tool_calls if not call.complete]
    if not calls:
        return ""
    if said.cut:
        return "the answer was cut off"
    numbers = {call.index for call in calls}
    told = [str(one) for one in said.message.diagnostics if one.call in numbers]
    return told[0] if told else "it has no end"


def _generation(chat: Any, messages: list[dict[str, Any]], request: Mapping[str, Any]) -> Generation:
    given = list(messages)
    return Generation(chat.prepare(given, **request), lambda: chat.quoted(given, **request))


def _messages(messages: Any) -> list[dict[str, Any]]:
    """The messages, which may be one question."""
    if isinstance(messages, str):
        return [_user(messages)]
    return [one.to_openai() if isinstance(one, Message) else dict(one) for one in messages]


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _with_schema(messages: list[dict[str, Any]], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages, of which the first tells the schema: a grammar shows the model nothing."""
    text = f"Answer with JSON of this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    if messages and messages[0].get("role") == "system" and isinstance(messages[0].get("content"), str):
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _named(functions: Sequence[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    named: dict[str, Callable[..., Any]] = {}
    for place, function in enumerate(functions):
        name = getattr(function, "__name__", None)
        if not callable(function) or not isinstance(name, str):
            raise RequestError(f"functions[{place}]: expected a function, found {type(function).__name__}")
        if name in named:
            raise RequestError(f"functions[{place}]: two functions are named {name!r}: rename one")
        named[name] = function
    return named


def _text(result: CallResult) -> str:
    """What the model reads of a result."""
    if result.error is not None:
        wrong = isinstance(result.error, WrongValue)
        text = f"Error: {'' if wrong else type(result.error).__name__ + ': '}{result.error}"
    elif isinstance(result.value, str):
        text = result.value
    else:
        text = json.dumps(result.value, ensure_ascii=False, default=_plain)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain(value: Any) -> Any:
    """What JSON can write of a value."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    return list(value) if isinstance(value, (set, frozenset, tuple)) else str(value)
