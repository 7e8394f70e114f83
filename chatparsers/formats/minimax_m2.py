"""MiniMax-M2: invocations with tagged arguments.

    <think>
    Thoughts.
    </think>

    Text.
    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Oslo</parameter>
    </invoke>
    </minimax:tool_call>

Quirks:
- The template opens `<think>`.
- Strings are raw text, verbatim between the tags; other types are JSON.
- Several calls are in one section, with a newline between them.
- Seen in the wild: names in single quotes, or without quotes; a call inside open reasoning; no `</parameter>`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import invoke


def build(p: Builder) -> Node:
    open, close = p.token("<minimax:tool_call>"), p.token("</minimax:tool_call>")
    calls = p.calls(p.each_tool(lambda tool: invoke(p, tool, section="</minimax:tool_call>")), p.space("\n"))
    section = open + p.space("\n") + calls + p.space("\n") + close
    return p.think("<think>\n", "\n</think>\n\n") + p.body(section, lead="\n")


FORMAT = Format(
    name="minimax-m2",
    title="MiniMax-M2",
    url="https://huggingface.co/MiniMaxAI/MiniMax-M2",
    build=build,
    markers=("]~b]ai", "<minimax:tool_call>"),
    stops=("[e~[",),
    models=("minimax-m2",),
)
