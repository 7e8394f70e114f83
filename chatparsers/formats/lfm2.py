"""LFM2, LFM2.5: calls as a list in Python.

    <|tool_call_start|>[get_weather(city="Oslo", days=2), get_time()]<|tool_call_end|>Text.

Quirks:
- Values are Python or JSON literals. The templates of LFM2 and of the first LFM2.5 drop calls. LFM2.5 models reason first: `<think>…</think>`.
- Seen in the wild: the list in JSON, `[{"name": "get_weather", "arguments": {"city": "Oslo"}}]`; calls without the list;
  the list again after the section; an apostrophe in single quotes, `'it's'`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed, python_call


def build(p: Builder) -> Node:
    call_list = python_call(p)
    one = p.reads(call_list, call_list, p.json_call(name="name", args="arguments"))
    text = p.many(p.negate(")]") + p.chars(r"^\n", 1, 1))
    echo = p.reads("", p.optional(p.space() + "[" + p.chars(r"a-zA-Z0-9_.\-") + "(" + text + ")]"))
    section = p.token("<|tool_call_start|>") << listed(p, one) << p.token("<|tool_call_end|>") + echo
    return p.think("<think>\n", "\n</think>\n\n") + p.body(section)


FORMAT = Format(
    name="lfm2",
    title="LFM2, LFM2.5",
    url="https://huggingface.co/LiquidAI/LFM2-8B-A1B",
    build=build,
    markers=("<|im_start|>", "List of tools: "),
    stops=("<|im_end|>",),
    models=("lfm2",),
)
