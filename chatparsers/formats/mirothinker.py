"""MiroThinker 1.0 and 1.5: calls of MCP tools, each with its server.

    <think>
    Thoughts.
    </think>

    Text.
    <use_mcp_tool>
    <server_name>system_default</server_name>
    <tool_name>get_weather</tool_name>
    <arguments>
    {"city": "Oslo"}
    </arguments>
    </use_mcp_tool>

Quirks:
- A declared name such as `search_google` may come in two parts, as tool `google` of server `search`. The name that is
  read is the declared one. Any other server's name is left out.
- Several calls are in one pair of outer tags, or in one pair each.
- Facts: the maker's prompt and its plugin for vLLM (`MirothinkerToolParser.py`); llama.cpp's template of these models.
"""

from chatparsers.answers import Builder, Format, Node, Tool

NAME = r"[^<>\n]"


def build(p: Builder) -> Node:
    between = "</server_name>" + p.space("\n") + "<tool_name>"
    gap = p.space("\n")

    def call(tool: Tool) -> Node:
        server = p.reads("system_default", p.chars(r"^<>\n", 0, 64))
        named = server + between + p.name(tool, NAME)
        parted = p.name(tool, NAME, parted="</server_name>\n<tool_name>")
        name = "<server_name>" + p.reads(named, parted + p.declared(), named) + "</tool_name>"
        return name + gap + "<arguments>" + gap + p.args(tool)

    one = p.each_tool(call) + gap + "</arguments>"
    opener, closer = "<use_mcp_tool>" + gap, gap + "</use_mcp_tool>"
    again = p.reads("", p.optional(closer + gap + opener))
    section = opener + p.calls(one, gap + again) + closer
    return p.think("<think>\n", "\n</think>\n\n") + p.body(section, lead="\n")


FORMAT = Format(
    name="mirothinker",
    title="MiroThinker 1.0, 1.5",
    url="https://huggingface.co/miromind-ai/MiroThinker-v1.5-30B",
    build=build,
    markers=("<use_mcp_tool>", "<server_name>"),
    stops=("<|im_end|>", "<|endoftext|>"),
    models=("mirothinker(?!-1-7)",),
)
