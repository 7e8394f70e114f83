"""Command A+ (Cohere2MoE): sections as in Command R7B; the answer is a text.

    <|START_THINKING|>I will look it up.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}
    ]<|END_ACTION|>

    <|START_TEXT|>Sunny.<|END_TEXT|>

Quirks:
- The prompt opens the thought, or holds an empty one if thinking is off.
- Ids count the calls of the conversation from 0.
- Citations in the answer, such as `<co>Sunny</co: 0:[0]>`, stay in the content.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import sections


def build(p: Builder) -> Node:
    return sections(p, "TEXT")


FORMAT = Format(
    name="command-a-plus",
    title="Command A+",
    url="https://huggingface.co/CohereLabs/command-a-plus-05-2026-bf16",
    build=build,
    markers=("<|START_ACTION|>", "<|START_TEXT|>"),
    stops=("<|END_OF_TURN_TOKEN|>",),
    aliases=("cohere2-moe", "cmd4", "cohere-command4"),
    models=("(c4ai-)?command-a-plus",),
)
