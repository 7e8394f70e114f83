"""What is written of a grammar's schemas: the rules and what is not enforced, equal values once, recursive values.

Strategy: a value is known by the identities of the schemas that apply to it. A value that is met again inside itself
becomes a rule. When the outermost value is written, all its rules are judged at once. Those without a finite text are
nothing; then the other values in it are forgotten and written again, without them.

The tools of one server repeat their schemas, so equal schemas are written once for a grammar. An equal schema gives an
equal value only if it says all that there is to say: it has no reference, nothing was reported with its path, and no
rule was made for it. What it cost of the budget's size is spent again, because a grammar may write the value again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from marshal import dumps
from typing import Any

from ...schema.keywords import KEYWORDS, NOTES
from ..budget import Budget
from ..ir import EMPTY, NOTHING, Alt, AnyOrder, Ir, Lang, Order, Ref, Rep, Seq, Shared, Text, children
from ..regular.automaton import TooLarge, states
from ..steps import Steps, run
from ..target import Target
from .cases import Case, Located, Weakened

_MOST_STATES = 3_000


@dataclass(slots=True)
class Output:
    """Shared by all compilers of a grammar: the rules that recursion needs, the keywords that are not enforced, what
    may still be spent, and what the grammar is written for."""

    rules: dict[str, Ir] = field(default_factory=dict)
    weakened: dict[Weakened, None] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    target: Target = field(default_factory=Target)

    def tell(self, path: str, keyword: str, why: str) -> None:
        """Reports a keyword that is not enforced."""
        self.weakened[Weakened(path, keyword, why)] = None

    def tell_unsaid(self, case: Case, kind: str | None = None) -> None:
        """Reports the keywords that are not enforced of a type that is written; without one, of all types."""
        if not case.unsaid:
            return
        unsaid = case.unsaid if kind is None else case.unsaid_of(kind)
        self.weakened.update(dict.fromkeys(weak for weak, _ in unsaid))

    def listed(self, cases: list[Case]) -> list[Any] | None:
        """The values that cases list; None if the grammar has no room for them."""
        found: dict[Any, Any] = {}
        for case in cases:
            if case.values:
                found.update(case.values)
        if not found:
            return []
        size = sum([len(value) + 6 if isinstance(value, str) else 12 for value in found.values()])
        if size > self.budget.size:
            self.tell(
                cases[0].path, "*", f"the grammar would be past {self.budget.limit}: any value is generated"
            )
            return None
        self.budget.size -= size
        return list(found.values())

    def states(self, lang: Lang) -> int | None:
        """How many states the automaton of a language has: 0 if the language is empty, None if there are too many."""
        if self.budget.over():
            return None
        try:
            size = states(lang, _MOST_STATES, self.budget)
        except TooLarge:
            return None
        self.budget.size -= 24 * size
        return size

    def names(self, lang: Lang, path: str) -> Ir:
        """The names of members that no schema lists: ``lang``, if an automaton says it. The last of its constraints is
        what can be written in that place."""
        size = self.states(lang)
        if size == 0:
            why = "no name that the schema allows can be written here: such members are not generated"
            self.tell(path, "additionalProperties", why)
            return NOTHING
        if size is None:
            self.tell(path, "propertyNames", "the names take too many states: any name is generated")
            return Lang(lang.parts[-1:])
        return lang


# equal schemas

_REFERS = re.compile(
    "|".join(re.escape(row.name) for row in KEYWORDS.values() if row.reference).encode()
).search


def content(schemas: list[Located]) -> bytes | None:
    """A key of what one schema says, without notes for readers; None if it refers to schemas or is not plain JSON, or
    for several schemas."""
    schema = schemas[0][0]
    if len(schemas) > 1 or type(schema) is not dict:
        return None
    try:
        said = dumps([item for item in schema.items() if item[0] not in NOTES], 2)
    except ValueError:
        return None
    return None if _REFERS(said) else said


class Equal:
    """The values of one grammar's schemas, by their content. The grammar's output shows what a value adds."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.known: dict[Hashable, tuple[Ir, int]] = {}

    def once(self, key: Hashable | None, make: Callable[[], Ir | Steps[Ir]]) -> Steps[Ir]:
        """The value of an equal schema; else the one that ``make`` makes. ``key``: what the schema says and how it is
        written; None if that may not be all."""
        known = self.known.get(key)
        if known is not None:
            self.output.budget.size -= known[1]
            return known[0]
        output = self.output
        rules, weakened, size = len(output.rules), len(output.weakened), output.budget.size
        value: Ir = yield make()
        if key is not None and (len(output.rules), len(output.weakened)) == (rules, weakened):
            self.known[key] = value, size - output.budget.size
        return value


# recursive values

_Key = tuple[int, ...]


