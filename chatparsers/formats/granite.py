"""Granite 3.0 to 3.3: an array of JSON calls after a token, and no closer.

    <think>The user wants the weather.</think><|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]

Quirks:
- In a turn with reasoning, the answer is in `<response>…</response>`.
- 3.2 writes the reasoning between two phrases: `Here is my thought process:` and `Here is my response:`.
- Seen in the wild: `<tool_call>` as the opener, a closing tag, a bare array as the whole turn, `Here's` for `Here is`;
  `get_weather(city="Oslo")` at the start of the turn, one call on each line (vLLM's pull request 43113).
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed, python_lines


def build(p: Builder) -> Node:
    def phrase(what: str) -> Node:
        return p.trim("\n\n") + p.choice("Here is", "Here's") + f" my {what}:" + p.trim("\n\n")

    call = p.json_call(name="name", args="arguments")
    opener, response = p.token("<|tool_call|>"), p.token("<response>")
    think, think_end = p.token("<think>"), p.token("</think>")
    closer = p.reads("", p.optional(p.space() + p.choice("</tool_call>", "</|tool_call|>")))
    section = (p.reads(opener, opener, p.token("<tool_call>")) << listed(p, call)) + closer
    answer = p.span(p.reads(response, response, p.trim("\n\n") + response), "</response>", optional=True)
    start = p.reads(section, section, p.array(call), python_lines(p))
    thought = p.think(
        p.reads(think, think, phrase("thought process")),
        p.reads(think_end, think_end, phrase("response")),
    )
    return thought + p.body(section, start=start, content=answer)


FORMAT = Format(
    name="granite",
    title="Granite 3.0 to 3.3",
    url="https://huggingface.co/ibm-granite/granite-3.3-8b-instruct",
    build=build,
    markers=("<|start_of_role|>", "<|tool_call|>"),
    stops=("<|end_of_text|>",),
    models=("granite-?3(?!.*guardian)",),
)
