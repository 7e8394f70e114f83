"""The primitives that a format is made of. answers/idioms.py makes the common shapes from them.

Operators: ``a + b`` is a sequence, ``a << b`` a sequence with white space allowed between, ``a | b`` an ordered choice.
A plain string is a literal.
"""

from __future__ import annotations

from ..errors import DefinitionError
from . import nodes as n
from .nodes import Node, Nodelike, as_node
from .operands import checked


@checked
class Primitives:
    """Makes nodes. The first paragraph of every docstring ends with the production."""

    def literal(self, text: str) -> Node:
        """Exactly this text. ``"text"``"""
        return n.Literal(text)

    def token(self, text: str, *also: str) -> Node:
        """One special token: by id where ids are fed and the tokenizer has it, else its text. ``"text"``

        ``also``: its names in other checkpoints of the family. The parser reads any of the names. The grammar writes
        the one that the tokenizer or the prompt has, else ``text``. Names at the same place belong to one checkpoint.
        """
        return n.Token(text, also)

    def until(self, *stops: str) -> Node:
        """Text up to the first stop or the end, streamed. ``(!stop .)*``"""
        return n.Until(stops)

    def rest(self) -> Node:
        """All that follows, streamed. ``.*``"""
        return n.Until(())

    def chars(self, ranges: str, least: int = 1, most: int | None = None) -> Node:
        """Characters of a class, as in ``[a-z]``. ``[ranges]{least,most}``

        ``most`` is for short runs, as each of its characters is an instruction. Before a call is certain, a run without
        it has at most 1024 characters.
        """
        return n.Chars(ranges, least, most)

    def space(self, text: str = "") -> Node:
        """Parses any white space, or none; generates ``text``, as the model's template has it. ``[ \\t\\r\\n]*``"""
        return n.Space(text)

    def trim(self, text: str) -> Node:
        """Generates ``text``, which is white space beside a marker; parses it, or a beginning of it, or nothing.
        ``text / … / ""``"""
        return self.reads(text, *(text[:end] for end in range(len(text), -1, -1))) if text else n.Literal("")

    def any(self) -> Node:
        """One character. ``.``"""
        return n.AnyChar()

    def end(self) -> Node:
        """The end of the turn. A turn that was cut off (``finish("length")``) has no end. ``!.``"""
        return n.End()

    def line_start(self) -> Node:
        """Succeeds without reading at the start of a line, and right after markup. For parsing only. ``&{line}``"""
        return n.LineStart()

    def sequence(self, *items: Nodelike) -> Node:
        """The items, one after the other. ``a b c``"""
        return n.Sequence.of(*items)

    def choice(self, *options: Nodelike) -> Node:
        """The first option that matches. ``a / b / c``"""
        return n.Choice.of(*options)

    def optional(self, node: Nodelike) -> Node:
        """The node, or nothing, in both readings. ``a?``"""
        return n.Many(as_node(node), 0, 1)

    def many(self, node: Nodelike, least: int = 0) -> Node:
        """The node any number of times, at least ``least``. ``a*``"""
        return n.Many(as_node(node), least, None)

    def repeat(self, node: Nodelike, least: int, most: int) -> Node:
        """The node between ``least`` and ``most`` times. ``a{least,most}``"""
        return n.Many(as_node(node), least, most)

    def peek(self, node: Nodelike) -> Node:
        """Succeeds without reading if the node follows. For parsing only: use it in what `reads` parses. ``&a``"""
        return n.Peek(as_node(node))

    def negate(self, node: Nodelike) -> Node:
        """Succeeds without reading if the node does not follow. For parsing only, as `peek`. ``!a``"""
        return n.Not(as_node(node))

    def rule(self, name: str, node: Nodelike) -> Node:
        """A named rule. ``name <- a``"""
        return n.Rule(name, as_node(node))

    def ref(self, name: str) -> Node:
        """The rule of that name. ``name``"""
        return n.Ref(name)

    def atomic(self, node: Nodelike) -> Node:
        """The node; nothing of it is emitted until all of it is read. ``a``"""
        return n.Atomic(as_node(node))

    def cut(self) -> Node:
        """Commits: the parser never goes back before this point, so it emits the text it held. ``^``"""
        return n.Cut()

    def expected(self, node: Nodelike) -> Node:
        """Generates the node; parses it, or nothing if the model left it out. ``a?``"""
        node = as_node(node)
        return n.Lenient(node, n.Many(node, 0, 1))

    def reads(self, strict: Nodelike, *lenient: Nodelike) -> Node:
        """Generates ``strict``; parses the first of ``lenient`` that matches, instead. ``lenient₁ / lenient₂ / …``

        ``strict`` is not parsed unless it is one of ``lenient``. The first that matches wins: if one alternative is the
        beginning of another, put the longer one first.
        """
        if not lenient:
            raise DefinitionError("p.reads: expected what is parsed, after what is generated; found nothing")
        return n.Lenient(as_node(strict), n.Choice.of(*lenient))
