"""DeepSeek V3: JSON calls in a fence, in one section of special tokens.

    Text.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Oslo"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Quirks:
- Several calls stand in one section, a newline between.
- Seen in the wild: the section's opener misspelt by distilled models, its closer left out, no fence around the JSON, white
  space beside the markers.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node, Nodelike
from chatparsers.core.schema import Tool

MISSPELT = (
    "<｜tool_calls_begin｜>",
    "<｜tool calls begin｜>",
    "<｜tool\\_calls\\_begin｜>",
    "<｜tool▁calls｜>",
)


def section(p: Builder, call: Node, separator: Nodelike) -> Node:
    """The calls of a turn: each in a pair of tokens, all in another."""
    begin = p.lenient(p.token("<｜tool▁calls▁begin｜>"), *MISSPELT)
    one = p.token("<｜tool▁call▁begin｜>") + call + p.space() + p.token("<｜tool▁call▁end｜>")
    end = p.space() + p.token("<｜tool▁calls▁end｜>")
    return begin + p.space() + p.calls(one, separator) + p.lenient(end, "")


def build(p: Builder) -> Node:
    any_fence = p.space() + p.optional("```" + p.optional("json") + p.space()) + p.peek("{")
    fence = p.lenient("\n```json\n", any_fence)
    fence_end = p.lenient("\n```", p.space() + p.optional("```"))

    def call(tool: Tool | None) -> Node:
        return "function" + p.token("<｜tool▁sep｜>") + p.name(tool) + fence + p.args(tool) + fence_end

    return p.body(section(p, p.each_tool(call), p.space("\n")))


FORMAT = Format(
    name="deepseek-v3",
    title="DeepSeek V3",
    url="https://huggingface.co/deepseek-ai/DeepSeek-V3-0324",
    build=build,
    markers=("<｜tool▁calls▁begin｜>", "```json"),
    stops=("<｜end▁of▁sentence｜>",),
)
