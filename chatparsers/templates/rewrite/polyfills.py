"""Polyfills write what a template cannot show in another way. Each rewrites a conversation and knows no template.

A rewrite takes OpenAI-shaped messages and returns new ones. It passes other messages on and changes no message in
place. ``plan.py`` finds the polyfills that a template needs for a conversation, by rendering stand-ins. They run in the
order of `POLYFILLS`, so that each sees the output of those before it.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...answers.format import Format
from ...kept import cached_method
from ..jinja.exact import from_json
from ..jinja.limits import current
from ..jinja.traced import concatenated, interleaved, untraced
from ..messages import BEFORE_CALLS, is_text
from ..probe.parts import part_kind, short_kind
from .declared import ToolsAs, declared
from .outline import BESIDE_RESULT, Message, Survey
from .results import MISSING, ORDER, settled

_FOLLOWS = "\n\n"
_NEEDLE = "needle0called"
_LONG, _LONG_TURN = 65_536, 4096
"""The longest data, in bytes, for which the text that describes tools, or writes a turn, is kept."""


class _Request:
    """The input of the rewrites beside the messages."""

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        syntax: Format,
        tools_as: ToolsAs,
        in_results: frozenset[str],
    ) -> None:
        self.tools = tools
        self.syntax = syntax
        self.tools_as = tools_as
        self.in_results = in_results

    @cached_method
    def used(self, names: tuple[Any, ...]) -> tuple[list[Mapping[str, Any]], bytes | None]:
        """The tools of these names, and a key for them; None if they are no plain data."""
        tools = [tool for tool in self.tools if _name(tool) in names]
        return tools, _key(tools, _LONG_TURN)


def apply(
    names: Iterable[str],
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    syntax: Format,
    tools_as: ToolsAs = "json",
    in_results: frozenset[str] = frozenset(),
) -> list[Message]:
    """The messages, rewritten by these polyfills. ``tools_as``: how a message describes the tools. ``in_results``:
    the types of parts other than text that results may have."""
    chosen, request, out = frozenset(names), _Request(tools, syntax, tools_as, in_results), list(messages)
    for name, rewrite in POLYFILLS.items():
        if name in chosen:
            out = rewrite(out, request)
    return out


# roles that a template does not know


def _developer_as_system(messages: list[Message], request: _Request) -> list[Message]:
    """A developer's message is a system message."""
    return [{**m, "role": "system"} if m.get("role") == "developer" else m for m in messages]


def _systems(messages: list[Message]) -> int:
    """The number of system messages at the beginning."""
    return next((place for place, m in enumerate(messages) if m.get("role") != "system"), len(messages))


def _one_system(messages: list[Message], request: _Request) -> list[Message]:
    """The system messages at the beginning are one."""
    start = _systems(messages)
    if start < 2:
        return messages
    return [
        {**messages[0], "content": _join(*(m.get("content") for m in messages[:start]))},
        *messages[start:],
    ]


def _late_system_as_user(messages: list[Message], request: _Request) -> list[Message]:
    """A system message after any other message is a user's."""
    start = _systems(messages)
    late = [{**m, "role": "user"} if m.get("role") == "system" else m for m in messages[start:]]
    return messages[:start] + late


def _in_the_result(messages: list[Message], request: _Request) -> list[Message]:
    """Texts beside a result, and a system's after it, are at the result's end: a message of their own would begin a
    new question, at which templates drop the thoughts of the running one. So are pictures, if results may have them."""
    return _at_the_end(messages, request, lambda m: m.get("role") != "user" or m.get(BESIDE_RESULT) is True)


def _question_in_the_result(messages: list[Message], request: _Request) -> list[Message]:
    """A user's own message after a result is at the result's end too."""
    return _at_the_end(messages, request, lambda m: True)


def _at_the_end(
    messages: list[Message], request: _Request, belongs: Callable[[Message], bool]
) -> list[Message]:
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else {}
        if last.get("role") == "tool" and belongs(message) and _adds(message, request):
            message = {**last, "content": _join(last.get("content"), message.get("content"))}
            out.pop()
        out.append(message)
    return out


def _adds(message: Message, request: _Request) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    shown = all(is_text(part) or part_kind(part) in request.in_results for part in parts)
    return shown and message.get("role") in ("user", "system", "developer")


def _parts_after_results(messages: list[Message], request: _Request) -> list[Message]:
    """Pictures within results are a user's message after them; a text says so in their place."""
    out: list[Message] = []
    waiting: list[Any] = []
    number = 0
    for message in messages:
        if waiting and message.get("role") != "tool":
            out.append({"role": "user", "content": waiting})
            waiting = []
        content = message.get("content")
        if message.get("role") == "tool" and isinstance(content, list):
            left: list[Any] = []
            for part in content:
                kind = part_kind(part)
                if kind is None or kind in request.in_results:
                    left.append(part)
                    continue
                number += 1
                name = f"{short_kind(kind)} {number}"
                left.append({"type": "text", "text": f"[{name}: it follows the results]"})
                waiting += [{"type": "text", "text": f"[{name}]"}, part]
            # Of several texts in a result some templates write only the first.
            message = {**message, "content": _text(left) if all(map(is_text, left)) else left}
        out.append(message)
    return [*out, {"role": "user", "content": waiting}] if waiting else out


