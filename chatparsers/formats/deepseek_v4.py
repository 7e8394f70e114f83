"""DeepSeek V4: invocations in DSML, as DeepSeek V3.2 with another name of the section.

    <think>Thoughts.</think>Text.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

Quirks:
- If thinking is off, the prompt ends in `</think>`.
- The mistakes listed for `deepseek-v3-2` are read too.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import marked_end, marked_section


def build(p: Builder) -> Node:
    end = marked_end(p, "｜DSML｜")
    section = marked_section(p, "｜DSML｜", "tool_calls")
    silent = p.optional(p.token("</think>"))
    return silent + p.think("<think>", "</think>") + p.body(section, lead="\n\n", closers=end)


FORMAT = Format(
    name="deepseek-v4",
    title="DeepSeek V4",
    url="https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash",
    build=build,
    markers=("<｜DSML｜tool_calls>", '<｜DSML｜invoke name="'),
    stops=("<｜end▁of▁sentence｜>",),
    aliases=("deepseekv4",),
    models=("deepseek-v4",),
)
