"""Apriel 1.5, 1.6 Thinker: reasoning up to a phrase, then an array of JSON calls in tags.

    Here are my reasoning steps:
    The user wants the weather.
    [BEGIN FINAL RESPONSE]
    Text.
    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]</tool_calls>

Quirks:
- The prompt of 1.6 writes the opening phrase. The prompt of 1.5 may leave it out. Then the model writes it, or it answers
  at once.
- 1.5 closes the answer with `[END FINAL RESPONSE]`, and with tools also reasons in `<thinking>…</thinking>`.
- The template writes ids only into past calls; models may repeat them.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed


def build(p: Builder) -> Node:
    ids = p.json_call(name="name", args="arguments", id="id")
    call = p.reads(p.json_call(name="name", args="arguments"), ids)
    section = p.token("<tool_calls>") << listed(p, call) << p.token("</tool_calls>")
    end = p.trim("\n") + p.token("[END FINAL RESPONSE]")
    begin = p.trim("\n") + p.token("[BEGIN FINAL RESPONSE]") + p.trim("\n")
    phrase = "Here are my reasoning steps:" + p.trim("\n")
    think = p.think(
        p.reads(phrase, phrase, p.token("<thinking>")),
        p.reads(begin, begin, p.token("</thinking>")),
    )
    return think + p.body(section, lead="\n", marks=end)


FORMATS = (
    Format(
        name="apriel-1-5",
        title="Apriel 1.5 Thinker",
        url="https://huggingface.co/ServiceNow-AI/Apriel-1.5-15b-Thinker",
        build=build,
        markers=("<|assistant|>", "<tool_calls>", "[BEGIN FINAL RESPONSE]"),
        stops=("\n<|end|>", "<|end|>"),
        models=("apriel",),
    ),
    Format(
        name="apriel-1-6",
        title="Apriel 1.6 Thinker",
        url="https://huggingface.co/ServiceNow-AI/Apriel-1.6-15b-Thinker",
        build=build,
        markers=("<|begin_assistant|>", "<tool_calls>", "[BEGIN FINAL RESPONSE]"),
        stops=("\n<|end|>", "<|end|>"),
        models=("apriel-1-6",),
    ),
)
