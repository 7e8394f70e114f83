"""LFM2, LFM2.5: calls as a list in Python.

    <|tool_call_start|>[get_weather(city="Oslo", days=2), get_time()]<|tool_call_end|>Text.

Quirks:
- Values are Python or JSON literals. LFM2.5 models reason first: `<think>…</think>`; a call in there is reasoning.
- Seen in the wild: the list in JSON, `[{"name": "get_weather", "arguments": {"city": "Oslo"}}]`.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node
from chatparsers.core.schema import Argument, Tool


def build(p: Builder) -> Node:
    comma = p.space() + "," + p.space(" ")

    def argument(arg: Argument | None) -> Node:
        return p.arg_name(arg) + p.space() + "=" + p.space() + p.value(arg, "python")

    def call(tool: Tool | None) -> Node:
        end = p.lenient(p.space() + ")", p.space() + "," + p.space() + ")")
        return p.name(tool) + p.space() + "(" + p.space() + p.each_arg(tool, argument, comma) + end

    listed = p.array(p.lenient(p.each_tool(call), p.json_call(name="name", args="arguments")))
    section = p.token("<|tool_call_start|>") + p.space() + listed + p.space() + p.token("<|tool_call_end|>")
    return p.think("<think>\n", "\n</think>\n\n") + p.body(section)


FORMAT = Format(
    name="lfm2",
    title="LFM2, LFM2.5",
    url="https://huggingface.co/LiquidAI/LFM2-8B-A1B",
    build=build,
    markers=("<|im_start|>", "List of tools: "),
    stops=("<|im_end|>",),
)
