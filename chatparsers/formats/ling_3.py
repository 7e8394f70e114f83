"""Ling 3, Ring 3 (Bailing V3): a name, then tagged keys and values, each key on a line of its own.

    <think>Thoughts.</think>Text.
    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value><arg_key>days</arg_key>
    <arg_value>3</arg_value>
    </tool_call>

Quirks:
- A newline comes before `<think>`. The prompt opens the thought, or holds an empty one if thinking is off.
- Strings are raw text, verbatim between the tags; other types are JSON.
- Seen in the wild: no line break after the name or between the tags, a call inside open reasoning.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import keyed_call


def build(p: Builder) -> Node:
    calls = p.calls(keyed_call(p, line="\n", end="\n"), p.space("\n"))
    return p.think("\n<think>", "</think>") + p.body(calls, lead="\n")


FORMAT = Format(
    name="ling-3",
    title="Ling 3, Ring 3",
    url="https://huggingface.co/inclusionAI/Ling-3.0-flash",
    build=build,
    markers=("<role>ASSISTANT</role>", "</arg_key>\n<arg_value>"),
    stops=("<|role_end|>",),
    aliases=("bailing-v3", "ring-3", "ling3"),
    models=("(?:ling|ring)-3", "bailing-?v3"),
)
