"""Hermes 2 Pro, Hermes 3: JSON calls in tags.

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- Several calls are several tag pairs, a newline between.
- Seen in the wild: `arguments` before `name`, OpenAI's wrapper around the call.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node


def tagged_call(p: Builder) -> Node:
    """One call as a JSON object in tags, as many families write it."""
    call = p.json_call(name="name", args="arguments")
    return p.token("<tool_call>") + p.space("\n") + call + p.space("\n") + p.token("</tool_call>")


def build(p: Builder) -> Node:
    return p.body(p.calls(tagged_call(p), p.space("\n")), lead="\n")


FORMAT = Format(
    name="hermes-2-pro",
    title="Hermes 2 Pro, Hermes 3",
    url="https://huggingface.co/NousResearch/Hermes-2-Pro-Llama-3-8B",
    build=build,
    markers=("<|im_start|>", "<tool_call>"),
    stops=("<|im_end|>",),
)
