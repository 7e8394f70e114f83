"""An agent of a few steps: each call is valid, and the engine finds each prompt's beginning in its cache."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

FILES: dict[str, str] = {"notes.txt": "Buy milk.", "keys.txt": "The word is heron."}
STEPS = 4


def _tool(name: str, about: str, **properties: str) -> dict[str, Any]:
    fields = {key: {"type": "string", "description": said} for key, said in properties.items()}
    parameters = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


TOOLS = [
    _tool("list_files", "List the names of all files"),
    _tool("read_file", "Read a file", path="the name of the file"),
    _tool("write_file", "Write a file", path="the name of the file", content="its new content"),
]


def _result(name: str, arguments: dict[str, str]) -> str:
    if name == "list_files":
        return "\n".join(FILES)
    if name == "write_file":
        FILES[arguments["path"]] = arguments["content"]
        return "written"
    return FILES.get(arguments["path"], f"error: no such file: {arguments['path']}")


def test_each_step_is_valid_and_reads_only_what_is_new(running: Any, openai: Any) -> None:
    """The last turn forbids calls. It reads only what is new too, as the tools stay in its prompt. Its text may be
    empty: a model that calls all the same says nothing."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    messages: list[Any] = [
        {"role": "system", "content": "Work step by step with the tools: one call in each step."},
        {"role": "user", "content": "One of the files says a word. Find it."},
    ]
    read, steps = 0, []
    with openai.OpenAI(base_url=f"{running.gateway}/v1", api_key="none", max_retries=0) as client:
        asked: dict[str, Any] = {"model": "x", "tools": TOOLS, "temperature": 0, "max_tokens": 128}
        for _ in range(STEPS):
            found = client.chat.completions.create(
                messages=messages, tool_choice="required", parallel_tool_calls=False, **asked
            )
            (call,) = found.choices[0].message.tool_calls
            arguments = json.loads(call.function.arguments)
            jsonschema.validate(arguments, schemas[call.function.name])
            steps.append((call.function.name, arguments))
            read = _only_new(found.usage, read)
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},
                {"role": "tool", "tool_call_id": call.id, "content": _result(call.function.name, arguments)},
            ]
            if call.function.name == "answer":
                break
        last = client.chat.completions.create(messages=messages, tool_choice="none", **asked)
    print("\n", steps, last.choices[0].message.content)
    assert not last.choices[0].message.tool_calls and last.choices[0].finish_reason in ("stop", "length")
    _only_new(last.usage, read)


def _only_new(usage: Any, read: int) -> int:
    """How many tokens a prompt has. The engine must have found all of the prompt before it in its cache, ``read`` of
    them. Of the answer after that it finds what the template spells as the model did."""
    cached = usage.prompt_tokens_details.cached_tokens
    print(f"{cached} of {usage.prompt_tokens} tokens were in the cache, {read} of them the last prompt")
    assert cached >= read
    return int(usage.prompt_tokens)
