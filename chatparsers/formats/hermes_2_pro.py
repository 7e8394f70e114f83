"""Hermes 2 Pro, Hermes 3: JSON calls in tags.

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- Several calls are several tag pairs, with a newline between them.
- Seen in the wild: `arguments` before `name`, OpenAI's wrapper around the call.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import tagged_call


def build(p: Builder) -> Node:
    return p.body(p.calls(tagged_call(p), p.space("\n")), lead="\n")


FORMAT = Format(
    name="hermes-2-pro",
    title="Hermes 2 Pro, Hermes 3",
    url="https://huggingface.co/NousResearch/Hermes-2-Pro-Llama-3-8B",
    build=build,
    markers=("<|im_start|>", "<tool_call>"),
    stops=("<|im_end|>",),
    aliases=("hermes",),
    models=("hermes-?[234]",),
)
