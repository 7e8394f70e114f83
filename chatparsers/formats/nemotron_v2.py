"""Nemotron Nano v2, Llama Nemotron: an array of JSON calls in tags.

    <think>
    Thoughts.
    </think>

    Text.
    <TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</TOOLCALL>

Quirks:
- The template opens `<think>`, or writes `<think></think>` if thinking is off. The history drops reasoning.
- A newline comes before the end of the turn.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed


def build(p: Builder) -> Node:
    call = p.json_call(name="name", args="arguments")
    section = p.token("<TOOLCALL>") << listed(p, call) << p.token("</TOOLCALL>")
    return p.think("<think>\n", "\n</think>\n\n") + p.body(section, lead="\n")


FORMAT = Format(
    name="nemotron-v2",
    title="Nemotron Nano v2",
    url="https://huggingface.co/nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    build=build,
    markers=("<AVAILABLE_TOOLS>", "<TOOLCALL>"),
    stops=("\n<SPECIAL_12>", "<SPECIAL_12>", "<|eot_id|>"),
    models=("nemotron.*nano.*v2",),
)
