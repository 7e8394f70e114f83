"""Compiles a format's tree to the machine's program: the parser's reading of the nodes.

Strategy: every node becomes a run of instructions. The place of a node in the tree decides the region of the
characters that it reads. A tokenizer may have a marker text as a single token; the program then matches the one
character that stands for the token in the machine's text (core/parser/alphabet.py). So a program belongs to a format,
its options and a set of such tokens, and is compiled once for them. It does not depend on the tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from ..definition.format import Format
from ..definition.idioms import THOUGHTS, Options
from ..definition.nodes import (
    AnyChar,
    Args,
    Atomic,
    Body,
    Calls,
    Chars,
    Choice,
    Cut,
    Declared,
    EachArg,
    EachTool,
    End,
    Header,
    Implied,
    JsonName,
    JsonText,
    JsonValue,
    Lenient,
    Literal,
    Many,
    Name,
    Node,
    Not,
    Peek,
    Ref,
    Rule,
    SameName,
    Sequence,
    Space,
    Span,
    Tag,
    Tagged,
    Think,
    Token,
    Until,
    Value,
)
from ..definition.tree import children, first, head, hollow, tokens, walk
from ..errors import DefinitionError
from ..schema.tools import UNKNOWN
from ..values import AnswerScanner, Json, StringScanner, Transcoder
from ..values.raw import StopFinder
from . import machine as m
from .alphabet import Alphabet, AlphabetKey
from .machine import Instruction, Machine, Program

__all__ = ["program"]


def program(
    format: Format,
    options: Options,
    inline: bool = False,
    alphabet: AlphabetKey = ((), False, ()),
) -> Program:
    """The program of a format for these options; compiled once.

    ``inline``: reasoning is content, its markers included. ``alphabet``: an `Alphabet.key`. Raises `DefinitionError`
    for a tree that cannot be compiled.
    """
    if options.schema is not None:
        options = Options(options.tools, options.mode, options.parallel, options.thinking, True)
    return _program(format, options, inline, alphabet)


@lru_cache(maxsize=1024)
def _program(format: Format, options: Options, inline: bool, alphabet: AlphabetKey) -> Program:
    compiler = _Compiler(format, options.schema is not None, inline, Alphabet(*alphabet))
    recipe = (program, (format, options, inline, alphabet))
    return compiler.program(format.tree(options), options.mode == "none", recipe)


class _Label:
    """A place in the code that instructions name before it is known."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = -1


