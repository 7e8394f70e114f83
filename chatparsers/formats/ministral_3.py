"""Ministral 3, Devstral (tokenizers from v13): a name, then JSON, in bracket tags.

    [THINK]Thoughts.[/THINK]Text.[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}

Quirks:
- Several calls are several `[TOOL_CALLS]`, with nothing between them. There is no closer: the JSON ends by itself.
- Seen in the wild: no `[ARGS]` before the JSON, the `[CALL_ID]` of tokenizer v11, `[TOOL_CALLS]` twice, the JSON of
  Mistral Nemo, a turn that is `get_weather[TOOL_CALLS]{…}`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import bracket_calls, bracket_start


def build(p: Builder) -> Node:
    calls = bracket_calls(p)
    return p.think("[THINK]", "[/THINK]") + p.body(calls, start=bracket_start(p, calls))


FORMAT = Format(
    name="ministral-3",
    title="Ministral 3, Devstral",
    url="https://huggingface.co/mistralai/Ministral-3-14B-Reasoning-2512",
    build=build,
    markers=("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
    stops=("</s>",),
    aliases=("devstral",),
    models=("devstral", "ministral-3"),
)
