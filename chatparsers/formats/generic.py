"""Generic: one JSON object that is a call or an answer, for models without a tool syntax.

    {"tool_call": {"name": "get_weather", "arguments": {"city": "Oslo"}}}

    {"response": "It is raining in Oslo."}

Quirks:
- Several calls are `{"tool_calls": [{"name": …, "arguments": …, "id": …}]}`, as in llama.cpp's generic handler.
- Seen in the wild: a bare array `[{"name": …, "parameters": …}]`; text around it is content.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    array = p.array(p.json_call(name="name", args="arguments", id="id"))
    single = "{" << p.member("tool_call") + p.json_call(name="name", args="arguments") << "}"
    several = "{" << p.member("tool_calls") + array << "}"
    answer = "{" << p.member("response") + p.cut() + p.json_text() << "}"
    written = single | several | answer
    return p.body(start=p.space() + p.reads(written, written, array))


FORMAT = Format(
    name="generic",
    title="Generic JSON",
    url="https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md",
    build=build,
)
