"""Acme's format: calls in brackets.

Text.[acme:get_weather]{"city": "Oslo"}[/acme]
"""

from __future__ import annotations

from chatparsers.answers import Builder, Format, Node, Tool
from chatparsers.formats import FormatRef
from chatparsers.plugins import hookimpl

HOUSE_STYLE = "{# acme house style #}"


def build(p: Builder) -> Node:
    def call(tool: Tool) -> Node:
        return p.literal("[acme:") + p.name(tool) + "]" + p.args(tool) + "[/acme]"

    return p.body(p.calls(p.each_tool(call)))


FORMAT = Format(
    name="acme-brackets",
    title="Acme",
    url="https://acme.example/format",
    build=build,
    markers=("[acme:",),
    stops=("</turn>",),
    aliases=("acme",),
    models=("acme-[12]",),
)


@hookimpl
def chatparsers_register_formats() -> list[FormatRef]:
    return [
        FormatRef(
            "acme-brackets",
            "acme_formats:FORMAT",
            title="Acme",
            url="https://acme.example/format",
            aliases=("acme",),
            markers=("[acme:",),
            models=("acme-[12]",),
        ),
        FormatRef("acme-typo", "acme_formats:FROMAT"),
    ]


def chatparsers_detect(template: str) -> str | None:
    return "acme-brackets" if HOUSE_STYLE in template else None
