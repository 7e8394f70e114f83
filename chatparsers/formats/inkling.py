"""Inkling: messages of typed content; a call is JSON after its name.

    <|message_model|><|content_thinking|>The user wants the weather.<|end_message|><|message_model|>get_weather<|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"Oslo"}}<|end_message|>

    <|message_model|><|content_text|>Sunny.<|end_message|>

Quirks:
- The prompt ends in `<|message_model|>`, and every further message begins with it.
- `<|content_model_end_sampling|>` ends the turn.
- Seen in the wild: no name before a call, text without `<|content_text|>`, a call inside open reasoning.
"""

from chatparsers.answers import ANY_TOOL, Builder, Format, Node, Tool
from chatparsers.formats._shapes import addressee


def build(p: Builder) -> Node:
    start, end = p.expected(p.token("<|message_model|>")), p.token("<|end_message|>")
    invoke = p.token("<|content_invoke_tool_json|>")

    def call(tool: Tool) -> Node:
        json = '{"name":"' + p.json_name(tool) + '","args":' + p.args(tool) + "}"
        return start + addressee(p, tool) + invoke + json

    header = p.choice(p.token("<|message_model|>") + p.optional(addressee(p, ANY_TOOL)) + invoke, invoke)
    any_call = header << p.json_call(name="name", args="args")
    calls = p.calls(p.reads(p.each_tool(call), any_call) + p.expected(p.space() + end))
    reasoning = p.span(start + p.token("<|content_thinking|>"), end)
    content = p.span(start + p.token("<|content_text|>"), end, optional=True)
    return p.body(calls, reasoning=reasoning, content=content)


FORMAT = Format(
    name="inkling",
    title="Inkling",
    url="https://huggingface.co/thinkingmachines/Inkling",
    build=build,
    markers=("<|message_model|>", "<|content_invoke_tool_json|>"),
    stops=("<|content_model_end_sampling|>",),
    models=("inkling",),
)
