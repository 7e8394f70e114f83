"""Seed OSS: calls with tagged arguments in Seed's own tags.

    <seed:think>Thoughts.</seed:think>
    Text.

    <seed:tool_call>
    <function=get_weather>
    <parameter=city>Oslo</parameter>
    </function>
    </seed:tool_call>

Quirks:
- Strings are verbatim between the tags. Other values are as Python prints them (`True`, `{'a': 1}`).
- `<seed:cot_budget_reflect>…</seed:cot_budget_reflect>` may be inside the reasoning and is a part of it.
- Several calls are several tag pairs, with a newline between them.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import function_call


def build(p: Builder) -> Node:
    call = function_call(p, "<seed:tool_call>", "</seed:tool_call>", pad="")
    return p.think("<seed:think>", "</seed:think>\n") + p.body(p.calls(call, p.space("\n")), lead="\n\n")


FORMAT = Format(
    name="seed-oss",
    title="Seed OSS",
    url="https://huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct",
    build=build,
    markers=("<seed:bos>", "<seed:tool_call>"),
    stops=("<seed:eos>",),
    models=("seed-oss",),
)
