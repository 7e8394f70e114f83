"""Every idiom and every value syntax: a definition, a text, the events at every prefix, and the generated text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from definitions import Row, format_of, generated, rules, stream, turn_of

from chatparsers.answers import (
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
)


def call(p: Builder) -> Node:
    return p.each_tool(lambda tool: "<c>" + p.name(tool) + "=" + p.args(tool))


def json_call(p: Builder) -> Node:
    return p.json_call(name="n", args="a")


def bare(p: Builder) -> Node:
    return p.each_tool(lambda tool: p.name(tool) + "=" + p.args(tool))


def tagged(p: Builder, syntax: Raw | Python | Json, gap: Node | str = "", end: Node | str = "</p>") -> Node:
    def argument(arg: Argument) -> Node:
        return "<p " + p.arg_name(arg) + ">" + p.value(arg, syntax) + gap + end

    return p.each_tool(lambda tool: "<c>" + p.name(tool) + ">" + p.each_arg(tool, argument) + "</c>")


def each_arg(p: Builder, argument: Callable[[Argument], Node]) -> Node:
    return p.body(p.each_tool(lambda tool: "<c>" + p.name(tool) + ">" + p.each_arg(tool, argument) + "</c>"))


def same_name(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        value = p.value(arg, Raw(until="</"))
        return "<" + p.arg_name(arg, r"[^<>/\s]") + ">" + value + "</" + p.same_name(arg) + ">"

    return each_arg(p, argument)


def elements(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        value = p.value(arg, Elements("§"))
        return "§<" + p.arg_name(arg, r"[^<>/\s]") + ">" + value + "§</" + p.same_name(arg) + ">"

    return each_arg(p, argument)


def escaped(p: Builder) -> Node:
    escapes = {'"': "&quot;", "&": "&amp;"}

    def argument(arg: Argument) -> Node:
        name = p.arg_name(arg, '[^"<>]', escapes)
        return '<p k="' + name + '">' + p.value(arg, Raw(until="</p>")) + "</p>"

    return each_arg(p, argument)


def typed(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        def of(type: str, word: str) -> Node:
            return " " + word + ">" + p.value(arg, Raw(until="</p>", type=type))

        words = p.choice(of("string", "text"), of("number", "number"), of("json", "other"))
        return "<p " + p.arg_name(arg) + words + "</p>"

    return each_arg(p, argument)


def two_spellings(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        marked = "<![" + p.value(arg, Raw(until="]]>", type="string")) + "]]>"
        plain = p.value(arg, Raw(until="</p>", chars="[^<&]"))
        return "<p " + p.arg_name(arg) + ">" + p.choice(marked, plain) + "</p>"

    return each_arg(p, argument)


def lines(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        return p.arg_name(arg) + "=" + p.reads(p.value(arg, Json()), p.value(arg, Python()))

    call = p.each_tool(lambda tool: p.name(tool) + "(" + p.each_arg(tool, argument, ", ") + ")")
    return p.body("<f>" + p.calls(call, p.space("\n")) + "</f>")


def positional(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        return "<" + p.arg_name(arg) + "=" + p.value(arg, Json()) + ">"

    call = p.each_tool(lambda tool: p.name(tool) + "(" + p.each_arg(tool, argument, ", ", Json()) + ")")
    return p.body("<f>" + p.calls(call, p.space("\n")) + "</f>")


def unclosed(p: Builder) -> Node:
    def argument(arg: Argument) -> Node:
        return p.arg_name(arg) + "=" + p.value(arg, Json()) + "\n"

    end = p.reads("", p.peek(p.choice("@", "</f>")))
    call = p.each_tool(lambda tool: "@" + p.name(tool) + "\n" + p.each_arg(tool, argument) + end)
    return p.body("<f>" + p.calls(call) + "</f>")


ROWS = [
    Row(
        "a blank between the name and the arguments",
        lambda p: p.body(p.each_tool(lambda tool: "<c>" + p.name(tool) + " " + p.args(tool))),
        "<c>t {}",
        "|||||(t {|})|",
        '"<c>t {" ws "}"',
        "",
    ),
    Row(
        "think",
        lambda p: p.think("<r>\n", "\n</r>\n") + p.body(call(p)),
        "<r>\nab\n</r>\nc",
        "||||~a~|~b~|||||||c|",
        '(gap? "<r>" text "\\n"?)? gap? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, less white space",
        lambda p: p.think("<r>\n", "\n</r>\n") + p.body(call(p)),
        "<r>ab</r> c",
        "|||~a~|~b~|||||| c|",
        '(gap? "<r>" text "\\n"?)? gap? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, always",
        lambda p: p.think("<r>", "</r>", always=True) + p.body(call(p)),
        "ab</r>c",
        "~a~|~b~|||||c|",
        '(gap? "<r>")? text gap? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, calls at the end",
        lambda p: p.think("<r>", "</r>") + p.body(call(p)),
        "<r>a<c>t={}",
        "|||~a~||||||||(t {})",
        '(gap? "<r>" text)? gap? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, a draft",
        lambda p: p.think("<r>", "</r>") + p.body(call(p)),
        "<r>a<c>t={}b",
        "|||~a~||||||||~<c>t={}b~|",
        '(gap? "<r>" text)? gap? "<c>t={" ws "}"',
        "truncated at character 12: expected '</r>'",
    ),
    Row(
        "think, optional",
        lambda p: p.think("<r>", "</r>", optional=True) + p.body(call(p)),
        "<r>ab",
        "|||~a~|~b~|",
        '(gap? "<r>" text)? gap? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "think, cut off",
        lambda p: p.think("<r>", "</r>") + p.body(call(p)),
        "<r>ab",
        "|||~a~|~b~|",
        '(gap? "<r>" text)? gap? "<c>t={" ws "}"',
        "truncated at character 5: expected '</r>'",
    ),
    Row(
        "body, lead",
        lambda p: p.body(call(p), lead="\n"),
        "a\n<c>t={}b",
        "a|||||||(t {|})|b|",
        '"<c>t={" ws "}"',
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
        '(gap? "<r>" text)* gap? "<c>t={" ws "}"',
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
        "body, sections without closers",
        lambda p: p.body(
            call(p),
            reasoning=p.span(p.literal("<r>"), None),
            content=p.span(p.literal("<a>"), None),
            lead="\n",
        ),
        "<r>x\n<a>b\n<c>t={}",
        "|||~x~|||||b|||||||(t {|})|",
        '("<r>" text "t={" ws "}" gap? | gap? "<c>t={" ws "}" gap?)',
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
        'call ("," call){0,15}\ncall ::= "<c>t={" ws "}"',
        "repeated-call at character 8, call 1: expected another call than those before, found '<c>t={}'",
    ),
    Row(
        "array",
        lambda p: p.body("!" + p.array(bare(p))),
        "![t={} ,t={}]",
        "||||(t {|})|||||(t {|})||",
        '"![" call (", " call){0,15} "]"\ncall ::= "t={" ws "}"',
        "repeated-call at character 8, call 1: expected another call than those before, found 't={}]'",
    ),
    Row(
        "array, indent",
        lambda p: p.body("!" + p.array(bare(p), indent="\n ")),
        "![t={}]",
        "||||(t {|})||",
        '"![\\n " call (",\\n " call){0,15} "\\n]"\ncall ::= "t={" ws "}"',
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
        "each_tool, cut before the name",
        lambda p: p.body(p.each_tool(lambda tool: "<c>" + p.cut() + p.name(tool) + "=" + p.args(tool))),
        "<c>,<c>t={}",
        "|||||||||(t {|})|",
        '"<c>t={" ws "}"',
        "malformed at character 3: expected the name of a call, found ',<c>t={}'",
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
                lambda tool: "<c>" + p.header("f." + p.name(tool), "f." + p.name(tool)) + "=" + p.args(tool)
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
                lambda tool: "<c>" + p.header("f." + p.name(tool), "f." + p.name(tool)) + "=" + p.args(tool)
            )
        ),
        "<c>t={}",
        "||||<c>t=|{|}|",
        '"<c>f.t={" ws "}"',
        "stray-marker at character 0: expected the name of a call, found '<c>t={}'",
    ),
    Row(
        "header with what is none",
        lambda p: p.body(
            p.each_tool(
                lambda tool: "<c>" + p.header(p.name(tool), p.name(tool), unless=("u",)) + "=" + p.args(tool)
            )
        ),
        "<c>u={}",
        "||||<c>u=|{|}|",
        '"<c>t={" ws "}"',
        "stray-marker at character 0: expected the name of a call, found '<c>u={}'",
    ),
    Row(
        "if_tools",
        lambda p: p.body(call(p), marks=p.if_tools("<m>", "<n>")),
        "<n><m><c>t={}",
        "|<n|>|||||||||(t {|})|",
        '"<c>t={" ws "}"',
        "",
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
        '||||(t {"a": "1| |+| |1|"})',
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
        '!{"n": "t", "a":  {}}',
        "||||||||||||||||||(t {|}|)|",
        '"!{" ws "\\"n\\"" ws ":" ws "\\"t\\"," ws "\\"a\\"" ws ":" ws "{" ws "}" ws "}"',
        "",
    ),
    Row(
        "json_call, another order",
        lambda p: p.body("!" + p.json_call(name="n", args="a")),
        '!{"x": 1, "a": {}, "n": "t"}',
        "|||||||||||||||||||||||||||(t {})|",
        '"!{" ws "\\"n\\"" ws ":" ws "\\"t\\"," ws "\\"a\\"" ws ":" ws "{" ws "}" ws "}"',
        "unread-member at character 2, call 0: expected no other member of the call, "
        """found '"x": 1, "a": {}, "n": "t"}'""",
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
        "json_calls",
        lambda p: p.body("!" + p.reads(json_call(p), json_call(p), p.json_calls())),
        '![{"name": "t", "arguments": {}}, {"name": "t", "arguments": {}}]',
        "|||||||||||||||||||||||||||||(t {|}|)||||||||||||||||||||||||||||||(t {|}|)||",
        '"!{" ws "\\"n\\"" ws ":" ws "\\"t\\"," ws "\\"a\\"" ws ":" ws "{" ws "}" ws "}"',
        "repeated-call at character 34, call 1: expected another call than those before, "
        """found '{"name": "t", "arguments": {}}]'""",
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
        "think, ended by content",
        lambda p: (
            p.think("<r>", p.reads("</r>", "</r>", p.peek("<a>")))
            + p.body(call(p), content=p.span("<a>", "</a>", optional=True))
        ),
        "<r>ab<a>c</a>",
        "|||~a~|~b~||||c|||||",
        '(gap? "<r>" text)? gap? "<c>t={" ws "}"',
        "",
    ),
    Row(
        "token, another name",
        lambda p: p.body(
            p.token("<c>", "<c:x>")
            + p.each_tool(lambda tool: p.name(tool) + "=" + p.args(tool) + p.token("</c>", "</c:x>"))
        ),
        "<c:x>t={}</c:x>",
        "|||||||(t {|}||||||)|",
        '"<c>" "t={" ws "}" "</c>"',
        "",
    ),
    Row(
        "same_name",
        same_name,
        "<c>t><a>true</a></c>",
        '||||(t |||{"a": ||||||true||||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "<a>" ("true" | "false") "</a>"',
        "",
    ),
    Row(
        "same_name, another",
        same_name,
        "<c>t><a>true</b></c>",
        '||||(t |||{"a": ||||||true|||||||?)',
        '"<c>t>" (m) "</c>"\nm ::= "<a>" ("true" | "false") "</a>"',
        "malformed at character 14, call 0: expected the argument's name 'a', found 'b></c>'",
    ),
    Row(
        "Elements",
        elements,
        "<c>t>§<b>§<x>1§</x>§</b></c>",
        '||||(t ||||{"b": ||||{"x": |||||||1||||}||||})|',
        '"<c>t>" (m) "</c>"\nm ::= "§<a>" ("true" | "false") "§</a>"',
        "",
    ),
    Row(
        "arg_name, escapes",
        escaped,
        '<c>t><p k="a&amp;&quot;b">1</p></c>',
        '||||(t |||||||||||||||||||||{"a&\\"b": |||||||||1})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p k=\\"a\\">" ("true" | "false") "</p>"',
        "",
    ),
    Row(
        "Raw, the wire says the type",
        typed,
        "<c>t><p a number>5</p><p d text>5</p></c>",
        '||||(t ||||||||||||{"a": |||||5||||||||||, "d": "|5||||||||"})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a other>" ("true" | "false") "</p>"',
        "",
    ),
    Row(
        "Raw, chars",
        two_spellings,
        "<c>t><p b><![<&]]></p><p d>x</p></c>",
        '||||(t ||||||||{"b": "||<&|||||||"||||||, "d": "x||||||||"})|',
        '"<c>t>" (m) "</c>"\nm ::= "<p a>" ("true" | "false") "</p>"',
        "",
    ),
    Row(
        "calls on lines",
        lines,
        "<f>t()\nt(a=None)</f>",
        '||||(t |{})|||(t ||{"a": |||||null})|||||',
        '"<f>" call ("\\n" call){0,15} "\\n"? "</f>"\nm ::= "a=" ("true" | "false")\ncall ::= "t(" (m) ")"',
        "",
    ),
    Row(
        "Raw, string",
        lambda p: p.body(tagged(p, Raw(until="</p>", type="json"))),
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
    Row(
        "each_arg, no closer",
        unclosed,
        "<f>@t\na=true\n@t\na=true\n</f>",
        '|||||(t ||{"a": |||||true||||})(t |{"a": |||||true||||})|',
        '"<f>" call call{0,15} "</f>"\nm ::= "a=" ("true" | "false") "\\n"\ncall ::= "@t\\n" (m)',
        "repeated-call at character 13, call 1: expected another call than those before, found '@t\\na=true\\n</f>'",
    ),
    Row(
        "each_arg, no closer, cut off",
        unclosed,
        "<f>@t\na=true\n",
        '|||||(t ||{"a": |||||true|?)',
        '"<f>" call call{0,15} "</f>"\nm ::= "a=" ("true" | "false") "\\n"\ncall ::= "@t\\n" (m)',
        "truncated at character 13, call 0: expected an argument's name or '@' or '</f>'",
    ),
    Row(
        "each_arg, positional",
        positional,
        "<f>t(true)\nt (true)</f>",
        '||||(t ||||{"a": |true})||||(t ||||{"a": |true})|||||',
        '"<f>" call ("\\n" call){0,15} "\\n"? "</f>"\nm ::= "<a=" ("true" | "false") ">"\ncall ::= "t(" (m) ")"',
        "repeated-call at character 11, call 1: expected another call than those before, found 't (true)</f>'",
    ),
]


@pytest.mark.one_in(1)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_parsed_and_what_is_generated(row: Row) -> None:
    turn = turn_of(row.build, row.tool)
    events, message = stream(turn, row.text)
    assert events == row.events
    assert "; ".join(map(str, message.diagnostics)) == row.diagnostics
    assert [(c.name, c.arguments, c.complete) for c in message.tool_calls] == [
        (c.name, c.arguments, c.complete) for c in turn.parse(row.text).tool_calls
    ]
    assert rules(turn) == "root ::= " + row.grammar
    for text in generated(turn, 20):
        message = turn.parse(text, strict=True)
        assert message.tool_calls and all(c.name == "t" and c.complete for c in message.tool_calls), text


def tool_of(name: str, schema: object) -> dict[str, object]:
    return {"name": "t", "parameters": {"type": "object", "properties": {name: schema}, "required": [name]}}


STRING_OR_INTEGER = {"type": ["string", "integer"]}


@pytest.mark.parametrize(
    ("build", "tool", "grammar"),
    [
        (escaped, tool_of('a&"', {"type": "null"}), '"<p k=\\"a&amp;&quot;\\">null</p>"'),
        (
            typed,
            tool_of("a", STRING_OR_INTEGER),
            '"<p a" (" text>" text | " number>" integer "</p>" | " other>" integer "</p>")',
        ),
        (
            typed,
            tool_of("a", {"enum": ["5", 5, True]}),
            '"<p a" (" text>" text | " number>5</p>" | " other>" ("5" | "true") "</p>")',
        ),
        (two_spellings, tool_of("a", {"enum": ["<", "5"]}), '"<p a>" ("<![" text "</p>" | text-1)'),
        (elements, tool_of("a", {"type": "array", "items": {"type": "integer"}}),
         '"§<a>" ("§" "<item>" integer "§" "</item>" ("§" "<item>" integer "§" "</item>")* | "") "§</a>"'),
        (elements, tool_of("a", {"type": "object", "properties": {"b": {"const": "x"}}, "required": ["b"]}),
         '"§" "<b>" text "</b>"'),
    ],
    ids=["escapes", "types", "listed values", "chars", "an array", "an object"],
)  # fmt: skip
def test_the_schema_of_an_argument(build: Callable[[Builder], Node], tool: object, grammar: str) -> None:
    turn = turn_of(build, tool)
    assert grammar in rules(turn).replace(" ::= ", " "), rules(turn)
    assert not turn.grammar().weakened


def test_a_name_that_the_schema_does_not_list_is_not_written_twice() -> None:
    tool = {"name": "t", "parameters": {"type": "object", "additionalProperties": {"type": "null"}}}
    turn = turn_of(same_name, tool)
    assert rules(turn) == 'root ::= "<c>t></c>"'
    assert [weak.keyword for weak in turn.grammar().weakened] == ["additionalProperties"]
    turn = turn_of(elements, tool_of("a", {"type": "object", "additionalProperties": {"type": "null"}}))
    assert rules(turn).endswith('"§<a>§</a>"')
    assert [weak.keyword for weak in turn.grammar().weakened] == ["additionalProperties"]


def test_the_name_of_a_token_is_the_one_that_the_prompt_has() -> None:
    def build(p: Builder) -> Node:
        section = p.token("<c>", "<c:x>") + call(p) + p.token("</c>", "</c:x>")
        return p.think(p.token("<r>", "<r:x>"), p.token("</r>", "</r:x>")) + p.body(section)

    assert rules(turn_of(build)) == 'root ::= (gap? "<r>" text)? gap? "<c>" "<c>t={" ws "}" "</c>"'
    named = rules(turn_of(build, prefix="<r:x>"))
    assert '"<c:x>" "<c>t={" ws "}" "</c:x>"' in named and '"<c>"' not in named


def test_a_declared_tool_may_have_an_argument_without_a_name() -> None:
    """Only ``lacks`` asks for the tool's arguments."""
    start = lambda p: p.tag(Tag.CALL, p.name(ANY_TOOL) + p.declared() + "=" + p.args(ANY_TOOL))  # noqa: E731
    parameters = {"type": "object", "properties": {"": {"type": "string"}}}
    format = format_of(lambda p: p.body(start=p.reads(bare(p), start(p))))
    message = format.bind(tools=[{"name": "f", "parameters": parameters}]).parse('f={"": "x"}')
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("f", '{"": "x"}')]


@pytest.mark.parametrize("name", ["name", "function", "tool", "fn"])
@pytest.mark.parametrize("args", ["arguments", "parameters", "args", "input"])
def test_a_json_call_has_any_keys(name: str, args: str) -> None:
    """Also those that models write in place of others."""

    def build(p: Builder) -> Node:
        ids = (p.chars("a", 2, 2), p.chars("0-9", 2, 2))
        one, other = (p.json_call(name=name, args=args, id="id", id_pattern=made) for made in ids)
        return p.body(p.token("<c>") + p.reads(one, other, one) + "</c>")

    form = Format("keys", "", "", build)
    tools = [{"name": "f", "parameters": {"type": "object"}}]
    for keys in ((name, args), ("name", "arguments"), ("function", "args")):
        text = '<c>{{"{}": "f", "{}": {{"a": 1}}}}</c>'.format(*keys)
        calls = form.bind(tools=tools).parse(text, strict=True).tool_calls
        assert [(call.name, call.arguments) for call in calls] == [("f", '{"a": 1}')], text
