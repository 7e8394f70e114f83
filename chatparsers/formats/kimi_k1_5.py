"""Kimi-VL, Kimi k1.5: reasoning between triangles, then the answer.

    ◁think▷The user wants the weather.◁/think▷It is raining.

Quirks:
- These models learned no tool calls.
- The template shows no reasoning. Nothing in the prompt opens it.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    return p.think("◁think▷", "◁/think▷") + p.body()


FORMAT = Format(
    name="kimi-k1-5",
    title="Kimi-VL, Kimi k1.5",
    url="https://huggingface.co/moonshotai/Kimi-VL-A3B-Thinking-2506",
    build=build,
    markers=("<|im_middle|>", "◁think▷"),
    stops=("<|im_end|>",),
    aliases=("kimi-vl",),
    models=("kimi-(vl|k1-5)",),
)
