"""Every primitive: a definition, a text, the events at every prefix of the text, and the generated text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from definitions import Row, format_of, generated, rules, stream, turn_of

from chatparsers import DefinitionError
from chatparsers.answers import ANY_TOOL, Builder, Json, Node, Tag, Tool
from chatparsers.answers.idioms import Options
from chatparsers.core.builder import Primitives

pytestmark = pytest.mark.one_in(1)


TEXT = Tag.CONTENT


ROWS = [
    Row("literal", lambda p: p.literal("ab"), "abc", "||c|", '"ab" gap? "<c>t></c>"', ""),
    Row(
        "literal, another text",
        lambda p: p.literal("ab"),
        "axc",
        "|ax|c|",
        '"ab" gap? "<c>t></c>"',
        "malformed at character 0: expected 'ab', found 'axc'",
    ),
    Row("token", lambda p: p.token("<a>"), "<a>c", "|||c|", '"<a>" gap? "<c>t></c>"', ""),
    Row(
        "until",
        lambda p: p.tag(TEXT, p.until("<x>")) + "<x>",
        "ab<<x>c",
        "a|b||<|||c|",
        'text gap? "<c>t></c>"',
        "",
    ),
    Row(
        "until, no stop",
        lambda p: "<m>" + p.tag(TEXT, p.until("<x>")),
        "<m>ab<c",
        "|||a|b||<c|",
        '"<m>" text gap? "<c>t></c>"',
        "",
    ),
    Row(
        "rest",
        lambda p: "<m>" + p.tag(TEXT, p.rest()),
        "<m>a<c>t</c>",
        "|||a|<|c|>|t|<|/|c|>|",
        '"<m>" text gap? "<c>t></c>"',
        "",
    ),
    Row(
        "chars",
        lambda p: p.chars("a-c", 1, 2) + p.chars("0-9", 0, 1),
        "ab1x",
        "|||x|",
        '[a-c]{1,2} [0-9]? gap? "<c>t></c>"',
        "",
    ),
    Row(
        "chars, any number",
        lambda p: p.tag(TEXT, p.chars("0-9", 2)),
        "123x",
        "1|2|3|x|",
        '[0-9]{2,} gap? "<c>t></c>"',
        "",
    ),
    Row("space", lambda p: "a" + p.space("\n") + "b", "a \t\nbc", "|||||c|", '"a\\nb" gap? "<c>t></c>"', ""),
    Row("<<", lambda p: p.literal("a") << "b", "a bc", "|||c|", '"ab" gap? "<c>t></c>"', ""),
    Row("trim", lambda p: p.trim("\n\n") + "x", "\nxc", "||c|", '"\\n\\n"? "x" gap? "<c>t></c>"', ""),
    Row(
        "any",
        lambda p: p.tag(TEXT, p.any()) + p.any(),
        "abc",
        "a||c|",
        '[\\u0000-\\U0010FFFF] [\\u0000-\\U0010FFFF] gap? "<c>t></c>"',
        "",
    ),
    Row("end", lambda p: p.reads("", p.literal("a") + p.end(), ""), "a", "|", '"<c>t></c>"', ""),
    Row(
        "end, more text", lambda p: p.reads("", p.literal("a") + p.end(), ""), "ab", "|ab|", '"<c>t></c>"', ""
    ),
    Row(
        "not any",
        lambda p: p.reads("", p.literal("a") + p.negate(p.any()), ""),
        "ab",
        "|ab|",
        '"<c>t></c>"',
        "",
    ),
    Row(
        "line_start", lambda p: p.reads("", "x" + p.line_start() + "a", ""), "xab", "||b|", '"<c>t></c>"', ""
    ),
    Row(
        "line_start, in a line",
        lambda p: p.reads("", p.tag(TEXT, p.literal("x")) + p.line_start() + "a", ""),
        "xab",
        "x|a|b|",
        '"<c>t></c>"',
        "",
    ),
    Row(
        "line_start, after a line",
        lambda p: p.reads("", p.tag(TEXT, p.literal("x\n")) + p.line_start() + "a", ""),
        "x\nab",
        "||x\n|b|",
        '"<c>t></c>"',
        "",
    ),
    Row("sequence", lambda p: p.sequence("a", p.space(), "b"), "a bc", "|||c|", '"ab" gap? "<c>t></c>"', ""),
    Row(
        "choice", lambda p: p.choice("ab", "a") + "c", "acx", "||x|", '("ab" | "a") "c" gap? "<c>t></c>"', ""
    ),
    Row(
        "|", lambda p: (p.literal("ab") | "a") + "c", "abcx", "|||x|", '("ab" | "a") "c" gap? "<c>t></c>"', ""
    ),
    Row("optional", lambda p: p.optional("ab"), "abc", "||c|", '"ab"? gap? "<c>t></c>"', ""),
    Row("optional, missing", lambda p: p.optional("ab"), "ac", "|ac|", '"ab"? gap? "<c>t></c>"', ""),
    Row("many", lambda p: p.many("ab", 1) + "c", "ababcx", "|||||x|", '"ab"+ "c" gap? "<c>t></c>"', ""),
    Row("repeat", lambda p: p.repeat("a", 1, 2) + "b", "aabx", "|||x|", '"a"{1,2} "b" gap? "<c>t></c>"', ""),
    Row(
        "repeat, too often",
        lambda p: p.repeat("a", 1, 2) + "b",
        "aaab",
        "||a|b|",
        '"a"{1,2} "b" gap? "<c>t></c>"',
        "malformed at character 2: expected 'b', found 'ab'",
    ),
    Row(
        "peek",
        lambda p: p.reads("a", p.literal("a") + p.peek("!"), ""),
        "a!c",
        "|!|c|",
        '"a" gap? "<c>t></c>"',
        "",
    ),
    Row(
        "peek, another text",
        lambda p: p.reads("a", p.literal("a") + p.peek("!"), ""),
        "a?c",
        "|a?|c|",
        '"a" gap? "<c>t></c>"',
        "",
    ),
    Row(
        "negate",
        lambda p: p.reads("a", p.literal("a") + p.negate("!"), ""),
        "a?c",
        "|?|c|",
        '"a" gap? "<c>t></c>"',
        "",
    ),
    Row(
        "negate, that text",
        lambda p: p.reads("a", p.literal("a") + p.negate("!"), ""),
        "a!c",
        "|a!|c|",
        '"a" gap? "<c>t></c>"',
        "",
    ),
    Row(
        "rule, ref",
        lambda p: p.rule("list", "[" + p.optional(p.ref("list")) + "]"),
        "[[]]c",
        "||||c|",
        'list gap? "<c>t></c>"\nlist ::= "[" list? "]"',
        "",
    ),
    Row(
        "tag",
        lambda p: p.tag(Tag.REASONING, p.until("!")) + "!",
        "ab!c",
        "~a~|~b~||c|",
        'text gap? "<c>t></c>"',
        "",
    ),
    Row("tag", lambda p: p.tag(TEXT, p.token("<s>")), "<s>c", "||<s>|c|", '"<s>" gap? "<c>t></c>"', ""),
    Row("tag", lambda p: p.tag(TEXT, "ab"), "abc", "|ab|c|", '"ab" gap? "<c>t></c>"', ""),
    Row(
        "atomic",
        lambda p: p.atomic(p.tag(TEXT, p.until("!")) + "!"),
        "ab!c",
        "||ab|c|",
        'text gap? "<c>t></c>"',
        "",
    ),
    Row(
        "atomic, cut off",
        lambda p: p.atomic(p.tag(Tag.REASONING, p.until("!")) + "!"),
        "ab",
        "||ab",
        'text gap? "<c>t></c>"',
        "malformed at character 2: expected '!'",
    ),
    Row(
        "not atomic",
        lambda p: p.tag(TEXT, p.until("!")) + "!",
        "ab!c",
        "a|b||c|",
        'text gap? "<c>t></c>"',
        "",
    ),
    Row(
        "cut",
        lambda p: p.choice(p.tag(TEXT, "ab") + p.cut() + "c", "x"),
        "abcd",
        "|ab||d|",
        '("abc" | "x") gap? "<c>t></c>"',
        "",
    ),
    Row(
        "no cut",
        lambda p: p.choice(p.tag(TEXT, "ab") + "c", "x"),
        "abcd",
        "||ab|d|",
        '("abc" | "x") gap? "<c>t></c>"',
        "",
    ),
    Row(
        "cut, no way back",
        lambda p: p.choice("ab" + p.cut() + "c", p.tag(TEXT, "x")),
        "abx",
        "||x|",
        '("abc" | "x") gap? "<c>t></c>"',
        "malformed at character 2: expected 'c', found 'x'",
    ),
    Row(
        "choice of tagged",
        lambda p: p.choice(p.tag(Tag.REASONING, "ab"), p.tag(TEXT, "x")),
        "abc",
        "|~ab~|c|",
        '("ab" | "x") gap? "<c>t></c>"',
        "",
    ),
    Row("expected", lambda p: p.expected("ab"), "abc", "||c|", '"ab" gap? "<c>t></c>"', ""),
    Row("expected, missing", lambda p: p.expected("ab"), "ac", "|ac|", '"ab" gap? "<c>t></c>"', ""),
    Row("reads", lambda p: p.reads("b", "bc", "b"), "bcd", "||d|", '"b" gap? "<c>t></c>"', ""),
]
SWALLOWING = ("until, no stop", "rest")
"""They take the rest of the turn, also the call that is generated after them."""


def framed(row: Row) -> Callable[[Builder], Node]:
    """The row's node, and a turn whose only call is ``<c>t></c>``."""

    def call(p: Builder, tool: Tool) -> Node:
        arguments = p.each_arg(tool, lambda arg: p.arg_name(arg) + "=" + p.value(arg, Json()))
        return "<c>" + p.name(tool) + ">" + arguments + "</c>"

    return lambda p: row.build(p) + p.body(p.each_tool(lambda tool: call(p, tool)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_parsed_and_what_is_generated(row: Row) -> None:
    turn = turn_of(framed(row))
    events, message = stream(turn, row.text)
    assert events == row.events
    assert "; ".join(map(str, message.diagnostics)) == row.diagnostics
    assert message == turn_of(framed(row)).parse(row.text)
    assert rules(turn) == "root ::= " + row.grammar
    for text in generated(turn, 20):
        message = turn.parse(text, strict=True)
        assert row.name in SWALLOWING or [call.name for call in message.tool_calls] == ["t"], text


def test_every_method_of_the_builder_has_a_row() -> None:
    here = Path(__file__).parent
    source = "".join(
        (here / name).read_text(encoding="utf-8") for name in ("test_primitives.py", "test_idioms.py")
    )
    methods = [
        name for owner in (Primitives, Builder) for name, _ in inspect.getmembers(owner, inspect.isfunction)
    ]
    missing = {
        name for name in methods if not name.startswith("_") and not re.search(rf"\bp\.{name}\(", source)
    }
    assert not missing


WRONG: list[tuple[str, Callable[[Builder], object], str]] = [
    ("or", lambda p: p.literal("a") or p.literal("b"), "write `a | b` for ordered choice"),
    ("no node", lambda p: p.literal("a") + 1, "expected a node or a string, found int: 1"),  # type: ignore[operator]
    ("reads nothing", lambda p: p.reads("a"), "expected what is parsed, after what is generated"),
    ("name of nothing", lambda p: p.name(None), "or ANY_TOOL as tool, found NoneType"),  # type: ignore[arg-type]
    ("name of any tool", lambda p: p.each_tool(lambda tool: tool.name), "ANY_TOOL has no name"),
    (
        "schema of any argument",
        lambda p: p.each_arg(ANY_TOOL, lambda arg: p.literal(str(arg.schema))),
        "ANY_ARGUMENT has no schema",
    ),
]


@pytest.mark.parametrize(("build", "error"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_slip_is_an_error_in_the_line_that_makes_it(build: Callable[[Builder], object], error: str) -> None:
    """Mistakes that the node itself reports. Those of whole trees are in test_bad_definitions.py."""
    with pytest.raises(DefinitionError, match=error):
        build(Builder(Options(tools=True)))


def test_a_turn_that_is_cut_off_has_no_end() -> None:
    """Otherwise a call that only the end of the turn shows would be complete in a turn that was cut off."""
    for end, cut_off in ((Builder.end, "a"), (lambda p: p.negate(p.any()), "")):
        format = format_of(lambda p, end=end: p.reads("", p.literal("a") + end(p), "") + p.body())
        for reason, content in (("stop", ""), ("length", cut_off)):
            stream = format.bind().stream()
            stream.feed("a")
            stream.finish(reason)
            assert stream.message.content == content, (end, reason)
