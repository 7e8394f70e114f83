"""From a format's tree to the machine's program: the parser's reading of the nodes.

Strategy: every node becomes a run of instructions; the region of a character is decided here, as it follows
from where in the tree it is read. Marker texts that a tokenizer has as single tokens are replaced by the one
character that stands for the token in the machine's text (`Markers`), so a program belongs to a format, its
options and a set of such tokens, and is compiled once for them. Tools play no part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from . import machine as m
from .errors import DefinitionError
from .format import Format
from .idioms import Options
from .machine import Instruction, Machine, Program
from .nodes import (
    AnyChar,
    Args,
    Body,
    Calls,
    Capture,
    Chars,
    Choice,
    Cut,
    Declared,
    EachArg,
    EachTool,
    End,
    Json,
    Known,
    Lenient,
    Literal,
    Many,
    Node,
    Not,
    Peek,
    Ref,
    Rule,
    Sequence,
    Space,
    Span,
    Tag,
    Tagged,
    Think,
    Token,
    Until,
    Value,
    first,
    head,
    nullable,
    tokens,
    walk,
)
from .references import ANYTHING
from .values import transcoder
from .values.raw import StopFinder

__all__ = ["Markers", "program"]

_STRING = frozenset({"string"})
_NOT_STRING = ANYTHING - _STRING


class Markers:
    """The special tokens of a format that a tokenizer has, each with the character that stands for it.

    The characters are lone surrogates from U+D800 on, which no decoded text can contain. ``also_text``: markers are
    matched as ordinary text as well.
    """

    __slots__ = ("also_text", "chars")

    def __init__(self, texts: Iterable[str] = (), also_text: bool = False) -> None:
        self.chars = {text: chr(0xD800 + index) for index, text in enumerate(sorted(set(texts)))}
        self.also_text = also_text

    @property
    def no_token(self) -> str:
        """A pattern in front of a character that must not stand for a token."""
        return "(?![\ud800-\udfff])" if self.chars else ""

    @property
    def key(self) -> tuple[tuple[str, ...], bool]:
        return tuple(self.chars), self.also_text

    def encode(self, text: str) -> str:
        """``text`` with each marker as its one character, the longest first."""
        for marker in sorted(self.chars, key=len, reverse=True):
            text = text.replace(marker, self.chars[marker])
        return text

    def spellings(self, text: str) -> tuple[str, ...]:
        """The forms in which a marker text may stand in the machine's text."""
        encoded = self.encode(text)
        return (encoded, text) if self.also_text and encoded != text else (encoded,)


def program(
    format: Format,
    options: Options,
    inline: bool = False,
    markers: tuple[tuple[str, ...], bool] = ((), False),
) -> Program:
    """The program of a format for these options; compiled once.

    ``inline``: reasoning is content, its markers included. ``markers``: a `Markers.key`. Raises `DefinitionError` for a
    tree that cannot be compiled.
    """
    if options.schema is not None:
        options = Options(options.tools, options.mode, options.parallel, options.thinking, True)
    return _program(format, options, inline, markers)


@lru_cache(maxsize=1024)
def _program(
    format: Format, options: Options, inline: bool, markers: tuple[tuple[str, ...], bool]
) -> Program:
    compiler = _Compiler(format, inline, Markers(*markers))
    return compiler.program(format.tree(options), (format, options, inline, markers))


