"""DeepSeek R1, its distillations, R1 0528: reasoning, then calls as in DeepSeek V3.

    <think>
    Thoughts.
    </think>

    Text.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Oslo"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Quirks:
- The template opens `<think>`; the history drops reasoning.
- Seen in the wild, mostly from distilled models: the mistakes listed for `deepseek-v3`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats.deepseek_v3 import build as deepseek_v3


def build(p: Builder) -> Node:
    return p.think("<think>\n", "\n</think>\n\n") + deepseek_v3(p)


FORMAT = Format(
    name="deepseek-r1",
    title="DeepSeek R1",
    url="https://huggingface.co/deepseek-ai/DeepSeek-R1-0528",
    build=build,
    markers=("<｜tool▁calls▁begin｜>", "```json", "<think>\n"),
    stops=("<｜end▁of▁sentence｜>",),
    models=("deepseek-r1", "r1-1776"),
)
