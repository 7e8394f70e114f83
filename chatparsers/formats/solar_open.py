"""Solar Open: blocks with tokens of their own; a call has an id, a name and JSON.

    <|think|>The user wants the weather.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Oslo"}<|tool_call:end|>

    <|content|>Sunny.

Quirks:
- The prompt ends in `<|begin|>assistant`, and every further block begins with it.
- If thinking is off, the prompt holds an empty thought.
- `<|flush|>` ends an answer, `<|calls|>` ends the calls.
- Seen in the wild: no `<|tool_calls|>` before the calls, an empty id, text without `<|content|>`.
"""

from chatparsers.answers import Builder, Format, Node, Tool


def build(p: Builder) -> Node:
    start = p.expected(p.token("<|begin|>") + "assistant")
    call_id = p.id(p.chars("a-z0-9", 1, 10))

    def call(tool: Tool) -> Node:
        header = p.token("<|tool_call:begin|>") + p.reads(call_id, p.optional(call_id))
        name = p.token("<|tool_call:name|>") + p.name(tool)
        return header + name + p.token("<|tool_call:args|>") + p.args(tool)

    calls = p.calls(p.each_tool(call) << p.token("<|tool_call:end|>"))
    reasoning = p.span(start + p.token("<|think|>"), p.token("<|end|>"))
    content = p.span(start + p.token("<|content|>"), p.token("<|end|>"), optional=True)
    return p.body(start + p.expected(p.token("<|tool_calls|>")) + calls, reasoning=reasoning, content=content)


FORMAT = Format(
    name="solar-open",
    title="Solar Open",
    url="https://huggingface.co/upstage/Solar-Open-100B",
    build=build,
    markers=("<|begin|>assistant", "<|tool_call:begin|>"),
    stops=("<|flush|>", "<|calls|>"),
    models=("solar-open",),
)
