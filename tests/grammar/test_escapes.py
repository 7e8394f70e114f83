"""Strings that spell some characters in another way are generated so; what a schema says of them holds."""

from __future__ import annotations

from typing import Any

import pytest
from engines import FULL, compile_for, engines_of
from samples import tool
from test_matrix import DIALECTS

from chatparsers.answers import Argument, Builder, Format, Node, Raw, Tool

ESCAPES = (("&", "&amp;"), ("<", "&lt;"))


def build(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        of = [
            f' type="{kind}">' + p.value(arg, Raw("</p>", type=kind, escapes=ESCAPES))
            for kind in ("string", "integer", "number", "json")
        ]
        return '<p k="' + p.arg_name(arg, '[^"]') + '"' + p.choice(*of) + "</p>"

    return p.body(p.each_tool(lambda tool: _call(p, tool, argument)))


def _call(p: Builder, tool: Tool, argument: Any) -> Node:
    return '<c n="' + p.name(tool, '[^"]') + '">' + p.each_arg(tool, argument) + "</c>"


FORMAT = Format("escaped", "Escaped", "https://models.example", build, markers=("<c",), stops=("<e>",))
ROWS: list[tuple[Any, list[str], list[str]]] = [
    (
        {"type": "string"},
        ['"string">', '"string">a &lt;b> &amp;amp;'],
        ['"string">a < b', '"string">&', '"json">1'],
    ),
    ({"enum": ["<&", "a"]}, ['"string">&lt;&amp;', '"string">a'], ['"string"><&', '"string">b']),
    ({"type": "string", "pattern": "^..$"}, ['"string">ab'], ['"string">abc', '"string">&lt;&amp;']),
    ({"type": "string", "maxLength": 1}, ['"string">a'], ['"string">&lt;', '"string">ab']),
    ({"type": "integer"}, ['"integer">5', '"number">5'], ['"integer">5.5', '"string">5']),
    ({"type": "number"}, ['"integer">5', '"number">5.5'], ['"integer">5.5', '"string">5']),
    ({"enum": [5, 5.5]}, ['"integer">5', '"number">5.5'], ['"integer">5.5', '"integer">6']),
    ({"type": "boolean"}, ['"json">true'], ['"integer">true', '"string">true']),
]


@pytest.mark.one_in(1)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("schema", "taken", "refused"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_values_that_say_their_type(schema: Any, taken: list[str], refused: list[str], dialect: str) -> None:
    turn = FORMAT.bind(tools=[tool("f", {"v": schema}, ["v"])], tool_choice="required")
    judge = compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)
    for value in taken + refused:
        text = f'<c n="f"><p k="v" type={value}</p></c>'
        assert (judge.status(text) == FULL) == (value in taken), value
        if value in taken:
            message = turn.parse(text)
            assert message.complete and not message.diagnostics
