"""Gemma 4: a thought in a channel, calls in Gemma's own object syntax.

    <|channel>thought
    Thoughts.
    <channel|><|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:2}<tool_call|>

Quirks:
- Keys have no quotes. Strings are verbatim between two `<|"|>` tokens, also in objects and lists.
- If thinking is off, the prompt writes an empty thought.
- The model stops at `<|tool_response>`, which the application answers. The turn of the model goes on after the answer.
- Seen in the wild: several calls in one block, no `<|tool_call>` before a call, a call inside an open thought, `<|channel>` twice, a thought after the answer, a string without its
  second `<|"|>`, a string without quotes or in single ones, `=` in place of the colon, parentheses around the arguments.
"""

from chatparsers.answers import Builder, Format, Gemma, Node, Tool
from chatparsers.formats._shapes import again


def build(p: Builder) -> Node:
    opener, end = p.token("<|tool_call>"), p.token("<tool_call|>")

    def call(tool: Tool) -> Node:
        name_end = p.reads("", p.space() + p.peek(p.choice("{", "(") | end))
        return ("call:" << p.name(tool)) + name_end + p.args(tool, syntax)

    def plain(tool: Tool) -> Node:
        name = p.name(tool, chars=r"[\w.\-]")
        return "call:" + name + p.reads("", p.peek("{")) + p.args(tool, syntax)

    syntax = Gemma(quote='<|"|>', closer="<tool_call|>", opener="<|tool_call>")
    one = p.each_tool(call)
    block = opener << one + p.reads("", p.many(p.space() + one)) + again(p, p.choice("}", "]")) << end
    unopened = p.each_tool(plain) + p.optional(again(p, "}") << end)
    calls = p.calls(p.reads(block, block, unopened), p.space())
    channel = p.token("<|channel>")
    opener = channel + again(p, channel, 8) + "thought" + p.trim("\n")
    closer = p.reads("\n", "\n", "") + p.token("<channel|>")
    return p.think(opener, closer) + p.body(calls)


FORMAT = Format(
    name="gemma-4",
    title="Gemma 4",
    url="https://huggingface.co/google/gemma-4-31B-it",
    build=build,
    markers=("<|turn>model", "<|tool_call>call:"),
    stops=("<turn|>", "<|tool_response>", "<eos>"),
    aliases=("gemma4",),
    models=("gemma-?4",),
)
