"""Xiaomi MiMo: JSON calls in tags (MiMo-VL), or tagged arguments (MiMo-V2).

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- MiMo-V2 writes `<tool_call><function=get_weather><parameter=city>Oslo</parameter></function></tool_call>`, with verbatim values.
- Reasoning models write `<think>…</think>` first.
- Several calls are several tag pairs, with a newline between them.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import function_call, tagged_call


def build(p: Builder) -> Node:
    call = tagged_call(p) | function_call(p, "<tool_call>", "</tool_call>", gap="", pad="")
    return p.think("<think>\n", "\n</think>\n\n") + p.body(p.calls(call, p.space("\n")), lead="\n")


FORMAT = Format(
    name="xiaomi-mimo",
    title="Xiaomi MiMo",
    url="https://huggingface.co/XiaomiMiMo/MiMo-VL-7B-RL",
    build=build,
    markers=("<|im_start|>", "<tool_call>", "# Tools", "MiMo"),
    stops=("<|im_end|>",),
    aliases=("mimo",),
    models=("mimo",),
)
