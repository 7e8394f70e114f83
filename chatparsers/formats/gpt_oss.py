"""GPT-OSS (harmony): channels.

    <|channel|>analysis<|message|>The user wants the weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>

Quirks:
- The prompt ends in `<|start|>assistant`, and every further block begins with it.
- The recipient is in the channel header, or in the role header (as the template writes it).
- Commentary without a recipient is content (a preamble). So is a message `to=user`, or `to=assistant` in the channel.
  With `to=assistant` in the role, commentary is the answer of a tool, which the model invents: it is left out.
- Structured output is `final <|constrain|>json`.
- Turns end in `<|return|>`, `<|call|>`, `<|end|>` or nothing. Where `<|call|>` comes as text, the turn may go on.
- Seen in the wild: the role or a header twice, words in a header, a word between two blocks, the tool in place of the role
  or the channel, dashes for its token, no channel (if the role is written). A header without `<|message|>` is reasoning.
"""

from chatparsers.answers import Builder, Format, Node, Tag, Tool


def turn(p: Builder, blank: str = "", in_role: str = "", between: str = "") -> Node:
    """Messages of harmony. ``blank``: what a tokenizer's decoder puts after each token. ``in_role``: what the template has between
    `<|constrain|>` and `json` where it writes the recipient in the role alone. ``between``: the token between two calls."""

    def token(text: str) -> Node:
        return p.token(text) + p.optional(blank) if blank else p.token(text)

    begin, end, message = token("<|start|>"), p.token("<|end|>"), token("<|message|>")
    channel, constrain, over = token("<|channel|>"), token("<|constrain|>"), p.token("<|call|>")
    start, channels = p.expected(begin + "assistant"), p.choice("commentary", "analysis", "final")
    names = p.chars(r"a-zA-Z0-9_.\-")
    to_nobody = p.optional(p.space() + p.choice("to=assistant", "to=user") + p.negate(names))
    word = p.space() + p.negate("to=") + p.optional(constrain + p.space()) + p.chars(r"^<\s", 1, 16)
    kind = p.repeat(word, 0, 2) + p.space()
    header = channel + p.optional(channels) + to_nobody + kind
    void = p.repeat(header + p.peek(channel), 0, 2)
    words = p.chars("^<", 0) + p.optional(constrain + p.chars("^<", 0))
    after = words + p.repeat(channel + words, 0, 2)
    filler = p.optional(p.choice("assistant", "commentary", "analysis") + p.peek(channel | begin))
    to_itself = " to=assistant" + channel + "commentary"

    def block(strict: str, *also: str) -> Node:
        role = start + p.negate(to_itself) + to_nobody
        name = channel + p.choice(strict, *also)
        unmarked = role + channel + strict + p.chars(r" \n") + p.negate("to=") + p.peek(p.chars("^<", 1, 1))
        return p.reads(start + name + message, role + void + name + to_nobody + kind + message, unmarked)

    def call(tool: Tool) -> Node:
        parsed, written = p.optional("functions.") + p.name(tool), "functions." + p.name(tool)
        name = p.header(parsed, written, unless=("assistant", "user"))
        to = p.space(" ") + "to=" + name
        in_channel = channel + "commentary" + to + " " + constrain + "json"
        as_template = (
            to + channel + "commentary " + (constrain + p.space(in_role) if in_role else "") + "json"
        )
        written = as_template if in_role else in_channel | as_template
        anywhere = to_nobody + p.repeat(header, 1, 3) + to + after | to + kind + p.repeat(header, 1, 3)
        usual = start + p.reads(written, anywhere)
        marked = begin + "assistant" + to_nobody + to + after
        dashed = begin + "assistant" + p.chars(r"–—\-", 1, 4) + channels + kind + to + after
        place = p.choice(start + channel + p.negate(channels), begin)
        in_place = place + name + p.declared() + kind + p.optional(header)
        return p.reads(usual, marked, usual, dashed, in_place) + message + p.space() + p.args(tool)

    closer = p.reads(end, end + filler)
    reasoning = p.span(block("analysis"), closer)
    content = p.span(block("final", "commentary"), closer, optional=True)
    to_model = begin + names + p.space() + "to=assistant" + channel + channels | to_itself
    said_to_it = to_model + kind + message + p.cut() + p.until("<|end|>", "<|call|>", "<|return|>")
    invented = p.tag(Tag.STRAY, said_to_it + p.optional(end))
    # Without tools, the header of a call is content with all its markers.
    addressed = start + p.choice(" to=", "to=") + names + after + message
    said = p.optional(channels + p.peek(end | begin)) + p.tag(Tag.REASONING, p.chars("^<", 0))
    more = p.repeat(p.choice(channel, constrain) + said, 0, 3)
    stranded = start + channel + said + more + p.choice(end + filler, p.peek(begin))
    markup = (invented, stranded, begin + p.optional("assistant") + p.peek(begin))
    marks = p.if_tools(p.reads("", *markup), p.reads("", *markup, p.tag(Tag.CONTENT, addressed)))
    spare = p.reads("", p.optional(p.many(p.space() + p.choice("}", "]"), 1) + p.peek(p.space() + over)))
    closed = p.optional(over | p.token(between) if between else over)
    ended = spare + p.reads(closed, p.optional(p.space() + p.choice(over, end) + filler))
    calls = p.calls(p.each_tool(call) + ended, p.token(between) if between else "")
    return p.body(calls, reasoning=reasoning, content=content, marks=marks)


def build(p: Builder) -> Node:
    return turn(p)


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
