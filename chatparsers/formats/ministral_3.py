"""Ministral 3, Devstral, Magistral, Mistral Small 3.2: a name, then JSON, in bracket tags.

    [THINK]Thoughts.[/THINK]Text.[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}

Mistral Small 3.2 (tokenizer v11):

    [TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Oslo"}

Quirks:
- Several calls are several `[TOOL_CALLS]`, with nothing between them. There is no closer: the JSON ends by itself.
- Ids of tokenizer v11 are nine letters and digits. The template of Mistral Small writes content or calls, never both.
- Magistral 2506 (tokenizer v11) writes plain `<think>Thoughts.</think>`, and ids.
- Seen in the wild: no `[ARGS]` before the JSON, an id of tokenizer v11 in others or none in it, `[TOOL_CALLS]` twice, the
  JSON of Mistral Nemo, a turn that is `get_weather[TOOL_CALLS]{…}`.
"""

from chatparsers.core import Builder, Format, Node, Tool
from chatparsers.formats._shapes import again, bracket_args, bracket_start


def _body(p: Builder, header: Node | str) -> Node:
    """``header``: the text that the family writes between a call's name and its arguments."""
    any_header = p.reads(header, p.optional(_id(p)))

    def call(tool: Tool) -> Node:
        return p.name(tool) + any_header + bracket_args(p) + p.args(tool)

    tag, call_list = p.token("[TOOL_CALLS]"), p.each_tool(call)
    calls = p.calls(tag + again(p, tag, 8) << p.reads(call_list, call_list, p.json_calls()))
    return p.body(calls, start=bracket_start(p, calls))


def _id(p: Builder) -> Node:
    return p.token("[CALL_ID]") + p.id(p.chars("a-zA-Z0-9", 9, 9))


def build(p: Builder) -> Node:
    return p.think("[THINK]", "[/THINK]") + _body(p, "")


def build_small(p: Builder) -> Node:
    return _body(p, _id(p))


def build_magistral(p: Builder) -> Node:
    open, close = (p.choice(p.token(f"[{tag}]"), f"<{tag.lower()}>") for tag in ("THINK", "/THINK"))
    return p.think(open, close) + _body(p, p.optional(_id(p)))


FORMATS = (
    Format(
        name="ministral-3",
        title="Ministral 3, Devstral",
        url="https://huggingface.co/mistralai/Ministral-3-14B-Reasoning-2512",
        build=build,
        markers=("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
        stops=("</s>",),
        aliases=("devstral",),
        models=("devstral", "ministral-3"),
    ),
    Format(
        name="mistral-small-3-2",
        title="Mistral Small 3.2",
        url="https://huggingface.co/mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        build=build_small,
        markers=("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        stops=("</s>",),
        models=("mistral-small-(3-2|.*2506)",),
    ),
    Format(
        name="magistral",
        title="Magistral",
        url="https://huggingface.co/mistralai/Magistral-Small-2509",
        build=build_magistral,
        markers=("[TOOL_CALLS]", "[ARGS]"),
        stops=("</s>",),
        models=("magistral",),
    ),
)