class Written:
    """The values of one compiler, and those that are being written. ``prefix``: of the names of its rules."""

    def __init__(self, rules: dict[str, Ir], prefix: str) -> None:
        self.rules = rules
        self.prefix = prefix
        self.known: dict[_Key, Ir] = {}
        self.begun: dict[_Key, str] = {}
        """The names of the values that are being written."""
        self.before = 0
        """How many values were known before the outermost of them."""
        self.unjudged: dict[str, _Key] = {}
        """The rules of which it is not known whether they have a finite text, with the keys of their values."""
        self.finite: dict[int, Ir] = {}
        """Nodes that have a finite text, by their identity."""
        self.alive: list[Any] = []
        """Keeps schemas alive whose id() is in a key, so that the id is not reused."""

    def get(self, schemas: list[Located], depth: int) -> Ir | None:
        """A value that is written, or a reference to one that is being written."""
        key = _key(schemas, depth)
        if key not in self.begun:
            return self.known.get(key)
        name = self.begun[key]
        self.rules.setdefault(name, EMPTY)
        return Ref(name)

    def begin(self, schemas: list[Located], depth: int) -> Callable[[Ir], Ir]:
        """Call it when a value is begun, and call the result with its node. It returns what stands for the value."""
        key = _key(schemas, depth)
        if not self.begun:
            self.before = len(self.known)
        self.alive += [schema for schema, _ in schemas]
        self.begun[key] = f"{self.prefix}-{len(self.rules)}-{len(self.alive)}"

        def end(node: Ir) -> Ir:
            name = self.begun.pop(key)
            if name in self.rules:
                self.rules[name] = node
                self.unjudged[name] = key
                node = Ref(name)
            elif isinstance(node, Seq) or (isinstance(node, Alt) and not all(map(_short, node.options))):
                node = Shared("v", node)
            self.known[key] = node
            return node

        return end

    def endless(self) -> bool:
        """Whether some of the recursive values have no finite text, once the outermost value is written. They are
        nothing from now on, and the others are to be written again without them."""
        if self.begun or not self.unjudged:
            return False
        empty = self._empty()
        if empty:
            for key in list(self.known)[self.before :]:
                del self.known[key]
            self.known.update(dict.fromkeys((self.unjudged[name] for name in empty), NOTHING))
        self.unjudged.clear()
        return bool(empty)

    def _empty(self) -> Collection[str]:
        """The unjudged rules without a finite text. Most refer to rules that come before them."""
        empty = dict.fromkeys(self.unjudged)
        before = 0
        while len(empty) != before:
            before = len(empty)
            known: dict[int, bool] = {}
            for name in list(empty):
                if run(_ends(self.rules[name], empty, known, self.finite)):
                    del empty[name]
        return empty


def _key(schemas: list[Located], depth: int) -> _Key:
    """What a value is known by. A value inside an object or array is written otherwise than one alone."""
    if len(schemas) == 1:
        return (int(depth > 0), id(schemas[0][0]))
    return (int(depth > 0), *sorted({id(schema) for schema, _ in schemas}))


def _short(node: Ir) -> bool:
    return isinstance(node, (Text, Shared))


def _ends(node: Ir, empty: Collection[str], known: dict[int, bool], finite: dict[int, Ir]) -> Steps[bool]:
    """Whether a node has a finite text, if the rules in ``empty`` have none. ``finite``: nodes that have one."""
    if isinstance(node, Ref):
        return node.name not in empty
    if id(node) in finite:
        return True
    found = known.get(id(node))
    if found is not None:
        return found
    if isinstance(node, Order):
        found = yield _order_ends(node, empty, known, finite)
    elif isinstance(node, AnyOrder):
        found = not node.some
        for part, must in zip(children(node), (*node.required, False), strict=False):
            ends = bool((yield _ends(part, empty, known, finite)))
            found = ends if must else found or ends
            if must and not ends:
                break
    elif isinstance(node, Rep):
        found = not node.least or bool((yield _ends(node.node, empty, known, finite)))
    else:
        wanted = isinstance(node, Alt)  # a choice needs one part that ends, other nodes need all
        found = not wanted
        for part in children(node):
            if (yield _ends(part, empty, known, finite)) is wanted:
                found = wanted
                break
    if found:
        finite[id(node)] = node
    else:
        known[id(node)] = found
    return found


def _order_ends(
    node: Order, empty: Collection[str], known: dict[int, bool], finite: dict[int, Ir]
) -> Steps[bool]:
    """Whether all required members of an order end. A member is required if no state can be the last without it."""
    ends: list[bool] = []
    for member in node.members:
        ends.append((yield _ends(member, empty, known, finite)))
    ends.append(node.extra is not None and (yield _ends(node.extra, empty, known, finite)))
    for state in node.states:
        options = any(all(ends[number] for number in option) for option in state.options)
        ends.append(state.may_end or options or not state.options)
    return ends[-1]
