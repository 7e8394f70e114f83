"""Every walk and every reading knows every kind of node. By default no node is a leaf or is left out."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest

from chatparsers import DefinitionError
from chatparsers.core import ANY_ARGUMENT, ANY_TOOL, Gemma, Node, Raw, values
from chatparsers.core.definition import nodes, tree
from chatparsers.core.parser.compile import _COMPILERS
from chatparsers.core.values import Syntax
from chatparsers.grammar.reading.read import _READ
from chatparsers.grammar.syntaxes import _WRITERS


def kinds(module: object, base: type) -> list[type]:
    found = (kind for kind in vars(module).values() if isinstance(kind, type))
    return [kind for kind in found if issubclass(kind, base) and kind is not base]


KINDS = kinds(nodes, Node)
PARSED_ALONE = {nodes.Peek, nodes.Not}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_of_node_has_its_walk_its_code_and_its_grammar(kind: type[Node]) -> None:
    assert len(KINDS) > 25
    assert kind in tree._PARTS and kind in _COMPILERS
    assert (kind in _READ) != (kind in PARSED_ALONE)


def test_another_node_is_refused() -> None:
    class Stranger(Node):
        __slots__ = ()

    with pytest.raises(DefinitionError, match="Stranger is no kind of node"):
        list(tree.walk(nodes.Sequence((Stranger(),))))


def test_a_value_syntax_is_written_in_grammars() -> None:
    """`Raw` has no terminals of its own: its strings are text, and its other values are JSON."""
    assert {*_WRITERS, Raw} == set(kinds(values, Syntax))


def test_a_raw_value_has_an_end() -> None:
    for wrong in ({}, {"until": ""}, {"until": ("</p>", "")}):
        with pytest.raises(DefinitionError, match="expected until="):
            Raw(**wrong)
    assert Raw(until="\n\n</p>", also="</c>").stops == ("\n\n</p>", "\n</p>", "</p>", "</c>")
    assert Raw(until="\n").stops == ("\n",)
    with pytest.raises(DefinitionError, match="expected the marker around strings"):
        Gemma(quote="")


def test_placeholders_stay_what_they_are() -> None:
    for one in (ANY_TOOL, ANY_ARGUMENT):
        assert pickle.loads(pickle.dumps(one)) is one and deepcopy(one) is one
        assert one == one and not hasattr(one, "color") and repr(one).startswith("ANY_")
