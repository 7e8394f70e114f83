"""Command R7B: sections between tokens; the calls are an array of JSON with ids.

    <|START_THINKING|>I will look it up.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}
    ]<|END_ACTION|>

    <|START_RESPONSE|>Sunny.<|END_RESPONSE|>

Quirks:
- Ids count the calls of the conversation from 0.
- If thinking is off, the prompt writes an empty thought.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import sections


def build(p: Builder) -> Node:
    return sections(p, "RESPONSE")


FORMAT = Format(
    name="command-r7b",
    title="Command R7B, Command A",
    url="https://huggingface.co/CohereLabs/c4ai-command-r7b-12-2024",
    build=build,
    markers=("<|START_ACTION|>", "<|START_RESPONSE|>"),
    stops=("<|END_OF_TURN_TOKEN|>",),
    aliases=("cohere-command3",),
    models=("(c4ai-)?command-(r7b|a)",),
)
