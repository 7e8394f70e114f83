"""CWM: the tool's name in a tag, then JSON.

    <think>
    Thoughts.
    </think>
    Text.
    <tool: get_weather>
    {"city": "Oslo"}
    </tool>

Quirks:
- The prompt opens the thought.
- The model learned the tool `bash`, whose call holds the bare command; it is read if the request has that tool.
- Facts: the maker's prompting guide, and its server's `serve/tools.py` with its tests.
"""

from chatparsers.answers import ANY_TOOL, Argument, Builder, Format, Node, Raw, Tag, Tool


def build(p: Builder) -> Node:
    def call(tool: Tool) -> Node:
        begun = p.reads("\n", p.space() + p.peek(p.choice("{", '"', "</tool>")))
        return "<tool: " + p.name(tool) + ">" + begun + p.args(tool)

    def command(arg: Argument) -> Node:
        text = p.value(arg, Raw(until="\n</tool>", also=("</tool>",), type="string"))
        return ">" + p.trim("\n") + p.implied(Tag.ARG_NAME, "command") + text + p.trim("\n") + "</"

    bare = p.peek(">" + p.negate(p.space() + "{"))
    opener = "<tool: bash" + p.implied(Tag.NAME, "bash") + p.declared() + bare
    bash = p.tag(Tag.CALL, opener + p.each_arg(ANY_TOOL, command) + "tool>")
    json = p.each_tool(call) + p.space("\n") + "</tool>"
    calls = p.calls(p.reads(json, json, bash), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n") + p.body(calls, lead="\n")


FORMAT = Format(
    name="cwm",
    title="CWM",
    url="https://huggingface.co/facebook/cwm",
    build=build,
    markers=("<|start_header_id|>", "<tool: "),
    stops=("<|eot_id|>",),
    models=("cwm",),
)
