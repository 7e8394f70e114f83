"""Hunyuan A13B: reasoning and answer between tags, then an array of JSON calls.

    <think>
    Thoughts.
    </think>
    <answer>
    Text.
    </answer><tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</tool_calls>

Quirks:
- If thinking is off, the prompt holds an empty thought.
- Seen in the wild: calls inside the answer; an answer without its markers; with tools, `助手：` ("assistant:") before it.
- Facts: vLLM's chat template for the model, its parsers `hunyuan_a13b` and the tests of them.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed


def build(p: Builder) -> Node:
    calls = listed(p, p.json_call(name="name", args="arguments"))
    section = p.token("<tool_calls>") << calls << p.token("</tool_calls>")
    speaker = p.reads("", p.optional("助手："))
    end = p.trim("\n") + p.token("</answer>")
    answer = p.span(p.token("<answer>") + p.trim("\n") + speaker, end, optional=True)
    return p.think("<think>\n", "\n</think>\n") + speaker + p.body(section, content=answer, marks=end)


FORMAT = Format(
    name="hunyuan-a13b",
    title="Hunyuan A13B",
    url="https://huggingface.co/tencent/Hunyuan-A13B-Instruct",
    build=build,
    markers=("<|extra_0|>", "<tool_calls>"),
    stops=("<|eos|>",),
    models=("hunyuan-a13b",),
)
