"""Laguna: tagged keys and values, in 2.1 as GLM-4.7 writes them, in XS.2 and M.1 as GLM-4.5.

    <think>Thoughts.</think>Text.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>

Quirks:
- The prompt of 2.1 opens the thought if thinking is on, else it closes it at once: a turn begins with `</think>` alone.
- XS.2 and M.1 write a line break after each tag, also before `</assistant>`, which ends the turn.
- Strings are raw text, verbatim between the tags; other types are JSON.
- Seen in the wild, in XS.2: `<user>…</user>` around a call, calls and arguments as JSON.
- Facts of XS.2 and M.1: the parsers `poolside_v1` of vLLM and SGLang, and Ollama's renderer.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import keyed_call
from chatparsers.formats.glm_4_7 import build as compact


def lines(p: Builder) -> Node:
    calls = p.calls(keyed_call(p, line="\n", after="\n", also=("user",)), p.space("\n"))
    return p.think("\n<think>", "</think>\n") + p.body(calls, lead="\n")


FORMATS = (
    Format(
        name="laguna",
        title="Laguna XS 2.1, Laguna S 2.1",
        url="https://huggingface.co/poolside/Laguna-S-2.1",
        build=compact,
        markers=("</assistant>", "</arg_key><arg_value>"),
        stops=("</assistant>", "〈|EOS|〉"),
        aliases=("laguna-2.1", "poolside-v1"),
        models=("laguna", "laguna-xs-2-1"),
    ),
    Format(
        name="laguna-xs-2",
        title="Laguna XS.2, Laguna M.1",
        url="https://huggingface.co/poolside/Laguna-XS.2",
        build=lines,
        markers=("</assistant>", "</arg_key>\n<arg_value>"),
        stops=("\n</assistant>", "</assistant>", "〈|EOS|〉"),
        aliases=("laguna-m-1",),
        models=("laguna-xs-2", "laguna-m-1"),
    ),
)
