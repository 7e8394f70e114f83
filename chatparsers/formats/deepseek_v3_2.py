"""DeepSeek V3.2, V4, V4.1: invocations in DSML, whose values say whether they are strings.

    <think>Thoughts.</think>Text.

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

Quirks:
- V4 calls the section `tool_calls`. V4.1 calls it `calls`, and writes a space in every tag: `</｜DSML｜ calls>`.
- `｜DSML｜` is one token; the rest of a tag is text.
- `string="false"`: the value is JSON. The attribute beats the tool's schema.
- The prompt opens `<think>`, or closes it at once. In the history, an answer without reasoning begins with `</think>`.
- Seen in the wild: white space in the tags, no `string` attribute, another name or no opener of the section, the arguments as
  one JSON object, also as the value of an `arguments` or `input` that the tool has not, a call inside open reasoning.
"""

from chatparsers.core import Builder, Format, Node
from chatparsers.formats._shapes import marked_body


def _turn(p: Builder, section: str, gap: str = "") -> Node:
    think = p.optional(p.token("</think>")) + p.think("<think>", "</think>")
    return think + marked_body(p, "｜DSML｜", section, gap)


def build(p: Builder) -> Node:
    return _turn(p, "function_calls")


def build_v4(p: Builder) -> Node:
    return _turn(p, "tool_calls")


def build_v4_1(p: Builder) -> Node:
    return _turn(p, "calls", gap=" ")


FORMATS = (
    Format(
        name="deepseek-v3-2",
        title="DeepSeek V3.2",
        url="https://huggingface.co/deepseek-ai/DeepSeek-V3.2",
        build=build,
        markers=("<｜DSML｜function_calls>", '<｜DSML｜invoke name="'),
        stops=("<｜end▁of▁sentence｜>",),
        aliases=("deepseek-v32", "deepseekv32"),
        models=("deepseek-v3-2",),
    ),
    Format(
        name="deepseek-v4",
        title="DeepSeek V4",
        url="https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash",
        build=build_v4,
        markers=("<｜DSML｜tool_calls>", '<｜DSML｜invoke name="'),
        stops=("<｜end▁of▁sentence｜>",),
        aliases=("deepseekv4",),
        models=("deepseek-v4",),
    ),
    Format(
        name="deepseek-v4-1",
        title="DeepSeek V4.1",
        url="https://huggingface.co/deepseek-ai/DeepSeek-V4.1",
        build=build_v4_1,
        markers=("<｜DSML｜ calls>", '<｜DSML｜ invoke name="'),
        stops=("<｜end▁of▁sentence｜>",),
        aliases=("deepseek-v41", "deepseekv41"),
        models=("deepseek-v4-1",),
    ),
)
