"""Tools that load later, over every template: what stands before a loaded tool stays, and the template's own words show
it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import chatparsers
from chatparsers.templates.probe.turns import common


def tool(name: str, **fields: str) -> dict[str, Any]:
    properties = {field: {"type": kind} for field, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": [*fields]}
    return {
        "type": "function",
        "function": {"name": name, "description": f"Does {name}.", "parameters": schema},
    }


SHOWN = [tool("read_file", path="string"), tool("tool_search", query="string")]
LATE = [tool("never_named", x="string"), tool("get_bread", whose="string", count="integer")]
ASKED = [{"role": "system", "content": "Take care. " * 9}, {"role": "user", "content": "Bread for Ann."}]
CALL = {"name": "tool_search", "arguments": '{"query": "bread"}'}
CALLED = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "abcdefgh1", "type": "function", "function": CALL}],
}
RESULT = {"role": "tool", "tool_call_id": "abcdefgh1", "name": "tool_search"}
NAMED = {**RESULT, "content": [{"type": "tool_reference", "tool_name": "get_bread"}]}


def test_a_tool_that_is_loaded_changes_nothing_before_it(any_template: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        chat = chatparsers.load(any_template)
        options: dict[str, Any] = {"tools": SHOWN, "id_seed": "x"}
        plain = chat.prepare(ASKED, **options)
        first = chat.prepare(ASKED, loaded=LATE, **options)
        assert (first.prompt, first.tools.names()) == (plain.prompt, plain.tools.names())
        history = [*ASKED, CALLED]
        told = chat.prepare([*history, {**RESULT, "content": "found"}], **options)
        then = chat.prepare([*history, NAMED], loaded=LATE, **options)
        assert then.tools.names() == (*plain.tools.names(), "get_bread")
        assert common(first.prompt, then.prompt) >= common(first.prompt, told.prompt)
        assert chat.placeholders([*history, NAMED], loaded=LATE, **options) == []  # it is text by then
        new = then.prompt[common(told.prompt, then.prompt) :]
        assert "Does get_bread." in new and "whose" in new and "never_named" not in then.prompt
        taken = {"role": "user", "content": [{"type": "tool_removal", "tool_name": "get_bread"}]}
        answered = {"role": "assistant", "content": "Here."}
        after = chat.prepare([*history, NAMED, answered, taken], loaded=LATE, **options)
        assert after.tools.names() == plain.tools.names()
        grown = chat.conversation(loaded=LATE, **options)
        grown.append(*ASKED)
        grown.append(CALLED, NAMED)
        assert grown.turn is not None and grown.turn.tools.names() == then.tools.names()
