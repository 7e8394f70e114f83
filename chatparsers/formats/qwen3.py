"""Qwen3, Qwen2.5, QwQ, and families that took it over: reasoning, then JSON calls in tags as in Hermes 2 Pro.

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
- These models draft calls in open reasoning, and write them again after it. Trinity also calls
  there; Trinity Large Thinking writes tagged arguments (`qwen3-coder`).
- Bielik: the template of the repository `bielik-tools`, for Bielik 2 too, writes calls without line breaks.
- Reka Edge: roles are words (`human:`, `assistant:`), and `<sep>` ends a turn.
- SmolLM3: the template writes the tools, but no calls of past turns. It takes reasoning out of them only if thinking is
  off. With the template's `python_tools`, the model writes Python in `<code>` tags, which is content.
- Seen in the wild: `arguments` before `name`, OpenAI's wrapper around the call, several objects in one pair of tags.
"""

from chatparsers.core import Builder, Format, Node
from chatparsers.formats.hermes_2_pro import build as hermes


def build(p: Builder) -> Node:
    return p.think("<think>\n", "\n</think>\n\n") + hermes(p)


FORMATS = (
    Format(
        name="qwen3",
        title="Qwen3, Qwen2.5, QwQ",
        url="https://huggingface.co/Qwen/Qwen3-8B",
        build=build,
        markers=("<|im_start|>", "<tool_call>", "# Tools"),
        stops=("<|im_end|>", "<|endoftext|>"),
        aliases=("qwen2.5", "qwq", "qwen", "qwen25", "qwen3-json", "qwen3-thinking", "holo2"),
        models=("qwen-?(2-5|3)|qwq",),
    ),
    Format(
        name="bielik-3",
        title="Bielik 2.5, 3",
        url="https://huggingface.co/speakleash/Bielik-11B-v3.0-Instruct",
        build=build,
        markers=("<|im_start|>", "<tool_call>", "<|function_list|>"),
        stops=("<|im_end|>",),
        models=("bielik",),
    ),
    Format(
        name="reka-edge",
        title="Reka Edge 2603",
        url="https://huggingface.co/RekaAI/reka-edge-2603",
        build=build,
        markers=("assistant:", "<sep>", "<tool_call>"),
        stops=("<sep>",),
        models=("reka-edge",),
    ),
    Format(
        name="smollm3",
        title="SmolLM3",
        url="https://huggingface.co/HuggingFaceTB/SmolLM3-3B",
        build=build,
        markers=("<|im_start|>", "## Metadata", "Reasoning Mode: "),
        stops=("<|im_end|>",),
        models=("smollm-?3",),
    ),
    Format(
        name="trinity",
        title="Trinity Nano, Mini, Large Preview",
        url="https://huggingface.co/arcee-ai/Trinity-Mini",
        build=build,
        markers=("<|im_start|>", "<tool_call>", "Trinity"),
        stops=("<|im_end|>",),
        models=("trinity",),
    ),
)
