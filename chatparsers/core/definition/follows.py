"""What may follow the closing tag of a value, read off the nodes after the value.

The text of a value may spell its own closing tag. Such a tag closes nothing if what follows it could not follow there.
The texts leave out white space, because any may stand between markers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ..errors import DefinitionError
from ..values.closers import Behind, squeezed
from .nodes import Choice, Literal, Many, Name, Node, Not, Peek, SameName, Sequence, Space, Tag, Token
from .nodes.node import Silent

__all__ = ["NAME", "follows"]

NAME = "\0"
"""Stands for the argument's name in a closing tag that has it."""
_TELLING = 3
"""How many characters after the closing tag tell at least what follows."""
_MOST = 250
_special = re.compile("[\ud800-\udbff]").search
_ROUNDS = 3
"""How often a repetition is followed: what is shorter than `_TELLING` may come so often."""

Spell = Callable[[Iterable[str]], "list[str]"]
"""The forms in which texts may stand in the machine's text."""


def follows(nodes: Iterable[Node], closer: str, spell: Spell, stops: Iterable[str]) -> Behind | None:
    """What may follow ``closer`` where ``nodes`` come next; None if any text may. ``closer`` and ``stops``, the ends of
    the turn, are spelt as in the machine's text, and ``spell`` gives the forms in which other texts may stand there."""
    near, far = (_Follows(squeezed(closer), spell, whole) for whole in (False, True))
    try:
        ends = [found.read(Sequence(tuple(nodes)), {""}) for found in (near, far)]
    except DefinitionError:
        return None
    texts = near.behind(ends[0] | near.told)
    if not texts or "" in texts or len(texts) > _MOST:
        return None
    stopped = sorted(map(squeezed, stops))
    over = near.behind(ends[1], True)
    over += [text + stop for text in over for stop in stopped]
    return Behind((*texts, *stopped), tuple(over), tuple(near.behind(far.calls, True)))


class _Follows:
    """Reads nodes as far as they tell, or if ``whole``, as far as they are known. ``told``: the texts that need not be
    read on. ``calls``: those before the name of a tool."""

    def __init__(self, closer: str, spell: Spell, whole: bool) -> None:
        self.closer = closer
        self.spell = spell
        self.whole = whole
        self.told: set[str] = set()
        self.calls: set[str] = set()

    def behind(self, found: Iterable[str], once: bool = False) -> list[str]:
        """What stands behind the closing tag in the texts; ``once``: of those that do not repeat the tag."""
        texts = sorted(text[len(self.closer) :] for text in found if text.startswith(self.closer))
        return [text for text in texts if not (once and text.startswith(self.closer))]

    def read(self, node: Node, begun: set[str]) -> set[str]:
        """``begun``, texts before the node, with all that it reads after them. What tells enough goes to ``told``."""
        if not begun:
            return begun
        if isinstance(node, (Literal, Token)):
            names = node.names if isinstance(node, Token) else (node.text,)
            return self._kept(text + more for text in begun for more in map(squeezed, self.spell(names)))
        if isinstance(node, SameName):
            return self._kept(text + NAME for text in begun)
        if isinstance(node, (Space, Not, Silent)):
            return begun
        if isinstance(node, Sequence):
            for item in node.items:
                begun = self.read(item, begun)
            return begun
        if isinstance(node, Choice):
            return {text for option in node.options for text in self.read(option, begun)}
        if isinstance(node, Many):
            found = begun if not node.least else set()
            for _ in range(1 if self.whole else min(node.most or _ROUNDS, _ROUNDS)):
                begun = self.read(node.node, begun) - found
                found = found | begun
            return found
        if isinstance(node, Peek):
            behind = {text for text in begun if text.startswith(self.closer)}
            self.told |= self.read(node.node, behind)
            return begun - behind
        inner = node.stands_for(False)
        return self.read(inner, begun) if inner is not None else self._unknown(node, begun)

    def _kept(self, texts: Iterable[str]) -> set[str]:
        """The texts that may still become the closing tag, or that tell too little of what follows it."""
        found: set[str] = set()
        for text in texts:
            if not text.startswith(self.closer):
                if self.closer.startswith(text):
                    found.add(text)
            elif self.whole or not self._tells(text[len(self.closer) :]):
                found.add(text)
            else:
                self.told.add(text)
        if len(found) > _MOST:
            raise DefinitionError("too many texts may follow")
        return found

    def _tells(self, rest: str) -> bool:
        """Whether ``rest`` tells what follows the closing tag: it does not where it may begin the tag once more."""
        return (len(rest) >= _TELLING and not self.closer.startswith(rest)) or bool(_special(rest))

    def _unknown(self, node: Node, begun: set[str]) -> set[str]:
        """Any text may stand here. So nothing is known after the closing tag itself."""
        known = {text for text in begun if text.startswith(self.closer)}
        self.told |= known
        if isinstance(node, Name) and node.tag is Tag.NAME:
            self.calls |= known
        return set()
