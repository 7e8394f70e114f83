"""Qwen3-Coder: tagged arguments.

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
  values are as Python prints them (`True`, `None`).
- Seen in the wild: no `<tool_call>`, no `</parameter>` before the next parameter, closing tags twice, `</parameter=name>`,
  tags without `>`, a call inside open reasoning.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import function_call


def build(p: Builder) -> Node:
    calls = p.calls(function_call(p, "<tool_call>", "</tool_call>"), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n\n") + p.body(calls, lead="\n\n")


FORMAT = Format(
    name="qwen3-coder",
    title="Qwen3-Coder",
    url="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct",
    build=build,
    markers=("<|im_start|>", "<function="),
    stops=("<|im_end|>", "<|endoftext|>"),
    aliases=("qwen3-xml",),
    models=("qwen3.*coder", "trinity-large-thinking"),
)
