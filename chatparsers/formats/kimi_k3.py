"""Kimi K3: a tree of blocks (XTML), with the type of each argument.

    <|open|>think<|sep|>Thoughts.<|close|>think<|sep|><|open|>response<|sep|>Text.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>

Quirks:
- The prompt opens the first block: `think`, or `response` if thinking is off. The response comes before the calls, also if it is
  empty.
- The type attribute is a JSON type. A string is verbatim, any other value is JSON. The attribute beats the tool's schema.
- In names, `"` is `&quot;` and `&` is `&amp;`. Values are verbatim.
- The application may write the arguments as one block `json`, and the model learned to read it.
- Seen in the wild: a thought that is not closed before the response begins, no type attribute, `<|sep|>` and the token
  after it left out (`<|open|>toolscall tool="bash"`, `<|close|>toolsmessage`).
"""

from dataclasses import replace
from functools import partial

from chatparsers.answers import Argument, Builder, Format, Node, Raw, Tool

NAME = r'[^"<>\n]'
ESCAPES = {"&": "&amp;", '"': "&quot;"}
TYPES = ("string", "number", "boolean", "null", "object", "array")


def build(p: Builder) -> Node:
    open, close, sep = p.token("<|open|>"), p.token("<|close|>"), p.token("<|sep|>")
    between = '<|close|>call<|sep|><|open|>call tool="'
    key = '<|open|>argument key="'
    ends = ('"', *(f'" type="{name}"' for name in (*TYPES, "integer")))
    indices = ("", *(f' index="{number}"' for number in range(1, 20)))
    tags = ("<|open|>argument", "<|close|>call")
    headers = [f'"{index}<|sep|>{tag}' for index in indices for tag in tags]
    named = tuple((key, end + "<|sep|>") for end in ends)
    raw = Raw("<|close|>argument<|sep|>", named=named, seams=tuple((between, end) for end in headers))

    def argument(arg: Argument) -> Node:
        typed = p.choice(*(f' type="{name}"' + sep + p.value(arg, replace(raw, type=name)) for name in TYPES))
        integer = ' type="integer"' + sep + p.value(arg, replace(raw, type="json"))
        untyped = sep + p.value(arg, raw)
        begin = open + "argument key="
        name = begin + '"' + p.arg_name(arg, NAME, ESCAPES) + '"'
        end = close + "argument" + sep
        ended = p.reads(end, end, p.peek(begin | close + "call"))
        return name + p.reads(typed, typed, integer, untyped) + ended

    def call(tool: Tool, begin: Node | str = open) -> Node:
        index = p.reads(
            ' index="' + p.chars("1-9", 1, 1) + p.optional(p.chars("0-9", 1, 2)) + '"', p.chars("^<", 0)
        )
        arguments = p.each_arg(tool, argument)
        json = open + 'json type="object"' + sep + p.args(tool) << close + "json" + sep
        header = begin + 'call tool="' + p.name(tool, NAME, ESCAPES) + '"' + index + sep
        return header + p.reads(arguments, json, arguments) + close + "call" + sep

    begin, over = open + "response" + sep, close + "response" + sep
    closed = close + "tools" + sep
    last = p.reads(closed, closed, close + "toolsmessage" + sep)
    whole = open + "tools" + sep << p.calls(p.each_tool(call), p.space()) << last
    others = p.many(p.space() + p.each_tool(call))
    lost = open + "tools" + p.each_tool(partial(call, begin="")) + others << last
    tools = p.reads(whole, whole, lost)
    thought = close + "think" + sep
    reasoning = p.think(open + "think" + sep, p.reads(thought, thought, p.peek(begin | close + "call")))
    return reasoning + p.body(
        tools,
        start=p.space() + begin + over + tools,
        content=p.span(begin, over, optional=True),
        closers=closed,
    )


FORMAT = Format(
    name="kimi-k3",
    title="Kimi K3",
    url="https://huggingface.co/moonshotai/Kimi-K3",
    build=build,
    markers=("<|open|>response<|sep|>", "<|end_of_msg|>"),
    stops=("<|close|>message<|sep|>", "<|end_of_msg|>"),
    models=("kimi-k3",),
)
