"""Reka Edge 2603: reasoning and JSON calls in tags, as in Qwen3.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- The prompt opens `<think>`. Roles are words (`human:`, `assistant:`), and `<sep>` ends a turn.
"""

from chatparsers.answers import Format
from chatparsers.formats.qwen3 import build

FORMAT = Format(
    name="reka-edge",
    title="Reka Edge 2603",
    url="https://huggingface.co/RekaAI/reka-edge-2603",
    build=build,
    markers=("assistant:", "<sep>", "<tool_call>"),
    stops=("<sep>",),
    models=("reka-edge",),
)