class _Compiler:
    def __init__(self, format: Format, answers: bool, inline: bool, alphabet: Alphabet) -> None:
        self.format = format
        self.answers = answers
        """The content is JSON. Models put a Markdown fence around it."""
        self.inline = inline
        self.alphabet = alphabet
        self.code: list[Instruction] = [(m.FAIL,)]
        self.rules: dict[str, Node] = {}
        self.entries: dict[tuple[str, int, int], _Label] = {}
        self.closers: tuple[str, ...] = ()
        self.markers: tuple[str, ...] = ()
        """The markers of calls as the machine's text spells them, and every special token."""
        self.stops: tuple[str, ...] = ()
        """The texts at which something may begin or end in running text."""
        self.ends: tuple[str, ...] = ()
        """Those of ``stops`` that end the text after a call that is not closed. No thought begins there."""
        self.broken_ends: tuple[str, ...] = ()
        """Those of ``ends`` that also end the rest of a broken call: nothing begins with them, and they do not stand in
        arguments alone."""
        self.rules[_BEGUN] = Not(Sequence(()))
        self.thought: Think | None = None
        """The reasoning that the format declares."""
        self.opened: Callable[[], None] | None = None
        """Emits the opener of reasoning, after any white space."""
        self.reasoning = self.label()
        """The place after the opener of reasoning, where the reasoning continues."""

    # emitting

    def emit(self, *instruction: Any) -> None:
        """Appends an instruction. `linked` turns its `_Label` operands into places."""
        self.code.append(instruction)

    def label(self) -> _Label:
        """A new label. `place` sets it."""
        return _Label()

    def place(self, *labels: _Label) -> None:
        """Sets the labels to the present end of the code."""
        for label in labels:
            label.at = len(self.code)

    def here(self) -> _Label:
        """A new label, set to the present end of the code."""
        label = _Label()
        self.place(label)
        return label

    def linked(self) -> list[Instruction]:
        """The code with a place instead of each label."""
        return [tuple(x.at if type(x) is _Label else x for x in instruction) for instruction in self.code]

    def attempt(self, code: Callable[[], Any], done: _Label, leave: int = m.COMMIT) -> None:
        """Emits ``code`` as the first alternative of a choice. If it succeeds, the machine goes to ``done``; if it
        fails, the machine tries the code that follows. With `BACK` for ``leave``, success reads nothing."""
        otherwise = self.label()
        self.emit(m.CHOICE, otherwise)
        code()
        self.emit(leave, done)
        self.place(otherwise)

    def choice_of(self, options: list[Callable[[], Any]]) -> None:
        """Emits the options of an ordered choice."""
        done = self.label()
        for option in options[:-1]:
            self.attempt(option, done)
        options[-1]()
        self.place(done)

    def any_number(self, code: Callable[[], Any]) -> None:
        """Emits ``code`` as a loop that ends when it fails."""
        loop = self.here()
        self.attempt(code, loop)

    def up_to(self, times: int, code: Callable[[], Any]) -> None:
        """Emits ``code`` as often as ``times`` says. The machine tries each only after the one before it succeeded."""
        done = self.label()
        for _ in range(times):
            more = self.label()
            self.emit(m.CHOICE, done)
            code()
            self.emit(m.COMMIT, more)
            self.place(more)
        self.place(done)

    def text(self, region: int, stops: Iterable[str]) -> None:
        finder = StopFinder(spelling for stop in stops for spelling in self.alphabet.spellings(stop))
        self.emit(m.TEXT, region, finder.find, finder.whole, finder.plain)

    # the whole

    def program(self, tree: Node, unwanted: bool, recipe: tuple[Any, ...]) -> Program:
        for node in walk(tree):
            if isinstance(node, Rule):
                self.rules[node.name] = node.node
        self.closers = _closers(tree)
        sections = [node.calls for node in walk(tree) if isinstance(node, Body) and node.calls is not None]
        texts = [
            spelt for part in sections for text in tokens(part) for spelt in self.alphabet.spellings(text)
        ]
        self.markers = tuple(dict.fromkeys([*self.alphabet.chars.values(), *texts]))
        self.thought = next((node for node in walk(tree) if isinstance(node, Think)), None)
        if isinstance(tree, Body) and tree.reasoning is None:
            tree = Sequence.of(Tagged(Tag.THOUGHT, _UNDECLARED), tree)
        fallback = self.here()
        self.text(m.CONTENT, ())
        self.emit(m.AFTER)
        start = self.here()
        self.node(tree, m.MARKUP, m.MARKUP)
        self.emit(m.JUMP, fallback)
        return Program(self.linked(), start.at, fallback.at, self.format.late_ids, unwanted, recipe)

    # nodes: ``region`` is the region of the text that is read, ``markup`` the region of markers

    def node(self, node: Node, region: int, markup: int) -> None:
        compile = _COMPILERS.get(type(node))
        if compile is None:
            raise DefinitionError(f"{self.format.name}: {type(node).__name__} cannot be parsed")
        compile(self, node, region, markup)

    def literal(self, node: Literal | Token, region: int, markup: int) -> None:
        names = node.names if isinstance(node, Token) else (node.text,)
        spellings = [
            (spelling, repr(name)) for name in names if name for spelling in self.alphabet.spellings(name)
        ]
        if spellings:
            self.choice_of([partial(self.emit, m.LIT, region, *spelling) for spelling in spellings])

    def sequence(self, node: Sequence, region: int, markup: int) -> None:
        for item in node.items:
            self.node(item, region, markup)

    def choice(self, node: Choice, region: int, markup: int) -> None:
        self.choice_of([partial(self.node, option, region, markup) for option in node.options])

    def lenient(self, node: Lenient, region: int, markup: int) -> None:
        self.node(node.lenient, region, markup)

    def many(self, node: Many, region: int, markup: int) -> None:
        for _ in range(node.least):
            self.node(node.node, region, markup)
        if node.most is None:
            self.any_number(partial(self.node, node.node, region, markup))
            return
        self.up_to(node.most - node.least, partial(self.node, node.node, region, markup))

    def chars(self, node: Chars, region: int, markup: int) -> None:
        one = re.compile(f"{self.alphabet.no_token}[{node.ranges}]").match
        once = partial(self.emit, m.ONE, region, one, f"[{node.ranges}]")
        for _ in range(node.least):
            once()
        if node.most is None:
            self.emit(m.SPAN, region, re.compile(f"(?:{self.alphabet.no_token}[{node.ranges}])*").match)
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
        done = self.label()
        self.attempt(partial(self.node, node.node, region, markup), done, m.BACK)
        self.emit(m.FAIL)
        self.place(done)

    def negate(self, node: Not, region: int, markup: int) -> None:
        absent = self.label()
        self.emit(m.CHOICE, absent)
        self.node(node.node, region, markup)
        self.emit(m.FAILTWICE)
        self.place(absent)

    def rule(self, node: Rule, region: int, markup: int) -> None:
        self.ref(Ref(node.name), region, markup)

    def ref(self, node: Ref, region: int, markup: int) -> None:
        key = (node.name, region, markup)
        if key not in self.entries:
            after = self.label()
            self.emit(m.JUMP, after)
            self.entries[key] = self.here()
            self.node(self.rules[node.name], region, markup)
            self.emit(m.RETURN)
            self.place(after)
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
        else:
            self.node(node.node, _REGIONS[node.tag], markup)

    def atomic(self, node: Atomic, region: int, markup: int) -> None:
        whole = self.label()
        self.attempt(partial(self.node, node.node, region, markup), whole)
        self.emit(m.FAIL)
        self.place(whole)

    def cut(self, node: Cut, region: int, markup: int) -> None:
        self.emit(m.CUT)

    def implied(self, node: Implied, region: int, markup: int) -> None:
        self.emit(m.MARK, _ITEMS[node.tag], node.value)

    def declared(self, node: Declared, region: int, markup: int) -> None:
        self.emit(m.DECLARED, node.lacks)

    def name(self, node: Name, region: int, markup: int) -> None:
        item = _ITEMS[node.tag]
        if node.escapes:
            self.captured(node.chars, partial(_plain, item, dict(node.escapes)), node.tag)
        else:
            self.captured(node.chars, lambda run: [(item, run)], node.tag)

    def same_name(self, node: SameName, region: int, markup: int) -> None:
        self.emit(m.SAME, region, "the argument's name")

    def json_name(self, node: JsonName, region: int, markup: int) -> None:
        self.captured(_JSON_INSIDE, partial(_unescaped, _ITEMS[node.tag]), node.tag)

    def header(self, node: Header, region: int, markup: int) -> None:
        self.captured(node.chars, partial(_grouped, re.compile(node.pattern).fullmatch), Tag.NAME)

    def captured(self, chars: str, parts: Callable[[str], list[tuple[int, str]] | None], tag: Tag) -> None:
        run = re.compile(f"(?:{self.alphabet.no_token}{chars})*", re.DOTALL).match
        what = "an argument's name" if tag is Tag.ARG_NAME else f"the {tag.value} of a call"
        self.emit(m.CAPTURE, run, parts, what)

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
        read = node.syntax.object(self.alphabet.spellings)
        self.emit(m.VALUE, m.ARGUMENT, lambda machine: read(UNKNOWN, ""), True)

    def value(self, node: Value, region: int, markup: int) -> None:
        self.emit(m.CUT)
        read = node.syntax.value(self.alphabet.spellings, self.markers)

        def make(machine: Machine) -> Transcoder:
            tool = machine.tools.get(machine.tool)
            return read(tool.argument(machine.arg) if tool else UNKNOWN, machine.arg)

        self.emit(m.VALUE, m.ARGUMENT, make, True)

    def json_value(self, node: JsonValue, region: int, markup: int) -> None:
        read = Json().value(self.alphabet.spellings)
        self.emit(m.VALUE, region, lambda machine: read(UNKNOWN, ""), False)

    def json_text(self, node: JsonText, region: int, markup: int) -> None:
        quoted, done = self.label(), self.label()
        self.attempt(partial(self.emit, m.LIT, m.CONTENT, '"', "a JSON value"), quoted, m.BACK)
        self.json_value(JsonValue(), m.CONTENT, markup)
        self.emit(m.JUMP, done)
        self.place(quoted)
        self.emit(m.VALUE, m.CONTENT, lambda machine: StringScanner(), True)
        self.place(done)

    def calls(self, node: Calls, region: int, markup: int) -> None:
        item: Callable[[], None] = partial(self.node, node.item, region, markup)
        resumable = self._resumable(node.item, node.separator)
        if resumable is not None:
            item = partial(self._recovered, item, *resumable, markup)
        item()

        def another() -> None:
            self.node(node.separator, region, markup)
            item()

        self.any_number(another)

    def _resumable(self, item: Node, separator: Node) -> tuple[Node, Node, tuple[str, ...]] | None:
        """How the parser finds the next call after a broken one: what may stand before it, the beginning that marks
        it, and the texts at which to look. If no text begins a call, these are the texts that separate two calls; None
        if there are none either."""
        begin = Sequence.of(head(item, True), Declared())
        try:
            texts = first(begin)
        except DefinitionError:
            return self._separated(begin, separator)
        closers = [Token(text) for text in tokens(item)]
        between = Sequence.of(Not(begin), Choice.of(*closers), Space("")) if closers else None
        gap = Many(between) if between is not None else Sequence(())
        return gap, begin, texts

    def _separated(self, begin: Node, separator: Node) -> tuple[Node, Node, tuple[str, ...]] | None:
        """As `_resumable`, for calls that begin with their names."""
        try:
            return separator, begin, first(separator)
        except DefinitionError:
            line = isinstance(separator, Space) and "\n" in separator.text
            return (separator, begin, ("\n",)) if line else None

    def _recovered(
        self, item: Callable[[], None], gap: Node, begin: Node, texts: tuple[str, ...], markup: int
    ) -> None:
        """Reads one call. If it breaks after its header, or is not closed, the parser still reads the next call of its
        kind. That call must name a declared tool and begin as the format writes it."""
        again, done = self.label(), self.label()
        broken, unclosed = self.label(), self.label()
        self.place(again)
        self.emit(m.RECOVER, broken, unclosed)
        item()
        self.emit(m.DISARM)
        self.emit(m.JUMP, done)
        for entry, region in ((broken, m.CALL), (unclosed, m.CONTENT)):
            found, lost = self.label(), self.label()
            self.place(entry)
            if region == m.CALL:
                self.emit(m.MARK, m.BROKEN_BEGIN, None)
            scan = self.here()
            self.text(region, (*texts, *self.ends))
            self.attempt(partial(self.node, Sequence.of(gap, begin), markup, markup), found, m.BACK)
            self._ends(lost, self.broken_ends if region == m.CALL else self.ends)
            self.emit(m.ONE, region, None, "a character")
            self.emit(m.JUMP, scan)
            self.place(lost)
            if region == m.CALL:
                self.emit(m.MARK, m.BROKEN_END, None)
            self.emit(m.ABANDON)
            self.place(found)
            if region == m.CALL:
                self.emit(m.MARK, m.BROKEN_END, None)
            self.node(gap, markup, markup)
            self.emit(m.JUMP, again)
        self.place(done)

    def _ends(self, over: _Label, ends: tuple[str, ...]) -> None:
        """Goes to ``over`` where the text after a call that went wrong is over: at one of ``ends``, at something that
        begins, or at the end of the text."""
        self.emit(
            m.AT, over, StopFinder(spelt for text in ends for spelt in self.alphabet.spellings(text)).at
        )
        self.attempt(partial(self.node, Ref(_BEGUN), m.MARKUP, m.MARKUP), over, m.BACK)

    # the turn

    def span(self, region: int, markup: int, span: Span, exits: list[Node]) -> None:
        """Reads text of ``region`` up to the span's closer, which it also reads, or until one of ``exits`` follows."""
        closers = first(span.close) if span.close is not None else ()
        done, loop = self.label(), self.here()
        self.text(
            region, [*closers, *(text for node in exits for text in first(node)), *self._begins(region)]
        )
        self.emit(m.UNCLOSED, done, "" if span.optional else " or ".join(map(repr, closers)))
        if span.close is not None:
            self.attempt(partial(self.node, span.close, markup, markup), done)
        for node in exits:
            self.attempt(partial(self.node, node, markup, markup), done, m.BACK)
        self._answer(region, loop)
        self.emit(m.ONE, region, None, "a character")
        self.emit(m.JUMP, loop)
        self.place(done)

    def think(self, node: Think, region: int, markup: int) -> None:
        """Reads the opener of reasoning at the start of the turn. `_reasoning` reads the rest."""
        opener = Sequence.of(Space(""), node.span.open)
        self.opened = partial(self.node, opener, markup, markup)
        if node.always:
            self.emit(m.JUMP, self.reasoning)
        else:
            self.attempt(self.opened, self.reasoning)

    def body(self, node: Body, region: int, markup: int) -> None:
        """``(opener reasoning)? start? (end / opener reasoning / section / stray closer / stray opener / text)*``

        An opener of reasoning counts at the start and after a thought or a call. Elsewhere it is text, unless it is a
        special token that no text can spell.
        """
        leads = [Literal(node.lead[start:]) for start in range(len(node.lead) + 1)]
        calls = Sequence.of(Choice.of(*leads), node.calls) if node.calls is not None else None
        openers = [calls, *(span.open for span in (node.reasoning, node.content) if span is not None)]
        exits = [head(opener) for opener in openers if opener is not None]
        ends: list[Node] = [Literal(stop) for stop in self.format.stops]
        thoughts = () if self.thought is None else first(self.thought.span.open)
        starts = tuple(dict.fromkeys([*(text for opener in exits for text in first(opener)), *thoughts]))
        marks = [node.marks] if node.marks is not None else []
        empty = hollow(node.calls) if node.calls is not None else None
        if empty is not None:
            marks.append(empty)
        if self.answers:
            marks.append(_FENCE_END)
        begun = [text for mark in marks for text in first(mark)]
        self.stops = tuple(dict.fromkeys((*starts, *self.format.stops, *self.closers, *begun)))
        self.ends = tuple(text for text in self.stops if text not in thoughts)
        if exits or marks:
            self.rules[_BEGUN] = Choice.of(*exits, *map(head, marks))
        inside = {*starts, *begun, *_tokens_of_arguments(node)}
        self.broken_ends = tuple(text for text in self.ends if text not in inside)

        sections: list[Callable[[], None]] = []
        if calls is not None:
            sections.append(partial(self.node, calls, region, markup))
        if node.reasoning is not None:
            sections.append(partial(self._section, m.REASONING, markup, node.reasoning, exits + ends))
        if node.content is not None:
            sections.append(partial(self._section, m.CONTENT, markup, node.content, exits + ends))
        sections += [partial(self.node, mark, markup, markup) for mark in marks]

        entry, loop, again, section, in_thought = (self.label() for _ in range(5))
        broken, text, over = (self.label() for _ in range(3))
        self.place(entry)
        if self.opened is not None:
            self.attempt(self.opened, self.reasoning)
        if self.answers:
            self.node(_FENCE, markup, markup)
        if node.start is not None:
            self._guarded(partial(self.node, node.start, region, markup), again, broken, again)
        self.place(loop)
        self.emit(m.TOP, over)
        for end in ends:
            self.attempt(partial(self.node, end, markup, markup), over)
        if self.opened is not None:
            self.emit(m.IF, m.INTERRUPTED, self.reasoning)
            if self.thought is not None and self._unmistakable(tokens(self.thought.span.open)):
                self.attempt(self.opened, self.reasoning)
        self.place(section)
        if sections:
            self._guarded(partial(self.choice_of, sections), again, broken, again)
        if self.opened is not None:
            self.emit(m.IF, m.INTERRUPTED, in_thought)
        self.emit(m.IF, m.SPELT, text)
        self._stray_closers(markup, again)
        self.place(text)
        self._stray_openers(starts)
        self._answer(m.CONTENT, loop)
        self._running_text(loop)
        self._broken_call(broken, again)
        self.place(again)
        self.emit(m.UNSET, m.SPELT)
        if self.opened is not None:
            self.emit(m.IF, m.INTERRUPTED, loop)
            if self.thought is not None:
                self.attempt(self.opened, self.reasoning)
        self.emit(m.JUMP, loop)
        if self.opened is not None:
            self._reasoning(entry, loop, section, in_thought, ends)
        self.place(over)
        self.emit(m.AFTER)

    def _reasoning(
        self, closed: _Label, loop: _Label, call: _Label, in_thought: _Label, ends: list[Node]
    ) -> None:
        """Reads reasoning after its opener. At its closer, continues at ``closed``. At a call that breaks out of the
        reasoning, continues at ``call``. After such a call the reasoning goes on, and need not be closed."""
        node = _UNDECLARED if self.thought is None else self.thought
        region, markup = (m.CONTENT, m.CONTENT) if self.inline else (m.REASONING, m.MARKUP)
        assert node.span.close is not None
        closers = first(node.span.close)
        exits = [head(node.until)] if node.until is not None else []
        scan, quiet, go_on, done, broke_out = (self.label() for _ in range(5))
        self.place(self.reasoning)
        self.emit(m.CUT)
        self.emit(m.PLACE, region)
        self.emit(m.IF, m.INTERRUPTED, scan)
        self.many(Many(node.span.open), markup, markup)
        self.place(scan)
        self.text(region, [*closers, *(text for exit in exits + ends for text in first(exit))])
        self.emit(m.IF, m.INTERRUPTED, quiet)
        self.emit(m.UNCLOSED, loop, "" if node.span.optional else " or ".join(map(repr, closers)))
        self.emit(m.JUMP, go_on)
        self.place(quiet)
        self.emit(m.UNCLOSED, loop, "")
        self.place(go_on)
        self.attempt(partial(self.node, node.span.close, markup, markup), done)
        for end in ends:
            self.attempt(partial(self.node, end, markup, markup), loop, m.BACK)
        for exit in exits:
            self.attempt(partial(self.node, exit, markup, markup), broke_out, m.BACK)
        self.place(in_thought)
        self.emit(m.ONE, region, None, "a character")
        self.emit(m.JUMP, scan)
        self.place(done)
        self.emit(m.UNSET, m.INTERRUPTED)
        self.emit(m.JUMP, closed)
        self.place(broke_out)
        self.emit(m.SET, m.INTERRUPTED)
        self.emit(m.JUMP, call)

    def _unmistakable(self, openers: tuple[str, ...]) -> bool:
        """Whether an opener of reasoning counts anywhere: no text spells it, or it has the bar of a special token."""
        return bool(self.alphabet.unspellable.intersection(openers)) or any("|" in text for text in openers)

    def _guarded(self, code: Callable[[], Any], done: _Label, broken: _Label, closed: _Label) -> None:
        """Emits ``code`` with a recovery point. A failure inside a call continues at ``broken``, a failure after a call
        at ``closed``. If ``code`` fails before it commits, the machine tries the code that follows."""
        found, absent = self.label(), self.label()
        self.emit(m.RECOVER, broken, closed)
        self.emit(m.CHOICE, absent)
        code()
        self.emit(m.COMMIT, found)
        self.place(found)
        self.emit(m.DISARM)
        self.emit(m.JUMP, done)
        self.place(absent)
        self.emit(m.DISARM)

    def _section(self, region: int, markup: int, span: Span, exits: list[Node]) -> None:
        """Reasoning or content between markers."""
        if region == m.REASONING and self.inline:
            region = markup = m.CONTENT
        self.node(span.open, markup, markup)
        self.emit(m.CUT)
        self.emit(m.PLACE, region)
        self.span(region, markup, span, exits)

    def _stray_closers(self, markup: int, loop: _Label) -> None:
        """Reads a special token with which nothing begins. It becomes markup and a diagnostic."""
        for closer in self.closers:
            for spelling in self.alphabet.spellings(closer):
                absent = self.label()
                self.emit(m.CHOICE, absent)
                self.emit(m.LIT, markup, spelling, repr(closer))
                self.emit(m.STRAY, len(spelling))
                self.emit(m.COMMIT, loop)
                self.place(absent)

    def _stray_openers(self, starts: Iterable[str]) -> None:
        """Notes a section's opener that has no section. The parser reads it as text."""
        spellings = [
            spelling for text in starts if text == text.lstrip() for spelling in self.alphabet.spellings(text)
        ]
        if spellings:
            self.emit(m.UNOPENED, StopFinder(spellings).at)

    def _running_text(self, loop: _Label) -> None:
        """Reads content: the character at which nothing begins, and all up to the next place where something may."""
        self.emit(m.ONE, m.CONTENT, None, "a character")
        self.text(m.CONTENT, (*self.stops, *self._begins(m.CONTENT)))
        self.emit(m.JUMP, loop)

    def _begins(self, region: int) -> tuple[str, ...]:
        """How a JSON answer begins in text of ``region``."""
        return ("{", "[") if self.answers and region == m.CONTENT else ()

    def _answer(self, region: int, loop: _Label) -> None:
        """Reads a JSON answer, if the request wants one. Markers inside it are plain text."""
        begins = self._begins(region)
        if begins:
            begun, absent = self.label(), self.label()
            self.emit(m.AT, begun, StopFinder(begins).at)
            self.emit(m.JUMP, absent)
            self.place(begun)
            self.emit(m.VALUE, region, lambda machine: AnswerScanner(), False)
            self.emit(m.JUMP, loop)
            self.place(absent)

    def _broken_call(self, entry: _Label, loop: _Label) -> None:
        """Reads the rest of a broken call: all up to the next place where something may begin."""
        over = self.label()
        self.place(entry)
        self.emit(m.MARK, m.BROKEN_BEGIN, None)
        scan = self.here()
        self.text(m.CALL, self.ends)
        self._ends(over, self.broken_ends)
        self.emit(m.ONE, m.CALL, None, "a character")
        self.emit(m.JUMP, scan)
        self.place(over)
        self.emit(m.MARK, m.BROKEN_END, None)
        self.emit(m.JUMP, loop)


