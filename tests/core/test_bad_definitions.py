"""Wrong definitions, and their errors: each names the format, the node, the mistake and the mend.

Before trees were checked, each of these compiled, and then hung, raised in `feed`, lost a call or wrote another one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from chatparsers.answers import (
    ANY_ARGUMENT,
    ANY_TOOL,
    Argument,
    Builder,
    Elements,
    Format,
    Gemma,
    Node,
    Raw,
    Tag,
    Tool,
)
from chatparsers.answers.idioms import Options
from chatparsers.errors import DefinitionError, SchemaError

Build = Callable[[Builder], Any]

VALUE = Raw(until="</>")
OTHER = Tool("other")


def call(make: Callable[[Builder, Tool], Any]) -> Build:
    """Calls that ``make`` writes after ``<call>``."""
    return lambda p: p.body(p.token("<call>") + p.each_tool(lambda tool: make(p, tool)))


def argument(p: Builder) -> Callable[[Argument], Node]:
    """An argument as ``<name>value</>``."""
    return lambda arg: "<" + p.arg_name(arg) + ">" + p.value(arg, VALUE) + "</>"


def tagged(make: Callable[[Builder, Argument], Any]) -> Build:
    """Calls in which ``make`` writes each argument."""
    return call(lambda p, tool: p.name(tool) + ">" + p.each_arg(tool, lambda arg: make(p, arg)) + "</call>")


def nested(wrap: Callable[[Node], Node], times: int, node: Node) -> Node:
    """``node``, wrapped that many times."""
    for _ in range(times):
        node = wrap(node)
    return node


def forever(p: Builder, tool: Tool) -> Node:
    """A call that holds itself, in what is generated alone."""
    inner = "" if tool is ANY_TOOL else p.each_tool(lambda tool: forever(p, tool))
    return p.name(tool) + ":" + p.args(tool) + inner


SLIPS: dict[str, list[tuple[str, Build, str]]] = {
    "too large": [
        (
            "nodes in each other",
            lambda p: nested(lambda node: p.optional("a" + node), 3000, p.literal("z")) + p.body(),
            "build: its nodes stand inside each other more than 100 deep, counting those of each rule; write "
            "p.many() or p.choice() instead",
        ),
        (
            "rules in each other",
            lambda p: (
                p.sequence(*(p.rule(f"r{i}", f"{i}" + p.optional(p.ref(f"r{i + 1}"))) for i in range(50)))
                + p.rule("r50", "z")
                + p.body()
            ),
            "build: its nodes stand inside each other more than 100 deep, counting those of each rule; write "
            "p.many() or p.choice() instead",
        ),
        (
            "a call in a call, without end",
            lambda p: p.body("<c>" + p.each_tool(lambda tool: forever(p, tool))),
            "build: its nodes stand inside each other more than 100 deep, counting those of each rule; write "
            "p.many() or p.choice() instead",
        ),
        (
            "repetitions of repetitions",
            lambda p: p.repeat(p.repeat("ab", 0, 1000), 0, 1000) + p.body(),
            "p.repeat(p.repeat('ab', 0, 1000), 0, 1000): written out, it has more than 100,000 nodes and characters; "
            "repeat it without a bound, or write p.chars() or p.until() in the place of many texts",
        ),
        (
            "twice as large thirty times",
            lambda p: nested(lambda node: p.choice(node + "a", node + "b"), 30, p.literal("")) + p.body(),
            "((((((((((((('a' | 'b') + 'a' | ('a' | 'b') + 'b') + 'a' | …: "
            "written out, it has more than 100,000 nodes and characters; repeat it without a bound, or write "
            "p.chars() or p.until() in the place of many texts",
        ),
        (
            "many alternatives",
            lambda p: p.choice(*(f"a{i}b" for i in range(5000))) + p.body(),
            "p.choice: it has more than 1,000 parts; repeat it without a bound, or write p.chars() or "
            "p.until() in the place of many texts",
        ),
        (
            "calls that begin in many ways",
            lambda p: p.body(
                nested(lambda node: p.choice(" ", "\n") + node, 24, p.json_call(name="n", args="a"))
            ),
            "p.body(calls=(' ' | '\\n') + (' ' | '\\n') + (' ' | '\\n') + (' ' | '\\n') +…): "
            "a section in running text must not begin in more than 250 ways: write p.space() for any white space, or "
            "begin with what they share",
        ),
    ],
    "what cannot be": [
        (
            "a rule without an end",
            lambda p: p.rule("a", "(" + p.ref("a") + ")") + p.body(),
            "p.rule('a'): it has no end, as each way through it calls itself; add an alternative without p.ref('a')",
        ),
        (
            "no body",
            lambda p: p.literal("a") + p.rest(),
            "build: what is parsed has no p.body(); return a tree that ends with p.body(calls)",
        ),
        (
            "a class without characters",
            lambda p: p.chars(r"^\s\S") + p.body(),
            r"p.chars('^\\s\\S'): no character is of this class; give the class of those that are read",
        ),
        (
            "a name's characters by twos",
            call(lambda p, tool: p.name(tool, chars="(?:a|bb)") + ":" + p.args(tool)),
            "p.name(tool): chars='(?:a|bb)' is more than a class of characters; write one class in brackets, such as "
            "chars='[^<>]'",
        ),
        (
            "a header that takes years",
            call(
                lambda p, tool: p.header(p.many(p.chars("a-z")) + p.name(tool), p.name(tool)) + p.args(tool)
            ),
            "p.many(p.chars('a-z')): it stands in what a header parses; write texts, p.chars, p.optional, p.choice, "
            "p.name(tool) and p.same_name(tool)",
        ),
        (
            "a header that takes minutes",
            call(
                lambda p, tool: (
                    p.header(p.chars("a") + p.chars("a-z") + p.name(tool), p.name(tool)) + p.args(tool)
                )
            ),
            "p.header(…): what it parses may divide a header in more than 10,000,000 ways; give p.chars() a bound, "
            "such as p.chars('0-9', 1, 4)",
        ),
        (
            "half a character",
            lambda p: p.token("\ud800") + p.body(),
            r"p.token('\ud800'): a lone surrogate is no character; write the character that it is a half of",
        ),
        (
            "two parts of a call with one key",
            lambda p: p.body("<c>" + p.json_call(name="name", args="name")),
            "p.json_call: two of its parts have the same key; give each its own",
        ),
        (
            "make returns nothing for a tool",
            lambda p: p.body("<c>" + p.each_tool(lambda tool: "x" if tool is ANY_TOOL else None)),  # type: ignore[arg-type, return-value]
            "p.each_tool: expected make('probe_tool') to return a node or a text, found NoneType: None; return what "
            "it made",
        ),
        (
            "content without an end",
            lambda p: p.body(
                p.each_tool(lambda tool: p.reads(p.name(tool), "<c>" + p.name(tool)) + " " + p.args(tool)),
                content=p.span("[text]", None),
            ),
            "p.body: text without a closer goes up to the next section, and nothing tells where that one begins; give "
            "p.span() a closer, or begin the sections and the calls with a text",
        ),
        (
            "a longer alternative behind several",
            lambda p: p.choice("a", "b", p.choice("a", "b") + "c", "d") + p.body(),
            "'a' | 'b' | ('a' | 'b') + 'c' | 'd': ('a' | 'b') + 'c' is never tried, as 'a' and 'b' before it is how "
            "it begins; put the longer alternative first",
        ),
    ],
    "newcomers": [
        (
            "a name without an end",
            call(lambda p, tool: p.name(tool) + p.args(tool)),
            "p.name(tool) + p.args(tool): nothing ends p.name(tool), so a half of it would pass for the "
            'whole; put a marker after it; where none is written, what must follow: p.reads("", p.peek("{"))',
        ),
        (
            "no name",
            call(lambda p, tool: "{" + p.args(tool) + "}"),
            "p.args(tool): the call has no name yet, and needs it here; put p.name(tool) before it",
        ),
        (
            "no arguments",
            call(lambda p, tool: "{" + p.name(tool) + "}"),
            "'{' + p.name(tool) + '}': the call has no arguments; write p.args(tool) or "
            "p.each_arg(tool, …) into it",
        ),
        (
            "the closer stands after p.each_tool",
            lambda p: p.body(
                p.token("<call>")
                + p.each_tool(lambda tool: p.name(tool) + ">" + p.each_arg(tool, argument(p)))
                + p.token("</call>")
            ),
            "p.name(tool) + '>' + p.each_arg(…): the call ends with its arguments, so a call that is "
            "cut off would pass for a whole one; put the closer into the call, after p.each_arg, and "
            'not after p.each_tool; if there is none, what must follow: p.reads("", p.peek("…"))',
        ),
        (
            "an opener that reads the closer",
            lambda p: p.body(
                "<z>" + p.each_tool(lambda tool: p.name(tool) + "\n" + p.each_arg(tool, argument(p)) + "</z>")
            ),
            "p.each_arg(…): its opener also reads '</z>', which ends the arguments: '/z' would be a name; leave "
            "those signs out of p.arg_name(arg, chars=…), or begin arguments in another way",
        ),
        (
            "an opener that reads the closer, in what is parsed",
            lambda p: p.body(
                "<z>"
                + p.each_tool(
                    lambda tool: (
                        p.name(tool)
                        + "\n"
                        + p.rule("all", p.each_arg(tool, lambda arg: p.reads("[", "") + argument(p)(arg)))
                        + "</z>"
                    )
                )
            ),
            "p.each_arg(…): its opener also reads '</z>', which ends the arguments: '/z' would be a name; leave "
            "those signs out of p.arg_name(arg, chars=…), or begin arguments in another way",
        ),
        (
            "a name that takes what follows it",
            lambda p: p.body(p.calls("<z>" + p.each_tool(lambda tool: p.name(tool) + ":" + p.args(tool)))),
            "p.name(tool): it takes ':', which is written after it, for a part of the name; leave those signs out of "
            "its chars=…, or write another text after it",
        ),
        (
            "a name that takes what follows it, in what is parsed",
            lambda p: p.body(
                p.calls("<z>" + p.each_tool(lambda tool: p.name(tool) + p.reads(">", ":") + p.args(tool)))
            ),
            "p.name(tool): it takes ':', which is written after it, for a part of the name; leave those signs out of "
            "its chars=…, or write another text after it",
        ),
        (
            "a bare name that reads the closer",
            call(
                lambda p, tool: (
                    p.name(tool)
                    + "("
                    + p.each_arg(tool, lambda arg: p.arg_name(arg) + "=" + p.value(arg, VALUE) + "</>")
                    + "end=1"
                )
            ),
            "p.each_arg(…): its opener also reads 'end=1', which ends the arguments: 'end' would be a name; leave "
            "those signs out of p.arg_name(arg, chars=…), or begin arguments in another way",
        ),
        (
            "the closer of a value is forgotten",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(arg, VALUE)),
            "p.each_arg(…): the text that ends the value, '</>', is not read after it; write it after "
            "p.value(arg, …)",
        ),
        (
            "characters that cannot be",
            lambda p: p.chars("a", 3, 1) + p.body(),
            "p.chars('a'): it cannot come 3 to 1 times; give a least that is 0 or more, and a larger most",
        ),
        (
            "the value of another argument",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(ANY_ARGUMENT, VALUE) + "</>"),
            "p.value(arg, Raw(…)): it is not given the argument that make(arg) was given; pass that argument on",
        ),
        (
            "brackets in p.chars",
            lambda p: p.chars("[0-9]") + p.body(),
            "p.chars('[0-9]'): the brackets are part of the class; leave them out: p.chars('0-9')",
        ),
        (
            "no brackets in chars=",
            call(lambda p, tool: p.name(tool, chars="a-z_") + ":" + p.args(tool)),
            "p.name(tool): chars='a-z_' matches no single character; write a class in brackets: "
            "chars='[a-z_]'",
        ),
        (
            "look-ahead in what is generated",
            call(lambda p, tool: p.name(tool) + p.peek("{") + p.args(tool)),
            "p.peek('{'): a grammar cannot look ahead; use it in what is parsed alone: "
            "p.reads(generated, parsed)",
        ),
        (
            "a value syntax by its name",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(arg, "json") + "</>"),
            "p.value: expected a value syntax as syntax, found 'json'; import Json, Raw, Python or "
            "Gemma from chatparsers.answers",
        ),
        (
            "a misspelt key of p.json_call",
            lambda p: p.body(p.token("<call>") + p.json_call(name="name", arguments="arguments")),
            "p.json_call: there is no part 'arguments': did you mean args?",
        ),
        (
            "the tool is asked for its name",
            call(lambda p, tool: tool.name + ":" + p.args(tool)),
            "ANY_TOOL has no name: the parser reads one tree for all tools. Pass the tool on to "
            "p.name(), p.args() and p.each_arg(); where one tool is written in another way, ask `tool "
            "is ANY_TOOL` first",
        ),
        (
            "or for |",
            lambda p: p.body(p.literal("a") or "b"),
            "a node has no truth value: write `a | b` for ordered choice, not `a or b`",
        ),
        (
            "nothing is returned",
            lambda p: None,
            "build: expected it to return a node, found None; return what it made, such as p.body(calls)",
        ),
    ],
    "rules": [
        (
            "left recursion",
            lambda p: p.rule("a", p.ref("a") + "x") + p.body(),
            "p.rule('a'): it calls itself before it reads a character (a → a); put what it always "
            "begins with first, or use p.many()",
        ),
        (
            "left recursion through another rule",
            lambda p: p.rule("a", p.ref("b") + "x") + p.rule("b", p.space() + p.ref("a")) + p.body(),
            "p.rule('a'): it calls itself before it reads a character (a → b → a); put what it always "
            "begins with first, or use p.many()",
        ),
        (
            "left recursion after what may be empty",
            lambda p: p.rule("a", p.optional("y") + p.ref("a") + "x") + p.body(),
            "p.rule('a'): it calls itself before it reads a character (a → a); put what it always "
            "begins with first, or use p.many()",
        ),
        (
            "an empty loop",
            lambda p: p.many(p.space()) + p.body(),
            "p.many(p.space()): the repeated part can be empty, so the loop would never end; let it "
            "begin with a text",
        ),
        (
            "an empty loop through a rule",
            lambda p: p.rule("a", p.optional("y")) + p.many(p.ref("a")) + p.body(),
            "p.many(p.ref('a')): the repeated part can be empty, so the loop would never end; let it "
            "begin with a text",
        ),
        (
            "a loop of calls without a text",
            lambda p: p.body(p.token("<call>") + p.calls(p.code_call("python", "code"))),
            "p.calls(p.implied(Tag.NAME, 'python') + p.peek(p.space() + …: a call can be empty, so the loop "
            "would never end; let it begin with a marker",
        ),
        (
            "a loop of arguments without a text",
            tagged(lambda p, arg: p.implied(Tag.ARG_NAME, "a") + p.value(arg, VALUE) + p.optional("</>")),
            "p.each_arg(…): an argument can be empty, so the loop would never end; let it begin with a "
            "marker or p.arg_name(arg)",
        ),
        (
            "an unknown rule",
            lambda p: p.rule("arg", "a") + p.ref("args") + p.body(),
            "p.ref('args'): there is no such rule; did you mean arg?",
        ),
        (
            "a rule twice",
            lambda p: p.rule("a", "a") + p.rule("a", "b") + p.body(),
            "p.rule('a', 'b'): the rule 'a' is defined twice; give one of them another name",
        ),
        (
            "times that cannot be",
            lambda p: p.repeat("a", 3, 1) + p.body(),
            "p.repeat('a', 3, 1): it cannot come 3 to 1 times; give a least that is 0 or more, and a "
            "larger most",
        ),
        (
            "an alternative behind white space",
            lambda p: p.choice(p.space(), "a") + p.body(),
            "p.space() | 'a': the alternatives after p.space() are never tried, as it always matches; put it last, "
            "or use p.optional()",
        ),
        (
            "an alternative that is never tried",
            lambda p: p.choice("", "a") + p.body(),
            "'' | 'a': the alternatives after '' are never tried, as it always matches; put it last, or"
            " use p.optional()",
        ),
        (
            "a longer alternative behind its beginning",
            lambda p: p.choice("final", "final " + p.token("<json>")) + p.body(),
            "'final' | 'final ' + p.token('<json>'): 'final ' + p.token('<json>') is never tried, as 'final'"
            " before it is how it begins; put the longer alternative first",
        ),
        (
            "a longer alternative behind a choice of its beginnings",
            lambda p: p.choice("<" + p.choice("a", "b"), "<ab") + p.body(),
            "'<' + ('a' | 'b') | '<ab': '<ab' is never tried, as '<' + ('a' | 'b') before it is how it begins;"
            " put the longer alternative first",
        ),
        (
            "a commitment in a look-ahead",
            lambda p: p.body(
                p.token("<call>") + p.reads("", p.peek(p.cut() + "{")) + p.json_call(name="name", args="args")
            ),
            "p.peek(p.cut() + '{'): p.cut() commits to a call, and this only looks ahead; look for what"
            " stands before it",
        ),
        (
            "something after the body",
            lambda p: p.body() + "x",
            "p.body(…): nothing is read after it, as it takes the rest of the turn; put it last",
        ),
        (
            "calls that begin with no text",
            lambda p: p.body(p.each_tool(lambda tool: p.name(tool) + ":" + p.args(tool))),
            "p.body(calls=p.each_tool(…)): a section must begin with a literal or a token to be found "
            "in running text, not Name",
        ),
    ],
    "calls": [
        (
            "a name after the arguments",
            call(lambda p, tool: p.args(tool) + p.name(tool) + "|"),
            "p.args(tool): the call has no name yet, and needs it here; put p.name(tool) before it",
        ),
        (
            "a name on one path only",
            call(lambda p, tool: (p.name(tool) + ":" | p.literal("x")) + p.args(tool)),
            "p.args(tool): the call has no name yet, and needs it here; put p.name(tool) before it",
        ),
        (
            "a name twice",
            call(lambda p, tool: p.name(tool) + ":" + p.name(tool) + ":" + p.args(tool)),
            "p.name(tool): the call has a name already; write p.name(tool) once on each path through it",
        ),
        (
            "arguments twice",
            call(lambda p, tool: p.name(tool) + ":" + p.args(tool) + p.args(tool)),
            "p.args(tool): the call has its arguments already; write p.args or p.each_arg once on each "
            "path through it",
        ),
        (
            "a name that is repeated",
            call(lambda p, tool: p.many(p.name(tool) + ":") + p.args(tool)),
            "p.name(tool): the call has a name already; write p.name(tool) once on each path through it",
        ),
        (
            "the name of any tool is generated",
            call(lambda p, tool: p.name(ANY_TOOL) + ":" + p.args(tool)),
            "p.name(tool): it does not write the name of the tool that make(tool) was given; pass that "
            "tool on",
        ),
        (
            "the arguments of any tool are generated",
            call(lambda p, tool: p.name(tool) + ":" + p.args(ANY_TOOL)),
            "p.args(tool): it is given ANY_TOOL, not the tool that make(tool) was given; pass that one on",
        ),
        (
            "the arguments of another tool",
            call(lambda p, tool: p.name(tool) + ":" + p.args(OTHER)),
            "p.args(tool): it is given the tool 'other', not the tool that make(tool) was given; pass "
            "that one on",
        ),
        (
            "a name outside the call",
            lambda p: p.body(
                p.token("<call>") + p.name(ANY_TOOL) + ":" + p.each_tool(lambda tool: p.args(tool))
            ),
            "p.name(tool): it stands outside a call, so what it reads is lost; put it into what "
            "make(tool) returns for p.each_tool()",
        ),
        (
            "a call in a call",
            call(lambda p, tool: p.name(tool) + ":" + p.json_call(name="name", args="arguments")),
            "p.each_tool(…): it stands inside the call; write the calls one after the other, not in each other",
        ),
        (
            "an id at the end that may be left out",
            call(lambda p, tool: p.name(tool) + ":" + p.args(tool) + p.optional("#" + p.id(p.chars("0-9")))),
            "p.name(tool) + ':' + p.args(tool) + p.optional('#' + p.id(……: nothing ends what may be "
            "left out, so a half of it would pass for the whole; put a marker after it; where none is "
            'written, what must follow: p.reads("", p.peek("{"))',
        ),
        (
            "tagged text for a name",
            call(lambda p, tool: p.tag(Tag.NAME, p.chars("a-z")) + ":" + p.args(tool)),
            "p.tag(Tag.NAME, p.chars('a-z')): a name is not tagged text; use p.name(tool), "
            "p.arg_name(arg) or p.id(…)",
        ),
        (
            "p.declared before the name",
            call(lambda p, tool: p.declared() + p.name(tool) + ":" + p.args(tool)),
            "p.declared(): no name has been read before it; put it after p.name(tool)",
        ),
        (
            "a part of a call in a rule that calls itself",
            call(
                lambda p, tool: p.rule("a", "(" + p.optional(p.ref("a")) + p.name(tool) + ")") + p.args(tool)
            ),
            "p.ref('a'): the call is part of a rule that calls itself; write the name and the arguments "
            "outside it",
        ),
        (
            "a header that parses no name",
            call(lambda p, tool: p.header(p.name(tool) | ".", p.name(tool)) + ":" + p.args(tool)),
            "p.header(…): '.', a way to parse it, has not one name of the tool; write p.name(tool) "
            "once into each way",
        ),
        (
            "a header that generates no name",
            call(lambda p, tool: p.header(p.name(tool), "name") + ":" + p.args(tool)),
            "p.header(…): what it generates has no name of the tool; write p.name(tool)"
            " into its second argument",
        ),
        (
            "a bad regular expression",
            call(lambda p, tool: p.header(p.name(tool), p.name(tool), "[a") + ":" + p.args(tool)),
            "p.header(…): '[a' is no regular expression: unterminated character set at position 0; write "
            "one that Python's re reads, with a backslash before what is meant as text",
        ),
        (
            "a name once more, where there was none",
            call(lambda p, tool: p.same_name(tool) + p.name(tool) + ":" + p.args(tool)),
            "p.same_name(tool): the parser has no name to compare it with; write p.reads(p.same_name(tool), …)",
        ),
        (
            "make fails for a tool",
            call(lambda p, tool: p.name(tool) + ":" + (p.args(tool) if tool is ANY_TOOL else {}[tool.name])),
            "p.each_tool: make('probe_tool') failed: KeyError: 'probe_tool'; it is called with each "
            "tool and argument",
        ),
    ],
    "arguments": [
        (
            "a name twice",
            tagged(
                lambda p, arg: (
                    "<" + p.arg_name(arg) + ">" + p.arg_name(arg) + "." + p.value(arg, VALUE) + "</>"
                )
            ),
            "p.arg_name(arg): the argument has a name already; write p.arg_name(arg) once on each path through it",
        ),
        (
            "no name",
            tagged(lambda p, arg: "<" + p.value(arg, VALUE) + "</>"),
            "p.value(arg, Raw(…)): the argument has no name yet, and needs it here; put p.arg_name(arg) before it",
        ),
        (
            "no value",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + "/>"),
            "p.each_arg(…): the argument has no value on one of the paths through it; write "
            "p.value(arg, …) after its name",
        ),
        (
            "a value twice",
            tagged(
                lambda p, arg: (
                    "<" + p.arg_name(arg) + ">" + p.value(arg, VALUE) + "</>" + p.value(arg, VALUE) + "</>"
                )
            ),
            "p.value(arg, Raw(…)): the argument has its value already; "
            "write p.value(arg, …) once on each path through it",
        ),
        (
            "a name without an end",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + p.value(arg, VALUE) + "</>"),
            "p.each_arg(…): nothing ends p.arg_name(arg), so a half of it would pass for the whole; put a "
            'marker after it; where none is written, what must follow: p.reads("", p.peek("{"))',
        ),
        (
            "the name of any argument is generated",
            tagged(lambda p, arg: "<" + p.arg_name(ANY_ARGUMENT) + ">" + p.value(arg, VALUE) + "</>"),
            "p.arg_name(arg): it does not write the name of the arg that make(arg) was given; pass that"
            " arg on",
        ),
        (
            "the value of any argument is generated",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(ANY_ARGUMENT, VALUE) + "</>"),
            "p.value(arg, Raw(…)): it is not given the argument that make(arg) was given; pass that "
            "argument on",
        ),
        (
            "a tool's name in it",
            tagged(lambda p, arg: "<" + p.name(ANY_TOOL) + ">" + p.value(arg, VALUE) + "</>"),
            "p.name(tool): it stands inside the argument; keep to p.arg_name(arg), p.value(arg, …) and "
            "markers there",
        ),
        (
            "a value outside p.each_arg",
            call(lambda p, tool: p.name(tool) + ":" + p.value(ANY_ARGUMENT, VALUE) + "</>"),
            "p.value(arg, Raw(…)): it stands outside an argument; put it into what make(arg) returns "
            "for p.each_arg()",
        ),
        (
            "raw text without an end",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(arg, Raw()) + "</>"),
            "Raw: expected until=, the text that ends the value, found none: the value would take the "
            "rest of the turn. Give the closing tag, or end=True if the turn's end is what ends it",
        ),
        (
            "raw text for all arguments",
            call(lambda p, tool: p.name(tool) + ":" + p.args(tool, VALUE)),
            "p.args: Raw is for p.value(), not for all arguments at once",
        ),
        (
            "Gemma for one argument",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(arg, Gemma("<q>")) + "</>"),
            "p.value: Gemma is for p.args(), not for a single argument",
        ),
        (
            "a closing tag before the name",
            tagged(
                lambda p, arg: "<" + p.same_name(arg) + p.arg_name(arg) + ">" + p.value(arg, VALUE) + "</>"
            ),
            "p.same_name(arg): the argument has no name yet; put p.arg_name(arg) before it",
        ),
        (
            "a closing tag of another argument",
            tagged(
                lambda p, arg: (
                    "<"
                    + p.arg_name(arg)
                    + ">"
                    + p.value(arg, VALUE)
                    + p.same_name(Argument("b", True, False))
                )
            ),
            "p.same_name(arg): it is not given the argument that make(arg) was given; pass that argument on",
        ),
        (
            "a closing tag outside an argument",
            call(lambda p, tool: p.name(tool) + ":" + p.args(tool) + p.same_name(ANY_ARGUMENT)),
            "p.same_name(arg): it stands outside an argument; put it into what make(arg) returns for p.each_arg()",
        ),
        (
            "a type that JSON has not",
            tagged(
                lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(arg, Raw("</>", type="text")) + "</>"
            ),
            "Raw: there is no type 'text': known are: array, boolean, integer, json, null, number, object, string",
        ),
        (
            "a spelling of more than a character",
            tagged(
                lambda p, arg: (
                    "<" + p.arg_name(arg) + ">" + p.value(arg, Raw("</>", escapes=(("ab", "c"),))) + "</>"
                )
            ),
            "Raw: expected escapes=, pairs of one character and its spelling, found ('ab', 'c')",
        ),
        (
            "Gemma without its quote",
            call(lambda p, tool: p.name(tool) + ":" + p.args(tool, Gemma(""))),
            "Gemma: expected the marker around strings, found '': give e.g. '<escape>'",
        ),
    ],
    "texts": [
        (
            "a tuple for p.until",
            lambda p: p.until(("a", "b")) + p.body(),
            "p.until: expected a text as stops, found tuple: ('a', 'b'); write it in quotes, such as \"<call>\"",
        ),
        (
            "a list for until=",
            tagged(lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(arg, Raw(until=["</>"])) + "</>"),
            'Raw: expected a text, or a tuple of texts such as ("</a>", "</b>"), as until, found list: '
            "['</>']",
        ),
        (
            "an empty text for also=",
            tagged(
                lambda p, arg: "<" + p.arg_name(arg) + ">" + p.value(arg, Raw(until="</>", also="")) + "</>"
            ),
            "Raw: expected also=, other texts that end the value, found an empty one",
        ),
        (
            "a marker of white space",
            lambda p: p.think("\n", "</think>") + p.body(),
            "expected a marker, found '\\n': give the text that is written there",
        ),
        (
            "a token without text",
            lambda p: p.body(p.token("") + p.json_call(name="name", args="arguments")),
            "p.token(''): a token is more than white space; give the token's text, or leave it out",
        ),
        (
            "a token of white space",
            lambda p: p.body(p.token("<c>") + p.json_call(name="name", args="arguments") + p.token("\n")),
            "p.token('\\n'): a token is more than white space; give the token's text, or leave it out",
        ),
        (
            "a cut in what is held",
            lambda p: p.atomic("a" + p.cut()) + p.body(),
            "p.atomic('a' + p.cut()): p.cut() commits, so nothing can be held; leave it out of p.atomic()",
        ),
        (
            "None for a node",
            lambda p: p.body(None + p.token("<call>")),
            "expected a node or a string, found NoneType: None",
        ),
        (
            "one id for all calls",
            call(lambda p, tool: p.name(tool) + "#" + p.id("c1") + p.args(tool)),
            "p.id: every call would have the id 'c1'; give a set of characters, such as "
            'p.chars("a-z0-9", 9, 9)',
        ),
    ],
}


def told(build: Build) -> str:
    """The error text for the author of ``build``."""
    format = Format("acme", "Acme", "https://example.org", build)
    with pytest.raises(DefinitionError) as raised:
        format.tree(Options(tools=True))
    before, _, text = str(raised.value).partition("format 'acme': ")
    assert not before, f"the format is not named: {raised.value}"
    return text


@pytest.mark.one_in(1)  # each case has a check of its own
@pytest.mark.parametrize(
    ("build", "text"),
    [
        pytest.param(build, text, id=f"{group}: {title}")
        for group, slips in SLIPS.items()
        for title, build, text in slips
    ],
)
def test_a_slip_is_told_with_its_mend(build: Build, text: str) -> None:
    assert re.sub(r" \(\w+\.py, line \d+\)", "", told(build)) == text


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        # Each of its characters would be a stop.
        *(
            (option, "<over>", r".* the text '<over>'; write \('<over>',\)$")
            for option in ("stops", "markers", "aliases")
        ),
        *(
            ("stops", given, "expected a tuple of texts that are not empty")
            for given in (("",), ["</s>"], None, (1,))
        ),
    ],
)
def test_what_is_no_tuple_of_texts(option: str, given: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=rf"^format 'acme': {option}: {said}"):
        Format("acme", "Acme", "https://example.org", lambda p: p.body(), **{option: given})


def test_what_an_author_s_code_raises_is_told_with_the_format() -> None:
    def call(tool: Any) -> Any:
        return {}["missing"]

    line = call.__code__.co_firstlineno + 1
    where = f"failed: KeyError: 'missing' (test_bad_definitions.py, line {line})"
    assert told(call) == f"build {where}"
    assert told(lambda p: p.each_tool(call)).startswith(f"p.each_tool: make(ANY_TOOL) {where}; ")
    assert re.fullmatch(r"build failed: TypeError: .* given", told(lambda: None))  # type: ignore[arg-type, misc]


def test_a_broken_definition_is_told_where_a_request_is_bound() -> None:
    format = Format("acme", "Acme", "https://example.org", lambda p: p.many(p.space()) + p.body())
    with pytest.raises(DefinitionError, match=r"^format 'acme': "):
        format.bind()


GOOD: dict[str, Any] = {
    "str": "x", "int": 1, "bool": True, "None": None, "Nodelike": "<n>", "Span": Builder(Options()).span("<s>", "</s>"),
    "Tag": Tag.CONTENT, "Syntax": VALUE, "Tool": ANY_TOOL, "Argument": ANY_ARGUMENT, "Callable": lambda given: "x",
    "Mapping": {},
}  # fmt: skip
P = Builder(Options())
JUNK: list[Any] = [
    None, 0, -1, 10**9, 1.5, True, "", "(", "[", " ", "a]", [], ["a"], {}, {"a": 1}, (), b"x", object(), OTHER,
    ANY_TOOL, Argument("other", {}, False), ANY_ARGUMENT, Tag.NAME, VALUE, len, lambda given: 3, lambda given: given.x,
    P.span("a", "b"), P.body(), P.sequence(), P.choice("a", "b"),
]  # fmt: skip
METHODS = [name for name in dir(Builder) if not name.startswith("_") and callable(getattr(Builder, name))]


def wrong_calls(name: str) -> Iterator[Callable[[Builder], Any]]:
    """Calls of a builder's method with one wrong operand, without operands, and with one too many."""
    _, *operands = inspect.signature(getattr(Builder, name)).parameters.values()
    good = {
        operand.name: GOOD[str(operand.annotation).split("[")[0].split(" ")[0]]
        for operand in operands
        if operand.kind in (operand.POSITIONAL_OR_KEYWORD, operand.KEYWORD_ONLY)
        and operand.default is operand.empty
    }
    yield lambda p: getattr(p, name)()
    yield lambda p: getattr(p, name)(*["x"] * 9, nothing=1)
    for operand in operands:
        for junk in JUNK:
            if operand.kind is operand.VAR_POSITIONAL:
                before = list(good.values())
                yield lambda p, before=before, junk=junk: getattr(p, name)(*before, junk)
            elif operand.kind is operand.VAR_KEYWORD:
                yield lambda p, junk=junk: getattr(p, name)(**good, name="name", args=junk)
            else:
                yield lambda p, to=operand.name, junk=junk: getattr(p, name)(**{**good, to: junk})