def _system_in_user(messages: list[Message], request: _Request) -> list[Message]:
    """A system message is at the head of the next user message, or is one."""
    out: list[Message] = []
    done = 0
    for place in [place for place, message in enumerate(messages) if message.get("role") == "system"]:
        if place < done:
            continue
        out += messages[done:place]
        done = place + 1
        while done < len(messages) and messages[done].get("role") == "system":
            done += 1
        held = [message.get("content") for message in messages[place:done]]
        if done < len(messages) and messages[done].get("role") == "user":
            out.append({**messages[done], "content": _join(*held, messages[done].get("content"))})
            done += 1
        else:
            out.append({"role": "user", "content": _join(*held)})
    return out + messages[done:]


# tools and calls


def _tools_in_system(messages: list[Message], request: _Request) -> list[Message]:
    """The tools are described in the first system message."""
    if not request.tools:
        return messages
    text = describe(request.tools, request.syntax, request.tools_as)
    if messages and messages[0].get("role") in ("system", "developer"):
        return [{**messages[0], "content": _join(messages[0].get("content"), text)}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def describe(tools: Sequence[Mapping[str, Any]], syntax: Format, tools_as: ToolsAs = "json") -> str:
    """The text that describes the tools to the model, and a call as its format writes it."""
    key = _key(list(tools), _LONG)
    if key is not None:
        return _kept_description(key, syntax, tools_as)
    text: str = current().carried(_description(tools, syntax, tools_as), tools)
    return text


_HOW = {
    "json": "as JSON, one on each line",
    "compact": "by name, purpose and arguments, of which those with ? may be left out",
    "typescript": "as declarations of TypeScript",
}


def _description(tools: Sequence[Mapping[str, Any]], syntax: Format, tools_as: ToolsAs) -> str:
    lines = "\n".join(declared(tool.get("function", tool), tools_as) for tool in tools)
    properties = {"argument_name": {"type": "string"}}
    sample = {"name": "tool_name", "parameters": {"type": "object", "properties": properties}}
    written = {"name": "tool_name", "arguments": '{"argument_name": "value"}'}
    call = {"id": "call00000", "type": "function", "function": written}
    example = syntax.render({"role": "assistant", "content": "", "tool_calls": [call]}, [sample])
    return (
        f"You can call tools. They are described here {_HOW[tools_as]}:\n\n"
        f"{lines}\n\n"
        "Call a tool where it helps to answer, and only then. To call it, write its name and its arguments in exactly "
        f"this form, then wait for the result:\n\n{example.strip()}"
    )


def _flat_calls(messages: list[Message], request: _Request) -> list[Message]:
    """A call's name and arguments are in the call itself as well, for templates that do not look into `function`."""

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
    """Calls of the history are in the assistant's text, as the format writes them."""
    return [_written(m, request) if m.get("tool_calls") else m for m in messages]


def _written(message: Message, request: _Request) -> Message:
    out = {**message}
    calls = out.pop("tool_calls")
    content = message.get("content")
    text = content if type(content) is str else _text(content)
    traces = current().traces
    plain = (untraced(text), untraced(calls)) if traces else (text, calls)
    tools, tools_key = request.used(tuple(map(_name, plain[1])))
    key = _key(plain, _LONG_TURN)
    if key is None or tools_key is None:
        wire = _turn(plain[0], plain[1], tools, request.syntax)
    else:
        wire = _kept_turn(key, tools_key, request.syntax)
    out["content"] = _with_words(wire, text, calls) if traces else wire
    return out


def _turn(text: str, calls: Any, tools: Sequence[Mapping[str, Any]], syntax: Format) -> str:
    # A conversation must go on whatever is in it: its words are encoded as text.
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    return syntax.render(message, tools, read_back=False)


def _with_words(wire: str, text: str, calls: Any) -> str:
    """A turn that was written, in which the traced words of its text and its calls are traced."""
    said = [(_name(call), _said_arguments(call, wire)) for call in calls]
    return current().carried(wire, text, said)  # type: ignore[no-any-return]


def _said_arguments(call: Any, wire: str) -> Any:
    """A call's arguments: as the text that was given if the turn has it, whose words may be spelt in any way; else as
    data."""
    given = call.get("function", call).get("arguments")
    if not isinstance(given, str) or not given.strip():
        return given
    return given if untraced(given) in wire else current().read(from_json(given), given)


# A history grows at its end, and the tools are the same in each request: what was written is remembered.


def _key(given: Any, longest: int) -> bytes | None:
    """The key of plain data; None for other data, and if it is long."""
    try:
        key = marshal.dumps(given, 2)  # of version 2, as later ones depend on how often a text is in use
    except ValueError:
        return None
    return key if len(key) < longest else None


@lru_cache(maxsize=512)
def _kept_turn(message: bytes, tools: bytes, syntax: Format) -> str:
    text, calls = marshal.loads(message)
    return _turn(text, calls, marshal.loads(tools), syntax)


@lru_cache(maxsize=64)
def _kept_description(tools: bytes, syntax: Format, tools_as: ToolsAs) -> str:
    return _description(marshal.loads(tools), syntax, tools_as)


def _text_before_calls(messages: list[Message], request: _Request) -> list[Message]:
    """Text beside a call comes before it as the format writes it, whatever the template does with it there."""
    return [_text_marked(m, request) if m.get("tool_calls") and m.get("content") else m for m in messages]


def _text_marked(message: Message, request: _Request) -> Message:
    content = message["content"]
    if isinstance(content, list) and not all(map(is_text, content)):
        return message
    calls = [{"function": {"name": _NEEDLE, "arguments": {}}}]
    head, whole = (
        _with_words(_turn(untraced(text), calls, (), request.syntax), text, ()).rpartition(_NEEDLE)[0]
        for text in ("", _text(content))
    )
    return {**message, "content": "", BEFORE_CALLS: (whole.removesuffix(head), head)}


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
    if len(calls) == len(results) == 1:
        return [(0, results[0])]
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
    done = 0
    for place in [place for place, message in enumerate(messages) if message.get("role") == "tool"]:
        if place < done:
            continue
        out += messages[done:place]
        calls = (messages[place - 1].get("tool_calls") if place else None) or ()
        done = place + 1
        while done < len(messages) and messages[done].get("role") == "tool":
            done += 1
        texts = [
            _under(_title(calls, at, result), result.get("content"))
            for at, result in _answers(calls, messages[place:done])
        ]
        out.append({"role": "user", "content": texts[0] if len(texts) == 1 else _join(*texts)})
    return out + messages[done:]


def _under(title: str, content: Any) -> Any:
    if type(content) is str:
        return f"{title}\n{content}" if content else title
    return _join(title, content, between="\n")


def _title(calls: Sequence[Any], at: int | None, result: Message) -> str:
    name = result.get("name") or (None if at is None else _name(calls[at])) or "the call"
    several = f" (call {at + 1} of {len(calls)})" if at is not None and len(calls) > 1 else ""
    return "Result of " + str(name) + f"{several}:"  # a sum keeps whose the words are


def _name(call: Any) -> Any:
    """The name of the function that is called; None if there is none."""
    function = call.get("function", call) if type(call) is dict or isinstance(call, Mapping) else None
    return function.get("name") if type(function) is dict or isinstance(function, Mapping) else None


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
        return concatenated(
            [part.get("text", "") if isinstance(part, Mapping) else str(part) for part in content]
        )
    return "" if content is None else str(content)


def _join(*contents: Any, between: str = _FOLLOWS) -> Any:
    """Joins contents: to a text, or to a list of parts if one of them holds more than text."""
    given = [content for content in contents if content]
    if not any(isinstance(content, list) and not all(map(is_text, content)) for content in given):
        return interleaved(between, list(map(_text, given)))
    parts: list[Any] = []
    for content in given:
        if parts:
            parts.append({"type": "text", "text": between})
        parts += content if isinstance(content, list) else [{"type": "text", "text": content}]
    return parts


def _results_in_order(messages: list[Message], request: _Request) -> list[Message]:
    """Results come after the answer that called, in the order of its calls."""
    return list(settled(messages, Survey(messages).steps, missing=False).messages)


def _missing_results(messages: list[Message], request: _Request) -> list[Message]:
    """So, and a call without a result has a stand-in."""
    return list(settled(messages, Survey(messages).steps).messages)


POLYFILLS: dict[str, Callable[[list[Message], _Request], list[Message]]] = {
    ORDER: _results_in_order,
    MISSING: _missing_results,
    "result_parts": _parts_after_results,
    "flat": _flat_calls,
    "developer_role": _developer_as_system,
    "several_systems": _one_system,
    "round": _in_the_result,
    "question_in_result": _question_in_the_result,
    "late_system": _late_system_as_user,
    "tools": _tools_in_system,
    "system_role": _system_in_user,
    "text_before_calls": _text_before_calls,
    "text_beside_calls": _text_apart,
    "parallel_calls": _one_call_a_turn,
    "tool_role": _results_as_user,
    "tool_calls": _text_calls,
    "alternation": _alternate,
}
"""The rewrites by name, in the order in which they run."""
