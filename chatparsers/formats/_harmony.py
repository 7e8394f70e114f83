"""Harmony, the messages with channels of GPT-OSS and LLM-jp. It is here so that neither depends on the other."""

from chatparsers.answers import Builder, Node, Tag, Tool


def harmony(p: Builder, blank: str = "", in_role: str = "", between: str = "") -> Node:
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
        parsed, whole = p.optional("functions.") + p.name(tool), "functions." + p.name(tool)
        name = p.header(parsed, whole, unless=("assistant", "user"))
        to = p.space(" ") + "to=" + name
        in_channel = channel + "commentary" + to + " " + constrain + "json"
        constrained = constrain + p.space(in_role) if in_role else ""
        as_template = to + channel + "commentary " + constrained + "json"
        written = as_template if in_role else in_channel | as_template
        anywhere = to_nobody + p.repeat(header, 1, 3) + to + after | to + kind + p.repeat(header, 1, 3)
        usual = start + p.reads(written, anywhere)
        marked = begin + "assistant" + to_nobody + to + after
        dashed = begin + "assistant" + p.chars(r"–—\-", 1, 4) + channels + kind + to + after
        place = p.choice(start + channel + p.negate(channels), begin)
        in_place = place + name + p.declared() + kind + p.optional(header)
        marked = p.reads(usual, marked, usual, dashed, in_place) + message + p.space() + p.args(tool)
        bare = "commentary to=" + name + p.space() + p.choice("json", p.peek("{")) + p.space() + p.args(tool)
        return p.reads(marked, marked, bare)

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
    # What is left where a server strips the tokens.
    here = p.optional(begin + "assistant") + "assistant"
    begun = p.choice(begin + "assistant", p.line_start()) + p.optional("assistant") + p.space() + "analysis"
    thought = p.tag(Tag.REASONING, p.until("assistantfinal", "assistantcommentary", "<|"))
    bare = p.tag(Tag.STRAY, begun + p.space()) + p.peek(p.chars(r"^a-z<\s", 1, 1)) + thought
    answer = p.tag(Tag.STRAY, here + p.choice("final" + p.space(), p.peek("commentary to=")))
    markup = (invented, bare, answer, stranded, begin + p.optional("assistant") + p.peek(begin))
    marks = p.if_tools(p.reads("", *markup), p.reads("", *markup, p.tag(Tag.CONTENT, addressed)))
    spare = p.reads("", p.optional(p.many(p.space() + p.choice("}", "]"), 1) + p.peek(p.space() + over)))
    closed = p.optional(over | p.token(between) if between else over)
    ended = spare + p.reads(closed, p.optional(p.space() + p.choice(over, end) + filler))
    calls = p.calls(p.each_tool(call) + ended, p.token(between) if between else "")
    return p.body(calls, reasoning=reasoning, content=content, marks=marks)
