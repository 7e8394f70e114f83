"""What became of a wish for thoughts or effort: which level of the model's own dial was used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..public import public


@public
@dataclass(frozen=True, slots=True)
class Thoughts:
    """What became of a wish for thoughts or effort. `Turn.thoughts` has it.

    ``level``: the level of the template's dial that the prompt has: ``off``, ``on``, ``adaptive`` or a word of effort;
    ``""`` if the template has none for the wish, so that the prompt is as it is without one. ``variables``: those of
    the template that give it. ``budget``: how many tokens of thoughts an engine or a guide must allow for the wish, as
    no prompt says it: 0 where the template cannot turn thoughts off; else None. ``moves``: whether the level changes a
    prompt of this kind (some templates look at it only without tools, or not after a result).

    >>> chat.prepare(messages, effort="none").thoughts.level
    'off'
    """

    level: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    moves: bool = True

    def __str__(self) -> str:
        """In one line, for a header or a log.

        >>> from chatparsers.schema.wished import Thoughts
        >>> str(Thoughts("low", budget=0))
        'low; budget=0'
        """
        said = [self.level or "unchanged"]
        said += [f"budget={self.budget}"] if self.budget is not None else []
        return "; ".join(said if self.moves else [*said, "without effect here"])
