"""GPT-OSS (harmony): channels.

    <|channel|>analysis<|message|>The user wants the weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>

Quirks:
- The prompt ends in `<|start|>assistant`, and every further block begins with it.
- The recipient stands in the channel header, or in the role header (as the template writes it).
- Commentary without a recipient is content (a preamble). So is a message `to=user`, or `to=assistant` in the channel.
  With `to=assistant` in the role, commentary is the answer of a tool, which the model invents: it is left out.
- Structured output is `final <|constrain|>json`.
- Turns end in `<|return|>`, `<|call|>`, `<|end|>` or nothing. Text after `<|call|>` is markup, up to another block.
- Seen in the wild: a header that begins twice, a word between two blocks, the tool in place of the role, dashes for the
  token before the channel, words behind the channel or the recipient, no `<|message|>`: such a header is reasoning.
"""

from chatparsers.core import Builder, Format, Node, Tag, Tool


def build(p: Builder) -> Node:
    names = p.chars(r"a-zA-Z0-9_.\-")
    begin, end, message = p.token("<|start|>"), p.token("<|end|>"), p.token("<|message|>")
    channel, constrain = p.token("<|channel|>"), p.token("<|constrain|>")
    start = p.expected(begin + "assistant")
    to_nobody = p.optional(p.space() + p.choice("to=assistant", "to=user") + p.negate(names))
    word = p.space() + p.negate("to=") + p.optional(constrain + p.space()) + p.chars(r"^<\s", 1, 64)
    kind = p.repeat(word, 0, 2) + p.space()
    behind = p.chars("^<", 0, 100) + p.optional(constrain + p.chars("^<", 0, 100))
    channels = p.choice("commentary", "analysis", "final")
    any_channel = channel + channels
    twice = p.repeat(any_channel + to_nobody + kind + p.peek(channel), 0, 2)
    filler = p.optional(p.choice("assistant", "commentary", "analysis") + p.peek(channel | begin))
    to_itself = " to=assistant" + channel + "commentary"

    def block(strict: str, *also: str) -> Node:
        role = p.optional(begin + "assistant") + p.negate(to_itself) + to_nobody
        name = channel + p.choice(strict, *also)
        unmarked = role + channel + strict + p.chars(" \n") + p.negate("to=") + p.peek(p.chars("^<", 1, 1))
        return p.reads(start + name + message, role + twice + name + to_nobody + kind + message, unmarked)

    def call(tool: Tool) -> Node:
        name = p.header(r"(?!(?:assistant|user)\Z)(?:functions\.)?(?P<name>.+)", "functions." + p.name(tool))
        to = p.space(" ") + "to=" + name
        in_channel = channel + "commentary" + to + " " + constrain + "json"
        in_role = to + channel + "commentary json"
        to_in_channel = any_channel + kind + to + behind + p.optional(any_channel + kind)
        to_in_role = to + kind + twice + any_channel + kind
        written = start + p.reads(in_channel | in_role, twice + to_in_channel, to_in_role)
        dashed = begin + "assistant" + p.chars("–—-", 1, 4) + channels + kind + to + kind
        role = begin + name + p.declared() + p.optional(any_channel) + kind
        return p.reads(written, written, dashed, role) + message + p.space() + p.args(tool)

    closer = p.reads(end, end + filler)
    reasoning = p.span(block("analysis"), closer)
    content = p.span(block("final", "commentary"), closer, optional=True)
    to_model = begin + names + p.space() + "to=assistant" + any_channel | to_itself
    invented = to_model + kind + message + p.cut() + p.until("<|end|>", "<|call|>", "<|return|>")
    # Without tools, the header of a call is content with all its markers.
    addressed = p.choice(begin + "assistant to=", " to=", "to=") + names + kind + any_channel + kind + message
    unread = () if p.options.tools else (p.tag(Tag.CONTENT, addressed),)
    stranded = p.repeat(channel + p.tag(Tag.REASONING, p.chars("^<", 1, 200)), 1, 3) + end + filler
    marks = p.reads("", invented, stranded, *unread)
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
