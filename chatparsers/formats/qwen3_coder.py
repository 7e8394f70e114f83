"""Qwen3-Coder, Nanbeige 4.2, Nemotron 3: reasoning, then tagged arguments.

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
- One newline on each side of a value is no part of it. Strings are raw text, objects and arrays are JSON, and other
  values stand as Python prints them (`True`, `None`).
- Nanbeige, Nemotron: the prompt opens `<think>`, or writes an empty thought if thinking is off.
- Nanbeige: with `tool_call_format="json"` the template writes JSON calls (`qwen3`).
- Nemotron: one newline comes after `</think>` and after each `</tool_call>`, also after the last.
- Seen in the wild: no `<tool_call>`, no `</parameter>` before the next parameter, closing tags twice, `</parameter=name>`,
  tags without `>`, a call inside open reasoning.
"""

from chatparsers.core import Builder, Format, Node
from chatparsers.formats._shapes import function_call


def _calls(p: Builder) -> Node:
    return p.calls(function_call(p, "<tool_call>", "</tool_call>"), p.space("\n"))


def build(p: Builder) -> Node:
    return p.think("<think>\n", "\n</think>\n\n") + p.body(_calls(p), lead="\n\n")


def build_nemotron(p: Builder) -> Node:
    return p.think("<think>\n", "\n</think>\n") + p.body(_calls(p) + p.trim("\n"), lead="\n")


FORMATS = (
    Format(
        name="qwen3-coder",
        title="Qwen3-Coder",
        url="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct",
        build=build,
        markers=("<|im_start|>", "<function="),
        stops=("<|im_end|>", "<|endoftext|>"),
        aliases=("qwen3-xml",),
        models=("qwen3.*coder", "trinity-large-thinking"),
    ),
    Format(
        name="nanbeige",
        title="Nanbeige 4.2",
        url="https://huggingface.co/Nanbeige/Nanbeige4.2-3B",
        build=build,
        markers=("<|im_start|>", "<function=", "南北阁"),
        stops=("<|im_end|>", "<|endoftext|>"),
        models=("nanbeige",),
    ),
    Format(
        name="nemotron-v3",
        title="Nemotron 3 Nano",
        url="https://huggingface.co/nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        build=build_nemotron,
        markers=("<|im_start|>", "<function=", "<think>"),
        stops=("<|im_end|>",),
        aliases=("nemotron-3", "step3p5", "step5"),
        models=("nemotron-?3",),
    ),
)
