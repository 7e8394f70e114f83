"""vLLM and SGLang take each response template that is written for servers, and read a format's own messages by it.

What is real: their checks of a checkpoint's template, and their copies of transformers' parser of messages.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from stand_ins import stand_in

from chatparsers import get_format, list_formats
from chatparsers.errors import ChatParsersError
from chatparsers.interop import write_response_template

NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]
HOSTS = {"vllm": "vllm.parser", "sglang": "sglang.srt.parser"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        },
    }
    for name in ("get_weather", "get_time")
]
CALL = ("get_weather", {"city": "Oslo & 'Rome'", "days": 3})
MESSAGES: list[tuple[str, str, list[Any]]] = [
    ("", "It is raining.\n\n*Very* much: 1 < 2.", []),
    ("Hm.\n\nWell.", "It is raining.", []),
    ("", "", [CALL]),
    ("", "", [("get_time", {})]),
    ("", "", [CALL, ("get_time", {}), ("get_weather", {"city": "Paris"})]),
    ("Hm.", "", [CALL]),
]


@pytest.fixture(scope="module", params=HOSTS)
def host(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What checks a template, and what reads a message by it."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed: tests/hosts/install {request.param}")
    if request.param == "sglang":
        stand_in()
    parser = HOSTS[request.param]
    with warnings.catch_warnings():  # a host's own are its own
        warnings.simplefilter("ignore")
        checks = importlib.import_module(f"{parser}.response_template").validate_response_template_for_serving
        return checks, importlib.import_module(f"{parser}.chat_parsing.response_parser").parse_response


@pytest.mark.parametrize("name", NAMES)
def test_servers_take_what_is_written_for_them(name: str, host: Any) -> None:
    checks, parse_response = host
    format = get_format(name)
    spec = write_response_template(format, "<|assistant|>", for_="servers").spec
    checks(spec)
    for reasoning, content, calls in MESSAGES:
        if (reasoning and "thinking" not in spec["fields"]) or (calls and "tool_calls" not in spec["fields"]):
            continue
        message = {
            "role": "assistant",
            "content": content,
            **({"reasoning_content": reasoning} if reasoning else {}),
            "tool_calls": [
                {
                    "id": f"abcdefg{n:02d}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(args)},
                }
                for n, (name, args) in enumerate(calls)
            ],
        }
        try:
            text = format.render(message, TOOLS) + "".join(format.stops[:1])
        except ChatParsersError:
            continue
        found = parse_response(text, spec, prefix="", tools=TOOLS)
        functions = [call["function"] for call in found.get("tool_calls", ())]
        assert (
            found.get("thinking", "").strip(),
            found.get("content", "").strip(),
            [(function["name"], function["arguments"]) for function in functions],
        ) == (reasoning, content, calls)
