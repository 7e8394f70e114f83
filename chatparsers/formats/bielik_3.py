"""Bielik 2.5, 3: reasoning and JSON calls in tags, as in Qwen3.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- The template writes a line break before each `<tool_call>`. If thinking is on, the prompt ends in `<think>`.
- The template of the repository `bielik-tools`, for Bielik 2 too, writes calls without line breaks.
- Seen in the wild: several objects in one pair of tags, with a comma between them.
"""

from chatparsers.answers import Format
from chatparsers.formats.qwen3 import build

FORMAT = Format(
    name="bielik-3",
    title="Bielik 2.5, 3",
    url="https://huggingface.co/speakleash/Bielik-11B-v3.0-Instruct",
    build=build,
    markers=("<|im_start|>", "<tool_call>", "<|function_list|>"),
    stops=("<|im_end|>",),
    models=("bielik",),
)