def no_harm(build: Build) -> None:
    """A definition is told, or it can be used."""
    fmt = Format("acme", "Acme", "https://acme.example", build)
    try:
        turn = fmt.bind(tools=[{"name": "t", "parameters": {"properties": {"a": {"type": "string"}}}}])
        turn.grammar()
        for text in ("", "<c>", "<c>xx</c>ab", "<call>t>x{}", "<call>t>{}", "<call>t><a>x</>"):
            turn.parse(text)
    except DefinitionError as error:
        assert str(error).startswith("format 'acme': "), error
    except SchemaError as error:
        assert "cannot write the name" in str(error)


@pytest.mark.parametrize("syntax", [Gemma("<q>"), Elements("<m>"), VALUE], ids=lambda one: type(one).__name__)
def test_wrong_operands_of_a_value_syntax_are_told_or_are_no_harm(syntax: Any) -> None:
    for field in fields(syntax):
        told = 0
        for junk in JUNK:
            try:
                wrong = replace(syntax, **{field.name: junk})
            except DefinitionError as error:
                assert str(error).startswith(f"{type(syntax).__name__}: "), error
                told += 1
                continue
            no_harm(call(lambda p, tool, wrong=wrong: p.name(tool) + ">" + p.args(tool, wrong)))
            no_harm(
                tagged(
                    lambda p, arg, wrong=wrong: (
                        "<" + p.arg_name(arg, "[a-z]") + ">" + p.value(arg, wrong) + "</>"
                    )
                )
            )
        assert told > len(JUNK) // 2, field.name


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", METHODS)
def test_wrong_operands_are_told_or_are_no_harm(name: str) -> None:
    """Wherever the node stands: alone, in running text, in a call, in an argument, repeated, as an alternative."""
    told = 0
    for make in wrong_calls(name):
        try:
            node = make(Builder(Options(tools=True)))
        except DefinitionError as error:
            assert re.match(r"p\.\w+|Raw|expected", str(error)), error
            told += 1
            continue
        for build in (
            lambda p, node=node: node + p.body(),
            lambda p, node=node: p.body("<c>" + p.many(node)),
            lambda p, node=node: p.body("<c>" + (node | p.literal("ab")) + "</c>"),
            call(lambda p, tool, node=node: p.name(tool) + ">" + node + p.args(tool)),
            tagged(
                lambda p, arg, node=node: (
                    "<" + p.arg_name(arg, "[a-z]") + ">" + node + p.value(arg, VALUE) + "</>"
                )
            ),
        ):
            no_harm(build)
    operands = inspect.signature(getattr(Builder, name)).parameters
    assert told > len(JUNK) // 3 or len(operands) == 1
