"""Apertus: an array of objects whose only key is the tool's name.

    <|inner_prefix|>The user wants the weather.<|inner_suffix|><|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>

Quirks:
- Calls may come out of open reasoning. The template leaves the reasoning open if no answer follows.
- `<|tools_suffix|>` may be the token that stops the model; then it is missing.
"""

from chatparsers.answers import Builder, Format, Node, Tool
from chatparsers.formats._shapes import listed


def build(p: Builder) -> Node:
    def call(tool: Tool) -> Node:
        return "{" << ('"' + p.json_name(tool) + '"') << ":" + p.space(" ") + p.args(tool) << "}"

    calls = listed(p, p.each_tool(call))
    section = p.token("<|tools_prefix|>") << calls << p.expected(p.token("<|tools_suffix|>"))
    inner = ("<|inner_prefix|>", "<|inner_suffix|>")
    think = p.think(*inner, optional=True)
    return think + p.body(section, reasoning=p.span(*inner, optional=True))


FORMAT = Format(
    name="apertus",
    title="Apertus",
    url="https://huggingface.co/swiss-ai/Apertus-8B-Instruct-2509",
    build=build,
    markers=("<|assistant_start|>", "<|tools_prefix|>"),
    stops=("<|assistant_end|>",),
    aliases=("apertus2509",),
    models=("apertus",),
)
