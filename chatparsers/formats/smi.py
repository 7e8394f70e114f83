"""SMI (State Model Interface): sections that begin with a token and have no closer; a call is JSON.

    <|think|>
    I need the weather.
    <|act|>
    {"id":"a1b2c3d4e","type":"tool","name":"get_weather","arguments":{"city":"Oslo"}}

    <|think|>
    It is sunny.
    <|out|>
    Sunny.

Quirks:
- The token of the next section ends a section, and `<|eot|>` the turn.
- The id is optional, and the results name it.
- Seen in the protocol's text: an empty line between sections, an object on several lines.
- Facts: aabbdev/state-model-interface, its README and its chat template.
"""

from chatparsers.answers import Builder, Format, Node, Tool


def build(p: Builder) -> Node:
    def opener(kind: str) -> Node:
        return p.token(f"<|{kind}|>") + p.trim("\n")

    def call(tool: Tool) -> Node:
        id = '{"id":"' + p.id(p.chars("a-zA-Z0-9", 9, 9), r'[^"\\\s]') + '","type":"tool","name":"'
        return id + p.json_name(tool) + '","arguments":' + p.args(tool) + "}"

    strict, any_call = p.each_tool(call), p.json_call(id="id", name="name", args="arguments")
    act = p.token("<|act|>") + p.space("\n") + p.reads(strict, any_call)
    thought, answer = p.span(opener("think"), None), p.span(opener("out"), None)
    return p.body(p.calls(act, p.space("\n")), reasoning=thought, content=answer, lead="\n")


FORMAT = Format(
    name="smi",
    title="SMI (State Model Interface)",
    url="https://github.com/aabbdev/state-model-interface",
    build=build,
    markers=("<|usr|>", "<|act|>"),
    stops=("\n<|eot|>", "<|eot|>"),
    models=("rwkv7.*smi", "smi-rwkv"),
)
