"""MiniCPM5: functions with parameters in XML, special characters in CDATA.

    <think>
    Thoughts.
    </think>

    Text.
    <function name="get_weather"><param name="city">Oslo</param><param name="note"><![CDATA[<b>]]></param></function>

Quirks:
- Strings are raw text. A string with `<`, `&` or a line break is in CDATA. Other types are JSON.
- The tags are special tokens up to their attributes: `<function`, `<param`.
- Seen in the wild: single quotes around names, line breaks between the tags, CDATA around any value, no `</param>` after it
  before the next one.
"""

from chatparsers.answers import Argument, Builder, Format, Node, Raw, Tool


def build(p: Builder) -> Node:
    quote = p.reads('"', '"', "'")
    close_function, close_param = p.token("</function>"), p.token("</param>")

    def argument(arg: Argument) -> Node:
        any_value = p.value(arg, Raw(until="]]>"))
        marked = "<![CDATA[" + p.reads(p.value(arg, Raw(until="]]>", type="string")), any_value) + "]]>"
        plain = p.value(arg, Raw(until="</param>", chars=r"[^<&\n]", python=True))
        name = p.token("<param") + " name=" + quote + p.arg_name(arg, r"""[^"'<>\n]""") + quote + ">"
        left_out = p.peek(p.space() + p.token("<param"))
        closed = marked + p.reads(close_param, close_param, left_out)
        return name + p.choice(closed, plain + close_param) + p.space()

    # Only what follows a header tells a call from prose about one.
    begun = p.reads("", p.space() + p.peek(p.choice("{", p.token("<param"), close_function)))

    def function(tool: Tool) -> Node:
        name = p.token("<function") + " name=" + quote + p.name(tool) + quote + ">"
        return name + begun + p.each_arg(tool, argument) + close_function

    calls = p.calls(p.each_tool(function), p.space("\n"))
    return p.think("<think>\n", "\n</think>\n\n") + p.body(calls, lead="\n")


FORMAT = Format(
    name="minicpm5",
    title="MiniCPM5",
    url="https://huggingface.co/openbmb/MiniCPM5-1B",
    build=build,
    markers=("<|im_start|>", '<function name="', '<param name="'),
    stops=("<|im_end|>",),
    models=("minicpm-?5",),
)