class _Compiler:
    def __init__(self, format: Format, inline: bool, markers: Markers) -> None:
        self.format = format
        self.inline = inline
        self.markers = markers
        self.code: list[Instruction] = [(m.FAIL,)]
        self.rules: dict[str, Node] = {}
        self.entries: dict[tuple[str, int, int], int] = {}
        self.closers: tuple[str, ...] = ()
        self.stops: tuple[str, ...] = ()

    # emitting

    def emit(self, *instruction: Any) -> int:
        self.code.append(instruction)
        return len(self.code) - 1

    def patch(self, *places: int) -> None:
        """Makes the instructions at ``places`` go to where the code now ends."""
        for place in places:
            op, _, *rest = self.code[place]
            self.code[place] = (op, len(self.code), *rest)

    def attempt(self, code: Callable[[], Any], leave: int = m.COMMIT) -> int:
        """Emits ``code`` so that where it fails, what is emitted next is tried; returns the place that is to be
        patched with where it goes on otherwise."""
        place = self.emit(m.CHOICE, 0)
        code()
        end = self.emit(leave, 0)
        self.patch(place)
        return end

    def up_to(self, times: int, code: Callable[[], Any]) -> None:
        """Emits ``code`` so many times, each tried only behind the one before it."""
        outs = []
        for _ in range(times):
            outs.append(self.emit(m.CHOICE, 0))
            code()
            self.patch(self.emit(m.COMMIT, 0))
        self.patch(*outs)

    def finder(self, stops: Iterable[str], end: bool = False) -> StopFinder:
        stops = tuple(stops)
        spelt = (spelling for stop in stops for spelling in self.markers.spellings(stop))
        return StopFinder(spelt, end, stops)

    def text(self, region: int, stops: Iterable[str]) -> int:
        finder = self.finder(stops)
        return self.emit(m.TEXT, region, finder.find, finder.whole, finder.plain)

    # the whole

    def program(self, tree: Node, key: tuple[Any, ...]) -> Program:
        for node in walk(tree):
            if isinstance(node, Rule) and self.rules.setdefault(node.name, node.node) != node.node:
                raise DefinitionError(f"{self.format.name}: the rule {node.name!r} is defined twice")
        self.closers = _closers(tree)
        fallback = self.emit(m.TEXT, m.CONTENT, *self._no_stops())
        self.emit(m.AFTER)
        start = len(self.code)
        self.node(tree, m.MARKUP, m.MARKUP)
        self.emit(m.JUMP, fallback)
        return Program(self.code, start, fallback, key)

    def _no_stops(self) -> tuple[Any, Any, Any]:
        finder = StopFinder(())
        return finder.find, finder.whole, finder.plain

    # nodes: ``region`` is that of the text read, ``markup`` that of markers

    def node(self, node: Node, region: int, markup: int) -> None:
        compile = _COMPILERS.get(type(node))
        if compile is None:
            raise DefinitionError(f"{self.format.name}: {type(node).__name__} cannot be parsed")
        compile(self, node, region, markup)

    def literal(self, node: Literal | Token, region: int, markup: int) -> None:
        spellings = self.markers.spellings(node.text)
        if node.text:
            shown = repr(node.text)
            self.choice_of([partial(self.emit, m.LIT, region, spelling, shown) for spelling in spellings])

    def choice_of(self, options: list[Callable[[], Any]]) -> None:
        ends = [self.attempt(option) for option in options[:-1]]
        options[-1]()
        self.patch(*ends)

    def sequence(self, node: Sequence, region: int, markup: int) -> None:
        for item in node.items:
            self.node(item, region, markup)

    def choice(self, node: Choice, region: int, markup: int) -> None:
        self.choice_of([partial(self.node, option, region, markup) for option in node.options])

    def lenient(self, node: Lenient, region: int, markup: int) -> None:
        self.node(node.lenient, region, markup)

    def many(self, node: Many, region: int, markup: int) -> None:
        if node.most is None and nullable(node.node):
            raise DefinitionError(
                f"{self.format.name}: a repeated node must not match the empty text: {node.node}"
            )
        for _ in range(node.least):
            self.node(node.node, region, markup)
        if node.most is None:
            loop = self.emit(m.CHOICE, 0)
            self.node(node.node, region, markup)
            self.emit(m.COMMIT, loop)
            self.patch(loop)
            return
        self.up_to(node.most - node.least, partial(self.node, node.node, region, markup))

    def chars(self, node: Chars, region: int, markup: int) -> None:
        one = re.compile(f"{self.markers.no_token}[{node.ranges}]").match
        once = partial(self.emit, m.ONE, region, one, f"[{node.ranges}]")
        for _ in range(node.least):
            once()
        if node.most is None:
            self.emit(m.SPAN, region, re.compile(f"(?:{self.markers.no_token}[{node.ranges}])*").match)
            return
        self.up_to(node.most - node.least, once)

    def space(self, node: Space, region: int, markup: int) -> None:
        self.emit(m.SPAN, region, _white)

    def any(self, node: AnyChar, region: int, markup: int) -> None:
        self.emit(m.ONE, region, None, "a character")

    def end(self, node: End, region: int, markup: int) -> None:
        self.emit(m.END)

    def until(self, node: Until, region: int, markup: int) -> None:
        self.text(region, node.stops)

    def peek(self, node: Peek, region: int, markup: int) -> None:
        place = self.emit(m.CHOICE, 0)
        self.node(node.node, region, markup)
        back = self.emit(m.BACK, 0)
        self.patch(place)
        self.emit(m.JUMP, 0)
        self.patch(back)

    def negate(self, node: Not, region: int, markup: int) -> None:
        place = self.emit(m.CHOICE, 0)
        self.node(node.node, region, markup)
        self.emit(m.FAILTWICE)
        self.patch(place)

    def rule(self, node: Rule, region: int, markup: int) -> None:
        self.ref(Ref(node.name), region, markup)

    def ref(self, node: Ref, region: int, markup: int) -> None:
        if node.name not in self.rules:
            raise DefinitionError(f"{self.format.name}: no rule is named {node.name!r}")
        key = (node.name, region, markup)
        if key in self.entries:
            self.emit(m.CALLSUB, self.entries[key])
            return
        jump = self.emit(m.JUMP, 0)
        self.entries[key] = len(self.code)
        self.node(self.rules[node.name], region, markup)
        self.emit(m.RETURN)
        self.patch(jump)
        self.emit(m.CALLSUB, self.entries[key])

    def tagged(self, node: Tagged, region: int, markup: int) -> None:
        if node.tag is Tag.THOUGHT:
            if self.inline:
                region = markup = m.CONTENT
            self.node(node.node, region, markup)
        elif node.tag is Tag.CALL:
            self.emit(m.MARK, m.CALL_BEGIN, None)
            self.node(node.node, region, markup)
            self.emit(m.MARK, m.CALL_END, None)
        elif node.tag in _REGIONS:
            self.node(node.node, _REGIONS[node.tag], markup)
        else:
            raise DefinitionError(
                f"{self.format.name}: use the builder's name(), arg_name() and id() for {node.tag}"
            )

    def cut(self, node: Cut, region: int, markup: int) -> None:
        self.emit(m.CUT)

    def known(self, node: Known, region: int, markup: int) -> None:
        self.emit(m.MARK, _ITEMS[node.tag], node.value)

    def declared(self, node: Declared, region: int, markup: int) -> None:
        self.emit(m.DECLARED)

    def capture(self, node: Capture, region: int, markup: int) -> None:
        run = re.compile(f"(?:{self.markers.no_token}{node.chars})*", re.DOTALL).match
        self.emit(
            m.CAPTURE,
            run,
            _parts(node),
            f"the {node.tag.value} of a call" if node.tag is not Tag.ARG_NAME else "an argument's name",
        )

    # calls

    def each_tool(self, node: EachTool, region: int, markup: int) -> None:
        self.node(node.any, region, markup)

    def each_arg(self, node: EachArg, region: int, markup: int) -> None:
        self.emit(m.CUT)
        self.emit(m.MARK, m.ARGS_BEGIN, None)
        if node.separator is None:
            self.many(Many(node.any, 0, node.most), region, markup)
        else:
            more = Many(Sequence.of(node.separator, node.any))
            self.many(Many(Sequence.of(node.any, more), 0, 1), region, markup)

    def args(self, node: Args, region: int, markup: int) -> None:
        if node.commit:
            self.emit(m.CUT)
        quote = self.markers.encode(node.quote)
        self.emit(
            m.VALUE, m.ARGUMENT, lambda machine, ins: transcoder(node.syntax, quote=quote, object=True), True
        )

    def value(self, node: Value, region: int, markup: int) -> None:
        self.emit(m.CUT)
        finder = self.finder(_stops(node.stops) + node.also, node.ends)
        quote = self.markers.encode(node.quote)
        forced = {None: None, True: _STRING, False: _NOT_STRING}[node.string]

        def make(machine: Machine, ins: Instruction) -> Any:
            types = forced
            if types is None:
                tool = machine.tools.get(machine.tool)
                argument = tool.arguments.get(machine.arg) if tool else None
                types = argument.types if argument else ANYTHING
            return transcoder(node.syntax, finder, types, quote, python=node.python)

        self.emit(m.VALUE, m.ARGUMENT, make, True)

    def json(self, node: Json, region: int, markup: int) -> None:
        if node.content:
            self.emit(m.VALUE, m.CONTENT, lambda machine, ins: transcoder("text"), True)
        else:
            self.emit(m.VALUE, region, lambda machine, ins: transcoder("json"), False)

    def calls(self, node: Calls, region: int, markup: int) -> None:
        item: Callable[[], None] = partial(self.node, node.item, region, markup)
        resumable = self._resumable(node.item)
        if resumable is not None:
            item = partial(self._recovered, item, *resumable, markup)
        item()
        loop = self.emit(m.CHOICE, 0)
        self.node(node.separator, region, markup)
        item()
        self.emit(m.COMMIT, loop)
        self.patch(loop)

    def _resumable(self, item: Node) -> tuple[Node, Node, tuple[str, ...]] | None:
        """How the parser finds the next call behind one that is broken: what may stand before it, the beginning by
        which it is known, and the texts at which to look. None where no text begins a call."""
        begin = Sequence.of(head(item, True), Declared())
        try:
            texts = first(begin)
        except DefinitionError:
            return None
        closers = [Token(text) for text in tokens(item)]
        between = Sequence.of(Not(begin), Choice.of(*closers), Space("")) if closers else None
        gap = Many(between) if between is not None else Sequence(())
        return gap, begin, texts

    def _recovered(
        self, item: Callable[[], None], gap: Node, begin: Node, texts: tuple[str, ...], markup: int
    ) -> None:
        """One call. Where it is broken behind its header, or not closed, the next of its kind is still read: one of a
        declared tool that begins as the format writes it."""
        recover = self.emit(m.RECOVER, 0)
        item()
        self.emit(m.DISARM)
        done = self.emit(m.JUMP, 0)
        self.patch(recover)
        broken, unclosed = self.emit(m.JUMP, 0), self.emit(m.JUMP, 0)
        spellings = [spelling for text in self.stops for spelling in self.markers.spellings(text)]
        stop = re.compile("|".join(map(re.escape, spellings)) or "(?!)").match
        for place, region in ((broken, m.CALL), (unclosed, m.CONTENT)):
            self.patch(place)
            if region == m.CALL:
                self.emit(m.MARK, m.BROKEN_BEGIN, None)
            scan = self.text(region, (*texts, *self.stops))
            found = self._ahead(Sequence.of(gap, begin), markup)
            lost = self.emit(m.AT, 0, stop)
            self.emit(m.ONE, region, None, "a character")
            self.emit(m.JUMP, scan)
            self.patch(lost)
            if region == m.CALL:
                self.emit(m.MARK, m.BROKEN_END, None)
            self.emit(m.ABANDON)
            self.patch(found)
            if region == m.CALL:
                self.emit(m.MARK, m.BROKEN_END, None)
            self.node(gap, markup, markup)
            self.emit(m.JUMP, recover)
        self.patch(done)

    def _ahead(self, node: Node, markup: int) -> int:
        """Goes to the place that is to be patched where ``node`` follows, of which nothing is read; on where not."""
        place = self.emit(m.CHOICE, 0)
        self.node(node, markup, markup)
        found = self.emit(m.BACK, 0)
        self.patch(place)
        return found

    # the turn

    def span(self, region: int, markup: int, span: Span, exits: list[Node]) -> None:
        """Text of ``region`` up to the span's closer or until one of ``exits`` follows, the closer included."""
        closers = first(span.close) if span.close is not None else ()
        begin = len(self.code)
        self.text(region, [*closers, *(text for node in exits for text in first(node))])
        ends = [self.emit(m.UNCLOSED, 0, "" if span.optional else " or ".join(map(repr, closers)))]
        if span.close is not None:
            ends.append(self.attempt(partial(self.node, span.close, markup, markup)))
        ends += [self.attempt(partial(self.node, node, markup, markup), m.BACK) for node in exits]
        self.emit(m.ONE, region, None, "a character")
        self.emit(m.JUMP, begin)
        self.patch(*ends)

    def think(self, node: Think, region: int, markup: int) -> None:
        exits: list[Node] = [head(node.until)] if node.until is not None else []
        exits += [Literal(stop) for stop in self.format.stops]
        opened = self.attempt(partial(self.node, node.span.open, markup, markup))
        skip = None if node.always else self.emit(m.JUMP, 0)
        self.patch(opened)
        self.emit(m.CUT)
        region = m.CONTENT if self.inline else m.REASONING
        self.emit(m.PLACE, region)
        self.many(Many(node.span.open), markup, markup)
        self.span(region, markup, node.span, exits)
        if skip is not None:
            self.patch(skip)

    def body(self, node: Body, region: int, markup: int) -> None:
        leads = [Literal(node.lead[start:]) for start in range(len(node.lead) + 1)]
        calls = Sequence.of(Choice.of(*leads), node.calls) if node.calls is not None else None
        spans = [(m.REASONING, node.reasoning), (m.CONTENT, node.content)]
        openers = [calls, *(span.open for _, span in spans if span)]
        exits = [head(opener) for opener in openers if opener is not None]
        ends: list[Node] = [Literal(stop) for stop in node.stops]
        starts = dict.fromkeys(text for opener in exits for text in first(opener))
        marks = [
            mark for mark in (node.marks, _FENCE_END if node.schema is not None else None) if mark is not None
        ]
        stops = [*starts, *node.stops, *self.closers, *(text for mark in marks for text in first(mark))]
        self.stops = tuple(dict.fromkeys(stops))

        if node.schema is not None:
            self.node(_FENCE, markup, markup)
        handlers = []
        if node.start is not None:
            handlers.append(self.emit(m.RECOVER, 0))
            self.patch(self.attempt(partial(self.node, node.start, region, markup)))
            self.emit(m.DISARM)
        loop = self.emit(m.TOP, 0)
        after = [self.attempt(partial(self.node, end, markup, markup)) for end in ends]
        options: list[Callable[[], None]] = []
        if node.reasoning is not None:
            options.append(lambda: self._section(m.REASONING, markup, spans[0][1], exits + ends))
        if node.content is not None:
            options.append(lambda: self._section(m.CONTENT, markup, spans[1][1], exits + ends))
        if calls is not None:
            options.append(lambda: self.node(calls, region, markup))
        options += [partial(self.node, mark, markup, markup) for mark in marks]
        if options:
            handlers.append(self.emit(m.RECOVER, 0))
            place = self.emit(m.CHOICE, 0)
            self.choice_of(options)
            self.patch(self.emit(m.COMMIT, 0))
            self.emit(m.DISARM)
            self.emit(m.JUMP, loop)
            self.patch(place)
            self.emit(m.DISARM)
        for closer in self.closers:
            for spelling in self.markers.spellings(closer):
                place = self.emit(m.CHOICE, 0)
                self.emit(m.LIT, markup, spelling, repr(closer))
                self.emit(m.STRAY, None, len(spelling))
                self.emit(m.COMMIT, loop)
                self.patch(place)
        openings = [
            spelling for text in starts if text == text.lstrip() for spelling in self.markers.spellings(text)
        ]
        if openings:
            self.emit(m.STRAY, re.compile("|".join(map(re.escape, openings))).match, 0)
        self.emit(m.ONE, m.CONTENT, None, "a character")
        self.text(m.CONTENT, stops)
        self.emit(m.JUMP, loop)
        self.patch(*handlers)
        broken = self.emit(m.JUMP, 0)
        self.emit(m.JUMP, loop)
        self.patch(broken)
        self.emit(m.MARK, m.BROKEN_BEGIN, None)
        self.text(m.CALL, stops)
        self.emit(m.MARK, m.BROKEN_END, None)
        self.emit(m.JUMP, loop)
        self.patch(loop, *after)
        self.emit(m.AFTER)

    def _section(self, region: int, markup: int, span: Span | None, exits: list[Node]) -> None:
        if span is None:
            return
        if region == m.REASONING and self.inline:
            region = markup = m.CONTENT
        self.node(span.open, markup, markup)
        self.emit(m.CUT)
        self.emit(m.PLACE, region)
        self.span(region, markup, span, exits)


