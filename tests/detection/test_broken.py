"""A format with a wrong definition is reported by its name, once. The other formats work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers.answers import Builder, Format, Node
from chatparsers.errors import DefinitionError
from chatparsers.formats import FormatRef
from chatparsers.registry import get_format, register, unregister

TEMPLATE = (Path(__file__).parents[1] / "templates_own" / "hermes-2-pro.jinja").read_text(encoding="utf-8")
TOLD = "format 'acme-broken': p.many(p.space()): the repeated part can be empty"


def empty_loop(p: Builder) -> Node:
    return p.many(p.space()) + p.body()


@pytest.fixture
def broken() -> Iterator[None]:
    markers = get_format("hermes-2-pro").markers
    register(Format("acme-broken", "Acme", "https://example.org", empty_loop, markers=markers))
    lists: Any = [*markers]  # as some write them: they have no hash
    register(FormatRef("acme-lists", "acme:FORMAT", markers=lists, aliases=lists))
    yield
    unregister("acme-broken")
    unregister("acme-lists")


@pytest.mark.usefixtures("broken")
def test_it_is_told_where_it_is_asked_for_and_the_rest_goes_on() -> None:
    """The error comes when the format is looked up or a model is loaded with it, not in the first stream."""
    found = chatparsers.detect(TEMPLATE)
    assert found.name == "hermes-2-pro"
    [line] = [line for line in found.evidence if "acme-broken" in line]
    assert line.startswith("acme-broken is left out: ") and TOLD in line
    for ask in (
        lambda: get_format("acme-broken"),
        lambda: chatparsers.load(TEMPLATE, format="acme-broken"),
    ):
        with pytest.raises(DefinitionError) as error:
            ask()
        assert TOLD in str(error.value)
    assert "acme-broken" in [info.name for info in chatparsers.list_formats()]
