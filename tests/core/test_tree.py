"""Every kind of node says all its facts, every reader has a row for it, and the facts are what the readers do."""

from __future__ import annotations

import dataclasses
import pickle
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from definitions import random_text

import chatparsers
from chatparsers import DefinitionError, answers, values
from chatparsers.answers import ANY_ARGUMENT, ANY_TOOL, Builder, Elements, Gemma, Node, Raw
from chatparsers.answers import nodes as n
from chatparsers.answers.idioms import Options
from chatparsers.core.machine import instructions as m
from chatparsers.core.machine.alphabet import Alphabet
from chatparsers.core.machine.code import BrokenEnds, Code, Place
from chatparsers.core.machine.machine import Machine
from chatparsers.core.nodes.node import ALWAYS, Leaf
from chatparsers.core.tree import first, head, nullable, opens, walk
from chatparsers.core.wrong import described
from chatparsers.grammar.reading import read
from chatparsers.grammar.syntaxes import _WRITERS
from chatparsers.parser import compile as compiler
from chatparsers.schema.tools import Toolset
from chatparsers.values import Json, Syntax
from chatparsers.writer import turn

pytestmark = pytest.mark.one_in(1)

KINDS = n.kinds()
READERS = {
    "parser/compile.py": compiler._COMPILERS,
    "writer/turn.py": turn._WRITTEN,
    "grammar/reading/read.py": read._READ,
}
PARSED_ALONE = {n.Peek, n.Not}

A, B, NONE = n.Literal("ab"), n.Token("<b>", ("<c>",)), n.Sequence(())
CALL = n.Tagged(n.Tag.CALL, n.Sequence((n.Name(n.Tag.NAME, "[a-z]", A), n.Args(ANY_TOOL))))
SPAN = n.Span(A, B)
SAMPLES: list[Node] = [
    A, B, NONE, n.Literal(""), n.Chars("a-c"), n.Chars("a", 0), n.Chars("ab", 2, 3), n.Space("\n"), n.Space("", True),
    n.AnyChar(), n.End(), n.LineStart(), n.Until(("<b>",)), n.Until(()), n.Sequence((A, n.Space(" "), B)),
    n.Choice((A, B)), n.Choice((A, NONE)), n.Sequence((n.Space(""), n.Choice((A, B)))),
    n.Many(A), n.Many(B, 1), n.Many(A, 2, 3),
    n.Many(n.Choice((B, n.Literal(""))), 1, 2), n.Peek(A), n.Not(A), n.Rule("r", A), n.Rule("e", n.Many(A)),
    n.Tagged(n.Tag.CONTENT, A),
    n.Atomic(B), n.Name(n.Tag.NAME, "[a-z]", A), n.JsonName(n.Tag.NAME, A), n.Header(A, "[a-z]", A),
    n.Implied(n.Tag.NAME, "x"), n.Cut(), n.Declared(), n.EachTool(lambda tool: CALL, CALL), n.Args(ANY_TOOL),
    n.EachArg(ANY_TOOL, lambda arg: A, A), n.Value(ANY_ARGUMENT, Json()), n.Value(ANY_ARGUMENT, Raw(until="</>")),
    n.JsonValue(), n.JsonText(), n.Lenient(A, n.Choice((A, B))), n.Lenient(A, NONE), n.Calls(CALL, B, True),
    n.SameName(ANY_ARGUMENT), n.Think(SPAN), n.Body(A), n.Sequence((n.Rule("s", A), n.Ref("s"))), n.Ref("r"),
]  # fmt: skip
"""Nodes of every kind, empty and not."""


def named(node: Node) -> str:
    return f"{type(node).__name__}: {described(node)}"


def test_a_kind_of_node_or_of_value_without_a_fact_cannot_be_defined() -> None:
    with pytest.raises(DefinitionError, match=r"^Yaml: .* lacks tokens and closer; write the property$"):

        class Yaml(Syntax):
            __slots__ = ()

    with pytest.raises(DefinitionError, match=r"Words: .* empty\(\), .* is missing; write the method"):

        class Words(Leaf):
            __slots__ = ()

            def shown(self) -> str:
                return "p.one_of_words(…)"


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_has_a_row_for_every_kind(reader: str) -> None:
    without = PARSED_ALONE if reader == "grammar/reading/read.py" else set()
    assert len(KINDS) > 25 and {type(node) for node in SAMPLES} == set(KINDS)
    assert set(READERS[reader]) == set(KINDS) - without
    rows = dict.fromkeys(KINDS[1:])
    with pytest.raises(
        DefinitionError,
        match=rf"{reader}: expected a row for each kind of node, and that of {KINDS[0].__name__} is missing",
    ):
        n.of_every_kind(reader, rows)


def _nodes(value: Any) -> Iterator[Node]:
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, n.Span):
            yield from one.parts
        elif isinstance(one, Node):
            yield one


def matches(node: Node, text: str) -> bool:
    """Whether the parser reads ``node`` and then the character § of ``text``."""
    code = Code(Alphabet())
    fallback = code.here()
    code.text(m.CONTENT, ())
    code.emit(m.AFTER)
    start = code.here()
    compile = compiler._Compiler("probe", code, node, (), False, None, ())
    compile.node(node, Place(m.MARKUP, m.MARKUP, BrokenEnds()))
    compile.node(n.Literal("§"), Place(m.REASONING, m.MARKUP, BrokenEnds()))
    code.emit(m.AFTER)
    machine = Machine(m.Program(code.linked(), start.at, fallback.at, False, False, (str, ())), Toolset())
    items = machine.feed(text) + machine.finish(False)
    return any(item[0] == m.REASONING for item in items)


