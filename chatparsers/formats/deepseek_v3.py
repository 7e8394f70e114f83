"""DeepSeek V3: JSON calls in a fence, in one section of special tokens.

    Text.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Oslo"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Quirks:
- Several calls are in one section, with a newline between them.
- Seen in the wild: the section's opener misspelt (by distilled models) or missing, no closer, no fence around the JSON,
  white space beside the markers.
"""

from chatparsers.answers import Builder, Format, Node, Tool
from chatparsers.formats._shapes import deepseek_section


def build(p: Builder) -> Node:
    any_fence = p.space() + p.optional("```" + p.optional("json") + p.space()) + p.peek("{")
    begin = p.reads("\n```json\n", "\n```json\n", any_fence)
    end = p.reads("\n```", "\n```", p.space() + p.optional("```"))

    def call(tool: Tool) -> Node:
        named = p.reads("", p.negate(p.space() + "```")) + p.name(tool)
        return "function" + p.token("<｜tool▁sep｜>") + named + begin + p.args(tool) + end

    return p.body(deepseek_section(p, p.each_tool(call), p.space("\n"), "function"))


FORMAT = Format(
    name="deepseek-v3",
    title="DeepSeek V3",
    url="https://huggingface.co/deepseek-ai/DeepSeek-V3-0324",
    build=build,
    markers=("<｜tool▁calls▁begin｜>", "```json"),
    stops=("<｜end▁of▁sentence｜>",),
    aliases=("deepseekv3",),
    models=("deepseek-(v3|v2-5)",),
)
