"""Magistral: reasoning, then content and calls in bracket tags.

    [THINK]Thoughts.[/THINK]Text.[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}

Quirks:
- Magistral 2506 (tokenizer v11) writes plain `<think>Thoughts.</think>`, and ids: `get_weather[CALL_ID]a1b2c3d4e[ARGS]`.
- Several calls are several `[TOOL_CALLS]`, with nothing between them. There is no closer.
- Seen in the wild: as in Ministral 3.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import bracket_calls, bracket_start, call_id


def build(p: Builder) -> Node:
    opener = p.choice(p.token("[THINK]"), "<think>")
    closer = p.choice(p.token("[/THINK]"), "</think>")
    calls = bracket_calls(p, p.optional(call_id(p)))
    return p.think(opener, closer) + p.body(calls, start=bracket_start(p, calls))


FORMAT = Format(
    name="magistral",
    title="Magistral",
    url="https://huggingface.co/mistralai/Magistral-Small-2509",
    build=build,
    markers=("[TOOL_CALLS]", "[ARGS]"),
    stops=("</s>",),
    models=("magistral",),
)
