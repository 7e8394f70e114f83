"""Granite 4.0, 4.1: JSON calls in tags, as in Hermes 2 Pro.

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- Several calls are several tag pairs, with a newline between them. Granite 4.2 writes tagged arguments (`nemotron-v3`).
- Seen in the wild: `get_weather(city="Oslo")` at the start of the turn, one call on each line (vLLM's pull request 43113).
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import python_lines, tagged_call


def build(p: Builder) -> Node:
    calls = p.calls(tagged_call(p), p.space("\n"))
    return p.body(calls, start=p.reads(calls, python_lines(p)), lead="\n")


FORMAT = Format(
    name="granite-4",
    title="Granite 4.0, 4.1",
    url="https://huggingface.co/ibm-granite/granite-4.0-h-small",
    build=build,
    markers=("<|start_of_role|>", "<tool_call>"),
    stops=("<|end_of_text|>",),
    aliases=("granite4",),
    models=("granite-?4",),
)
