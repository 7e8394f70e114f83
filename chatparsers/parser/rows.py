"""How the nodes of rules (core/flow.py) are compiled: rows for the compiler's table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..answers import nodes as n
from ..answers.nodes import Node
from ..answers.outline import Answer, JsonIf
from ..core import flow as f
from ..core.machine import instructions as m
from ..core.machine.code import WHITE, Label, Place, stop_finder
from ..schema.tools import UNKNOWN
from ..values import AnswerScanner, Json
from ..values.wanted import Wanted

Labels = dict[str, Label]


class Flow:
    """The rules that are being compiled; a name is looked for in the inmost ones first."""

    def __init__(self, compiler: Any) -> None:
        self.code = compiler.code
        self.labels: list[Labels] = []
        self.turn: Any = None

    def label(self, name: str) -> Label:
        return next(scope[name] for scope in reversed(self.labels) if name in scope)

    def rules(self, node: f.Rules, at: Place) -> None:
        scope = {name: Label() for name, _ in node.rules} | {node.end: Label()}
        self.labels.append(scope)
        names = [*(name for name, _ in node.rules[1:]), node.end]
        for (name, rule), next in zip(node.rules, names, strict=True):
            self.code.place(scope[name])
            self.way(rule, at, (), next)
        self.code.place(scope[node.end])
        self.labels.pop()

    def way(self, node: Node, at: Place, pops: tuple[int, ...], next: str | None) -> None:
        """Emits a node that ends by going on with a rule. ``pops``: how the choice points that are open for it are
        left. ``next``: the rule whose code comes right after."""
        if isinstance(node, n.Choice):
            for option in node.options[:-1]:
                self.option(option, at, pops)
            self.way(node.options[-1], at, pops, next)
            return
        *before, last = _items(node)
        for item in before:
            self.code.node(item, at)
            if isinstance(item, f.Guarded):
                self.code.node(item.node, at)
                pops = (*pops, m.COMMIT)
        if isinstance(last, f.Go):
            self.leave(last.rule, pops, next)
        elif isinstance(last, n.Choice):
            self.way(last, at, pops, next)
        else:
            self.code.node(last, at)

    def leave(self, rule: str, pops: tuple[int, ...], next: str | None) -> None:
        label = self.label(rule)
        if not pops:
            if rule != next:
                self.code.emit(m.JUMP, label)
            return
        *outer, last = pops
        for pop in outer:
            found = Label()
            self.code.emit(pop, found)
            self.code.place(found)
        self.code.emit(last, label)

    def option(self, node: Node, at: Place, pops: tuple[int, ...]) -> None:
        """An option that is not the last: where its beginning fails, the next one is tried."""
        head, *rest = _items(node)
        code = self.code
        absent = Label()
        if isinstance(head, f.Test):
            only = (
                self.label(rest[0].rule)
                if len(rest) == 1 and isinstance(rest[0], f.Go) and not pops
                else None
            )
            test = _TESTS[type(head)]
            jumps_if_not = isinstance(head, f.Here)
            if only is not None and not jumps_if_not:
                test(code, head, only)
                return
            if jumps_if_not:
                test(code, head, absent)
            else:
                found = Label()
                test(code, head, found)
                code.emit(m.JUMP, absent)
                code.place(found)
            self.way_or_option(n.Sequence(tuple(rest)), at, pops)
            code.place(absent)
            return
        if isinstance(head, f.Guarded):
            self.guarded(head, rest, at)
            return
        if isinstance(head, f.Held):
            code.emit(m.HOLD, absent)
            code.node(head.node, at)
            decided = Label()
            code.emit(m.COMMIT, decided)
            code.place(decided)
            self.way(n.Sequence(tuple(rest)), at, pops, None)
            code.place(absent)
            code.emit(m.DRAFT)
            return
        leave = m.BACK if isinstance(head, n.Peek) else m.COMMIT
        code.emit(m.CHOICE, absent)
        items = [head.node if isinstance(head, n.Peek) else head, *rest]
        self.way(n.Sequence(tuple(items)), at, (*pops, leave), None)
        code.place(absent)

    def way_or_option(self, node: Node, at: Place, pops: tuple[int, ...]) -> None:
        """What comes after a test, and may fail."""
        if all(isinstance(item, (f.Note, f.Reads)) for item in _items(node)[:-1]):
            self.way(node, at, pops, None)
        else:
            self.option(node, at, pops)

    def guarded(self, node: f.Guarded, rest: list[Node], at: Place) -> None:
        """A part with a recovery point, after which a rule goes on. Where the part fails before it commits, the code
        that follows is tried."""
        code = self.code
        absent, over = Label(), Label()
        code.node(node, at)
        code.emit(m.CHOICE, absent)
        self.way(n.Sequence((node.node, *rest)), at, (m.COMMIT, m.COMMIT), None)
        code.place(absent)
        code.emit(m.COMMIT, over)
        code.place(over)


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, n.Sequence) else (node,)


_TESTS: dict[type[Node], Callable[..., None]] = {
    f.Here: lambda code, node, label: code.unless(node.texts, label, node.expected),
    f.Absent: lambda code, node, label: code.unless(node.texts, label),
    f.Follows: lambda code, node, label: code.follows(label, node.texts, True),
    f.If: lambda code, node, label: code.emit(m.IF, node.flag, label),
    f.Over: lambda code, node, label: code.emit(m.TOP, label),
}


def finder_and_widths(code: Any, given: tuple[str, ...]) -> tuple[Any, tuple[int, ...]]:
    texts = code.spellings(given)
    widths = {len(text) - len(text.lstrip(WHITE)) for text in texts} - {0}
    return stop_finder(*texts), tuple(sorted(widths, reverse=True))


def _gap(self: Any, node: f.Gap, at: Place) -> None:
    turn = self.flow.turn
    finder, widths = finder_and_widths(self.code, turn.texts)
    stops = stop_finder(*self.code.spellings(turn.stops))
    longest = max(map(len, finder.stops), default=0)
    self.emit(m.BETWEEN, finder, stops, widths, node.section, longest)


def _turn(self: Any, node: f.Turn, at: Place) -> None:
    self.flow.turn = node
    self.node(node.node, at._replace(ends=node.ends))


def _unopened(self: Any, node: f.Unopened, at: Place) -> None:
    spellings = self.code.spellings(text for text in node.texts if text == text.lstrip())
    if spellings:
        self.emit(m.UNOPENED, stop_finder(*spellings), self.flow.label(node.over))


def _counts(self: Any, node: f.Counts, at: Place) -> None:
    written = stop_finder(*(form for text in node.openers for form in self.code.alphabet.written(text)))
    spelt = stop_finder(*self.code.spellings(node.openers))
    unless = "the end of the answer" if node.answer else "" if "missing_opener" in self.mends else "an opener"
    self.emit(m.COUNTS, written, spelt, unless)


def _json_if(self: Any, node: JsonIf, at: Place) -> None:
    read = partial(Json().value(self.code.forms), UNKNOWN, "")
    self.emit(
        m.VALUE, at.region, lambda machine: lambda: Wanted(read(), node.wanted(machine), node.expected), False
    )


def _run(self: Any, node: f.Run, at: Place) -> None:
    over = None if node.over is None else self.flow.label(node.over)
    self.code.text(node.region, node.stops, over, node.missing)


def _recovery_point(self: Any, node: f.Guarded, at: Place) -> None:
    """Its node comes next, in a place that the rule has."""
    self.emit(m.RECOVER, self.flow.label(node.broken), self.flow.label(node.closed))


ROWS: dict[type[Node], Callable[[Any, Any, Place], None]] = {
    f.Turn: _turn,
    f.Rules: lambda self, node, at: self.flow.rules(node, at),
    f.Unset: lambda self, node, at: self.emit(m.UNSET, node.flag),
    f.Region: lambda self, node, at: self.emit(m.PLACE, node.region),
    f.Mark: lambda self, node, at: self.emit(m.MARK, node.item, None),
    f.Emit: lambda self, node, at: self.emit(node.op, *node.operands),
    f.Run: _run,
    f.One: lambda self, node, at: self.code.any_character(node.region),
    Answer: lambda self, node, at: self.emit(m.VALUE, node.region, lambda machine: AnswerScanner, False),
    JsonIf: _json_if,
    f.Counts: _counts,
    f.Unopened: _unopened,
    f.Gap: _gap,
    f.Blank: lambda self, node, at: self.emit(m.BLANK, *finder_and_widths(self.code, self.flow.turn.texts)),
    f.Shared: lambda self, node, at: self.code.called(node.node, at._replace(after=node.after)),
    f.Guarded: _recovery_point,
    f.Markup: lambda self, node, at: self.node(node.node, at.markers),
}
