"""Hunyuan V3 (Hy3): names, then tagged keys and values, in tags with a suffix.

    <think:opensource>Thoughts.</think:opensource>Text.<tool_calls:opensource>
    <tool_call:opensource>get_weather<tool_sep:opensource>
    <arg_key:opensource>city</arg_key:opensource>
    <arg_value:opensource>Oslo</arg_value:opensource>
    </tool_call:opensource>
    </tool_calls:opensource>

Quirks:
- Each tag is one special token. Its suffix names the checkpoint: `:opensource` in Hy3, no suffix in the preview.
  With another suffix, load the model's template: an analysis makes its format.
- Strings are raw text, verbatim between the tags; other types are JSON.
- The prompt opens `<think>`, or closes it at once.
- Seen in the wild: missing or additional white space, no section markers, no `<tool_sep>`,
  `<end_of_tool_call>` at the end of a call.
"""

from functools import partial

from chatparsers.answers import Argument, Builder, Format, Node
from chatparsers.formats._shapes import keyed_call, keyed_value


def _tag(p: Builder, name: str) -> Node:
    """A tag with the checkpoint's suffix, which is one token."""
    tag = p.token(f"<{name}:opensource>", f"<{name}>")
    return p.reads(tag, tag, _tag(p, "end_of_tool_call")) if name == "/tool_call" else tag


def turn(p: Builder, gap: str, separator: Node | str) -> Node:
    """A thought, and calls with tagged keys and values. ``gap``: the white space between the tags of a call.
    ``separator``: what comes after the name."""
    any_separator = p.optional(_tag(p, "tool_sep")) + p.space()
    name_end = p.reads(separator, any_separator + p.peek(_tag(p, "arg_key") | _tag(p, "/tool_call") | "{"))
    raw = keyed_value("tool_call", "arg", ":opensource", line=gap, after=gap, sep="tool_sep")

    def value(arg: Argument) -> Node:
        opener = _tag(p, "arg_value")
        return p.reads(opener, opener, p.peek(p.chars("^<", 1, 1))) + p.value(arg, raw)

    tag, begun = partial(_tag, p), name_end + p.space(gap)
    call = keyed_call(p, line=gap, after=gap, tag=tag, name_end=begun, value=value)
    close = p.space("\n") + _tag(p, "/tool_calls")
    calls = p.calls(call, p.space("\n"))
    section = _tag(p, "tool_calls") + p.space("\n") + calls + close
    section = p.reads(section, section, calls + p.optional(close))
    return p.think(_tag(p, "think"), _tag(p, "/think")) + p.body(section)


def build(p: Builder) -> Node:
    return turn(p, "\n", _tag(p, "tool_sep"))


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
