"""DeepSeek V3.1: a name, then bare JSON, in one section of special tokens.

    <think>Thoughts.</think>Text.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Quirks:
- The template opens `<think>`, or writes `<think></think>` if thinking is off.
- Several calls are in one section, with nothing between them.
"""

from chatparsers.answers import Builder, Format, Node, Tool
from chatparsers.formats._shapes import deepseek_section


def build(p: Builder) -> Node:
    def call(tool: Tool) -> Node:
        return p.name(tool) + p.token("<｜tool▁sep｜>") + p.args(tool)

    return p.think("<think>", "</think>") + p.body(deepseek_section(p, p.each_tool(call), p.space()))


FORMAT = Format(
    name="deepseek-v3-1",
    title="DeepSeek V3.1",
    url="https://huggingface.co/deepseek-ai/DeepSeek-V3.1",
    build=build,
    markers=("<｜tool▁calls▁begin｜>", "<think>"),
    stops=("<｜end▁of▁sentence｜>",),
    aliases=("deepseek-v31", "deepseekv31"),
    models=("deepseek-v3-1",),
)
