"""Apertus: an array of objects whose only key is the tool's name.

    <|inner_prefix|>The user wants the weather.<|inner_suffix|><|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>

Quirks:
- Calls may come out of open reasoning, and the template leaves it open where no answer follows.
- `<|tools_suffix|>` may be what stops the model, and is missing then.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Node
from chatparsers.core.schema import Tool


def build(p: Builder) -> Node:
    s = p.space()

    def call(tool: Tool | None) -> Node:
        return "{" + s + '"' + p.json_name(tool) + '"' + s + ":" + p.space(" ") + p.args(tool) + s + "}"

    array = p.array(p.each_tool(call))
    section = p.token("<|tools_prefix|>") + s + array + s + p.lenient(p.token("<|tools_suffix|>"), "")
    inner = ("<|inner_prefix|>", "<|inner_suffix|>")
    think = p.think(*inner, until=section, optional=True)
    return think + p.body(section, reasoning=p.span(*inner, optional=True))


FORMAT = Format(
    name="apertus",
    title="Apertus",
    url="https://huggingface.co/swiss-ai/Apertus-8B-Instruct-2509",
    build=build,
    markers=("<|assistant_start|>", "<|tools_prefix|>"),
    stops=("<|assistant_end|>",),
)
