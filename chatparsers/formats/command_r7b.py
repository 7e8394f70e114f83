"""Command R7B: sections between tokens; the calls are an array of JSON with ids.

    <|START_THINKING|>I will look it up.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}
    ]<|END_ACTION|>

    <|START_RESPONSE|>Sunny.<|END_RESPONSE|>

Quirks:
- Ids count the calls of the conversation from 0.
- If thinking is off, the prompt writes an empty thought.
"""

from chatparsers.core import Builder, Format, Node


def build(p: Builder) -> Node:
    number = p.chars("0-9", 1, 4)
    call = p.json_call(id="tool_call_id", name="tool_name", args="parameters", id_pattern=number)
    array = p.array(call, indent="\n    ")
    # From here on it is a call, also where the turn is cut off before the call's name.
    begun = p.reads("", p.space() + p.peek("[" << p.choice("{", p.negate(p.any()))) + p.cut())
    action = p.token("<|START_ACTION|>") + begun << array << p.token("<|END_ACTION|>")
    response = p.span("<|START_RESPONSE|>", "<|END_RESPONSE|>", optional=True)
    return p.think("<|START_THINKING|>", "<|END_THINKING|>") + p.body(action, content=response)


FORMAT = Format(
    name="command-r7b",
    title="Command R7B, Command A",
    url="https://huggingface.co/CohereLabs/c4ai-command-r7b-12-2024",
    build=build,
    markers=("<|START_ACTION|>", "<|START_RESPONSE|>"),
    stops=("<|END_OF_TURN_TOKEN|>",),
    models=("(c4ai-)?command-(r7b|a)",),
)
