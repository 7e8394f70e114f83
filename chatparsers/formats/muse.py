"""Muse Spark (ATEM): messages to recipients; a call is an invocation with tagged arguments.

     to=self<|message|>The user wants the weather.<|eom|><|start|>assistant to=get_weather<|message|><atem:function_calls>
    <atem:invoke name="get_weather">
    <atem:parameter name="city">Oslo</atem:parameter>
    </atem:invoke>
    </atem:function_calls>

Quirks:
- The prompt ends in `<|start|>assistant`, which begins each message. `<|eom|>` ends a message, `<|eot|>` the turn.
- `to=self` is reasoning, `to=user`, `to=commentary` content. Nobody is `self`, in Glimmer `user`. `to=developer` is left out, and
  so is text before the calls in a message to a tool; a diagnostic tells.
- Strings are raw text, verbatim between the tags; other types are JSON.
- Seen in the wild: no `<|eom|>` before the next message, a name twice (`get_weather.get_weather`), several invocations
  in one message, a call that is all of a message to the user, is addressed to nobody or has no header, `<|message|>` in or after its name.
"""

from chatparsers.answers import Builder, Format, Node, Tag, Tool
from chatparsers.formats._shapes import addressee, invoke


def build(p: Builder, nobody: str = "self") -> Node:
    begin, message, end = p.token("<|start|>"), p.token("<|message|>"), p.token("<|eom|>")
    role, wrapper, closer = begin + "assistant", "<atem:function_calls>", "</atem:function_calls>"
    text = p.until(wrapper, "<|eom|>", "<|eot|>", "<|start|>")
    aside = p.optional(p.space() + p.negate(wrapper) + p.tag(Tag.STRAY, text))

    def block(*to: str) -> Node:
        named = p.optional(role) + p.space() + "to=" + p.choice(*to)
        unnamed = [role, p.line_start()] if nobody in to else []
        return p.reads(p.expected(role) + " to=" + to[0], named, *unnamed) + message

    def twice(tool: Tool) -> Node:
        return p.name(tool) + p.optional("." + p.same_name(tool))

    def called(tool: Tool, known: Node | str = "") -> Node:
        name = p.header(twice(tool), p.name(tool)) + p.reads("", p.many(message) + known)
        return p.space("\n") + invoke(p, tool, "atem:", name=name)

    def call(tool: Tool) -> Node:
        people = p.negate(p.choice("self", "user", "commentary", "developer") + message)
        to = p.space(" ") + "to=" + p.reads("", people) + addressee(p, tool)
        return p.expected(role) + to + message + p.reads("", aside) + p.space() + wrapper + called(tool)

    def fumbled(tool: Tool) -> Node:
        to = p.optional(role) + p.space() + "to=" + p.name(tool) + p.declared() + message
        name = p.chars('^"<') + message + p.chars('^"<')
        return to << wrapper << invoke(p, tool, "atem:", name=name)

    def misdirected(tool: Tool) -> Node:
        block, over = wrapper + p.until(closer) + closer, p.choice(end, begin, "<|eot|>", p.end())
        to_people = p.optional(role) + p.space() + "to=" + p.choice("user", "commentary") + message
        nobody = p.optional(p.space() + "to=" + p.literal("atem:function_calls")) + message + p.space()
        misled = p.tag(Tag.STRAY, to_people) + p.space() + p.peek(block + p.space() + over)
        alone = block + p.chars(r" \t\r", 0) + ("\n" | over)
        header = (misled | p.optional(p.optional(role) + nobody) + p.peek(alone)) + wrapper
        return header + called(tool, p.declared())

    more = p.many(
        p.space() + p.each_tool(lambda tool: invoke(p, tool, "atem:", name=p.header(twice(tool), "")))
    )
    one = p.reads(p.each_tool(call), *map(p.each_tool, (fumbled, call, misdirected)))
    one += p.reads("", more) + p.space("\n") + closer
    calls = p.calls(one, p.expected(end)) + p.optional(end)
    content = p.span(block("user", "commentary"), end, optional=True)
    rest = p.until("<|eom|>", "<|eot|>", "<|start|>") + p.optional(end)
    marks = role + " to=developer" + message + p.cut() + p.tag(Tag.STRAY, rest)
    return p.body(calls, reasoning=p.span(block("self"), end), content=content, marks=marks, closers=closer)


FORMAT = Format(
    name="muse",
    title="Muse Spark",
    url="https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/muse_tool_parser.py",
    build=build,
    markers=("<|start|>assistant to=", "<atem:function_calls>", '"commentary"'),
    stops=("<|eot|>",),
    aliases=("muse-spark", "musespark1x"),
    models=("muse",),
)
