"""Qwen3-Coder: tagged arguments.

    Text.
    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>

Quirks:
- One newline is trimmed on each side of a value; strings are raw text, other types JSON.
- Seen in the wild: `<tool_call>` omitted, `</parameter>` omitted before the next parameter, a call inside open reasoning.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node
from chatparsers.core.schema import Argument, Tool


def build(p: Builder) -> Node:
    def argument(arg: Argument | None) -> Node:
        value = p.value(arg, until="\n</parameter>", also=("\n<parameter=", "\n</function>"))
        close = p.lenient(p.trim("\n") + "</parameter>", p.trim("\n") + p.peek(p.choice("<parameter=", "</function>")))
        return "<parameter=" + p.arg_name(arg) + ">" + p.trim("\n") + value + close + p.space("\n")

    def function(tool: Tool | None) -> Node:
        return "<function=" + p.name(tool) + ">" + p.space("\n") + p.each_arg(tool, argument) + "</function>"

    call = p.each_tool(function)
    open, close = p.token("<tool_call>") + p.space("\n"), p.space("\n") + p.token("</tool_call>")
    calls = p.calls(p.lenient(open + call + close, call + p.optional(close)), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n\n", until=calls) + p.body(calls, lead="\n\n")


FORMAT = Format(
    name="qwen3-coder",
    title="Qwen3-Coder",
    url="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct",
    build=build,
    markers=("<|im_start|>", "<function="),
    stops=("<|im_end|>", "<|endoftext|>"),
)
