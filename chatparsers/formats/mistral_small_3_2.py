"""Mistral Small 3.2 (tokenizer v11): a name and an id, then JSON, in bracket tags.

    [TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Oslo"}

Quirks:
- Ids are nine letters and digits. The model writes them before the arguments.
- Several calls are several `[TOOL_CALLS]`, with nothing between them. There is no closer. The template writes content
  or calls, never both.
- Seen in the wild: no `[CALL_ID]`, and as in Ministral 3.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import bracket_calls, bracket_start, call_id


def build(p: Builder) -> Node:
    calls = bracket_calls(p, call_id(p))
    return p.body(calls, start=bracket_start(p, calls))


FORMAT = Format(
    name="mistral-small-3-2",
    title="Mistral Small 3.2",
    url="https://huggingface.co/mistralai/Mistral-Small-3.2-24B-Instruct-2506",
    build=build,
    markers=("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    stops=("</s>",),
    models=("mistral-small-(3-2|.*2506)",),
)
