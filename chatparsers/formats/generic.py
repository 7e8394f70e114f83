"""Generic: for models without a tool syntax, one JSON object that is a call or an answer.

    {"tool_call": {"name": "get_weather", "arguments": {"city": "Oslo"}}}

    {"response": "It is raining in Oslo."}

Quirks:
- Several calls are `{"tool_calls": [{"name": …, "arguments": …, "id": …}]}`, as llama.cpp's generic handler had them.
- Seen in the wild: a bare array `[{"name": …, "parameters": …}]`; text around it is content.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node


def build(p: Builder) -> Node:
    comma = p.space() + "," + p.space(" ")
    open, close = "{" + p.space(), p.space() + "}"
    call = p.json_call(name="name", args="arguments")
    array = (
        "["
        + p.space()
        + p.calls(p.json_call(name="name", args="arguments", id="id"), comma)
        + p.space()
        + "]"
    )
    single = open + p.member("tool_call") + call + close
    several = open + p.member("tool_calls") + array + close
    answer = open + p.member("response") + p.cut() + p.json_text() + close
    return p.body(start=p.space() + p.lenient(single | several | answer, array))


FORMAT = Format(
    name="generic",
    title="Generic JSON",
    url="https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md",
    build=build,
)
