"""DeepSeek V3, R1, its distillations, R1 0528: JSON calls in a fence, in one section of special tokens.

    Text.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Oslo"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Quirks:
- R1 reasons first, between `<think>` and `</think>` on lines of their own. The template opens `<think>`; the history
  drops reasoning.
- Several calls are in one section, with a newline between them.
- Seen in the wild: the section's opener misspelt (by distilled models) or missing, no closer, no fence around the JSON,
  white space beside the markers.
"""

from chatparsers.core import Builder, Format, Node, Tool
from chatparsers.formats._shapes import deepseek_section


def build(p: Builder) -> Node:
    any_fence = p.space() + p.optional("```" + p.optional("json") + p.space()) + p.peek("{")
    begin = p.reads("\n```json\n", "\n```json\n", any_fence)
    end = p.reads("\n```", "\n```", p.space() + p.optional("```"))

    def call(tool: Tool) -> Node:
        return "function" + p.token("<｜tool▁sep｜>") + p.name(tool) + begin + p.args(tool) + end

    return p.body(deepseek_section(p, p.each_tool(call), p.space("\n")))


def build_r1(p: Builder) -> Node:
    return p.think("<think>\n", "\n</think>\n\n") + build(p)


FORMATS = (
    Format(
        name="deepseek-v3",
        title="DeepSeek V3",
        url="https://huggingface.co/deepseek-ai/DeepSeek-V3-0324",
        build=build,
        markers=("<｜tool▁calls▁begin｜>", "```json"),
        stops=("<｜end▁of▁sentence｜>",),
        aliases=("deepseekv3",),
        models=("deepseek-(v3|v2-5)",),
    ),
    Format(
        name="deepseek-r1",
        title="DeepSeek R1",
        url="https://huggingface.co/deepseek-ai/DeepSeek-R1-0528",
        build=build_r1,
        markers=("<｜tool▁calls▁begin｜>", "```json", "<think>\n"),
        stops=("<｜end▁of▁sentence｜>",),
        models=("deepseek-r1", "r1-1776"),
    ),
)
