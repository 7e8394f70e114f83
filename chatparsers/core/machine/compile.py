"""Compiles a tree to the machine's program: the parser's reading of the nodes of the language.

Strategy: every node becomes a run of instructions. The place of a node in the tree decides the region of the
characters that it reads (`Place`). An alphabet may have a text as a single token; the program then matches the one
character that stands for the token in the machine's text (`Alphabet`). A language adds rows for kinds of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ...errors import DefinitionError
from .. import nodes as n
from ..nodes import Node
from ..tree import once
from . import instructions as m
from .code import Code, Label, Place
from .white import white_space


class Compiler:
    """Emits the code of nodes. Each method has one kind of node, and the place where it is."""

    rows: Mapping[type[Node], Callable[[Any, Any, Place], None]]
    """How each kind of node is compiled."""

    def __init__(self, name: str, code: Code, trees: Iterable[Node]) -> None:
        self.format_name = name
        self.code = code
        self.emit = code.emit
        self.rules = {
            node.name: node.node for tree in trees for node in once(tree) if isinstance(node, n.Rule)
        }
        self.literals: dict[n.Literal | n.Token, list[tuple[str, str]]] = {}
        """How the machine's text may spell each literal, and how a diagnostic names it."""
        self.rows = ROWS
        code.node = self.node

    def node(self, node: Node, at: Place) -> None:
        compile = self.rows.get(type(node))
        if compile is None:
            raise DefinitionError(f"{self.format_name}: {type(node).__name__} cannot be parsed")
        compile(self, node, at)

    def literal(self, node: n.Literal | n.Token, at: Place) -> None:
        self._words(self._spelt_as(node), at)

    def _spelt_as(self, node: n.Literal | n.Token) -> list[tuple[str, str]]:
        """How the machine's text may spell the literal, and how a diagnostic names it."""
        found = self.literals.get(node)
        if found is None:
            found = [(text, repr(name)) for name in node.names for text in self.code.forms(name)]
            self.literals[node] = found
        return found

    def _words(self, words: list[tuple[str, str]], at: Place) -> None:
        """Reads the first of the words that follows."""
        if words[0][0]:
            self.emit(m.LIT, at.region, tuple(words))

    def _as_words(self, node: Node) -> list[tuple[str, str]] | None:
        """The words of which ``node`` reads the first that follows; None if it is no choice of words."""
        while isinstance(node, n.Inner) and not isinstance(node, n.Tagged):
            node = node.inner(False)
        if isinstance(node, (n.Literal, n.Token)):
            return self._spelt_as(node)
        if not isinstance(node, n.Choice):
            return None
        found: list[tuple[str, str]] = []
        for option in node.options:
            words = self._as_words(option)
            if words is None:
                return None
            found += words
        return found

    def sequence(self, node: n.Sequence, at: Place) -> None:
        region, markup, ends, after = at
        for index, item in enumerate(node.items, 1):
            if isinstance(item, (n.Literal, n.Token, n.Space)):  # nearly half of all nodes: they do not ask
                self.node(item, at)
            else:
                self.node(item, Place(region, markup, ends, (*node.items[index:], *after)))

    def choice(self, node: n.Choice, at: Place) -> None:
        words = self._as_words(node)
        if words is not None:
            self._words(words, at)
            return
        self.code.choice_of([partial(self.node, option, at) for option in node.options])

    def inner(self, node: n.Inner, at: Place) -> None:
        self.node(node.inner(False), at)

    def many(self, node: n.Many, at: Place) -> None:
        at = at._replace(after=(n.Many(node.node), *at.after))
        for _ in range(node.least):
            self.node(node.node, at)
        if node.most is None:
            self.code.any_number(partial(self.node, node.node, at))
            return
        self.code.up_to(node.most - node.least, partial(self.node, node.node, at))

    def chars(self, node: n.Chars, at: Place) -> None:
        one, shown = f"{self.code.alphabet.no_token}[{node.ranges}]", f"[{node.ranges}]"
        most = node.least if node.most is None else node.most
        # Running text becomes an event with each character, so none of them waits for the others.
        size = 1 if m.CONTENT <= at.region <= m.REASONING else max(most, 1)
        run = re.compile(f"(?:{one}){{0,{size}}}").match
        for start in range(0, most, size):
            self.emit(m.CHARS, at.region, run, shown, min(max(node.least - start, 0), size), size)
        if node.most is None:
            self.emit(m.SPAN, at.region, re.compile(f"(?:{one})+").match)

    def space(self, node: n.Space, at: Place) -> None:
        self.emit(m.SPAN, at.region, white_space)

    def any(self, node: n.AnyChar, at: Place) -> None:
        self.code.any_character(at.region)

    def end(self, node: n.End, at: Place) -> None:
        self.emit(m.END)

    def until(self, node: n.Until, at: Place) -> None:
        self.code.text(at.region, node.stops)

    def peek(self, node: n.Peek, at: Place) -> None:
        done = Label()
        self.code.attempt(partial(self.node, node.node, at), done, m.BACK)
        self.emit(m.FAIL)
        self.code.place(done)

    def negate(self, node: n.Not, at: Place) -> None:
        absent = Label()
        self.emit(m.CHOICE, absent)
        self.node(node.node, at)
        self.emit(m.FAILTWICE)
        self.code.place(absent)

    def rule(self, node: n.Rule, at: Place) -> None:
        self.ref(n.Ref(node.name), at)

    def ref(self, node: n.Ref, at: Place) -> None:
        at = at._replace(after=())
        self.code.subroutine((node.name, at), partial(self.node, self.rules[node.name], at))

    def atomic(self, node: n.Atomic, at: Place) -> None:
        whole = Label()
        self.code.attempt(partial(self.node, node.node, at), whole)
        self.emit(m.FAIL)
        self.code.place(whole)

    def cut(self, node: n.Cut, at: Place) -> None:
        self.emit(m.CUT)

    def line_start(self, node: n.LineStart, at: Place) -> None:
        self.emit(m.LINE, 2)

    def tagged(self, node: n.Tagged, at: Place) -> None:
        self.node(node.node, at._replace(region=REGIONS[node.tag]))


REGIONS = {n.Tag.CONTENT: m.CONTENT, n.Tag.REASONING: m.REASONING}
"""The regions of the text of some tags."""
ROWS: Mapping[type[Node], Callable[[Any, Any, Place], None]] = n.of_every_kind(
    "core/machine/compile.py",
    {
        n.Literal: Compiler.literal,
        n.Token: Compiler.literal,
        n.Chars: Compiler.chars,
        n.Space: Compiler.space,
        n.AnyChar: Compiler.any,
        n.End: Compiler.end,
        n.Until: Compiler.until,
        n.Sequence: Compiler.sequence,
        n.Choice: Compiler.choice,
        n.Many: Compiler.many,
        n.Peek: Compiler.peek,
        n.Not: Compiler.negate,
        n.Rule: Compiler.rule,
        n.Ref: Compiler.ref,
        n.Tagged: Compiler.tagged,
        n.Atomic: Compiler.atomic,
        n.LineStart: Compiler.line_start,
        n.Cut: Compiler.cut,
        n.Inner: Compiler.inner,
    },
)
"""How each kind of node of the language is compiled."""
