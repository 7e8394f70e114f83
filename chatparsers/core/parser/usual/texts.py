"""The texts that a template writes in a call between two places where something becomes final.

Such a place is a value, the begin of the arguments, or the end of a call. `texts` reads them off the tree. A text is
known but for the names in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, product
from operator import attrgetter
from typing import NamedTuple

from ...definition import nodes as n
from ...definition.tree import once
from ..alphabet import Alphabet

JSON_INSIDE = r'(?:[^"\\\x00-\x1f]|\\.|\\\Z)'
"""One character of the inside of a JSON string, or an escape; the text may end after the escape's backslash."""

START, VALUE, ARGUMENTS, CALL = "", "value", "arguments", "call"
"""What may come before a text: nothing, a value, the begin of the arguments, the end of a call."""


class Atom(NamedTuple):
    """A part of a text.

    ``kind``: "text", "name" (a run of the class ``text``), "next" (only looked at: ``text`` follows, or if it is empty,
    no white space), "unknown", or "final" (the text ends here, before what ``text`` says).
    """

    kind: str
    text: str = ""


class Text(NamedTuple):
    """A text after the place ``after``, and what usually follows it."""

    after: str
    atoms: tuple[Atom, ...]
    ahead: str


def texts(tree: n.Node, alphabet: Alphabet) -> list[Text]:
    """The texts of the calls of the tree, without repetitions. A text comes before its beginnings."""
    found: dict[Text, None] = {}
    for body in once(tree):
        if not isinstance(body, n.Body) or body.calls is None:
            continue
        for arguments, start in product((2, 0), range(len(body.lead) + 1)):
            lead = [Atom("text", body.lead[start:])]
            found |= dict.fromkeys(_cut([*lead, *_atoms(body.calls, alphabet, arguments)]))
    return sorted(found, key=lambda text: -sum(len(atom.text) for atom in text.atoms))


def _cut(atoms: list[Atom]) -> Iterator[Text]:
    """The texts between the final places, and the rest after the last one."""
    after = START
    parts: list[Atom] = []
    for place, atom in enumerate((*atoms, Atom("final")), 1):
        if atom.kind == "final":
            text = tuple(_joined(parts))
            last = place > len(atoms)
            if last and text and text[-1].kind == "text":  # the turn may end before white space
                text = tuple(_joined([*text[:-1], Atom("text", text[-1].text.rstrip())]))
            known = text and all(part.kind != "unknown" for part in text)
            if known and (after or not last):
                ahead = atoms[place].text if place < len(atoms) and atoms[place].kind == "text" else ""
                yield Text(after, text, ahead)
            after, parts = atom.text, []
        else:
            parts.append(atom)


def _joined(parts: list[Atom]) -> Iterator[Atom]:
    """The parts, with neighbouring texts as one."""
    for kind, run in groupby(parts, attrgetter("kind")):
        if kind != "text":
            yield from run
        elif text := "".join(atom.text for atom in run):
            yield Atom(kind, text)


def _atoms(node: n.Node, alphabet: Alphabet, arguments: int) -> Iterator[Atom]:
    """The node as its template writes it, with ``arguments`` arguments, and two calls where several may come."""
    parts: list[n.Node] = []
    if isinstance(node, (n.Literal, n.Token)):
        text = node.text if isinstance(node, n.Literal) else node.names[0]
        yield Atom("text", alphabet.spellings(text)[0])
    elif isinstance(node, n.Space):
        yield Atom("text", node.text)
    elif isinstance(node, n.JsonName):
        yield Atom("name", JSON_INSIDE)
    elif isinstance(node, (n.Name, n.Header)):
        yield Atom("name", node.chars)
    elif isinstance(node, (n.Args, n.Value)):
        if isinstance(node, n.Args):
            yield Atom("next", "{")
        yield Atom("final", VALUE)
    elif isinstance(node, n.EachArg):
        yield Atom("final", ARGUMENTS)
        between = [] if node.separator is None else [node.separator]
        parts = [node.any, *([*between, node.any] * (arguments - 1))] if arguments else []
    elif isinstance(node, n.Sequence):
        parts = list(node.items)
    elif isinstance(node, n.Choice):
        parts = [node.options[0]]
    elif isinstance(node, n.Lenient):
        parts = [node.strict]
    elif isinstance(node, n.Many):
        parts = [node.node] * node.least
    elif isinstance(node, n.Calls):
        parts = [node.item, node.separator, node.item]
    elif isinstance(node, n.EachTool):
        parts = [node.any]
    elif isinstance(node, (n.Atomic, n.Rule, n.Tagged)):
        parts = [node.node]
    elif not isinstance(node, (n.Peek, n.Not, n.Cut, n.Implied, n.Declared, n.LineStart)):
        yield Atom("unknown")
    for part in parts:
        yield from _atoms(part, alphabet, arguments)
    if isinstance(node, n.Tagged) and node.tag is n.Tag.CALL:
        yield Atom("final", CALL)
