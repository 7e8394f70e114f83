"""Nanbeige 4.2: reasoning, then calls with tagged arguments, as in Qwen3-Coder.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>

Quirks:
- The prompt opens `<think>`, or writes an empty thought if thinking is off.
- With `tool_call_format="json"` the template writes JSON calls (`qwen3`).
- Seen in the wild: the mistakes listed for `qwen3-coder`.
"""

from chatparsers.answers import Format
from chatparsers.formats.qwen3_coder import build

FORMAT = Format(
    name="nanbeige",
    title="Nanbeige 4.2",
    url="https://huggingface.co/Nanbeige/Nanbeige4.2-3B",
    build=build,
    markers=("<|im_start|>", "<function=", "南北阁"),
    stops=("<|im_end|>", "<|endoftext|>"),
    models=("nanbeige",),
)
