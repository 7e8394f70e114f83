"""GLM-5.3-Flash: a call is its name and JSON, or tagged as in GLM-4.7.

    <think>The user wants the weather.</think>Text.<tool_call>get_weather>{"city": "Oslo"}

Quirks:
- Nothing closes a call, as the object says where it ends. The template tells and writes the tagged form; the model
  mostly writes this one.
- Seen in the wild: `</tool_call>` after the object, also with a line break in place of `>`.
- Facts: SGLang's `glm53_flash_detector.py` and its pull request 37925.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import headed_call, keyed_call


def build(p: Builder) -> Node:
    headed = headed_call(p)
    calls = p.calls(p.reads(headed, headed, keyed_call(p)), p.space("\n"))
    silent = p.optional(p.token("</think>"))
    return silent + p.think("<think>", "</think>") + p.body(calls)


FORMAT = Format(
    name="glm-5-3-flash",
    title="GLM-5.3-Flash",
    url="https://github.com/sgl-project/sglang/pull/37925",
    build=build,
    markers=("[gMASK]", "<tool_call>", ">{"),
    stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    aliases=("glm53", "glm-5.3-flash"),
    models=("glm-?5-3-flash",),
)
