"""GPT-OSS (harmony): channels.

    <|channel|>analysis<|message|>The user wants the weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>

Quirks:
- The prompt ends in `<|start|>assistant`, and every further block begins with it.
- The recipient stands in the channel header, or in the role header (as the template writes it).
- Commentary without a recipient is content (a preamble). So is a message `to=user`, or `to=assistant` in the channel.
  With `to=assistant` in the role, commentary is the answer of a tool, which the model invents: it is left out.
- Structured output is `final <|constrain|>json`.
- Turns end in `<|return|>`, `<|call|>`, `<|end|>` or nothing.
- `<|call|>` ends a call and the turn. Text after it is markup, up to another block.
- Seen in the wild: a header that begins twice, a word between two blocks, the tool in place of the role, dashes for the
  token before the channel.
"""

from chatparsers.core import Builder, Format, Node, Tag, Tool

NAME = r"a-zA-Z0-9_.\-"


def build(p: Builder) -> Node:
    begin, end, message = p.token("<|start|>"), p.token("<|end|>"), p.token("<|message|>")
    channel, constrain = p.token("<|channel|>"), p.token("<|constrain|>")
    start = p.expected(begin + "assistant")
    to_nobody = p.optional(p.space() + p.choice("to=assistant", "to=user") + p.negate(p.chars(NAME)))
    constrained = p.optional(constrain + p.space())
    kind = p.optional(p.space() + p.negate("to=") + constrained + p.chars("a-zA-Z0-9_/+-"))
    channels = p.choice("commentary", "analysis", "final")
    any_channel = channel + channels
    twice = p.many(any_channel + to_nobody + kind + p.peek(channel))
    filler = p.optional(p.choice("assistant", "commentary", "analysis") + p.peek(channel | begin))

    to_itself = " to=assistant" + channel + "commentary"

    def block(strict: str, *also: str) -> Node:
        role = p.optional(begin + "assistant") + p.negate(to_itself) + to_nobody
        any_header = role + twice + channel + p.choice(strict, *also) + to_nobody + kind
        return p.reads(start + channel + p.choice(strict, *also), any_header) + message

    def call(tool: Tool) -> Node:
        name = p.header(r"(?!(?:assistant|user)\Z)(?:functions\.)?(?P<name>.+)", "functions." + p.name(tool))
        to = p.space(" ") + "to=" + name
        in_channel = channel + "commentary" + to + " " + constrain + "json"
        in_role = to + channel + "commentary json"
        to_in_channel, to_in_role = any_channel + kind + to + kind, to + kind + twice + any_channel + kind
        written = start + p.reads(in_channel | in_role, twice + to_in_channel, to_in_role)
        dashed = begin + "assistant" + p.chars("–—-", 1, 4) + channels + kind + to + kind
        role = begin + name + p.declared() + p.optional(any_channel) + kind
        return p.reads(written, written, dashed, role) + message + p.space() + p.args(tool)

    closer = p.reads(end, end + filler)
    reasoning = p.span(block("analysis"), closer)
    content = p.span(block("final", "commentary"), closer, optional=True)
    to_model = begin + p.chars(NAME) + p.space() + "to=assistant" + any_channel | to_itself
    invented = to_model + kind + message + p.cut() + p.until("<|end|>", "<|call|>", "<|return|>")
    # Without tools, the header of a call is content with all its markers.
    addressed = (
        p.choice(begin + "assistant to=", " to=", "to=") + p.chars(NAME) + kind + any_channel + kind + message
    )
    unread = () if p.options.tools else (p.tag(Tag.CONTENT, addressed),)
    marks = p.reads("", invented, *unread)
    filling = p.negate(p.space() + "to=") + p.until("<|start|>", "<|channel|>")
    over = p.token("<|call|>")
    spare = p.reads("", p.optional(p.many(p.space() + "}", 1) + p.peek(over)))
    ended = spare + p.optional(over + p.reads("", p.optional(filling)))
    return p.body(p.calls(p.each_tool(call) + ended), reasoning=reasoning, content=content, marks=marks)


FORMAT = Format(
    name="gpt-oss",
    title="GPT-OSS",
    url="https://huggingface.co/openai/gpt-oss-120b",
    build=build,
    markers=("<|start|>assistant", "<|channel|>"),
    stops=("<|return|>", "<|call|>"),
    aliases=("openai", "openai-gptoss"),
    models=("gpt-oss",),
)
