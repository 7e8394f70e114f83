"""What coding agents send beyond plain functions: freeform tools, namespaces, images, results that failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import chatparsers
from chatparsers import Event
from chatparsers.serving import OpenAIChat, OpenAIResponses, read_chat, read_responses
from chatparsers.serving.lark import regular

ASK = [{"role": "user", "content": "Hi"}]
PATCH = '*** Begin Patch\n+ "a" \\ b\u2603\U0001f600\n*** End Patch'
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin" /.+/'}
CUSTOM = {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": GRAMMAR}
NAMESPACE = {
    "type": "namespace",
    "name": "agents",
    "description": "Agents.",
    "tools": [
        {"type": "function", "name": "spawn", "parameters": {"type": "object", "properties": {}}},
        {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}},
    ],
}
SHELL = {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}}


Calls = tuple[tuple[str, dict[str, Any]], ...]
Items = list[tuple[str, str | None, str, str]]
"""Of each call its kind, its namespace, its name, and its arguments or its text."""


def spoken(request: Any, calls: Calls, ascii: bool) -> Iterator[Event]:
    """The stream of an answer with these calls, in pieces of three characters."""
    stream = chatparsers.load(template="qwen3").prepare(**request.prepare).stream()
    text = "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=ascii)}\n</tool_call>"
        for name, arguments in calls
    )
    for start in range(0, len(text), 3):
        yield from stream.feed(text[start : start + 3])
    yield from stream.finish("stop")


def of_responses(answer: Any, chunks: list[Any]) -> tuple[Items, dict[int, str], dict[str, Any]]:
    """The calls of an answer, what was streamed of each, and the answer and its results as history."""
    assert [chunk["sequence_number"] for chunk in chunks] == list(range(len(chunks)))
    items, history = [], [*ASK, *answer["output"]]
    for item in answer["output"]:
        value = item["input" if item["type"] == "custom_tool_call" else "arguments"]
        items.append((item["type"], item.get("namespace"), item["name"], value))
        history.append({"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "Done."})
    streamed: dict[int, str] = {}
    for chunk in chunks:
        if chunk["type"].endswith((".custom_tool_call_input.delta", ".function_call_arguments.delta")):
            streamed[chunk["output_index"]] = streamed.get(chunk["output_index"], "") + chunk["delta"]
    return items, streamed, {"input": history}


def of_chat(answer: Any, chunks: list[Any]) -> tuple[Items, dict[int, str], dict[str, Any]]:
    message = answer["choices"][0]["message"]
    items, streamed, results = [], dict[int, str](), []
    for call in message["tool_calls"]:
        inner = call[call["type"]]
        items.append((call["type"], None, inner["name"], inner.get("input", inner.get("arguments"))))
        results.append({"role": "tool", "tool_call_id": call["id"], "content": "Done."})
    for delta in (call for one in chunks for call in one["choices"][0]["delta"].get("tool_calls", ())):
        inner = delta[items[delta["index"]][0]]
        piece = inner.get("input", inner.get("arguments", ""))
        streamed[delta["index"]] = streamed.get(delta["index"], "") + piece
    return items, streamed, {"messages": [*ASK, message, *results]}


APIS: dict[str, tuple[Any, Any, Any]] = {
    "responses": (read_responses, OpenAIResponses, of_responses),
    "chat": (read_chat, OpenAIChat, of_chat),
}
OF_CHAT = {
    "type": "custom",
    "custom": {
        "name": "apply_patch",
        "format": {"type": "grammar", "grammar": {**GRAMMAR, "syntax": "regex"}},
    },
}
F_OF_CHAT = {"type": "function", "function": {"name": "shell"}}
PATCHED: Calls = (("apply_patch", {"input": PATCH}), ("shell", {}))
SPAWNED: Calls = (("spawn", {}), ("agents__shell", {}), ("shell", {}))
CALLS: dict[str, tuple[str, list[dict[str, Any]], Calls, Items]] = {
    "a freeform tool of Responses": (
        "responses",
        [CUSTOM, SHELL],
        PATCHED,
        [("custom_tool_call", None, "apply_patch", PATCH), ("function_call", None, "shell", "{}")],
    ),
    "a freeform tool of Chat": (
        "chat",
        [OF_CHAT, F_OF_CHAT],
        PATCHED,
        [("custom", None, "apply_patch", PATCH), ("function", None, "shell", "{}")],
    ),
    # The model called a freeform tool with other arguments: nothing is lost.
    "what is no text passes unchanged": (
        "responses",
        [CUSTOM],
        (("apply_patch", {"patch": "x"}),),
        [("custom_tool_call", None, "apply_patch", '{"patch": "x"}')],
    ),
    "a namespace is flattened": (
        "responses",
        [SHELL, NAMESPACE],
        SPAWNED,
        [("function_call", within, name, "{}") for within, name in (("agents", "spawn"), ("agents", "shell"))]
        + [("function_call", None, "shell", "{}")],
    ),
}


@pytest.mark.parametrize("ascii", [True, False], ids=["escaped", "plain"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_come_as_the_client_gave_its_tools_and_go_back(name: str, ascii: bool) -> None:
    api, tools, calls, items = CALLS[name]
    read, kind, of = APIS[api]
    request = read({"messages": ASK, "input": "Hi", "tools": tools})
    writer = kind("m", toolkit=request.toolkit)
    chunks = [
        *writer.start(),
        *(chunk for event in spoken(request, calls, ascii) for chunk in writer.event(event)),
        *writer.finish("stop"),
    ]
    found, streamed, history = of(writer.answer, chunks)
    assert found == items
    assert [streamed.get(place, "") for place in range(len(items))] == [value for *_, value in items]
    assert PATCH not in streamed.values() or len(chunks) > 10, "it comes in pieces"
    again = read({**history, "tools": tools}).messages
    called = [call["function"] for message in again for call in message.get("tool_calls", ())]
    sent = [{"input": value} if "custom" in kind else json.loads(value) for kind, _, _, value in items]
    assert [(call["name"], json.loads(call["arguments"])) for call in called] == [
        (name, value) for (name, _), value in zip(calls, sent, strict=True)
    ]
    assert [one["content"] for one in again if one["role"] == "tool"] == ["Done."] * len(items)


APPLY_PATCH = r"""start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk
    | update_hunk  // may be several
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?
filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
"""
"""The grammar of Codex' freeform tool."""
RECURS = 'start: "(" start ")" | "x"'


