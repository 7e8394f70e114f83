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
- Several calls stand in one section, with a newline between them.
- Seen in the wild: names in single quotes, or without quotes; a call inside open reasoning.
"""

from chatparsers.core import Argument, Builder, Format, Node, Raw, Tool
from chatparsers.formats._shapes import again

ARGUMENT_NAME = r"""[^"'<>\n]"""


def build(p: Builder) -> Node:
    quote = p.reads('"', '"', "'", "")

    def argument(arg: Argument) -> Node:
        opener = "<parameter name=" + quote + p.arg_name(arg, ARGUMENT_NAME) + quote + ">"
        return opener + p.value(arg, Raw(until="</parameter>")) + "</parameter>" + p.space("\n")

    def invoke(tool: Tool) -> Node:
        opener = "<invoke name=" + quote + p.name(tool) + quote + ">"
        return opener + p.space("\n") + p.each_arg(tool, argument) + "</invoke>" + again(p, "</invoke>")

    calls = p.calls(p.each_tool(invoke), p.space("\n"))
    open, close = p.token("<minimax:tool_call>"), p.token("</minimax:tool_call>")
    section = open + p.space("\n") + calls + p.space("\n") + close
    return p.think("<think>\n", "\n</think>\n\n", until=section) + p.body(section, lead="\n")


FORMAT = Format(
    name="minimax-m2",
    title="MiniMax-M2",
    url="https://huggingface.co/MiniMaxAI/MiniMax-M2",
    build=build,
    markers=("]~b]ai", "<minimax:tool_call>"),
    stops=("[e~[",),
    models=("minimax-m2",),
)
