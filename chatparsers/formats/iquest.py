"""IQuest Q1: tagged keys and values as in GLM-4.7, in tags of its own.

    <think>Thoughts.</think>Text.<iquest_tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></iquest_tool_call>

Quirks:
- The prompt opens the thought, or holds an empty one if thinking is off. A call inside the thought is reasoning.
- Strings are raw text, verbatim between the tags; other types are JSON.
- Seen in the wild: line breaks between the tags.
- Facts: the parsers `iquest_q1` of vLLM and SGLang, and their tests.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import keyed_call


def build(p: Builder) -> Node:
    calls = p.calls(keyed_call(p, call="iquest_tool_call"), p.space())
    return p.think("<think>", "</think>") + p.body(calls)


FORMAT = Format(
    name="iquest",
    title="IQuest Q1",
    url="https://huggingface.co/IQuestLab",
    build=build,
    markers=("<|iquest_assistant|>", "<iquest_tool_call>"),
    stops=("<|iquest_end|>",),
    aliases=("iquest-q1",),
    models=("iquest-q",),
)
