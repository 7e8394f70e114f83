"""DeepSeek V3.2: invocations in DSML, whose values say whether they are strings.

    <think>Thoughts.</think>Text.

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

Quirks:
- `｜DSML｜` is one token; the rest of a tag is text.
- `string="false"`: the value is JSON. The attribute beats the tool's schema.
- The prompt opens `<think>`, or closes it at once. In the history, an answer without reasoning begins with `</think>`.
- Seen in the wild: white space in the tags, no `string` attribute, another name or no opener of the section, the arguments as
  one JSON object, also as the value of an `arguments` or `input` that the tool has not, a call inside open reasoning.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import marked_end, marked_section


def build(p: Builder) -> Node:
    end = marked_end(p, "｜DSML｜")
    section = marked_section(p, "｜DSML｜", "function_calls")
    silent = p.optional(p.token("</think>"))
    return silent + p.think("<think>", "</think>") + p.body(section, lead="\n\n", closers=end)


FORMAT = Format(
    name="deepseek-v3-2",
    title="DeepSeek V3.2",
    url="https://huggingface.co/deepseek-ai/DeepSeek-V3.2",
    build=build,
    markers=("<｜DSML｜function_calls>", '<｜DSML｜invoke name="'),
    stops=("<｜end▁of▁sentence｜>",),
    aliases=("deepseek-v32", "deepseekv32"),
    models=("deepseek-v3-2",),
)
