"""Command R7B, Command A, Command A+: sections between tokens; the calls are an array of JSON with ids.

    <|START_THINKING|>I will look it up.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}
    ]<|END_ACTION|>

    <|START_RESPONSE|>Sunny.<|END_RESPONSE|>

Quirks:
- Command A+ (Cohere2MoE) writes `<|START_TEXT|>Sunny.<|END_TEXT|>` as its answer. Each of the two is read in the other.
- Ids count the calls of the conversation from 0.
- If thinking is off, the prompt holds an empty thought. That of Command A+ opens the thought if it is on.
- Citations in an answer of Command A+, such as `<co>Sunny</co: 0:[0]>`, stay in the content.
"""

from chatparsers.core import Builder, Format, Node
from chatparsers.formats._shapes import listed


def _turn(p: Builder, answer: str) -> Node:
    number = p.chars("0-9", 1, 4)
    call = p.json_call(id="tool_call_id", name="tool_name", args="parameters", id_pattern=number)
    action = p.token("<|START_ACTION|>") << listed(p, call, "\n    ") << p.token("<|END_ACTION|>")
    names = dict.fromkeys((answer, "RESPONSE", "TEXT"))
    begin, end = ([p.token(f"<|{side}_{name}|>") for name in names] for side in ("START", "END"))
    response = p.span(p.reads(begin[0], *begin), p.reads(end[0], *end), optional=True)
    return p.think("<|START_THINKING|>", "<|END_THINKING|>") + p.body(action, content=response)


def build(p: Builder) -> Node:
    return _turn(p, "RESPONSE")


def build_a_plus(p: Builder) -> Node:
    return _turn(p, "TEXT")


FORMATS = (
    Format(
        name="command-r7b",
        title="Command R7B, Command A",
        url="https://huggingface.co/CohereLabs/c4ai-command-r7b-12-2024",
        build=build,
        markers=("<|START_ACTION|>", "<|START_RESPONSE|>"),
        stops=("<|END_OF_TURN_TOKEN|>",),
        aliases=("cohere-command3",),
        models=("(c4ai-)?command-(r7b|a)",),
    ),
    Format(
        name="command-a-plus",
        title="Command A+",
        url="https://huggingface.co/CohereLabs/command-a-plus-05-2026-bf16",
        build=build_a_plus,
        markers=("<|START_ACTION|>", "<|START_TEXT|>"),
        stops=("<|END_OF_TURN_TOKEN|>",),
        aliases=("cohere2-moe", "cmd4", "cohere-command4"),
        models=("(c4ai-)?command-a-plus",),
    ),
)
