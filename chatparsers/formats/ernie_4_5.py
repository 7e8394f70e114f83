"""ERNIE 4.5 Thinking: reasoning, then a marked answer or JSON calls in tags.

    <think>
    Thoughts.
    </think>


    <response>
    Text.
    </response>
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- The prompt opens the thought.
- Seen in the wild: an answer without its markers, or without the last one; `arguments` before `name`.
- Facts: vLLM's parsers `ernie45` of reasoning and calls, which the maker wrote, and the tests of them.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import tagged_call


def build(p: Builder) -> Node:
    calls = p.calls(tagged_call(p), p.space("\n")) + p.trim("\n")
    answer = p.span("\n<response>\n", "\n</response>\n", optional=True)
    return p.think("<think>\n", "\n</think>\n\n") + p.body(calls, content=answer, lead="\n")


FORMAT = Format(
    name="ernie-4-5",
    title="ERNIE 4.5 Thinking",
    url="https://huggingface.co/baidu/ERNIE-4.5-21B-A3B-Thinking",
    build=build,
    markers=("<|im_start|>", "<response>"),
    stops=("<|im_end|>", "</s>"),
    aliases=("ernie45",),
    models=("ernie-4-5.*thinking",),
)
