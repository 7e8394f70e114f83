"""GLM-4.7, GLM-5: tagged keys and values as in GLM-4.5, without line breaks.

    <think>Thoughts.</think>Text.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>

Quirks:
- The prompt opens the thought. A turn without a thought begins with `</think>` alone.
- Strings are raw text, verbatim between the tags; other types are JSON.
- The model ends its turn by opening the next: `<|user|>`, or `<|observation|>` after calls.
- Seen in the wild: line breaks between the tags, a call inside open reasoning, `</think>` twice; no `<arg_value>`
  or `</arg_value>`, no first `<arg_key>` or `<tool_call>` in its place, `</arg_key>` twice, `</arg_value>` after the name; calls as GLM-5.3-Flash writes them.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import headed_call, keyed_call


def build(p: Builder) -> Node:
    keyed = keyed_call(p)
    calls = p.calls(p.reads(keyed, keyed, headed_call(p)), p.space())
    silent = p.optional(p.token("</think>"))
    return silent + p.think("<think>", "</think>") + p.body(calls)


FORMAT = Format(
    name="glm-4-7",
    title="GLM-4.7, GLM-5",
    url="https://huggingface.co/zai-org/GLM-4.7-Flash",
    build=build,
    markers=("[gMASK]", "</arg_key><arg_value>"),
    stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    aliases=("glm-4.7", "glm-5", "glm47"),
    models=("glm-4-[7-9]", "glm-?5"),
)
