"""Beam: channels as in GPT-OSS; a call is a message to a tool, with tagged arguments.

    <|channel|>analysis<|message|>The user wants the weather.<|end|><|start|>assistant to=get_weather<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="city">
    Oslo
    </rfl:parameter><|call|>

Quirks:
- The prompt ends in `<|start|>assistant`, and every further block begins with it. Some turns leave it out before the answer.
- Strings are raw text between line breaks, other types JSON. Some checkpoints write no line breaks.
- `<|call|>` ends a call, and another may follow.
- Seen in the wild: no `<|constrain|>xml`, `<|end|>` in place of `<|call|>`, no `</rfl:parameter>` before the next parameter.
- Facts: the response template in the gateway tests of smg-project/smg; its lookahead ends a value before the next opener.
"""

from chatparsers.answers import Argument, Builder, Format, Node, Raw, Tool


def build(p: Builder) -> Node:
    begin, end, message = p.token("<|start|>"), p.token("<|end|>"), p.token("<|message|>")
    channel, constrain, over = p.token("<|channel|>"), p.token("<|constrain|>"), p.token("<|call|>")
    start = p.expected(begin + "assistant")
    opener, closer = '<rfl:parameter name="', "</rfl:parameter>"
    missing = p.space() + p.peek(p.choice(opener, over))

    def block(kind: str) -> Node:
        return start + channel + kind + message

    def argument(arg: Argument) -> Node:
        value = p.value(arg, Raw(until="\n" + closer, also=("\n<rfl:parameter",)))
        name = opener + p.arg_name(arg, r'[^"<>\n]') + '">'
        return name + p.trim("\n") + value + p.trim("\n") + p.reads(closer, closer, missing) + p.space()

    def call(tool: Tool) -> Node:
        to = start + p.space(" ") + "to=" + p.name(tool) + channel + "analysis"
        kind = p.reads(" " + constrain + "xml", p.space() + p.optional(constrain + "xml"))
        return to + kind + message + p.each_arg(tool, argument) + p.reads(over, over, end)

    content = p.span(block("final"), end, optional=True)
    return p.body(p.calls(p.each_tool(call)), reasoning=p.span(block("analysis"), end), content=content)


FORMAT = Format(
    name="beam",
    title="Beam",
    url="https://github.com/smg-project/smg",
    build=build,
    markers=("<|start|>assistant", "<rfl:parameter name="),
    stops=("<|return|>",),
    models=("beam",),
)
