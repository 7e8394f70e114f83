"""What is written of a grammar's schemas: the rules and what is not enforced, equal values once, recursive values.

Strategy: a value is known by the identities of the schemas that apply to it. A value that is met again inside itself
becomes a rule. If that rule has no finite text, the value is nothing; then the values in it that refer to it are
forgotten, so that they are written again when they are met again.

The tools of one server repeat their schemas, so equal schemas are written once for a grammar. An equal schema gives an
equal value only if it says all that there is to say: it has no reference, nothing was reported with its path, and no
rule was made for it. What it cost of the budget's size is spent again, because a grammar may write the value again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from marshal import dumps
from typing import Any

from ...schema.keywords import KEYWORDS, NOTES
from ..budget import Budget
from ..ir import EMPTY, NOTHING, Alt, Ir, Lang, Order, Ref, Rep, Seq, Shared, Text, children, named
from ..regular.automaton import TooLarge, build
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
        unsaid = case.unsaid if kind is None else case.unsaid_of(kind)
        self.weakened.update(dict.fromkeys(weak for weak, _ in unsaid))

    def listed(self, cases: list[Case]) -> list[Any] | None:
        """The values that cases list; None if the grammar has no room for them."""
        found = {key: value for case in cases for key, value in (case.values or {}).items()}
        size = sum(len(value) + 6 if isinstance(value, str) else 12 for value in found.values())
        if found and size > self.budget.size:
            self.tell(cases[0].path, "*", "the grammar would be past max_size: any value is generated")
            return None
        self.budget.size -= size
        return list(found.values())

    def states(self, lang: Lang) -> int | None:
        """How many states the automaton of a language has: 0 if the language is empty, None if there are too many."""
        if self.budget.over():
            return None
        try:
            found = build(lang, _MOST_STATES, self.budget)
        except TooLarge:
            return None
        if found is None:
            return 0
        self.budget.size -= 24 * len(found.edges)
        return len(found.edges)

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

_REFERENCES = tuple(row.name.encode() for row in KEYWORDS.values() if row.reference)


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
    return None if any(reference in said for reference in _REFERENCES) else said


class Equal:
    """The values of one grammar's schemas, by their content. The grammar's output shows what a value adds."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.known: dict[Hashable, tuple[Ir, int]] = {}

    def get(self, said: bytes | None, *written: Hashable) -> Ir | None:
        """The value of an equal schema, by its content and how it is written."""
        found = None if said is None else self.known.get((said, *written))
        if found is None:
            return None
        self.output.budget.size -= found[1]
        return found[0]

    def watch(self, said: bytes | None, *written: Hashable) -> Callable[[Ir], Ir]:
        """Call it before a value is made, and call the result with the value, which is then known."""
        output, key = self.output, (said, *written)
        rules, weakened, size = len(output.rules), len(output.weakened), output.budget.size

        def made(value: Ir) -> Ir:
            if said is not None and (len(output.rules), len(output.weakened)) == (rules, weakened):
                self.known[key] = value, size - output.budget.size
            return value

        return made


# recursive values

_Key = tuple[int, ...]


class Written:
    """The values of one compiler, and those that are being written. ``prefix``: of the names of its rules."""

    def __init__(self, rules: dict[str, Ir], prefix: str) -> None:
        self.rules = rules
        self.prefix = prefix
        self.known: dict[_Key, Ir] = {}
        self.begun: dict[_Key, tuple[str, int]] = {}
        """The names of the values that are being written, and how many values were known before each."""
        self.alive: list[Any] = []
        """Keeps schemas alive whose id() is in a key, so that the id is not reused."""

    def get(self, schemas: list[Located], depth: int) -> Ir | None:
        """A value that is written, or a reference to one that is being written."""
        key = _key(schemas, depth)
        if key not in self.begun:
            return self.known.get(key)
        name = self.begun[key][0]
        self.rules.setdefault(name, EMPTY)
        return Ref(name)

    def begin(self, schemas: list[Located], depth: int) -> Callable[[Ir], Ir]:
        """Call it when a value is begun, and call the result with its node. It returns what stands for the value."""
        key = _key(schemas, depth)
        self.alive.extend(schema for schema, _ in schemas)
        self.begun[key] = f"{self.prefix}-{len(self.rules)}-{len(self.alive)}", len(self.known)

        def end(node: Ir) -> Ir:
            name, before = self.begun.pop(key)
            if name in self.rules:
                self.rules[name] = node
                if has_end(name, self.rules, [other for other, _ in self.begun.values()]):
                    node = Ref(name)
                else:
                    node = NOTHING
                    for inner in list(self.known)[before:]:
                        del self.known[inner]
            elif isinstance(node, Seq) or (isinstance(node, Alt) and not all(map(_short, node.options))):
                node = Shared("v", node)
            self.known[key] = node
            return node

        return end


def _key(schemas: list[Located], depth: int) -> _Key:
    """What a value is known by. A value inside an object or array is written otherwise than one alone."""
    if len(schemas) == 1:
        return (int(depth > 0), id(schemas[0][0]))
    return (int(depth > 0), *sorted({id(schema) for schema, _ in schemas}))


def _short(node: Ir) -> bool:
    return isinstance(node, (Text, Shared))


def has_end(name: str, rules: Mapping[str, Ir], begun: Collection[str]) -> bool:
    """Whether the rule ``name`` has a finite text. The rules in ``begun`` are not yet written; they count as finite."""
    todo, found = [name], {name}
    while todo:
        for other in named(rules[todo.pop()]):
            if other not in found and other not in begun:
                found.add(other)
                todo.append(other)
    ending: set[str] = set(begun)
    more = True
    while more:
        more = False
        for rule in found - ending:
            if run(_ends(rules[rule], ending, {})):
                ending.add(rule)
                more = True
    return name in ending


def _ends(node: Ir, ending: set[str], known: dict[int, bool]) -> Steps[bool]:
    if isinstance(node, Ref):
        return node.name in ending
    found = known.get(id(node))
    if found is not None:
        return found
    if isinstance(node, Order):
        found = yield _order_ends(node, ending, known)
    elif isinstance(node, Rep):
        found = not node.least or bool((yield _ends(node.node, ending, known)))
    else:
        items = children(node)
        wanted = isinstance(node, Alt)  # a choice needs one part that ends, other nodes need all
        found = not wanted
        for part in items:
            if (yield _ends(part, ending, known)) is wanted:
                found = wanted
                break
    known[id(node)] = found
    return found


def _order_ends(node: Order, ending: set[str], known: dict[int, bool]) -> Steps[bool]:
    """Whether all required members of an order end. A member is required if no state can be the last without it."""
    ends: list[bool] = []
    for member in node.members:
        ends.append((yield _ends(member, ending, known)))
    ends.append(node.extra is not None and (yield _ends(node.extra, ending, known)))
    for state in node.states:
        options = any(all(ends[number] for number in option) for option in state.options)
        ends.append(state.may_end or options or not state.options)
    return ends[-1]
