"""Functionary v3.1: the name in a tag, then JSON.

    Text.<function=get_weather>{"city": "Oslo"}</function>

    <|python_tag|>print(1 + 1)

Quirks:
- A call of the tool `python` is `<|python_tag|>` and its code, up to the end of the turn. The template writes its
  arguments as JSON instead. The model learned to call it even if the request has no such tool.
"""

from chatparsers.answers import ANY_TOOL, Builder, Format, Node, Tag, Tool
from chatparsers.formats._shapes import again


def build(p: Builder) -> Node:
    def call(tool: Tool) -> Node:
        begin = p.reads(">", ">" + p.peek(p.space() + p.choice("{", '"')))
        end = p.reads(p.space() + "</function>", "")  # read after the call, which is whole without it
        return "<function=" + p.name(tool) + begin << p.args(tool) + end

    def python_call(tool: Tool) -> Node:
        return p.token("<|python_tag|>") + p.implied(Tag.NAME, "python") + p.args(tool)

    closer = p.reads("", p.space() + "</function>" + again(p, "</function>"))
    without = (
        p.line_start()
        + "<function="
        + p.name(ANY_TOOL)
        + p.declared()
        + ">"
        + p.peek(p.space() + "</function>")
    )
    without = p.tag(Tag.CALL, without << p.args(ANY_TOOL))
    written = p.each_tool(call, python=python_call)
    tagged = p.reads(written, without, written) + closer
    json = p.tag(Tag.CALL, p.implied(Tag.NAME, "python") + p.space() + p.args(ANY_TOOL))
    looks_json = p.peek(p.space() + "{" << p.choice('"', "}"))
    python = p.token("<|python_tag|>") + (looks_json + json | p.code_call("python", "code"))
    return p.body(p.calls(p.reads(tagged, tagged, python), p.space()))


FORMAT = Format(
    name="functionary-v3-1",
    title="Functionary v3.1",
    url="https://huggingface.co/meetkai/functionary-medium-v3.1",
    build=build,
    markers=("<|start_header_id|>", "<function=", "</function>"),
    stops=("<|eom_id|>", "<|eot_id|>"),
    models=("functionary",),
)
