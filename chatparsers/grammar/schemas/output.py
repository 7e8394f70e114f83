"""What the schemas of one grammar add to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..budget import Budget
from ..ir import NOTHING, Ir, Lang
from ..regular.automaton import TooLarge, build
from ..target import Target
from .bags import Bag, Weakened
from .keywords import types_of

_MOST_STATES = 3_000


@dataclass(slots=True)
class Output:
    """Shared by all compilers of a grammar: the rules that recursion needs, the keywords that are not enforced, what
    may still be spent, and what the grammar is written for."""

    rules: dict[str, Ir] = field(default_factory=dict)
    weakened: dict[Weakened, None] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    target: Target = field(default_factory=Target)

    def report(self, weak: Weakened) -> None:
        self.weakened[weak] = None

    def tell(self, path: str, keyword: str, why: str) -> None:
        self.weakened[Weakened(path, keyword, why)] = None

    def report_told(self, bag: Bag, kind: str | None = None) -> None:
        """Reports the keywords that are not enforced of a type that is written; without one, of all types."""
        for weak, _ in bag.unsaid:
            if kind is None or ("number" if kind == "integer" else kind) in types_of(weak.keyword):
                self.report(weak)

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
