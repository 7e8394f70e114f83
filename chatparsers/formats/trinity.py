"""Trinity: reasoning and JSON calls in tags, as in Qwen3; a call may be inside the reasoning.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- Trinity Nano, Mini and Large Preview write this. Trinity Large Thinking writes tagged arguments (`qwen3-coder`).
- Seen in the wild: a call inside open reasoning.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import tagged_call


def build(p: Builder) -> Node:
    calls = p.calls(tagged_call(p), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n\n") + p.body(calls, lead="\n")


FORMAT = Format(
    name="trinity",
    title="Trinity Nano, Mini, Large Preview",
    url="https://huggingface.co/arcee-ai/Trinity-Mini",
    build=build,
    markers=("<|im_start|>", "<tool_call>", "Trinity"),
    stops=("<|im_end|>",),
    models=("trinity",),
)
