"""Hunyuan V3 (Hy3): names, then tagged keys and values, in tags with a suffix.

    <think:opensource>Thoughts.</think:opensource>Text.<tool_calls:opensource>
    <tool_call:opensource>get_weather<tool_sep:opensource>
    <arg_key:opensource>city</arg_key:opensource>
    <arg_value:opensource>Oslo</arg_value:opensource>
    </tool_call:opensource>
    </tool_calls:opensource>

Quirks:
- Each tag is one special token. Its suffix names the checkpoint: `:opensource` in Hy3, no suffix in the preview.
- Strings are raw text, verbatim between the tags; other types are JSON.
- The prompt opens `<think>`, or closes it at once.
- Seen in the wild: missing or additional white space, no section markers, no `<tool_sep>`.
"""

from chatparsers.core import Argument, Builder, Format, Node, Raw, Tool


def _tag(p: Builder, name: str) -> Node:
    """A tag with the checkpoint's suffix, which is one token."""
    return p.token(f"<{name}:opensource>", f"<{name}>")


def turn(p: Builder, gap: str, separated: bool) -> Node:
    """A thought, and calls with tagged keys and values. ``gap``: the white space between the tags of a call. ``separated``: a tag
    stands after the name."""
    key, value, end = _tag(p, "arg_key"), _tag(p, "arg_value"), _tag(p, "/tool_call")
    separator, until = _tag(p, "tool_sep"), ("</arg_value:opensource>", "</arg_value>")
    any_separator = p.optional(separator) + p.space() + p.peek(key | end)
    begun = p.reads(separator if separated else "", any_separator) + p.space(gap)

    def argument(arg: Argument) -> Node:
        name = key + p.arg_name(arg, r"[^<>\n]") + _tag(p, "/arg_key") + p.space(gap)
        closed = _tag(p, "/arg_value") + p.space(gap)
        return name + value + p.value(arg, Raw(until)) + closed

    def call(tool: Tool) -> Node:
        return p.space() + p.name(tool) + begun + p.each_arg(tool, argument) + end

    calls = p.calls(_tag(p, "tool_call") + p.each_tool(call), p.space("\n"))
    close = p.space("\n") + _tag(p, "/tool_calls")
    section = _tag(p, "tool_calls") + p.space("\n") + calls + close
    section = p.reads(section, section, calls + p.optional(close))
    return p.think(_tag(p, "think"), _tag(p, "/think"), until=section) + p.body(section)


def build(p: Builder) -> Node:
    return turn(p, "\n", separated=True)


FORMAT = Format(
    name="hunyuan-v3",
    title="Hunyuan V3 (Hy3)",
    url="https://huggingface.co/tencent/Hy3",
    build=build,
    markers=("<tool_calls", "<tool_sep", "<arg_key"),
    stops=("<｜hy_eos:opensource｜>", "<｜hy_eos｜>"),
    aliases=("hy-v3", "hunyuan"),
    models=("hunyuan-v3", "hy-?3"),
)
