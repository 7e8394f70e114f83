"""Wires of datasets that no model writes: formats as any other, made of the same nodes.

glaive          <functioncall> {"name": "get_weather", "arguments": '{"city": "Oslo"}'} <|endoftext|>
toolace         [Get Weather(city="Oslo", from=2), Time.now()]
open-thoughts   <|begin_of_thought|>…<|end_of_thought|> <|begin_of_solution|>…<|end_of_solution|>
"""

from __future__ import annotations

from ...answers import Argument, Builder, Format, Node, Python, Tool


def _glaive(p: Builder) -> Node:
    def call(tool: Tool) -> Node:
        head = "{" << p.member("name") << '"' + p.json_name(tool) + '"' << "," << p.member("arguments")
        quoted = p.literal("'") + p.args(tool) + p.space() + "'"
        return (head << p.reads(quoted, quoted, p.args(tool))) << "}"

    begin = p.literal("<functioncall>") + p.space(" ")
    return p.body(p.calls(begin + p.each_tool(call), p.space(" ")))


GLAIVE = Format(
    name="glaive",
    title="Glaive function calling v2",
    url="https://huggingface.co/datasets/glaiveai/glaive-function-calling-v2",
    build=_glaive,
    markers=("<functioncall>",),
    stops=(" <|endoftext|>", "<|endoftext|>"),
)


def _toolace(p: Builder) -> Node:
    comma = p.space() + "," + p.space(" ")

    def argument(arg: Argument) -> Node:
        return p.arg_name(arg, r"[^=(),\[\]\n]") << "=" << p.value(arg, Python())

    def call(tool: Tool) -> Node:
        name = p.name(tool, r"[^()\n]") + p.reads("", p.declared())
        return (name + "(" + p.each_arg(tool, argument, comma)) << ")"

    return p.body(start=p.space() + p.array(p.each_tool(call)))


TOOLACE = Format(
    name="toolace",
    title="ToolACE",
    url="https://huggingface.co/datasets/Team-ACE/ToolACE",
    build=_toolace,
    markers=("[func_name1(",),
)


def _open_thoughts(p: Builder) -> Node:
    solution = p.span("<|begin_of_solution|>", "<|end_of_solution|>", optional=True)
    return p.think("<|begin_of_thought|>", "<|end_of_thought|>\n\n") + p.body(content=solution)


OPEN_THOUGHTS = Format(
    name="open-thoughts",
    title="OpenThoughts-114k",
    url="https://huggingface.co/datasets/open-thoughts/OpenThoughts-114k",
    build=_open_thoughts,
    markers=("<|begin_of_thought|>", "<|begin_of_solution|>"),
)

DATASET_WIRES = (GLAIVE, TOOLACE, OPEN_THOUGHTS)
