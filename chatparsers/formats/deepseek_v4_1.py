"""DeepSeek V4.1: invocations in DSML, with a space in every tag.

    <think>Thoughts.</think>Text.

    <｜DSML｜ calls>
    <｜DSML｜ invoke name="get_weather">
    <｜DSML｜ parameter name="city" string="true">Oslo</｜DSML｜ parameter>
    </｜DSML｜ invoke>
    </｜DSML｜ calls>

Quirks:
- If thinking is off, the prompt ends in `</think>`.
- The mistakes listed for `deepseek-v3-2` are read too.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import marked_end, marked_section


def build(p: Builder) -> Node:
    end = marked_end(p, "｜DSML｜")
    section = marked_section(p, "｜DSML｜", "calls", gap=" ")
    silent = p.optional(p.token("</think>"))
    return silent + p.think("<think>", "</think>") + p.body(section, lead="\n\n", closers=end)


FORMAT = Format(
    name="deepseek-v4-1",
    title="DeepSeek V4.1",
    url="https://huggingface.co/deepseek-ai/DeepSeek-V4.1",
    build=build,
    markers=("<｜DSML｜ calls>", '<｜DSML｜ invoke name="'),
    stops=("<｜end▁of▁sentence｜>",),
    aliases=("deepseek-v41", "deepseekv41"),
    models=("deepseek-v4-1",),
)
