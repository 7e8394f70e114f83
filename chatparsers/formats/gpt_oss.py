"""GPT-OSS (harmony): channels.

    <|channel|>analysis<|message|>The user wants the weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>

Quirks:
- The prompt ends in `<|start|>assistant`, and every further block begins with it.
- The recipient stands in the channel header, or in the role header (as the template writes it).
- Commentary without a recipient is content (a preamble). So is a message `to=assistant`.
- Turns end in `<|return|>`, `<|call|>`, `<|end|>` or nothing.
"""

from chatparsers.core import Builder, Format, Node, Tool


def build(p: Builder) -> Node:
    start = p.expected(p.token("<|start|>") + "assistant")
    channel, message = p.token("<|channel|>"), p.token("<|message|>")
    kind = p.optional(p.space() + p.optional(p.token("<|constrain|>")) + p.chars("a-z"))

    def call(tool: Tool) -> Node:
        to = p.space(" ") + "to=" + p.header(r"(?:functions\.)?(?P<name>.+)", "functions." + p.name(tool))
        any_channel = channel + p.choice("commentary", "analysis", "final")
        in_channel = channel + "commentary" + to + " " + p.token("<|constrain|>") + "json"
        in_role = to + channel + "commentary json"
        header = p.reads(in_channel, in_channel, any_channel + to + kind)
        header = header | p.reads(in_role, in_role, to + any_channel + kind)
        return start + header + message + p.space() + p.args(tool) + p.optional(p.token("<|call|>"))

    preamble = "commentary" + p.optional(p.space() + "to=assistant") + kind
    reasoning = p.span(start + channel + "analysis" + message, p.token("<|end|>"))
    final = start + channel + p.reads("final", "final", "final" + kind, preamble) + message
    content = p.span(final, p.token("<|end|>"), optional=True)
    return p.body(p.calls(p.each_tool(call)), reasoning=reasoning, content=content)


FORMAT = Format(
    name="gpt-oss",
    title="GPT-OSS",
    url="https://huggingface.co/openai/gpt-oss-120b",
    build=build,
    markers=("<|start|>assistant", "<|channel|>"),
    stops=("<|return|>", "<|call|>"),
)
