"""Every idiom and every value syntax: a definition, a text, the events at every prefix, and the generated text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from definitions import NO_ARGUMENTS, TOOL, generated, rules, stream, turn_of

from chatparsers.core import ANY_TOOL, Argument, Builder, Gemma, Json, Node, Python, Raw, Tag


@dataclass(frozen=True)
class Row:
    """``events``: the events after each character of ``text`` and at the end (`definitions.stream`). ``grammar``: the
    grammar of a required call."""

    name: str
    build: Callable[[Builder], Node]
    text: str
    events: str
    grammar: str
    diagnostics: str

    @property
    def tool(self) -> object:
        return TOOL if "m ::=" in self.grammar else NO_ARGUMENTS


def call(p: Builder) -> Node:
    return p.each_tool(lambda tool: "<c>" + p.name(tool) + "=" + p.args(tool))


def bare(p: Builder) -> Node:
    return p.each_tool(lambda tool: p.name(tool) + "=" + p.args(tool))


def tagged(p: Builder, syntax: Raw | Python | Json, gap: Node | str = "", end: Node | str = "</p>") -> Node:
    def argument(arg: Argument) -> Node:
        return "<p " + p.arg_name(arg) + ">" + p.value(arg, syntax) + gap + end

    return p.each_tool(lambda tool: "<c>" + p.name(tool) + ">" + p.each_arg(tool, argument) + "</c>")


ROWS = [
    Row(
        "think",
        lambda p: p.think("<r>\n", "\n</r>\n") + p.body(call(p)),
        "<r>\nab\n</r>\nc",
        "||||~a~|~b~|||||||c|",
        '("<r>" text "\\n"?)? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, less white space",
        lambda p: p.think("<r>\n", "\n</r>\n") + p.body(call(p)),
        "<r>ab</r> c",
        "|||~a~|~b~|||||| c|",
        '("<r>" text "\\n"?)? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, always",
        lambda p: p.think("<r>", "</r>", always=True) + p.body(call(p)),
        "ab</r>c",
        "~a~|~b~|||||c|",
        '"<r>"? text "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, until a call",
        lambda p: p.think("<r>", "</r>", until=call(p)) + p.body(call(p)),
        "<r>a<c>t={}",
        "|||~a~||||||(t {|})|",
        '("<r>" text)? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, not until a call",
        lambda p: p.think("<r>", "</r>") + p.body(call(p)),
        "<r><c>t={}",
        "||||~<c~|~>~|~t~|~=~|~{~|~}~|",
        '("<r>" text)? "<c>t={" ws "}"',
        "truncated at character 10: expected '</r>'",
    ),
    Row(
        "think, optional",
        lambda p: p.think("<r>", "</r>", optional=True) + p.body(call(p)),
        "<r>ab",
        "|||~a~|~b~|",
        '("<r>" text)? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, cut off",
        lambda p: p.think("<r>", "</r>") + p.body(call(p)),
        "<r>ab",
        "|||~a~|~b~|",
        '("<r>" text)? "<c>t={" ws "}"',
        "truncated at character 5: expected '</r>'",
    ),
    Row(
        "body, lead",
        lambda p: p.body(call(p), lead="\n"),
        "a\n<c>t={}b",
        "a|||||||(t {|})|b|",
        '"\\n"? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "body, start",
        lambda p: p.body(start=call(p)),
        "<c>t={}<c>",
        "|||||(t {|})|<|c|>|",
        '"<c>t={" ws "}"',
        "",
    ),
    Row(
        "body, spans",
        lambda p: p.body(call(p), reasoning=p.span("<r>", "</r>"), content=p.span("<a>", "</a>")),
        "<a>b</a><r>x</r>",
        "|||b||||||||~x~|||||",
        '("<r>" text)* "<c>t={" ws "}"',
        "",
    ),
    Row(
        "body, a span without closer",
        lambda p: p.body("\n>" + call(p), content=p.span(p.literal("\n>a"), None)),
        "\n>ab\n><c>t={}",
        "|||b||||||||(t {|})|",
        '"\\n><c>t={" ws "}"',
        "",
    ),
    Row(
        "body, marks",
        lambda p: p.body(call(p), marks=p.token("<e>")),
        "a<e>b",
        "a||||b|",
        '"<c>t={" ws "}"',
        "",
    ),
    Row(
        "calls",
        lambda p: p.body(p.calls(call(p), ",")),
        "<c>t={},<c>t={}",
        "|||||(t {|})|||||||(t {|})|",
        'call ("," call)*\ncall ::= "<c>t={" ws "}"',
        "",
    ),
    Row(
        "array",
        lambda p: p.body("!" + p.array(bare(p))),
        "![t={} ,t={}]",
        "||||(t {|})|||||(t {|})||",
        '"![" call (", " call)* "]"\ncall ::= "t={" ws "}"',
        "",
    ),
    Row(
        "array, indent",
        lambda p: p.body("!" + p.array(bare(p), indent="\n ")),
        "![t={}]",
        "||||(t {|})||",
        '"![\\n " call (",\\n " call)* "\\n]"\ncall ::= "t={" ws "}"',
        "",
    ),
    Row(
        "each_tool, prose",
        lambda p: p.body(call(p)),
        "a<c>, b",
        "a||||<c>,| |b|",
        '"<c>t={" ws "}"',
        "stray-marker at character 1: expected the name of a call, found '<c>, b'",
    ),
    Row(
        "json_name",
        lambda p: p.body(p.each_tool(lambda tool: '"' + p.json_name(tool) + '":' + p.args(tool))),
        '"\\u0074":{}',
        "|||||||||(t {|})|",
        '"\\"t\\":{" ws "}"',
        "",
    ),
    Row(
        "id",
        lambda p: p.body(
            p.each_tool(
                lambda tool: "<c>" + p.name(tool) + "," + p.id(p.chars("0-9", 2, 2)) + "=" + p.args(tool)
            )
        ),
        "<c>t,07={}",
        "||||||||(t {|})|",
        '"<c>t," [0-9]{2} "={" ws "}"',
        "",
    ),
    Row(
        "header",
        lambda p: p.body(
            p.each_tool(
                lambda tool: "<c>" + p.header(r"f\.(?P<name>.+)", "f." + p.name(tool)) + "=" + p.args(tool)
            )
        ),
        "<c>f.t={}",
        "|||||||(t {|})|",
        '"<c>f.t={" ws "}"',
        "",
    ),
    Row(
        "header, another",
        lambda p: p.body(
            p.each_tool(
                lambda tool: "<c>" + p.header(r"f\.(?P<name>.+)", "f." + p.name(tool)) + "=" + p.args(tool)
            )
        ),
        "<c>t={}",
        "||||<c>t=|{|}|",
        '"<c>f.t={" ws "}"',
        "stray-marker at character 0: expected the name of a call, found '<c>t={}'",
    ),
    Row(
        "implied",
        lambda p: p.body(
            "<c>" + p.reads(bare(p), bare(p), p.tag(Tag.CALL, p.implied(Tag.NAME, "t") + p.args(ANY_TOOL)))
        ),
        "<c>{}",
        "|||(t {|})|",
        '"<c>t={" ws "}"',
        "",
    ),
    Row(
        "declared",
        lambda p: p.body(
            start=p.reads(bare(p), p.tag(Tag.CALL, p.name(ANY_TOOL) + p.declared() + "=" + p.args(ANY_TOOL)))
        ),
        "t={}",
        "||(t {|})|",
        '"t={" ws "}"',
        "",
    ),
    Row(
        "declared, another name",
        lambda p: p.body(
            start=p.reads(bare(p), p.tag(Tag.CALL, p.name(ANY_TOOL) + p.declared() + "=" + p.args(ANY_TOOL)))
        ),
        "x={}",
        "|x=|{|}|",
        '"t={" ws "}"',
        "",
    ),
    Row(
        "code_call",
        lambda p: p.body("<c>" + p.reads(bare(p), "=" + p.code_call("t", "a"), bare(p))),
        "<c>=1 + 1",
        '|||(t {"a": "|1| |+| |1|"})',
        '"<c>t={" ws "}"',
        "",
    ),
    Row(
        "json_text",
        lambda p: p.body(start=p.choice(bare(p), "{" + p.member("r") + p.cut() + p.json_text() + "}")),
        '{"r": "a\\nb"}',
        "|||||||a||\n|b|||",
        '"t={" ws "}"',
        "",
    ),
    Row(
        "member",
        lambda p: p.body(
            p.each_tool(
                lambda tool: "{" + p.member("f", "g") + '"' + p.json_name(tool) + '",' + p.args(tool) + "}"
            )
        ),
        '{"g" : "t",{}}',
        "|||||||||||(t {|}|)|",
        '"{\\"f\\"" ws ":" ws "\\"t\\",{" ws "}}"',
        "",
    ),
    Row(
        "json_call",
        lambda p: p.body("!" + p.json_call(name="n", args="a")),
        '!{"n": "t", "a": {}}',
        "|||||||||||||||||(t {|}|)|",
        '"!{" ws "\\"n\\"" ws ":" ws "\\"t\\"," ws "\\"a\\"" ws ":" ws "{" ws "}" ws "}"',
        "",
    ),
    Row(
        "json_call, another order",
        lambda p: p.body("!" + p.json_call(name="n", args="a")),
        '!{"x": 1, "a": {}, "n": "t"}',
        "|||||||||||||||||||||||||||(t {})|",
        '"!{" ws "\\"n\\"" ws ":" ws "\\"t\\"," ws "\\"a\\"" ws ":" ws "{" ws "}" ws "}"',
        "",
    ),
    Row(
        "json_call, wrapped",
        lambda p: p.body("!" + p.json_call(name="name", args="arguments")),
        '!{"function": {"name": "t", "arguments": {}}}',
        "|||||||||||||||||||||||||||||||||||||||||(t {|}||)|",
        '"!{" ws "\\"name\\"" ws ":" ws "\\"t\\"," ws "\\"arguments\\"" ws ":" ws "{" ws "}" ws "}"',
        "",
    ),
    Row(
        "json_call, id",
        lambda p: p.body("!" + p.json_call(name="n", args="a", id="i", id_pattern=p.chars("0-9"))),
        '!{"n": "t", "a": {}, "i": "7"}',
        "|||||||||||||||||(t {|}|||||||||||)|",
        '"!{" ws "\\"n\\"" ws ":" ws "\\"t\\"," ws "\\"a\\"" ws ":" ws "{" ws "}," ws "\\"i\\"" ws '
        '":" ws "\\"" [0-9]+ "\\"" ws "}"',
        "",
    ),
    Row(
        "args, Gemma",
        lambda p: p.body(
            p.each_tool(lambda tool: "<c>" + p.name(tool) + "=" + p.args(tool, Gemma(quote="`")))
        ),
        "<c>t={a:true}",
        '|||||(t {|"a|":|||||true})|',
        '"<c>t={" (m) "}"\nm ::= "a:" ("true" | "false")',
        "",
    ),
    Row(
        "each_arg, Raw",
        lambda p: p.body(tagged(p, Raw(until="</p>"))),
        "<c>t><p a>true</p></c>",
        '||||(t |||||{"a": ||||||||true||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("true" | "false") "</p>"',
        "",
    ),
    Row(
        "Raw, white space",
        lambda p: p.body(tagged(p, Raw(until="\n</p>"), p.trim("\n"))),
        "<c>t><p a>true\n</p></c>",
        '||||(t |||||{"a": |||||||||true||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("true" | "false") "\\n</p>"',
        "",
    ),
    Row(
        "Raw, python",
        lambda p: p.body(tagged(p, Raw(until="</p>", python=True))),
        "<c>t><p a>True</p></c>",
        '||||(t |||||{"a": ||||||||true||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("true" | "false" | "True" | "False") "</p>"',
        "",
    ),
    Row(
        "Raw, also",
        lambda p: p.body(
            tagged(p, Raw(until="</p>", also="</c>"), "", p.reads("</p>", "</p>", p.peek("</c>")))
        ),
        "<c>t><p a>true</c>",
        '||||(t |||||{"a": ||||||||true})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("true" | "false") "</p>"',
        "",
    ),
    Row(
        "Raw, string",
        lambda p: p.body(tagged(p, Raw(until="</p>", string=False))),
        "<c>t><p b>true</p></c>",
        '||||(t |||||{"b": ||||||||true||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("true" | "false") "</p>"',
        "",
    ),
    Row(
        "Python",
        lambda p: p.body(tagged(p, Python())),
        "<c>t><p a>True</p></c>",
        '||||(t |||||{"a": |||||true|||||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("True" | "False") "</p>"',
        "",
    ),
    Row(
        "Json",
        lambda p: p.body(tagged(p, Json())),
        "<c>t><p a>true</p></c>",
        '||||(t |||||{"a": |||||true|||||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("true" | "false") "</p>"',
        "",
    ),
    Row(
        "each_arg, separator",
        lambda p: p.body(
            "!"
            + p.each_tool(
                lambda tool: (
                    p.name(tool)
                    + "("
                    + p.each_arg(tool, lambda arg: p.arg_name(arg) + "=" + p.value(arg, Json()), ",")
                    + ")"
                )
            )
        ),
        "!t(a=true,b=1)",
        '||(t ||{"a": |||||true||, "b": |1|})|',
        '"!t(" (m) ")"\nm ::= "a=" ("true" | "false")',
        "",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_parsed(row: Row) -> None:
    turn = turn_of(row.build, row.tool)
    events, message = stream(turn, row.text)
    assert events == row.events
    assert "; ".join(map(str, message.diagnostics)) == row.diagnostics
    assert [(c.name, c.arguments, c.complete) for c in message.tool_calls] == [
        (c.name, c.arguments, c.complete) for c in turn.parse(row.text).tool_calls
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_generated(row: Row) -> None:
    turn = turn_of(row.build, row.tool)
    assert rules(turn) == "root ::= " + row.grammar
    for text in generated(turn, 20):
        message = turn.parse(text, strict=True)
        assert message.tool_calls and all(c.name == "t" and c.complete for c in message.tool_calls), text
