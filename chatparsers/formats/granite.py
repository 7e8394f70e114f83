"""Granite 3.0 to 3.3: an array of JSON calls behind a token, and no closer.

    <think>The user wants the weather.</think><|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]

Quirks:
- The answer of a turn with reasoning stands in `<response>…</response>`.
- 3.2 writes the reasoning between two phrases: `Here is my thought process:` and `Here is my response:`.
- Seen in the wild: `<tool_call>` for the opener, a closing tag, a turn that is the bare array, `Here's` for `Here is`.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Lenient, Node


def build(p: Builder) -> Node:
    def phrase(what: str) -> Node:
        return p.trim("\n\n") + p.choice("Here is", "Here's") + f" my {what}:" + p.trim("\n\n")

    array = p.array(p.json_call(name="name", args="arguments"))
    opener = p.lenient(p.token("<|tool_call|>"), p.token("<tool_call>")) + p.space()
    closer = Lenient(p.literal(""), p.optional(p.space() + p.choice("</tool_call>", "</|tool_call|>")))
    section = opener + array + closer
    think = p.think(
        p.lenient(p.token("<think>"), phrase("thought process")),
        p.lenient(p.token("</think>"), phrase("response")),
    )
    response = p.lenient(p.token("<response>"), p.trim("\n\n") + p.token("<response>"))
    answer = p.span(response, p.token("</response>"), optional=True)
    return think + p.body(section, start=p.lenient(section, array), content=answer)


FORMAT = Format(
    name="granite",
    title="Granite 3.0 to 3.3",
    url="https://huggingface.co/ibm-granite/granite-3.3-8b-instruct",
    build=build,
    markers=("<|start_of_role|>", "<|tool_call|>"),
    stops=("<|end_of_text|>",),
)
