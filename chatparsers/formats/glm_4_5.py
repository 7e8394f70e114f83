"""GLM-4.5, GLM-4.6: a name, then tagged keys and values.

    <think>Thoughts.</think>
    Text.
    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>

Quirks:
- A newline comes before `<think>`. If thinking is off, the prompt holds an empty thought.
- Strings are raw text, verbatim between the tags; other types are JSON.
- The model ends its turn by opening the next: `<|user|>`, or `<|observation|>` after calls.
- Seen in the wild: missing or additional white space between the tags, a call inside open reasoning, a value without
  `</arg_value>`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import keyed_call


def build(p: Builder) -> Node:
    calls = p.calls(keyed_call(p, line="\n", after="\n"), p.space("\n"))
    return p.think("\n<think>", "</think>\n") + p.body(calls, lead="\n")


FORMAT = Format(
    name="glm-4-5",
    title="GLM-4.5, GLM-4.6",
    url="https://huggingface.co/zai-org/GLM-4.5",
    build=build,
    markers=("[gMASK]", "</arg_key>\n<arg_value>"),
    stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    aliases=("glm-4.6", "glm45"),
    models=("glm-4-[56]",),
)
