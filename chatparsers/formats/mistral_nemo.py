"""Mistral Nemo (tokenizers v3 to v7): an array of JSON calls with ids.

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "a1b2c3d4e"}]

Quirks:
- Ids are nine letters and digits. The model writes them after the arguments.
- There is no closer: the end of the turn ends the array. The template writes content or calls, never both.
- Seen in the wild: one call without the array, `[TOOL_CALLS]` twice, a turn that is `get_weather[TOOL_CALLS]{…}`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import again, bracket_start


def build(p: Builder) -> Node:
    call = p.json_call(name="name", args="arguments", id="id")
    tag, array = p.token("[TOOL_CALLS]"), p.array(call)
    space = p.optional(" ")  # a SentencePiece tokenizer writes it before the array
    calls = tag + again(p, tag, 8) + space << p.reads(array, array, call)
    return p.body(calls, start=bracket_start(p, calls))


FORMAT = Format(
    name="mistral-nemo",
    title="Mistral Nemo",
    url="https://huggingface.co/mistralai/Mistral-Nemo-Instruct-2407",
    build=build,
    markers=("[AVAILABLE_TOOLS]", "[TOOL_CALLS][{"),
    stops=("</s>",),
    models=("mistral-(nemo|large|small)", "(mistral|mixtral).*(v0-3|8x22b)"),
)
