"""Hunyuan V4 (Hy4): as Hunyuan V3, without `<tool_sep>` and without line breaks in a call.

    <think:opensource>Thoughts.</think:opensource>Text.<tool_calls:opensource>
    <tool_call:opensource>get_weather<arg_key:opensource>city</arg_key:opensource><arg_value:opensource>Oslo</arg_value:opensource></tool_call:opensource>
    </tool_calls:opensource>

Quirks:
- Each tag is one special token with the checkpoint's suffix.
- The mistakes listed for `hunyuan-v3` are read too.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats.hunyuan_v3 import turn


def build(p: Builder) -> Node:
    return turn(p, "", "")


FORMAT = Format(
    name="hunyuan-v4",
    title="Hunyuan V4 (Hy4)",
    url="https://huggingface.co/tencent/Hy4-preview",
    build=build,
    markers=("<tool_calls:", "<arg_key:", "<｜hy_"),
    stops=("<｜hy_eos:opensource｜>", "<｜hy_end:opensource｜>"),
    aliases=("hy-v4",),
    models=("hunyuan-v4", "hy-?4"),
)
