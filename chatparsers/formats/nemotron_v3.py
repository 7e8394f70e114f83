"""Nemotron 3 Nano: reasoning, then calls with tagged arguments as in Qwen3-Coder.

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
- The template opens `<think>`, or writes `<think></think>` if thinking is off.
- One newline comes after `</think>` and after each `</tool_call>`, also after the last.
- Seen in the wild: the mistakes listed for `qwen3-coder`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import function_call


def build(p: Builder) -> Node:
    calls = p.calls(function_call(p, "<tool_call>", "</tool_call>"), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n") + p.body(calls + p.trim("\n"), lead="\n")


FORMAT = Format(
    name="nemotron-v3",
    title="Nemotron 3 Nano",
    url="https://huggingface.co/nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    build=build,
    markers=("<|im_start|>", "<function=", "<think>"),
    stops=("<|im_end|>",),
    aliases=("nemotron-3", "step3p5", "step5"),
    models=("nemotron-?3",),
)
