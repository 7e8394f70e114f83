"""Step-Audio 2: the word `function`, the name and JSON, each on a line of a tag.

    Text.<tool_call>function
    get_weather
    {"city": "Oslo"}</tool_call>

Quirks:
- Some models of the family reason first: `<think>…</think>`.
- Facts: the parser `step_audio_2` of the maker's vLLM, and its tokenizer, which writes the prompt without a template.
"""

from chatparsers.answers import Builder, Format, Node, Tool


def build(p: Builder) -> Node:
    opener, closer = p.token("<tool_call>"), p.token("</tool_call>")

    def call(tool: Tool) -> Node:
        value = p.choice("{", '"', "[", p.chars(r"\-0-9", 1, 1), "true", "false", "null", closer)
        begun = p.reads("\n", p.space() + p.peek(value))
        return p.space() + "function" + p.space("\n") + p.name(tool) + begun + p.args(tool)

    whole = opener + p.each_tool(call) << closer
    json = opener << p.json_calls() << closer
    return p.think("<think>\n", "\n</think>\n\n") + p.body(p.calls(p.reads(whole, whole, json), p.space()))


FORMAT = Format(
    name="step-audio-2",
    title="Step-Audio 2",
    url="https://huggingface.co/stepfun-ai/Step-Audio-2-mini",
    build=build,
    markers=("<|BOT|>assistant", "<tool_call>function\n"),
    stops=("<|EOT|>",),
    models=("step-audio-2",),
)
