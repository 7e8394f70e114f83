"""Ministral 3, Devstral (tokenizers from v13): a name, then JSON, in bracket tags.

    [THINK]Thoughts.[/THINK]Text.[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}

Quirks:
- Several calls are several `[TOOL_CALLS]`, with nothing between; there is no closer: the JSON ends itself.
- A call inside open reasoning is reasoning.
- Seen in the wild: `[ARGS]` left out before the JSON, and the `[CALL_ID]` of tokenizer v11.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Lenient, Node, Nodelike, as_node
from chatparsers.core.schema import Tool


def call_id(p: Builder) -> Node:
    """A call's id in its tag."""
    return p.token("[CALL_ID]") + p.id(p.chars("a-zA-Z0-9", 9, 9))


def bracket_calls(p: Builder, header: Nodelike = "") -> Node:
    """Calls in bracket tags; ``header``: what the family writes between a call's name and its arguments."""
    any_header = Lenient(as_node(header), p.optional(call_id(p)))
    args = p.lenient(p.token("[ARGS]"), p.space() + p.peek("{"))

    def call(tool: Tool | None) -> Node:
        return p.name(tool) + any_header + args + p.args(tool)

    return p.calls(p.token("[TOOL_CALLS]") + p.space() + p.each_tool(call))


def build(p: Builder) -> Node:
    return p.think("[THINK]", "[/THINK]") + p.body(bracket_calls(p))


FORMAT = Format(
    name="ministral-3",
    title="Ministral 3, Devstral",
    url="https://huggingface.co/mistralai/Ministral-3-14B-Reasoning-2512",
    build=build,
    markers=("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
    stops=("</s>",),
    aliases=("devstral",),
)