def _closers(tree: Node) -> tuple[str, ...]:
    """The special tokens of the tree with which nothing begins: alone in running text they are markup."""
    openers: set[str] = set()
    for node in walk(tree):
        if isinstance(node, Think):
            openers.update(first(node.span.open))
        elif isinstance(node, Body):
            spans = [span.open for span in (node.reasoning, node.content) if span is not None]
            for part in (node.calls, *spans):
                openers.update(first(part) if part is not None else ())
            for part in (node.marks, node.start):
                openers.update(tokens(part) if part is not None else ())
    return tuple(text for text in tokens(tree) if not any(opener.endswith(text) for opener in openers))


def _stops(stops: tuple[str, ...]) -> tuple[str, ...]:
    """The stops, each also with less of the white space before it."""
    return tuple(
        dict.fromkeys(stop[start:] for stop in stops for start in range(len(stop) - len(stop.lstrip()) + 1))
    )


# The markdown fence that models put around a JSON answer. A JSON string holds no raw line break, so no data is lost.
_FENCE = Many(Sequence.of(Space(""), "```", Many(Literal("json"), 0, 1), "\n"), 0, 1)
_FENCE_END = Literal("\n```")

_white = re.compile(r"[ \t\r\n]*").match
_lone = re.compile("[\ud800-\udfff]")
_REGIONS = {Tag.CONTENT: m.CONTENT, Tag.REASONING: m.REASONING}
_ITEMS = {Tag.NAME: m.NAME, Tag.ARG_NAME: m.ARG_NAME, Tag.ID: m.ID}
_GROUPS = {"id": m.ID, "name": m.NAME, "arg": m.ARG_NAME}


