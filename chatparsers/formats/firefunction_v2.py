"""Firefunction v2: an array of JSON calls after a word, and no closer.

    Text. functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]

Quirks:
- A space comes before the word, also if no text comes before it.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    array = p.array(p.json_call(name="name", args="arguments"))
    return p.body("functools" << array, lead=" ")


FORMAT = Format(
    name="firefunction-v2",
    title="Firefunction v2",
    url="https://huggingface.co/fireworks-ai/llama-3-firefunction-v2",
    build=build,
    markers=("<|start_header_id|>", " functools["),
    stops=("<|eot_id|>",),
    models=("(llama-3-)?firefunction",),
)
