"""What the schemas of one grammar add to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..budget import Budget
from ..ir import Ir, Lang
from ..regular.automaton import TooLarge, build
from ..target import Target
from .bags import Weakened

__all__ = ["Output"]

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