UNSURE = (n.Think, n.Body, n.End, n.LineStart, n.Peek, n.Value, n.JsonValue, n.Ref, n.Declared, n.SameName)
"""They may be empty at the end of the text alone, or look ahead, or need what was read before."""


@pytest.mark.parametrize("node", [node for node in SAMPLES if not isinstance(node, UNSURE)], ids=named)
def test_a_node_is_empty_if_the_parser_reads_nothing_for_it(node: Node) -> None:
    if isinstance(node, n.Until):  # it would read the whole text
        node = n.Until(("§",))
    assert nullable(node) is matches(node, "§")
    assert (node.empty(()) == ALWAYS) is (nullable(node) and not isinstance(node, (n.Not, n.EachArg)))


UNGENERATED = (n.Peek, n.Not, n.Args, n.Value, n.EachArg, n.EachTool, n.Think, n.Body, n.Ref, n.SameName)
"""They generate nothing without a tool and a turn around them."""
KNOWN = (n.Literal, n.Token, n.Space, n.Sequence, n.Choice)
"""All that they generate is known before, but for the free white space of JSON."""
MADE = (n.Literal, n.Token, n.AnyChar, n.End, n.Until, n.Cut, n.Many, n.Peek, n.Not, n.Ref)
"""They are spelt with all their operands."""


@pytest.mark.parametrize("node", SAMPLES, ids=named)
def test_what_is_generated_begins_as_the_node_says(node: Node) -> None:
    if any(isinstance(below, UNGENERATED) for below in walk(node, True)):
        return
    try:
        begins = first(node)
    except DefinitionError:
        begins = ()
    opened = tuple("".join(item.text for item in begin) for begin, _ in opens(node))
    known = all(isinstance(below, KNOWN) and not getattr(below, "free", False) for below in walk(node, True))
    for seed in range(8):
        text = random_text(node, random.Random(seed))
        assert text in opened if known else text.startswith(opened), opened
        assert not begins or text.lstrip().startswith(begins), begins


@pytest.mark.parametrize("node", SAMPLES, ids=named)
def test_a_node_says_its_parts_its_head_and_how_it_is_made(node: Node) -> None:
    held = {part for field in dataclasses.fields(node) for part in _nodes(getattr(node, field.name))}  # type: ignore[arg-type]
    headers = {node.parsed} if isinstance(node, n.Header) else set()  # it is matched as a whole, not read
    assert held - headers <= {*node.parts(False), *node.parts(True)}
    if not isinstance(node, (n.Think, n.Body)):  # no head is asked of them
        assert not any(below.commits() for below in walk(head(node))), "the head of a node commits to nothing"
    shown = node.shown()
    assert shown
    if isinstance(node, MADE):
        assert eval(shown, {"p": Builder(Options())}) in (node, getattr(node, "text", None))


def test_another_node_is_refused() -> None:
    other: Any = n.Sequence((3,))  # type: ignore[arg-type]
    readers: list[Callable[[], Any]] = [
        lambda: list(walk(other)),
        lambda: turn.write(chatparsers.get_format("qwen3"), other, {}, Toolset()),
    ]
    for read_other in readers:
        with pytest.raises(DefinitionError, match="int is no kind of node"):
            read_other()


def kinds(module: object, base: type) -> list[type]:
    found = (kind for kind in vars(module).values() if isinstance(kind, type))
    return [kind for kind in found if issubclass(kind, base) and kind is not base]


def test_who_writes_values_has_a_row_for_each_syntax() -> None:
    """A module with such a table cannot be imported without one of its rows; `answers` exports the records."""
    syntaxes = set(kinds(values, Syntax))
    assert syntaxes == set(kinds(answers, Syntax)) == set(turn._VALUES) == {*_WRITERS, Raw}
    with pytest.raises(
        DefinitionError, match="here: expected a row for each value syntax, and that of Elements is"
    ):
        values.of_every_syntax("here", dict.fromkeys(syntaxes - {Raw, answers.Elements}), Raw)


def test_a_raw_value_has_an_end() -> None:
    for wrong in ({}, {"until": ""}, {"until": ("</p>", "")}):
        with pytest.raises(DefinitionError, match="expected until="):
            Raw(**wrong)
    assert Raw(until="\n\n</p>", also="</c>").stops == ("\n\n</p>", "\n</p>", "</p>", "</c>")
    assert Raw(until="\n").stops == ("\n",)
    with pytest.raises(DefinitionError, match="expected the marker around strings"):
        Gemma(quote="")
    with pytest.raises(DefinitionError, match="the marker before each tag"):
        Elements("")


def test_placeholders_stay_what_they_are() -> None:
    for one in (ANY_TOOL, ANY_ARGUMENT):
        assert pickle.loads(pickle.dumps(one)) is one and deepcopy(one) is one
        assert one == one and not hasattr(one, "color") and repr(one).startswith("ANY_")
