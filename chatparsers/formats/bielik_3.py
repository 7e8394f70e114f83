"""Bielik 2.5, 3: reasoning and JSON calls in tags, as in Qwen3.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- The template that shows calls is the one of the repository `bielik-tools`. The model's own writes calls as plain text.
- Seen in the wild: several objects in one pair of tags, with a comma between them.
"""

from chatparsers.core import Format
from chatparsers.formats.qwen3 import build

FORMAT = Format(
    name="bielik-3",
    title="Bielik 2.5, 3",
    url="https://github.com/speakleash/bielik-tools",
    build=build,
    markers=("<|im_start|>", "<tool_call>", "Bielik"),
    stops=("<|im_end|>",),
    models=("bielik",),
)
