"""Jamba 1.5, 1.6, 1.7: an array of JSON calls in tags.

     Text.<tool_calls>[
        {"name": "get_weather", "arguments": {"city": "Oslo"}}
    ]</tool_calls>

Quirks:
- A turn begins with a space, which is no part of its text.
- Seen in the wild: the array on one line; text after the calls.
- Facts: vLLM's parser `jamba` and the tests of it.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed


def build(p: Builder) -> Node:
    calls = listed(p, p.json_call(name="name", args="arguments"), "\n    ")
    section = p.token("<tool_calls>") << calls << p.token("</tool_calls>")
    return p.trim(" ") + p.body(section)


FORMAT = Format(
    name="jamba",
    title="Jamba 1.5, 1.6, 1.7",
    url="https://huggingface.co/ai21labs/AI21-Jamba-Large-1.7",
    build=build,
    markers=("<|bom|>", "<tool_calls>"),
    stops=("<|eom|>",),
    models=("(ai21-)?jamba-(1-|mini|large)",),
)
