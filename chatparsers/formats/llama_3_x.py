"""Llama 3.1, 3.2, 3.3: a bare JSON call, or built-in tools behind a python tag.

    {"name": "get_weather", "parameters": {"city": "Oslo"}}

    <|python_tag|>brave_search.call(query="weather in Oslo")

Quirks:
- The whole message is the call; JSON that is no call is content. Several calls are separated by `; `.
- Seen in the wild: `<|python_tag|>` before the JSON, `"type": "function"` in it.
- What follows `<|python_tag|>` and is none of these is code for the `code_interpreter`.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node
from chatparsers.core.schema import Argument, Tool


def build(p: Builder) -> Node:
    def builtin(tool: Tool | None) -> Node:
        def argument(arg: Argument | None) -> Node:
            return p.arg_name(arg) + "=" + p.value(arg, "python")

        return (
            p.name(tool, chars=r"\w")
            + ".call("
            + p.each_arg(tool, argument, p.space() + "," + p.space(" "))
            + ")"
        )

    bare = p.calls(p.json_call(name="name", args="parameters"), p.space() + ";" + p.space(" "))
    behind_tag = p.lenient(p.each_tool(builtin), bare, p.code_call("code_interpreter", "code"))
    return p.body(p.token("<|python_tag|>") + behind_tag, start=p.space() + bare)


FORMAT = Format(
    name="llama-3-x",
    title="Llama 3.1, 3.2, 3.3",
    url="https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct",
    build=build,
    markers=("<|start_header_id|>", '"parameters": '),
    stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
)
