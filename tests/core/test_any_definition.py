"""Any tree that the builder's calls make is refused with a `DefinitionError`, or safe to stream, generate and write.

The definitions are random, and most of them are nonsense. Each is refused, or it reads any text (its own markers, whole
and cut, in any order) without an error, in a bounded number of steps, in the same way for every chunking. No complete
call has arguments that are not a JSON object. Its grammars are written in a bounded number of steps too, and a message
is written or refused.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatparsers.answers import (
    ANY_ARGUMENT,
    ANY_TOOL,
    Argument,
    Builder,
    Elements,
    Format,
    Gemma,
    Json,
    Node,
    Python,
    Raw,
    Tag,
    Tool,
)
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import (
    AnyChar,
    Args,
    Chars,
    Choice,
    EachArg,
    Header,
    JsonName,
    JsonText,
    JsonValue,
    Literal,
    Many,
    Name,
    Space,
    Span,
    Token,
    Until,
    Value,
)
from chatparsers.core.tree import children, walk
from chatparsers.errors import DefinitionError, RequestError, SchemaError

Make = Callable[[Builder, Tool, Argument], Any]
"""A part of a definition. It gets the tool and argument of the functions around it, else the placeholders."""

TEXTS = (
    "<c>",
    "</c>",
    "<",
    ">",
    "a",
    "ab",
    "{",
    "}",
    "[",
    ",",
    ":",
    "=",
    '"',
    "\n",
    " ",
    "",
    "<p>",
    "</p>",
    "|",
)
RULES = ("x", "y")
TAGS = (Tag.CONTENT, Tag.REASONING, Tag.CALL, Tag.NAME, Tag.THOUGHT)
SCRAPS = (
    "get_weather",
    "city",
    "days",
    "{}",
    '{"city": "Oslo"}',
    '{"name": "get_weather", "arguments": {"days": 3}}',
    "[1]",
    "3",
    "null",
    "'q'",
    '"',
    "\\",
    "é",
    "\n",
    " ",
    "python",
    "x",
)
TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "any": {}},
        },
    },
    {"name": "python", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}}},
]

text = st.sampled_from(TEXTS)
syntax = st.one_of(
    st.just(Json()),
    st.just(Python()),
    st.builds(Raw, until=st.sampled_from(("</p>", "\n</p>", ">", ("|", "</p>"))), python=st.booleans()),
    st.just(Gemma("<q>")),
    st.just(Elements("<p>")),
)


def leaf(method: str, *arguments: Any) -> Make:
    return lambda p, tool, arg: getattr(p, method)(*arguments)


def of_tool(method: str, *arguments: Any) -> Make:
    return lambda p, tool, arg: getattr(p, method)(tool, *arguments)


def of_arg(method: str, *arguments: Any) -> Make:
    return lambda p, tool, arg: getattr(p, method)(arg, *arguments)


LEAVES: st.SearchStrategy[Make] = st.one_of(
    st.builds(leaf, st.sampled_from(("literal", "token")), text),
    st.builds(leaf, st.just("space"), st.sampled_from(("", " ", "\n"))),
    st.builds(leaf, st.sampled_from(("any", "end", "cut", "declared", "json_text", "rest"))),
    st.builds(leaf, st.just("chars"), st.sampled_from(("a-z", "0-9", "^<", "[a-z]", "]")), st.integers(0, 2)),
    st.builds(leaf, st.just("until"), text),
    st.builds(leaf, st.just("ref"), st.sampled_from(RULES)),
    st.builds(leaf, st.just("implied"), st.sampled_from(TAGS), st.just("python")),
    st.builds(leaf, st.just("code_call"), st.just("python"), st.just("code")),
    st.builds(leaf, st.just("member"), st.sampled_from(("name", "args"))),
    st.builds(of_tool, st.sampled_from(("name", "json_name", "args"))),
    st.builds(of_tool, st.just("name"), st.sampled_from((r"\w", "a-z", "[a-z]*", "[^<:]"))),
    st.builds(of_tool, st.just("args"), syntax),
    st.just(lambda p, tool, arg: p.id(p.chars("a-z"))),
    st.just(
        lambda p, tool, arg: p.header(
            p.name(tool) + p.optional(":" + p.chars("0-9", 1, 4)), p.name(tool), id=True
        )
    ),
    st.just(lambda p, tool, arg: p.json_call(name="name", args="arguments")),
    st.builds(of_arg, st.sampled_from(("arg_name", "same_name"))),
    st.just(lambda p, tool, arg: p.arg_name(arg, "[^<>]", {"&": "a"})),
    st.just(lambda p, tool, arg: p.token("<c>", "</c>")),
    st.builds(of_arg, st.just("value"), syntax),
)


def joined(operator: str, one: Make, other: Make) -> Make:
    def make(p: Builder, tool: Tool, arg: Argument) -> Any:
        left, right = one(p, tool, arg), other(p, tool, arg)
        return {"+": lambda: left + right, "<<": lambda: left << right, "|": lambda: left | right}[operator]()

    return make


def around(method: str, inner: Make, *arguments: Any) -> Make:
    return lambda p, tool, arg: getattr(p, method)(inner(p, tool, arg), *arguments)


def named(method: str, name: Any, inner: Make) -> Make:
    return lambda p, tool, arg: getattr(p, method)(name, inner(p, tool, arg))


def read_instead(one: Make, other: Make) -> Make:
    return lambda p, tool, arg: p.reads(one(p, tool, arg), other(p, tool, arg))


def each_tool(inner: Make) -> Make:
    return lambda p, tool, arg: p.each_tool(lambda made: inner(p, made, arg))


def each_arg(inner: Make, separator: str | None) -> Make:
    return lambda p, tool, arg: p.each_arg(tool, lambda made: inner(p, tool, made), separator)


def composed(inner: st.SearchStrategy[Make]) -> st.SearchStrategy[Make]:
    return st.one_of(
        st.builds(joined, st.sampled_from(("+", "+", "+", "<<", "|")), inner, inner),
        st.builds(joined, st.sampled_from(("+", "+", "+", "<<", "|")), inner, inner),
        st.builds(
            around,
            st.sampled_from(("optional", "many", "peek", "negate", "calls", "array", "expected")),
            inner,
        ),
        st.builds(around, st.just("repeat"), inner, st.integers(0, 2), st.integers(0, 3)),
        st.builds(named, st.just("rule"), st.sampled_from(RULES), inner),
        st.builds(named, st.just("tag"), st.sampled_from(TAGS), inner),
        st.builds(read_instead, inner, inner),
        st.builds(each_tool, inner),
        st.builds(each_arg, inner, st.sampled_from((None, ",", ""))),
    )


ANY: st.SearchStrategy[Make] = st.recursive(LEAVES, composed, max_leaves=8)
PLAIN = st.builds(leaf, st.sampled_from(("literal", "token")), text.filter(bool))


def chain(*parts: Make) -> Make:
    found = parts[0]
    for part in parts[1:]:
        found = joined("+", found, part)
    return found


def sometimes(usual: st.SearchStrategy[Make]) -> st.SearchStrategy[Make]:
    """``usual``, and sometimes any value."""
    return st.integers(0, 24).flatmap(lambda chance: ANY if chance == 24 else usual)


def rarely(what: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 3).flatmap(lambda chance: what if chance == 3 else st.none())


MARK = st.sampled_from(("<c>", "</c>", "<p>", "|", "\n<t>\n", "", "\n"))
ARGUMENT = st.builds(
    chain,
    sometimes(PLAIN),
    sometimes(st.just(of_arg("arg_name"))),
    sometimes(PLAIN),
    sometimes(st.builds(of_arg, st.just("value"), syntax)),
    sometimes(st.sampled_from((leaf("literal", "</p>"), leaf("token", "</p>"), leaf("space")))),
    rarely(st.just(of_arg("same_name"))).map(lambda make: make or leaf("literal", "")),
)
CALL = st.builds(
    chain,
    sometimes(PLAIN),
    sometimes(st.sampled_from((of_tool("name"), of_tool("json_name"), leaf("implied", Tag.NAME, "python")))),
    sometimes(PLAIN),
    sometimes(
        st.one_of(
            st.builds(of_tool, st.just("args"), st.sampled_from((Json(), Gemma("<q>")))),
            st.builds(each_arg, ARGUMENT, st.sampled_from((None, ",", "|"))),
        )
    ),
    sometimes(st.one_of(PLAIN, ANY)),
)
SECTION = st.builds(
    chain,
    PLAIN,
    sometimes(st.builds(each_tool, CALL) | st.builds(around, st.just("calls"), st.builds(each_tool, CALL))),
    sometimes(PLAIN),
)


@st.composite
def builds(draw: st.DrawFn) -> Callable[[Builder], Node]:
    """A definition: perhaps a first part, perhaps reasoning, and a body."""
    before = draw(rarely(ANY))
    think = draw(rarely(st.tuples(MARK, MARK, st.booleans())))
    calls, start, marks = draw(SECTION), draw(rarely(SECTION)), draw(rarely(PLAIN))
    spans = draw(rarely(st.tuples(MARK, st.none() | MARK)))

    def build(p: Builder) -> Node:
        def made(make: Make | None) -> Any:
            return None if make is None else make(p, ANY_TOOL, ANY_ARGUMENT)

        content = None if spans is None else p.span(*spans)
        tree: Any = p.body(made(calls), start=made(start), marks=made(marks), content=content)
        if think is not None:
            tree = p.think(think[0], think[1], always=think[2]) + tree
        return tree if before is None else before(p, ANY_TOOL, ANY_ARGUMENT) + tree  # type: ignore[no-any-return]

    return build


class TooManySteps(Exception):
    """The machine does not come to an end."""


@contextmanager
def bounded(steps: int) -> Iterator[None]:
    """Raises `TooManySteps` after that many calls. Each step of the machine makes one or two."""
    left = steps

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooManySteps

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def texts_of(format: Format, chance: random.Random) -> Iterator[str]:
    """Texts made of the markers of a format, halves of them and scraps of calls."""
    tree = format.tree(Options(tools=True))
    markers = [n.text for n in (*walk(tree), *walk(tree, True)) if isinstance(n, (Literal, Token)) and n.text]
    markers = list(dict.fromkeys(markers)) or ["a"]
    for _ in range(12):
        pieces = [
            chance.choice(markers if chance.random() < 0.6 else SCRAPS) for _ in range(chance.randint(1, 12))
        ]
        if chance.random() < 0.3:
            at = chance.randrange(len(pieces))
            pieces[at] = pieces[at][: chance.randint(0, len(pieces[at]))]
        yield "".join(pieces)
    for _ in range(8):  # in the format's own order: whole, and with something put in or left out
        text = written(tree, chance)
        yield text
        at, to = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
        yield text[:at] + chance.choice((*markers, *SCRAPS)) + text[at:]
        yield text[:at] + text[to:]


def written(node: Node | Span | None, chance: random.Random) -> str:
    """A text that the parser may read as ``node``, roughly."""
    if isinstance(node, (Literal, Token, Space)):
        return node.text
    if isinstance(node, (Name, JsonName, Header)):
        argument = not isinstance(node, Header) and node.tag is Tag.ARG_NAME
        return chance.choice(("city", "days", "any", "x") if argument else ("get_weather", "python", "x"))
    if isinstance(node, Args):
        return chance.choice(('{"city": "Oslo"}', "{city:<q>Oslo<q>,days:3}", "{}", "[1]", "null", '"{}"'))
    if isinstance(node, Value):
        return chance.choice(SCRAPS)
    if isinstance(node, EachArg):
        between = written(node.separator, chance) if node.separator is not None else ""
        return between.join(written(node.any, chance) for _ in range(chance.randint(0, 2)))
    if isinstance(node, Choice):
        return written(chance.choice(node.options), chance)
    if isinstance(node, Many):
        return "".join(written(node.node, chance) for _ in range(chance.randint(0, 2)))
    if isinstance(node, (Chars, AnyChar, Until, JsonText, JsonValue)):
        return chance.choice(("a", "b", "7", '"q"'))
    return "".join(written(part, chance) for part in children(node)) if isinstance(node, Node) else ""


counted = {"refused": 0, "streamed": 0, "calls": 0}


def check(build: Callable[[Builder], Node], seed: int) -> None:
    format = Format("invented", "Invented", "https://example.org", build, stops=("<|end|>",))
    try:
        format.tree(Options(tools=True))
        format.tree(Options(tools=True, parallel=False))
    except DefinitionError:
        counted["refused"] += 1
        return
    counted["streamed"] += 1
    turn = format.bind(tools=TOOLS)
    turn.stream().feed("")  # compiled here, outside of the bound
    with bounded(20_000_000):
        for choice, dialect in (("required", "gbnf"), ("auto", "lark"), ("auto", "structural_tag")):
            with suppress(SchemaError):  # a tool whose name the format cannot write
                format.bind(tools=TOOLS, tool_choice=choice).grammar(dialect)  # type: ignore[arg-type]
        try:
            format.render(
                {"content": "q", "tool_calls": [{"function": {"name": "python", "arguments": "{}"}}]}, TOOLS
            )
        except (RequestError, DefinitionError) as error:
            assert re.search("no place for|cannot write|would not read", str(error)), error
    for text in texts_of(format, random.Random(seed)):
        with bounded(50_000 + 5_000 * len(text)):
            whole = turn.parse(text)
            stream = turn.stream()
            for character in text:
                stream.feed(character)
            stream.finish()
        assert stream.message == whole, f"the cuts matter: {text!r}"
        assert whole.text == text
        for call in whole.tool_calls:
            counted["calls"] += call.complete
            if call.complete:
                assert isinstance(json.loads(call.arguments), dict), (text, call)


def test_a_stop_that_begins_like_a_call() -> None:
    """Found here: after a broken call, whether ``<`` is a call or the beginning of ``<c>`` depended on the cuts."""

    def build(p: Builder) -> Node:
        def one(tool: Tool) -> Any:
            return "<" + p.implied(Tag.NAME, "python") + p.token("=") + p.args(tool) + ":"

        def other(tool: Tool) -> Any:
            return p.name(tool) + "|" + p.args(tool)

        return p.body(p.token("<c>") + p.each_tool(other), start="|" + p.calls(p.each_tool(one)) + "[")

    turn = Format("invented", "Invented", "https://example.org", build).bind(tools=TOOLS)
    text = "|<=[1]:[<c>python|{}"
    stream = turn.stream()
    for character in text:
        stream.feed(character)
    stream.finish()
    assert stream.message == turn.parse(text)


def test_text_that_is_held_after_reasoning_without_text() -> None:
    """Found here: what was held was read again at once, up to where the reasoning began, and its note came twice."""

    def build(p: Builder) -> Node:
        def one(tool: Tool) -> Any:
            return "<c>" + p.name(tool) + "<c>" + p.args(tool) + "<c>"

        return p.think("\n<t>\n", "</c>") + p.body("<c>" + p.each_tool(one) + "<c>")

    turn = Format("invented", "Invented", "https://example.org", build).bind(tools=TOOLS)
    text = "<t></c><c><c><c>"
    stream = turn.stream()
    for character in text:
        stream.feed(character)
    stream.finish()
    assert stream.message == turn.parse(text)


@pytest.mark.parametrize("begins", [False, True])
def test_a_call_with_white_space_written_in_many_ways_is_read(begins: bool) -> None:
    """In more ways than running text is searched for: only what begins in running text must have fewer."""

    def build(p: Builder) -> Node:
        gap = p.choice(*(" " * n for n in range(19, 0, -1))) + p.choice(*("\n" * n for n in range(19, 0, -1)))
        before, after = (gap, "") if begins else ("", gap)

        def one(tool: Tool) -> Node:
            return before + p.token("<c>") + p.name(tool) + ">" + p.args(tool) + after + "</c>"

        return p.body(start=p.each_tool(one))

    text = ' \n<c>f>{"n": 1}</c>' if begins else '<c>f>{"n": 1} \n</c>'
    message = Format("invented", "Invented", "https://example.org", build).parse(text, tools=TOOLS)
    assert [call.arguments for call in message.tool_calls] == ['{"n": 1}'] and message.complete


def test_any_definition_is_refused_or_safe(amount: Callable[[int, int, int], int]) -> None:
    examples = amount(60, 600, 6000)

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
    @given(builds(), st.integers(0, 2**16))
    def run(build: Callable[[Builder], Node], seed: int) -> None:
        check(build, seed)

    run()
    assert min(counted.values()) > examples // 20, f"too few of one kind: {counted}"
