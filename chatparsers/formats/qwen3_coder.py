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
- One newline is trimmed on each side of a value; strings are raw text, objects and arrays JSON, other values as Python
  prints them (`True`, `None`).
- Seen in the wild: `<tool_call>` omitted, `</parameter>` omitted before the next parameter, a call inside open reasoning.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node
from chatparsers.core.schema import Argument, Tool


def function_call(p: Builder, open: str, close: str, gap: str = "\n", pad: str = "\n") -> Node:
    """One call with tagged arguments, as several families write it.

    ``gap``: what stands between tags. ``pad``: what stands on each side of a value, trimmed off it.
    """
    also = (pad + "<parameter=", pad + "</function>") if pad else ()
    begun = ">" + p.trim(pad)
    ended = p.lenient("</parameter>", p.peek(p.choice("<parameter=", "</function>")))
    ended = p.trim(pad) + ended + p.space(gap)

    def argument(arg: Argument | None) -> Node:
        value = p.value(arg, until=pad + "</parameter>", also=also, python=True)
        return "<parameter=" + p.arg_name(arg) + begun + value + ended

    def function(tool: Tool | None) -> Node:
        return "<function=" + p.name(tool) + ">" + p.space(gap) + p.each_arg(tool, argument) + "</function>"

    call, end = p.each_tool(function), p.space(gap) + p.token(close)
    return p.lenient(p.token(open) + p.space(gap) + call + end, call + p.optional(end))


def build(p: Builder) -> Node:
    calls = p.calls(function_call(p, "<tool_call>", "</tool_call>"), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n\n", until=calls) + p.body(calls, lead="\n\n")


FORMAT = Format(
    name="qwen3-coder",
    title="Qwen3-Coder",
    url="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct",
    build=build,
    markers=("<|im_start|>", "<function="),
    stops=("<|im_end|>", "<|endoftext|>"),
)