def _closers(tree: Node) -> tuple[str, ...]:
    """The special tokens of the tree with which nothing begins. In running text, one of these is markup."""
    openers: set[str] = set()
    for node in walk(tree):
        if isinstance(node, Think):
            openers.update(first(node.span.open))
        elif isinstance(node, Body):
            spans = [span.open for span in (node.reasoning, node.content) if span is not None]
            for part in (node.calls, node.marks, *spans):
                openers.update(first(part) if part is not None else ())
            openers.update(tokens(node.start) if node.start is not None else ())
    return tuple(text for text in tokens(tree) if not any(opener.endswith(text) for opener in openers))


def _tokens_of_arguments(tree: Node) -> set[str]:
    """The special tokens that stand only in the arguments of calls."""
    inside: set[str] = set()
    outside: set[str] = set()
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, (EachArg, Args, Value)):
            inside.update(tokens(node))
        elif isinstance(node, Token):
            outside.update(node.names)
        elif not isinstance(node, (Peek, Not)):
            rest.extend(children(node))
    return inside - outside


_BEGUN = "the beginning of a section"
"""The rule for what ends the rest of a broken call only if it is there whole: its first text alone does not."""

# The thought of a model whose format declares no reasoning: at the start, in any of the usual pairs of markers.
_UNDECLARED = Think(
    Span(
        Choice(tuple(Sequence.of(Token(open), Space("")) for open, _ in THOUGHTS)),
        Choice(tuple(Sequence.of(Choice.of("\n", ""), Token(close), Space("")) for _, close in THOUGHTS)),
    )
)

