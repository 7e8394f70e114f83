"""Shared by the writers of dialects that have rules: names, equal rules once, recursion, the orders of members.

Strategy: a rule is known by its text, so equal rules are written once, whatever nodes they come from. A `Shared` node
is known by its identity and is also written once. An `Order` is written from its automaton's numbers, each of which
stands for a member or for a state that was written before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ..ir import Alt, Ir, Order, Seq, Shared, State, children

_DEEPEST = 16
"""The most shared nodes that are written one inside the other. Past it, the nodes below are written first."""


def _shared_in(node: Ir) -> list[Shared]:
    """The shared nodes in a node, without those inside other shared nodes."""
    found: list[Shared] = []
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, Shared):
            found.append(part)
        else:
            todo += reversed(children(part))
    return found


class RuleWriter:
    """Writes one grammar as named rules. ``rules`` has the nodes that `Ref` names."""

    first: ClassVar[str]
    """The name of the first rule."""
    defines: ClassVar[str]
    """The text between a rule's name and its right side."""
    either: ClassVar[str] = " | "
    """The text between the options of a choice."""

    def __init__(self, rules: Mapping[str, Ir], token_ids: Mapping[str, int] | None) -> None:
        self.sources = rules
        self.token_ids = token_ids or {}
        self.out: dict[str, str] = {}
        self.bodies: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.refs: dict[str, str] = {}
        self.hints: dict[str, Iterator[str]] = {}
        """The names that are left of each hint."""
        self.depth = 0
        """How many shared nodes and rules are being written, one inside the other."""
        self.waiting: list[tuple[str, str]] = []
        """Rules that are named and not yet written."""
        self.alive: list[Any] = []
        """Keeps objects alive whose id() is a key elsewhere, so that the id is not reused."""

    def write(self, root: Ir) -> str:
        """The grammar's text, the rule of ``root`` first."""
        self.out[self.first] = ""
        self.out[self.first] = self.body(root)
        while self.waiting:
            name, source = self.waiting.pop()
            self.out[name] = self.body(self.sources[source])
        return "".join([f"{name}{self.defines}{body}\n" for name, body in self.out.items()])

    # names and rules

    def names_of(self, hint: str) -> Iterator[str]:
        """The names of rules with a hint, without an end."""
        raise NotImplementedError

    def atom(self, node: Ir) -> str:
        """One element of a sequence."""
        raise NotImplementedError

    def fresh(self, hint: str) -> str:
        """A name that no rule has yet. It is taken from now on."""
        names = self.hints.get(hint)
        if names is None:
            names = self.hints[hint] = self.names_of(hint)
        while (name := next(names)) in self.out:
            pass
        self.out[name] = ""
        return name

    def rule(self, hint: str, body: str) -> str:
        """The name of a rule with that body."""
        name = self.bodies.get(body)
        if name is None:
            name = self.bodies[body] = self.fresh(hint)
            self.out[name] = body
        return name

    # nodes

    def body(self, node: Ir) -> str:
        """The right side of a rule."""
        if isinstance(node, Alt):
            return self.either.join(map(self.choice, node.options))
        return self.order(node) if isinstance(node, Order) else self.choice(node)

    def choice(self, node: Ir) -> str:
        """One side of a choice."""
        if type(node) is Seq:
            return " ".join(filter(None, self.atoms(node.items))) or '""'
        return self.atom(node)

    def atoms(self, items: tuple[Ir, ...]) -> list[str]:
        """The elements of a sequence."""
        known = self.names
        return [known.get(id(item)) or self.atom(item) for item in items]

    def shared(self, node: Shared) -> str:
        """The name of a shared node's rule."""
        name = self.names.get(id(node))
        if name is None:
            if self.depth == _DEEPEST:
                self.settle(node)
            self.depth += 1
            name = self.names.get(id(node)) or self.new_shared(node)
            self.depth -= 1
            self.alive.append(node)
            self.names[id(node)] = name
        return name

    def settle(self, node: Shared) -> None:
        """Writes the shared nodes below ``node``, the deepest first, so that deep nodes do not deepen Python's
        stack."""
        depth, self.depth = self.depth, _DEEPEST - 1
        todo = [node]
        while todo:
            below = [inner for inner in _shared_in(todo[-1].node) if id(inner) not in self.names]
            if below:
                todo += reversed(below)
            else:
                self.shared(todo.pop())
        self.depth = depth

    def new_shared(self, node: Shared) -> str:
        """Writes a shared node."""
        body = self.body(node.node)
        return body if body in self.out else self.rule(node.hint.lower(), body)

    def ref(self, source: str) -> str:
        """The name of a rule that may be recursive."""
        name = self.refs.get(source)
        if name is None:
            name = self.refs[source] = self.fresh(source.lower())
            if self.depth == _DEEPEST:
                self.waiting.append((name, source))
            else:
                self.depth += 1
                self.out[name] = self.body(self.sources[source])
                self.depth -= 1
        return name

    # orders

    def order(self, node: Order) -> str:
        """The right side that begins an order; its other states become rules."""
        return self.in_order(node, [*map(self.shared, node.members)], node.states)

    def in_order(self, node: Order, names: list[str], states: tuple[State, ...]) -> str:
        """As `order`, of the members with these names in the orders of ``states``."""
        lead = self.choice(node.separator)
        lead = "" if lead == '""' else lead
        extra = "" if node.extra is None else self.atom(node.extra)
        more = f"({lead} {extra})*".replace("( ", "(") if extra else ""
        names.append(extra)
        *others, start = states
        for state in others:
            body = self.state(state, names, lead, more)
            names.append(body if body in self.out else self.rule("s" if state.begun else "o", body))
        return self.state(start, names, lead, more)

    def state(self, state: State, names: list[str], lead: str, more: str) -> str:
        """The text of a state. ``lead``: what comes before a member; ``more``: the extra members before it."""
        options = [
            f"{names[option[0]]} {names[option[1]]}" if len(option) > 1 else names[option[0]]
            for option in state.options
        ]
        text, choice = self.either.join(options), len(options) > 1
        if state.begun and lead and text:
            text, choice = f"{lead} ({text})" if choice else f"{lead} {text}", False
        if state.may_end and text:
            text, choice = f'{text}{self.either}""', True
        if state.begun and more:
            text = f"{more} ({text})" if choice else f"{more} {text}".rstrip()
        return text or '""'


def suffix(least: int, most: int | None) -> str:
    """How a part is repeated."""
    if most is None:
        return "*" if least == 0 else "+" if least == 1 else f"{{{least},}}"
    if (least, most) == (0, 1):
        return "?"
    if (least, most) == (1, 1):
        return ""
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"
