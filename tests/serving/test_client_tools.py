"""Anthropic's client tools by type, judged by its SDK: names, commands, and what each command takes."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from chatparsers import get_format
from chatparsers.serving import ApiError, read_messages
from chatparsers.serving.client_tools import CLIENT_TOOLS


def literal(hint: Any) -> str:
    """The word of a type like ``Required[Literal["bash"]]``."""
    while get_origin(hint) is not None and not isinstance(get_args(hint)[0], str):
        hint = get_args(hint)[0]
    return str(get_args(hint)[0])


def named(beta: Any) -> dict[str, str]:
    """The name of each of the vendor's tools for clients, by its type."""
    found = {}
    for name in dir(beta):
        if name.startswith(("BetaToolBash", "BetaToolTextEditor", "BetaMemoryTool")) and name.endswith(
            "Param"
        ):
            hints = get_type_hints(getattr(beta, name), include_extras=True)
            if "type" in hints and "name" in hints:
                found[literal(hints["type"])] = literal(hints["name"])
    return found


def test_the_types_and_names_are_the_vendors(anthropic: Any) -> None:
    assert {kind: tool.name for kind, tool in CLIENT_TOOLS.items()} == named(anthropic.types.beta)


@pytest.mark.usefixtures("anthropic")
def test_the_memory_takes_what_the_vendors_commands_take() -> None:
    taken: dict[str, set[str]] = {}
    needed: dict[str, set[str]] = {}
    for word in CLIENT_TOOLS["memory_20250818"].commands:
        module = import_module(f"anthropic.types.beta.beta_memory_tool_20250818_{word}_command")
        fields = next(one for name, one in vars(module).items() if name.endswith("Command")).model_fields
        taken[word] = {*fields} - {"command"}
        needed[word] = {name for name, field in fields.items() if field.is_required()} - {"command"}
    schema = CLIENT_TOOLS["memory_20250818"].function("memory")["parameters"]
    assert set().union(*taken.values()) | {"command"} == schema["properties"].keys()
    assert set.intersection(*needed.values()) | {"command"} == {*schema["required"]}
    union = import_module(
        "anthropic.types.beta.beta_memory_tool_20250818_command"
    ).BetaMemoryTool20250818Command
    assert len(get_args(get_args(union)[0]) or get_args(union)) == len(taken)


@pytest.mark.parametrize("kind", CLIENT_TOOLS)
def test_a_model_sees_a_function_and_its_call_is_the_clients(kind: str) -> None:
    tool = CLIENT_TOOLS[kind]
    asked = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    request = read_messages({**asked, "tools": [{"type": kind, "name": tool.name, "cache_control": None}]})
    (function,) = request.tools or ()
    assert function["function"] == tool.function(tool.name)
    turn = get_format("qwen3").bind(tools=request.tools, tool_choice="required")
    arguments = {
        "command": (tool.commands or ("ls",))[0],
        **({"path": "/a"} if "path" in tool.required else {}),
    }
    call = {"type": "function", "function": {"name": tool.name, "arguments": arguments}}
    message = turn.parse(
        get_format("qwen3").render({"role": "assistant", "content": "", "tool_calls": [call]}, turn.tools.raw)
    )
    assert message.to_anthropic()["content"][-1]["input"] == arguments and turn.grammar() is not None
    later = read_messages({**asked, "tools": [{"type": kind, "name": tool.name, "defer_loading": True}]})
    assert later.tools is None or later.toolkit.later


@pytest.mark.parametrize(
    "kind", ["web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "bash_20990101"]
)
def test_what_a_server_runs_is_refused_by_name(kind: str) -> None:
    with pytest.raises(ApiError, match=kind) as refused:
        read_messages(
            {
                "messages": [{"role": "user", "content": "Hi"}],
                "max_tokens": 9,
                "tools": [{"type": kind, "name": "x"}],
            }
        )
    assert refused.value.param == "tools[0].type"
