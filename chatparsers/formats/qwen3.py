"""Qwen3, Qwen2.5, QwQ: reasoning, then JSON calls in tags as in Hermes 2 Pro.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- Thinking models get `<think>` from the prompt. If thinking is off, the prompt holds an empty thought.
- Several calls are several tag pairs, with a newline between them.
- These models draft calls in open reasoning, and write them again after it.
- Seen in the wild: `arguments` before `name`, OpenAI's wrapper around the call.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats.hermes_2_pro import build as hermes


def build(p: Builder) -> Node:
    return p.think("<think>\n", "\n</think>\n\n") + hermes(p)


FORMAT = Format(
    name="qwen3",
    title="Qwen3, Qwen2.5, QwQ",
    url="https://huggingface.co/Qwen/Qwen3-8B",
    build=build,
    markers=("<|im_start|>", "<tool_call>", "# Tools"),
    stops=("<|im_end|>", "<|endoftext|>"),
    aliases=("qwen2.5", "qwq", "qwen", "qwen25", "qwen3-json", "qwen3-thinking", "holo2"),
    models=("qwen-?(2-5|3)|qwq",),
)
