"""EXAONE 4.0: reasoning, then JSON calls in tags on one line.

    <think>
    Thoughts.
    </think>

    Text.
    <tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>

Quirks:
- The prompt opens `<think>`. If thinking is off, it holds an empty thought.
- Several calls are several tag pairs, with a newline between them.
- Seen in the wild: the mistakes listed for `hermes-2-pro`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import tagged_call


def build(p: Builder) -> Node:
    calls = p.calls(tagged_call(p, pad=""), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n\n") + p.body(calls, lead="\n")


FORMAT = Format(
    name="exaone-4",
    title="EXAONE 4.0",
    url="https://huggingface.co/LGAI-EXAONE/EXAONE-4.0-32B",
    build=build,
    markers=("[|assistant|]", "<tool_call>"),
    stops=("[|endofturn|]",),
    models=("exaone-4",),
)