UPDATED = "*** Begin Patch\n*** Update File: a\n@@ b\n-c\n+\n*** Add File: d\n+e\n*** End Patch"


@pytest.mark.parametrize(
    ("grammar", "right", "wrong"),
    [
        (APPLY_PATCH, [UPDATED, UPDATED + "\n"], [UPDATED[:-1], PATCH, ""]),
        ('start: A B?\nA: /[a-z\\/]+/\nB: "q"~2..3 | "é"', ["a/", "aqq", "zé"], ["Q", "", "aé" * 2]),
        (
            '?start: [one] ("." | two)* -> x\none: "1" | "2"\ntwo: /a.c/',
            ["", "1..", "abca\rc"],
            ["a\nc", "11"],
        ),
        ("start: DIGIT~3 NL\n%import common.DIGIT\n%import common.LF -> NL", ["123\n"], ["12\n", "1234\n"]),
        ('start: "a\\n\\"$" /(x|y)/', ['a\n"$x'], ["a"]),
        (RECURS, None, []),
        ("start: a\na: b\nb: a", None, []),
        ('%ignore " "\nstart: "a"', None, []),
        ('start: "a"i', None, []),
        ('start: "a".."z"', None, []),
        ("start: missing", None, []),
        ("start: /(?=a)b/", None, []),
        ("start: /^a/", None, []),
        ("\n".join(f"a{n}: a{n + 1} a{n + 1}" for n in range(40)) + '\na40: "x"\nstart: a0', None, []),
        ("start: " + "(" * 5000 + '"a"' + ")" * 5000, None, []),
        # These take no more than their length: it was minutes.
        ('start: "a"' + "\n" * 100_000 + " \n\n" * 10_000, ["a"], [""]),
        ("start: /[" * 20_000, None, []),
        ('start: "a"\n\n \n  | "b"\n', ["a", "b"], []),
    ],
)
def test_grammars_in_lark(grammar: str, right: list[str] | None, wrong: list[str]) -> None:
    found = regular(grammar)
    if right is None:
        assert found is None
        return
    assert found is not None
    assert all(re.fullmatch(found, text) for text in right)
    assert not any(re.fullmatch(found, text) for text in wrong)


@pytest.mark.parametrize("recurs", [False, True])
def test_a_lark_grammar_is_kept_where_it_is_regular(recurs: bool) -> None:
    """Else it is said, and the description has it."""
    grammar = RECURS if recurs else APPLY_PATCH
    tools = [{**CUSTOM, "format": {**GRAMMAR, "definition": grammar}}, {**CUSTOM, "name": "g"}]
    request = read_responses({"input": "Hi", "tools": tools, "tool_choice": "required"})
    assert request.tools is not None
    assert request.dropped == (("grammar that recurs",) if recurs else ())
    function = request.tools[0]["function"]
    assert grammar in function["description"] and function["parameters"]["required"] == ["input"]
    pattern = function["parameters"]["properties"]["input"].get("pattern")
    assert (pattern is None) == recurs
    if pattern is not None:
        assert re.search(pattern, UPDATED) and not re.search(pattern, PATCH)
        turn = chatparsers.load(template="qwen3").prepare(**request.prepare)
        for dialect in ("gbnf", "lark", "structural_tag"):
            found = turn.grammar(dialect)
            assert found is not None and not found.weakened, dialect


def test_a_regular_expression_of_a_freeform_tool_is_kept() -> None:
    choice = {"type": "custom", "custom": {"name": "apply_patch"}}
    request = read_chat({"messages": ASK, "tools": [OF_CHAT], "tool_choice": choice})
    assert request.tools is not None and request.tool_choice == {
        "type": "function",
        "function": {"name": "apply_patch"},
    }
    assert request.tools[0]["function"]["parameters"]["properties"]["input"]["pattern"].startswith("^(?:")
