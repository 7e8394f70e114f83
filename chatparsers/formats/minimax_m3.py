"""MiniMax-M3: invocations whose arguments are nested elements, each tag after a token.

    <mm:think>Thoughts.</mm:think>Text.]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[<days>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</days>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

Quirks:
- Objects nest as elements, arrays as `<item>` elements. The template leaves out members that are null.
- A turn without reasoning begins with `</mm:think>`, which the prompt or the model writes.
- Seen in the wild: line breaks between the tags, a call inside open reasoning, closers without the token, `<parameter name="…">` of M2 as an argument's tag.
"""

from chatparsers.answers import Argument, Builder, Elements, Format, Node, Raw, Tool

MARK = "]<]minimax[>["
NAME = r"[^<>/\s]"


def build(p: Builder) -> Node:
    mark, quote = p.token(MARK), p.reads('"', '"', "'")

    def argument(arg: Argument) -> Node:
        opener = mark + "<" + p.arg_name(arg, NAME) + ">"
        written = opener + p.value(arg, Elements(MARK)) + mark + "</" + p.same_name(arg) + ">" + p.space()
        tag = mark + "<parameter name=" + quote + p.arg_name(arg, r"""[^"'<>]""") + quote + ">"
        tagged = tag + p.value(arg, Raw(MARK + "</parameter>")) + mark + "</parameter>" + p.space()
        return p.reads(written, tagged, written)

    def invoke(tool: Tool) -> Node:
        opener = mark + "<invoke name=" + quote + p.name(tool) + quote + ">" + p.space()
        return opener + p.each_arg(tool, argument) + p.expected(mark) + "</invoke>"

    calls = p.calls(p.each_tool(invoke), p.space("\n"))
    section = mark + "<tool_call>" + p.space("\n") + calls + p.space("\n") + p.expected(mark) + "</tool_call>"
    silent = p.optional(p.token("</mm:think>"))
    return silent + p.think("<mm:think>", "</mm:think>") + p.body(section, closers=mark + "</tool_call>")


FORMAT = Format(
    name="minimax-m3",
    title="MiniMax-M3",
    url="https://huggingface.co/MiniMaxAI/MiniMax-M3",
    build=build,
    markers=("]~b]ai", "]<]minimax[>[<tool_call>"),
    stops=("[e~[",),
    models=("minimax-m3",),
)
