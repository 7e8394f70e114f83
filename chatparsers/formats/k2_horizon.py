"""K2 Horizon: a name, then tagged keys and values, with a thought of three depths.

    <ifm|think>
    Thoughts.
    </ifm|think>
    Text.
    <ifm|tool_calls>
    <ifm|tool_call>get_weather
    <ifm|arg_key>city</ifm|arg_key>
    <ifm|arg_value>Oslo</ifm|arg_value>
    </ifm|tool_call>
    </ifm|tool_calls>

Quirks:
- The prompt opens `<ifm|think>`, `<ifm|think_fast>` or `<ifm|think_faster>`, by the effort.
- Strings are raw text, verbatim between the tags; other types are JSON.
- The template's `tool_call_format` asks for other forms of a call, which are read too: with `<ifm|arg_type>` after each key, or as a
  JSON object.
- Seen in the wild: no section markers, no white space between the tags, a call inside open reasoning.
"""

from dataclasses import replace

from chatparsers.answers import Argument, Builder, Format, Node
from chatparsers.formats._shapes import keyed_call, keyed_value


def build(p: Builder) -> Node:
    start, type, type_end = p.token("<ifm|arg_value>"), p.token("<ifm|arg_type>"), p.token("</ifm|arg_type>")

    raw = keyed_value("ifm|tool_call", "ifm|arg", line="\n", after="\n")

    def value(arg: Argument) -> Node:
        plain = start + p.value(arg, raw)
        string = type + "string" + type_end << start + p.value(arg, replace(raw, type="string"))
        other = type + p.chars("^<") + type_end << start + p.value(arg, replace(raw, type="json"))
        return p.reads(plain, plain, string, other)

    call = keyed_call(p, "ifm|tool_call", "ifm|arg", line="\n", after="\n", value=value)
    calls = p.calls(call, p.space("\n"))
    close = p.space("\n") + p.token("</ifm|tool_calls>")
    section = p.token("<ifm|tool_calls>") + p.space("\n") + calls + close
    section = p.reads(section, section, calls + p.optional(close))
    opener = p.token("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>") + p.trim("\n")
    closer = p.token("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>") + p.trim("\n")
    return p.think(opener, p.reads("\n", "\n", "") + closer) + p.body(section, lead="\n")


FORMAT = Format(
    name="k2-horizon",
    title="K2 Horizon",
    url="https://huggingface.co/IFM/K2-Horizon-7B",
    build=build,
    markers=("<|ifm|im_start|>", "<ifm|tool_call>"),
    stops=("<|ifm|im_end|>",),
    models=("k2-horizon",),
)
