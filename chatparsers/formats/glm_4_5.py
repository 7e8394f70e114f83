"""GLM-4.5, GLM-4.6: a name, then tagged keys and values.

    <think>Thoughts.</think>
    Text.
    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>

Quirks:
- A newline stands before `<think>`; where thinking is off, the prompt holds an empty thought.
- Strings are raw text, verbatim between the tags; other types JSON.
- The model ends its turn by opening the next: `<|user|>`, or `<|observation|>` after calls.
- Seen in the wild: white space between the tags left out or added, a call inside open reasoning.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Lenient, Node
from chatparsers.core.schema import Argument, Tool

ARGUMENT_NAME = r"[^<>\n]"


def build(p: Builder) -> Node:
    key, key_end, end = p.token("<arg_key>"), p.token("</arg_key>"), p.token("</tool_call>")
    value, value_end = p.token("<arg_value>"), p.token("</arg_value>")
    # The name ends at white space or a tag, but only a tag tells a call from prose about `<tool_call>`.
    name_end = Lenient(p.literal("\n"), p.space() + p.peek(p.choice(key, end)))

    def argument(arg: Argument | None) -> Node:
        name = key + p.arg_name(arg, ARGUMENT_NAME) + key_end + p.space("\n")
        return name + value + p.value(arg, until="</arg_value>") + value_end + p.space("\n")

    def call(tool: Tool | None) -> Node:
        return p.space() + p.name(tool) + name_end + p.each_arg(tool, argument) + end

    calls = p.calls(p.token("<tool_call>") + p.each_tool(call), p.space("\n"))
    return p.think("\n<think>", "</think>\n", until=calls) + p.body(calls, lead="\n")


FORMAT = Format(
    name="glm-4-5",
    title="GLM-4.5, GLM-4.6",
    url="https://huggingface.co/zai-org/GLM-4.5",
    build=build,
    markers=("[gMASK]", "<arg_key>", "<arg_value>"),
    stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    aliases=("glm-4.6",),
)
