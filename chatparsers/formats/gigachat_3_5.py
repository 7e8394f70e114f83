"""GigaChat 3.5: invocations in GCML, which is DeepSeek's DSML under another name.

    <think>Thoughts.</think>

    Text.

    <｜GCML｜tool_calls>
    <｜GCML｜invoke name="get_weather">
    <｜GCML｜parameter name="city" string="true">Oslo</｜GCML｜parameter>
    </｜GCML｜invoke>
    </｜GCML｜tool_calls>

Quirks:
- `｜GCML｜` is one token; the rest of a tag is text.
- `string="false"`: the value is JSON. The attribute beats the tool's schema.
- The variable `reasoning` of the template opens `<think>` in the prompt.
- The mistakes listed for `deepseek-v3-2` are read too.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import marked_end, marked_section


def build(p: Builder) -> Node:
    end = marked_end(p, "｜GCML｜")
    section = marked_section(p, "｜GCML｜", "tool_calls")
    return p.think("<think>", "</think>\n\n") + p.body(section, lead="\n\n", closers=end)


FORMAT = Format(
    name="gigachat-3-5",
    title="GigaChat 3.5",
    url="https://huggingface.co/ai-sage/GigaChat3.5-432B-A28B",
    build=build,
    markers=("<｜GCML｜tool_calls>", "<|role_sep|>"),
    stops=("<|message_sep|>", "</s>"),
    aliases=("gigachat35",),
    models=("gigachat-?3-5",),
)
