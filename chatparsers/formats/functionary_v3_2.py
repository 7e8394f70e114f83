"""Functionary v3.2: a recipient's name, then the message to that recipient.

    >>>all
    Text.>>>get_weather
    {"city": "Oslo"}

Quirks:
- The prompt ends in `>>>`, so the first header has none. `all` is the user; any other recipient is a tool.
- The tool `python` also takes code, up to the end of the turn.
"""

from chatparsers.answers import ANY_TOOL, Builder, Format, Node, Tag, Tool


def build(p: Builder) -> Node:
    newline = p.reads("\n", p.optional("\r") + "\n" + p.peek(p.space() + p.choice("{", '"{')))
    code, known_code = ("python\n" + p.code_call("python", "code", declared=one) for one in (False, True))

    def call(tool: Tool) -> Node:
        return p.header(p.name(tool), p.name(tool), unless=("all",)) + newline + p.args(tool)

    to_tool = p.each_tool(call)
    calls = p.calls(">>>" + p.reads(to_tool, to_tool, code))
    to_declared = p.tag(Tag.CALL, p.name(ANY_TOOL) + newline + p.args(ANY_TOOL))
    start = p.reads(calls, calls, (to_declared | known_code) + p.optional(calls))
    bare_all = p.reads("", p.optional("all\n"))
    return bare_all + p.body(calls, start=start, content=p.span(p.literal(">>>all\n"), None))


FORMAT = Format(
    name="functionary-v3-2",
    title="Functionary v3.2",
    url="https://huggingface.co/meetkai/functionary-medium-v3.2",
    build=build,
    markers=("<|start_header_id|>", ">>>all\n"),
    stops=("<|eot_id|>", "<|end_of_text|>"),
    models=("functionary.*3-2",),
)
