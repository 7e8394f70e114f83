"""Rival's formats: one of its own, one with a name that Acme has too, one with a built-in name."""

from __future__ import annotations

from collections.abc import Iterator

from chatparsers import FormatRef
from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    return p.body()


FORMATS = tuple(
    Format(name=name, title="Rival", url="https://rival.example", build=build)
    for name in ("rival-plain", "acme-brackets", "hermes-2-pro")
)


def chatparsers_register_formats() -> Iterator[FormatRef]:
    for format in FORMATS:
        yield FormatRef(format.name, "rival_formats:FORMATS", title=format.title, url=format.url)
