"""What coding agents send beyond plain functions: freeform tools, namespaces, images, results that failed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import chatparsers
from chatparsers.serving import (
    ApiError,
    OpenAIChat,
    OpenAIResponses,
    read_chat,
    read_messages,
    read_responses,
)
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
SEARCH = {"type": "web_search", "external_web_access": False}


def said(request: Any, *calls: tuple[str, dict[str, Any]], ascii: bool = False) -> Any:
    """The stream of an answer with these calls, in pieces of three characters."""
    chat = chatparsers.load(template="qwen3")
    turn = chat.prepare(**request.prepare)
    stream = turn.stream()
    text = "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=ascii)}\n</tool_call>"
        for name, arguments in calls
    )
    for start in range(0, len(text), 3):
        yield from stream.feed(text[start : start + 3])
    yield from stream.finish("stop")


@pytest.mark.parametrize("ascii", [True, False])
def test_a_freeform_tool_of_responses(ascii: bool) -> None:
    request = read_responses({"input": "Hi", "tools": [CUSTOM, SHELL]})
    assert request.tools is not None
    function = request.tools[0]["function"]
    assert function["parameters"]["required"] == ["input"] and "*** Begin" in function["description"]
    writer = OpenAIResponses("m", toolkit=request.toolkit)
    chunks = writer.start()
    for event in said(request, ("apply_patch", {"input": PATCH}), ("shell", {}), ascii=ascii):
        chunks += writer.event(event)
    chunks += writer.finish("stop")
    assert [chunk["sequence_number"] for chunk in chunks] == list(range(len(chunks)))
    deltas = [chunk for chunk in chunks if chunk["type"] == "response.custom_tool_call_input.delta"]
    assert len(deltas) > 5 and "".join(chunk["delta"] for chunk in deltas) == PATCH
    item, other = writer.answer["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", PATCH)
    assert (other["type"], other["name"]) == ("function_call", "shell")
    output = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "Done."}
    again = read_responses({"input": [{"role": "user", "content": "Hi"}, item, output], "tools": [CUSTOM]})
    call = again.messages[1]["tool_calls"][0]["function"]
    assert json.loads(call["arguments"]) == {"input": PATCH} and again.messages[2]["content"] == "Done."


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


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_a_lark_grammar_is_kept_where_it_is_regular(dialect: Any) -> None:
    custom = {**CUSTOM, "format": {**GRAMMAR, "definition": APPLY_PATCH}}
    request = read_responses(
        {"input": "Hi", "tools": [custom, {**CUSTOM, "name": "g"}], "tool_choice": "required"}
    )
    assert request.tools is not None and not request.dropped
    turn = chatparsers.load(template="qwen3").prepare(**request.prepare)
    grammar = turn.grammar(dialect)
    assert grammar is not None and not grammar.weakened
    pattern = request.tools[0]["function"]["parameters"]["properties"]["input"]["pattern"]
    whole = "*** Begin Patch\n*** Update File: a\n@@ b\n-c\n+\n*** Add File: d\n+e\n*** End Patch"
    for text, right in (
        (whole, True),
        (whole + "\n", True),
        (whole[:-1], False),
        (PATCH, False),
        ("", False),
    ):
        assert bool(re.search(pattern.replace("$", r"\Z"), text)) == right


@pytest.mark.parametrize(
    ("grammar", "right", "wrong"),
    [
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


def test_a_grammar_that_recurs_is_said() -> None:
    request = read_responses(
        {"input": "Hi", "tools": [{**CUSTOM, "format": {**GRAMMAR, "definition": RECURS}}]}
    )
    assert request.tools is not None and request.dropped == ("grammar that recurs",)
    function = request.tools[0]["function"]
    assert (
        RECURS in function["description"] and "pattern" not in function["parameters"]["properties"]["input"]
    )


def test_a_freeform_tool_of_chat() -> None:
    custom = {"name": "apply_patch", "format": {"type": "grammar", "grammar": {**GRAMMAR, "syntax": "regex"}}}
    body = {"messages": ASK, "tools": [{"type": "custom", "custom": custom}]}
    body["tool_choice"] = {"type": "custom", "custom": {"name": "apply_patch"}}
    request = read_chat(body)
    assert request.tools is not None
    assert request.tools[0]["function"]["parameters"]["properties"]["input"]["pattern"].startswith("^(?:")
    writer = OpenAIChat("m", toolkit=request.toolkit)
    chunks = writer.start()
    for event in said(request, ("apply_patch", {"input": PATCH})):
        chunks += writer.event(event)
    writer.finish("stop")
    deltas = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert deltas[0]["type"] == "custom" and deltas[0]["custom"]["name"] == "apply_patch"  # type: ignore[typeddict-item]
    assert "".join(call["custom"]["input"] for call in deltas) == PATCH  # type: ignore[typeddict-item]
    message = writer.answer["choices"][0]["message"]
    assert message["tool_calls"][0]["custom"]["input"] == PATCH  # type: ignore[typeddict-item]
    history = read_chat({**body, "messages": [*ASK, {**message}]})
    assert json.loads(history.messages[1]["tool_calls"][0]["function"]["arguments"]) == {"input": PATCH}


def test_what_is_no_text_passes_unchanged() -> None:
    """The model called a freeform tool with other arguments: nothing is lost."""
    request = read_responses({"input": "Hi", "tools": [CUSTOM]})
    writer = OpenAIResponses("m", toolkit=request.toolkit)
    for event in said(request, ("apply_patch", {"patch": "x"})):
        writer.event(event)
    assert json.loads(writer.answer["output"][0]["input"]) == {"patch": "x"}


def test_a_namespace_is_flattened() -> None:
    request = read_responses({"input": "Hi", "tools": [SHELL, NAMESPACE], "tool_choice": "required"})
    assert request.toolkit.names() == ["shell", "spawn", "agents__shell"]
    writer = OpenAIResponses("m", toolkit=request.toolkit)
    for event in said(request, ("spawn", {}), ("agents__shell", {}), ("shell", {})):
        writer.event(event)
    found = [(item["name"], item.get("namespace")) for item in writer.answer["output"]]
    assert found == [("spawn", "agents"), ("shell", "agents"), ("shell", None)]
    again = read_responses({"input": [*writer.answer["output"]], "tools": [SHELL, NAMESPACE]})
    names = [call["function"]["name"] for call in again.messages[0]["tool_calls"]]
    assert names == ["spawn", "agents__shell", "shell"]


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools(mode: str) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("a", "b", "c")]
    chosen = [{"type": "function", "function": {"name": name}} for name in ("a", "c")]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": chosen}}
    request = read_chat({"messages": ASK, "tools": tools, "tool_choice": allowed})
    assert request.tool_choice == mode and request.toolkit.names() == ["a", "c"]
    flat = [{"type": "function", "name": name} for name in ("a", "b", "c")]
    choice = {"type": "allowed_tools", "mode": mode, "tools": [flat[1]]}
    request = read_responses({"input": "Hi", "tools": flat, "tool_choice": choice})
    assert request.tool_choice == mode and request.toolkit.names() == ["b"]
    with pytest.raises(ApiError, match="no tool is named 'd'"):
        read_responses({"input": "Hi", "tools": flat, "tool_choice": {**choice, "tools": [{"name": "d"}]}})


def test_what_is_left_out_has_a_line_in_its_place() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [image], "is_error": True}
    listed = {"type": "tool_reference", "tool_name": "read"}
    found = {"type": "tool_result", "tool_use_id": "2", "content": [listed]}
    search = {"type": "web_search_20250305", "name": "web_search"}
    body: dict[str, Any] = {
        "max_tokens": 9,
        "tools": [search, {"name": "f", "input_schema": {}}],
        "messages": [{"role": "user", "content": [image, result, found]}],
    }
    with pytest.raises(ApiError) as caught:
        read_messages(body)
    assert caught.value.param == "messages[0].content[0]"
    request = read_messages(body, drop_unsupported=True)
    failed, reference, user = request.messages
    left_out = "[image left out: this model reads text alone]"
    assert [part["text"] for part in failed["content"]] == ["Error: ", left_out]
    assert reference["content"][0]["text"] == "[tool read]" and user["content"][0]["text"] == left_out
    assert request.toolkit.names() == ["f"]
    assert request.dropped == ("part image", "tool web_search_20250305")
    assert read_responses({"input": "Hi", "tools": [SEARCH]}).dropped == ("tool web_search",)
    with pytest.raises(ApiError, match="found 'code_interpreter'"):
        read_responses({"input": "Hi", "tools": [SEARCH, {"type": "code_interpreter"}]})
    items = [{"role": "user", "content": "Hi"}, {"type": "web_search_call", "id": "1"}]
    request = read_responses({"input": items, "tools": [SEARCH, SHELL]}, drop_unsupported=True)
    assert request.dropped == ("tool web_search", "part web_search_call")
    assert [message["role"] for message in request.messages] == ["user", "assistant"]  # it is the answer's


def test_edits_of_the_history_are_left_out() -> None:
    """Anthropic's server would take results out of a long history; to keep all thoughts asks nothing."""
    body = {"messages": ASK, "max_tokens": 9}
    kept = {"type": "clear_thinking_20251015", "keep": "all"}
    for edits, dropped in (
        ([kept], ()),
        ([kept, {"type": "clear_tool_uses_20250919"}], ("clear_tool_uses_20250919",)),
    ):
        request = read_messages({**body, "context_management": {"edits": edits}})
        assert request.dropped == tuple(f"context_management {kind}" for kind in dropped)
        assert not request.ignored
    with pytest.raises(ApiError, match="context_management"):
        read_messages({**body, "context_management": [kept]})
