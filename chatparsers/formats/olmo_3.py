"""OLMo 3: calls in Python, one on a line.

    <think>Thoughts.</think>Text.<function_calls>get_weather(city="Oslo", days=2)
    get_time()</function_calls>

Quirks:
- The markers are ordinary text. The values are JSON; models also write Python's literals.
- The thinking models have `<think>` in the prompt.
- Seen in the wild: line breaks beside the markers, the calls as a list in brackets.
"""

from chatparsers.answers import Argument, Builder, Format, Json, Node, Python, Tool
from chatparsers.formats._shapes import again


def build(p: Builder) -> Node:
    comma = p.space() + "," + p.space(" ")

    def argument(arg: Argument) -> Node:
        literal = p.reads(p.value(arg, Json()), p.value(arg, Python()))
        return p.arg_name(arg) << "=" << literal

    def call(tool: Tool) -> Node:
        end = p.reads(")", p.space() + p.optional("," + p.space()) + ")")
        return (p.name(tool) << "(" << p.each_arg(tool, argument, comma, Python())) + end

    one = p.each_tool(call)
    lines = p.calls(one, p.space("\n"))
    calls = p.reads(lines, p.array(one), lines)
    section = p.literal("<function_calls>") << calls << "</function_calls>"
    return p.think(p.literal("<think>"), p.literal("</think>") + again(p, "</think>")) + p.body(section)


FORMAT = Format(
    name="olmo-3",
    title="OLMo 3",
    url="https://huggingface.co/allenai/Olmo-3-7B-Instruct",
    build=build,
    markers=("<|im_start|>", "<function_calls>"),
    stops=("<|im_end|>", "<|endoftext|>"),
    aliases=("olmo3",),
    models=("olmo-?3",),
)
