"""SmolLM3: reasoning and JSON calls in tags, as in Qwen3.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- The template writes the tools, but no calls of past turns. It takes reasoning out of them only if thinking is off.
- With the template's `python_tools`, the model writes Python in `<code>` tags, which is content.
"""

from chatparsers.answers import Format
from chatparsers.formats.qwen3 import build

FORMAT = Format(
    name="smollm3",
    title="SmolLM3",
    url="https://huggingface.co/HuggingFaceTB/SmolLM3-3B",
    build=build,
    markers=("<|im_start|>", "## Metadata", "Reasoning Mode: "),
    stops=("<|im_end|>",),
    models=("smollm-?3",),
)
