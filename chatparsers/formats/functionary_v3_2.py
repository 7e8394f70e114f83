"""Functionary v3.2: a recipient's name, then the message to it.

    >>>all
    Text.>>>get_weather
    {"city": "Oslo"}

Quirks:
- The prompt ends in `>>>`, so the first header is bare. `all` is the user; any other recipient a tool.
- The tool `python` also takes code, up to the end of the turn.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Lenient, Node, Tag
from chatparsers.core.schema import Tool


def build(p: Builder) -> Node:
    newline = Lenient(p.literal("\n"), "\n" + p.peek(p.space() + "{"))
    code = "python\n" + p.code_call("python", "code")

    def call(tool: Tool | None) -> Node:
        return p.header(r"(?!all\Z)(?P<name>.+)", p.name(tool)) + newline + p.args(tool)

    to_tool = p.each_tool(call)
    calls = p.calls(">>>" + Lenient(to_tool, to_tool | code))
    to_declared = p.tag(Tag.CALL, p.name(None) + p.declared() + newline + p.args(None))
    start = p.lenient(calls, (to_declared | code) + p.optional(calls))
    bare_all = Lenient(p.literal(""), p.optional("all\n"))
    return bare_all + p.body(calls, start=start, content=p.span(p.literal(">>>all\n"), None))


FORMAT = Format(
    name="functionary-v3-2",
    title="Functionary v3.2",
    url="https://huggingface.co/meetkai/functionary-medium-v3.2",
    build=build,
    markers=("<|start_header_id|>", ">>>all\n"),
    stops=("<|eot_id|>", "<|end_of_text|>"),
)
