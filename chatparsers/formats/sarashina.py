"""Sarashina: a list of Python dictionaries after a token, and no closer.

    <|tool_calls|>[{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}]

Quirks:
- Names and values are Python's literals, with either quote.
- Engines often strip the token: a bare list as the whole turn is read too.
- Facts: smg-project/smg, pull request 1937.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import dictionary_call


def build(p: Builder) -> Node:
    calls = p.array(dictionary_call(p))
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
