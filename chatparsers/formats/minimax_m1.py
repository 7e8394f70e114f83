"""MiniMax-M1: JSON calls, one on a line, in one pair of tags.

    <think>
    Thoughts.
    </think>

    <tool_calls>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    {"name": "get_time", "arguments": {}}
    </tool_calls>

Quirks:
- A call inside the reasoning is reasoning: the model drafts its calls there.
- Seen in the wild: the calls on one line, or as an array; no closing tag.
- Facts: vLLM's chat template for the model, its parser `minimax` and the tests of it.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    def section(calls: Node) -> Node:
        return p.token("<tool_calls>") + p.space("\n") + calls + p.space("\n") + p.token("</tool_calls>")

    call = p.json_call(name="name", args="arguments")
    lines = section(p.calls(call, p.space("\n")))
    either = p.reads(lines, section(p.json_calls()))
    return p.think("<think>\n", "\n</think>\n\n") + p.body(either, lead="\n")


FORMAT = Format(
    name="minimax-m1",
    title="MiniMax-M1",
    url="https://huggingface.co/MiniMaxAI/MiniMax-M1-80k",
    build=build,
    markers=("<beginning_of_sentence>", "<tool_calls>\n{"),
    stops=("<end_of_sentence>",),
    models=("minimax-m1",),
)
