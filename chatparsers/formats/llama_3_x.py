"""Llama 3.1, 3.2, 3.3: a bare JSON call, or built-in tools behind a python tag.

    {"name": "get_weather", "parameters": {"city": "Oslo"}}

    <|python_tag|>brave_search.call(query="weather in Oslo")

Quirks:
- The whole message is the call. Other JSON is content. Several calls are separated by `; `.
- Seen in the wild: `<|python_tag|>` before the JSON, `"type": "function"` in it.
- Any other text after `<|python_tag|>` is code for the `code_interpreter`.
"""

from chatparsers.core import Argument, Builder, Format, Node, Python, Tool


def build(p: Builder) -> Node:
    def builtin(tool: Tool) -> Node:
        def argument(arg: Argument) -> Node:
            return p.arg_name(arg) + "=" + p.value(arg, Python())

        comma = p.space() + "," + p.space(" ")
        return p.name(tool, chars=r"\w") + ".call(" + p.each_arg(tool, argument, comma) + ")"

    bare = p.calls(p.json_call(name="name", args="parameters"), p.space() + ";" + p.space(" "))
    builtins = p.each_tool(builtin)
    tagged = p.reads(builtins, builtins, bare, p.code_call("code_interpreter", "code"))
    return p.body(p.token("<|python_tag|>") + tagged, start=p.space() + bare)


FORMAT = Format(
    name="llama-3-x",
    title="Llama 3.1, 3.2, 3.3",
    url="https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct",
    build=build,
    markers=("<|start_header_id|>", '"parameters": '),
    stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
)