def _parts(node: Capture) -> Callable[[str], list[tuple[int, str]] | None]:
    """What a capture finds in its run: trail items, or None where the run is not what it should be."""
    item = _ITEMS[node.tag]
    if node.json:

        def unescaped(run: str) -> list[tuple[int, str]] | None:
            try:
                return [(item, _lone.sub("\ufffd", json.loads(f'"{run}"')) if "\\" in run else run)]
            except ValueError:
                return None

        return unescaped
    if node.pattern is None:
        return lambda run: [(item, run)]
    whole = re.compile(node.pattern).fullmatch

    def grouped(run: str) -> list[tuple[int, str]] | None:
        match = whole(run)
        if match is None:
            return None
        found = match.groupdict()
        return [(tag, found[group]) for group, tag in _GROUPS.items() if found.get(group)]

    return grouped


_COMPILERS: dict[type[Node], Callable[[_Compiler, Any, int, int], None]] = {
    Literal: _Compiler.literal,
    Token: _Compiler.literal,
    Chars: _Compiler.chars,
    Space: _Compiler.space,
    AnyChar: _Compiler.any,
    End: _Compiler.end,
    Until: _Compiler.until,
    Sequence: _Compiler.sequence,
    Choice: _Compiler.choice,
    Many: _Compiler.many,
    Peek: _Compiler.peek,
    Not: _Compiler.negate,
    Rule: _Compiler.rule,
    Ref: _Compiler.ref,
    Tagged: _Compiler.tagged,
    Capture: _Compiler.capture,
    Known: _Compiler.known,
    Declared: _Compiler.declared,
    Cut: _Compiler.cut,
    EachTool: _Compiler.each_tool,
    EachArg: _Compiler.each_arg,
    Args: _Compiler.args,
    Value: _Compiler.value,
    Json: _Compiler.json,
    Lenient: _Compiler.lenient,
    Calls: _Compiler.calls,
    Think: _Compiler.think,
    Body: _Compiler.body,
}
