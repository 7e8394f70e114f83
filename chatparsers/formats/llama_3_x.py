"""Llama 3.1, 3.2, 3.3: a bare JSON call, or built-in tools after a python tag.

    {"name": "get_weather", "parameters": {"city": "Oslo"}}

    <|python_tag|>brave_search.call(query="weather in Oslo")

Quirks:
- The whole message is the call. Other JSON is content. Several calls are separated by `; `.
- Seen in the wild: a comma or nothing between calls, `<|python_tag|>` before the JSON, `"type": "function"` in it,
  prose before it. After prose, an object is a call if it is alone on its line and names a tool of the request. So
  it is held until its line ends.
- Any other text after `<|python_tag|>` is code, if the request has a tool `code_interpreter`.
"""

from chatparsers.answers import ANY_TOOL, Argument, Builder, Format, Node, Python, Tag, Tool
from chatparsers.formats._shapes import python_list


def build(p: Builder) -> Node:
    def builtin(tool: Tool) -> Node:
        def argument(arg: Argument) -> Node:
            return p.arg_name(arg) << "=" << p.value(arg, Python())

        comma = p.space() + "," + p.space(" ")
        return p.name(tool, chars=r"[\w]") + ".call(" << p.each_arg(tool, argument, comma, Python()) << ")"

    call = p.json_call(name="name", args="parameters")
    between = p.space() + ";" + p.space(" ")
    tag = p.token("<|python_tag|>")
    bare = p.calls(
        call, p.reads(between, p.space() + p.optional(p.choice(";", ",")) + p.space() + p.optional(tag))
    )
    builtins = p.each_tool(builtin)
    code = p.code_call("code_interpreter", "code", declared=True)
    array = p.space() + p.array(call)
    tagged = tag + p.reads(builtins, builtins, p.space() + bare, array, code)
    line = p.choice('\n{"name":', '\n{"type": "function", "name":') << '"' + p.json_name(ANY_TOOL) + '"'
    args = p.member("parameters", "arguments") + p.args(ANY_TOOL)
    line_end = p.chars(r" \t\r", 0) + p.choice("\n", p.end(), *p.stops)
    alone = p.peek(p.many(p.until("}", "\n") + "}", 1) + line_end)
    in_prose = p.tag(Tag.CALL, line + alone << "," << args << "}")
    in_prose += p.optional(p.space() + ";" << bare)
    in_python = p.if_tools(p.reads("", python_list(p)))  # what 3.2 learned from another prompt
    return p.body(p.reads(tagged, tagged, in_prose), start=p.space() + bare, marks=in_python)


FORMAT = Format(
    name="llama-3-x",
    title="Llama 3.1, 3.2, 3.3",
    url="https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct",
    build=build,
    markers=("<|start_header_id|>", '"parameters": '),
    stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
    aliases=("llama3", "llama3-json", "llama4-json"),
    models=("llama-?3-[123]",),
)