# The markdown fence that models put around a JSON answer. A JSON string holds no raw line break, so no data is lost.
_FENCE = Many(Sequence.of(Space(""), "```", Many(Literal("json"), 0, 1), "\n"), 0, 1)
_FENCE_END = Literal("\n```")

_white = re.compile(r"[ \t\r\n]*").match
_lone = re.compile("[\ud800-\udfff]")
_REGIONS = {Tag.CONTENT: m.CONTENT, Tag.REASONING: m.REASONING}
_ITEMS = {Tag.NAME: m.NAME, Tag.ARG_NAME: m.ARG_NAME, Tag.ID: m.ID}
_GROUPS = {"id": m.ID, "name": m.NAME}


_JSON_INSIDE = r'(?:[^"\\\x00-\x1f]|\\.|\\\Z)'
"""One character of the inside of a JSON string, or an escape; the text may end after the escape's backslash."""


def _unescaped(item: int, run: str) -> list[tuple[int, str]] | None:
    """The inside of a JSON string as a trail item; None if ``run`` is not the inside of a JSON string."""
    try:
        return [(item, _lone.sub("\ufffd", json.loads(f'"{run}"')) if "\\" in run else run)]
    except ValueError:
        return None


def _plain(item: int, escapes: dict[str, str], run: str) -> list[tuple[int, str]]:
    """A name as a trail item, with its characters in place of their spellings."""
    chars = {spelling: char for char, spelling in escapes.items()}
    return [(item, re.sub("|".join(map(re.escape, chars)), lambda found: chars[found[0]], run))]


def _grouped(whole: Callable[[str], re.Match[str] | None], run: str) -> list[tuple[int, str]] | None:
    """What the groups of a header's pattern find, as trail items; None if the pattern does not match the run."""
    match = whole(run)
    if match is None:
        return None
    found = match.groupdict()
    if not found["name"]:
        return None
    return [(item, found[group]) for group, item in _GROUPS.items() if found.get(group)]


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
    Atomic: _Compiler.atomic,
    Name: _Compiler.name,
    SameName: _Compiler.same_name,
    JsonName: _Compiler.json_name,
    Header: _Compiler.header,
    Implied: _Compiler.implied,
    Declared: _Compiler.declared,
    Cut: _Compiler.cut,
    EachTool: _Compiler.each_tool,
    EachArg: _Compiler.each_arg,
    Args: _Compiler.args,
    Value: _Compiler.value,
    JsonValue: _Compiler.json_value,
    JsonText: _Compiler.json_text,
    Lenient: _Compiler.lenient,
    Calls: _Compiler.calls,
    Think: _Compiler.think,
    Body: _Compiler.body,
}
