"""Kimi K2, K2 Thinking, K2.5: a header with the call's id, then JSON.

    Text.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>

Quirks:
- The header's text is the call's id. Its number counts the calls of the conversation.
- Thinking models write `<think>…</think>` first. They also call tools out of open reasoning.
- Seen in the wild: no section markers, or `<|tool_call_section_begin|>`; headers `functions_get_weather_3`,
  `functions.get_weather.3`, `get_weather:0`, `functionsexec5`; a brace too many; a word before the calls of a section.
"""

from chatparsers.answers import Builder, Format, Node, Tag, Tool
from chatparsers.formats._shapes import again


def build(p: Builder) -> Node:
    def call(tool: Tool) -> Node:
        mark, counted = p.optional(p.chars("._", 1, 1)), ":" + p.chars("0-9", 0)
        full = "functions" + mark + p.name(tool) + p.optional(counted | mark + p.chars("0-9"))
        plain = p.name(tool) + p.optional(counted)
        header = p.header(full | plain, "functions." + p.name(tool) + ":" + p.chars("0-9", 1, 4), id=True)
        return (
            p.token("<|tool_call_begin|>")
            << header
            << p.token("<|tool_call_argument_begin|>")
            << p.args(tool)
        )

    calls = p.calls(
        p.each_tool(call) + again(p, p.choice("}", "]")) << p.token("<|tool_call_end|>"), p.space()
    )
    begin, end = p.token("<|tool_calls_section_begin|>"), p.token("<|tool_calls_section_end|>")
    section = begin << calls << end
    singular = "<|tool_call_section_begin|>" << calls << "<|tool_call_section_end|>"
    text = p.tag(Tag.CONTENT, p.until("<|tool_call_begin|>", "<|tool_calls_section_end|>"))
    word = p.atomic(text + p.peek("<|tool_call_begin|>"))
    section = p.reads(section, section, begin + word + calls << end, singular, calls)
    return p.think("<think>", "</think>") + p.body(section)


FORMAT = Format(
    name="kimi-k2",
    title="Kimi K2",
    url="https://huggingface.co/moonshotai/Kimi-K2-Instruct",
    build=build,
    markers=("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"),
    stops=("<|im_end|>",),
    models=("kimi-k2",),
)
