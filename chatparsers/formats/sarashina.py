"""Sarashina: a list of Python dictionaries after a token, and no closer.

    <|tool_calls|>[{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}]

Quirks:
- Names and values are Python's literals, with either quote.
- Engines often strip the token: a bare list as the whole turn is read too.
- Facts: smg-project/smg, pull request 1937.
"""

from chatparsers.core import Argument, Builder, Format, Node, Python, Tool


def build(p: Builder) -> Node:
    quote = p.reads("'", "'", '"')
    colon, comma = p.space() + ":" + p.space(" "), p.space() + "," + p.space(" ")

    def key(name: Node | str) -> Node:
        return quote + name + quote + colon

    def argument(arg: Argument) -> Node:
        return key(p.arg_name(arg)) + p.value(arg, Python())

    def call(tool: Tool) -> Node:
        name = "{" << key("name") + quote + p.name(tool) + quote + comma
        begun = p.reads("{", "{", p.peek("}")) + p.space()
        ended = p.reads("}}", "}" + p.space() + "}", "}")
        return name + key("arguments") + begun + p.each_arg(tool, argument, comma) + p.space() + ended

    calls = p.array(p.each_tool(call))
    section = p.token("<|tool_calls|>") << calls
    return p.body(section, start=p.reads(section, section, calls))


FORMAT = Format(
    name="sarashina",
    title="Sarashina",
    url="https://github.com/smg-project/smg/pull/1937",
    build=build,
    markers=("<|tool_calls|>[{'name': '",),
    stops=("</s>",),
    models=("sarashina",),
)
