"""GLM-4.5, GLM-4.6: a name, then tagged keys and values.

    <think>Thoughts.</think>
    Text.
    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>

Quirks:
- A newline stands before `<think>`. If thinking is off, the prompt holds an empty thought.
- Strings are raw text, verbatim between the tags; other types are JSON.
- The model ends its turn by opening the next: `<|user|>`, or `<|observation|>` after calls.
- Seen in the wild: missing or additional white space between the tags, a call inside open reasoning.
"""

from chatparsers.core import Argument, Builder, Format, Node, Raw, Tool

ARGUMENT_NAME = r"[^<>\n]"


def build(p: Builder) -> Node:
    key, key_end, end = p.token("<arg_key>"), p.token("</arg_key>"), p.token("</tool_call>")
    value, value_end = p.token("<arg_value>"), p.token("</arg_value>")
    # The name ends at white space or a tag, but only a tag tells a call from prose about `<tool_call>`.
    name_end = p.reads("\n", p.space() + p.peek(p.choice(key, end)))

    def argument(arg: Argument) -> Node:
        name = key + p.arg_name(arg, ARGUMENT_NAME) + key_end + p.space("\n")
        return name + value + p.value(arg, Raw(until="</arg_value>")) + value_end + p.space("\n")

    def call(tool: Tool) -> Node:
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
    models=("glm-4-[5-9]",),
)
