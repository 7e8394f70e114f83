"""LongCat: JSON calls (Flash Chat), or tagged keys and values (Flash Lite, Thinking 2601), in LongCat's own tags.

    <longcat_think>
    Thoughts.
    </longcat_think>
    Text.
    <longcat_tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </longcat_tool_call>

or

    Text.
    <longcat_tool_call>get_weather
    <longcat_arg_key>city</longcat_arg_key>
    <longcat_arg_value>Rome</longcat_arg_value>
    </longcat_tool_call>

Quirks:
- The prompt of a thinking model opens `<longcat_think>`. If thinking is off, it holds an empty thought.
- Between tags, strings are raw text and other types are JSON.
- Both formats are read for both models.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import keyed_call, tagged_call


def build(p: Builder) -> Node:
    return _turn(p, _json(p))


def build_lite(p: Builder) -> Node:
    return _turn(p, _keyed(p))


def _turn(p: Builder, call: Node) -> Node:
    calls = p.calls(p.reads(call, _json(p), _keyed(p)), p.space("\n"))
    return p.think("<longcat_think>\n", "\n</longcat_think>\n") + p.body(calls, lead="\n")


def _json(p: Builder) -> Node:
    return tagged_call(p, "longcat_tool_call")


def _keyed(p: Builder) -> Node:
    return keyed_call(p, "longcat_tool_call", "longcat_arg", line="\n", after="\n")


FORMATS = (
    Format(
        name="longcat",
        title="LongCat Flash Chat",
        url="https://huggingface.co/meituan-longcat/LongCat-Flash-Chat",
        build=build,
        markers=(" ASSISTANT:", "<longcat_tool_call>"),
        stops=("</longcat_s>",),
        models=("longcat",),
    ),
    Format(
        name="longcat-lite",
        title="LongCat Flash Lite, Flash Thinking 2601",
        url="https://huggingface.co/meituan-longcat/LongCat-Flash-Lite",
        build=build_lite,
        markers=("<longcat_assistant>", "<longcat_arg_key>"),
        stops=("</longcat_s>",),
        models=("longcat-flash-lite", "longcat-.*-2601", "longcat-flash-thinking-"),
    ),
)
