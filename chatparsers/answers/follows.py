"""What may follow the closing tag of a value, read off the nodes after the value.

The text of a value may spell its own closing tag. Such a tag closes nothing if what follows it could not follow there.
The texts leave out white space, because any may come between markers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ..core.nodes.control import Look
from ..core.nodes.first import Paths
from ..core.nodes.node import Silent
from ..values.closers import NAME, AfterTag, squeezed
from .nodes import Literal, Many, Name, Node, Peek, SameName, Sequence, Space, Tag, Token

_TELLING = 3
"""How many characters after the closing tag tell at least what follows."""
_MOST = 250
_special = re.compile("[\ud800-\udbff]").search
_ROUNDS = 3
"""How often a repetition is followed: what is shorter than `_TELLING` may come so often."""

Spell = Callable[[Iterable[str]], "list[str]"]
"""The forms in which texts may be in the machine's text."""


class Follows:
    """What may follow the closing tag of a value where ``nodes`` come next.

    Tags and ``stops``, the ends of the turn, are spelt as in the machine's text. ``spell`` gives the forms in which
    other texts may be there.
    """

    def __init__(self, nodes: Iterable[Node], spell: Spell, stops: Iterable[str]) -> None:
        self.after = Sequence(tuple(nodes))
        self.spell = spell
        self.stops = sorted(map(squeezed, stops))

    def near(self, closer: str) -> tuple[str, ...]:
        """The texts, without white space, as far as they tell what follows; none if any text may."""
        texts, many = self._next(closer)
        return () if many or not texts or "" in texts else (*texts, *self.stops)

    def reaches(self, closer: str) -> bool:
        """Whether the tag may come next at all."""
        return bool(self._next(closer)[0])

    def _next(self, closer: str) -> tuple[list[str], bool]:
        """The texts that may come after the tag, as far as they tell what follows, and whether there are too many."""
        found = _Found(squeezed(closer), self.spell, False)
        texts = found.after(self.after, [""])
        return found.following({*texts, *found.done}), found.many

    def far(self, closer: str) -> AfterTag:
        """What comes between the tag and the end of the calls."""
        found = _Found(squeezed(closer), self.spell, True)
        over = found.following(found.after(self.after, [""]), True)
        over += [text + stop for text in over for stop in self.stops]
        return (
            AfterTag((), ())
            if found.many
            else AfterTag(tuple(over), tuple(found.following(found.calls, True)))
        )


class _Found(Paths[str]):
    """Reads nodes as far as they tell, or if ``whole``, as far as they are known. ``done``: the texts that need not be
    read on. ``calls``: those before the name of a tool. ``many``: there are too many."""

    def __init__(self, closer: str, spell: Spell, whole: bool) -> None:
        self.closer = closer
        self.spell = spell
        self.whole = whole
        self.done: set[str] = set()
        self.calls: set[str] = set()
        self.many = False

    def following(self, found: Iterable[str], once: bool = False) -> list[str]:
        """What comes after the closing tag in the texts; ``once``: of those that do not repeat the tag."""
        texts = sorted(text[len(self.closer) :] for text in found if text.startswith(self.closer))
        return [text for text in texts if not (once and text.startswith(self.closer))]

    def leaf(self, node: Node, paths: list[str]) -> list[str]:
        """The texts before the node with what it reads added. A text that tells enough goes to ``done``."""
        if isinstance(node, (Literal, Token)):
            return self._kept(text + more for text in paths for more in map(squeezed, self.spell(node.names)))
        if isinstance(node, SameName) and NAME in self.closer:
            return self._kept(text + NAME for text in paths)
        return paths if isinstance(node, (Space, Silent)) else self._unknown(node, paths)

    def repeat(self, node: Many, paths: list[str]) -> list[str]:
        found = [] if node.least else paths
        for _ in range(1 if self.whole else min(node.most or _ROUNDS, _ROUNDS)):
            known = {*found}
            paths = [text for text in self.after(node.node, paths) if text not in known]
            found = [*found, *paths]
        return found

    def look(self, node: Look, paths: list[str]) -> list[str]:
        if not isinstance(node, Peek):
            return paths
        ended = [text for text in paths if text.startswith(self.closer)]
        self.done.update(self.after(node.node, ended))
        return [text for text in paths if not text.startswith(self.closer)]

    def _kept(self, texts: Iterable[str]) -> list[str]:
        """The texts that may still become the closing tag, or that tell too little of what follows it."""
        found: set[str] = set()
        for text in texts:
            if not text.startswith(self.closer):
                if self.closer.startswith(text):
                    found.add(text)
            elif self.whole or not self._tells(text[len(self.closer) :]):
                found.add(text)
            else:
                self.done.add(text)
        self.many = self.many or max(len(found), 0 if self.whole else len(self.done)) > _MOST
        return [] if self.many else list(found)

    def _tells(self, rest: str) -> bool:
        """Whether ``rest`` tells what follows the closing tag: it does not where it may begin the tag once more."""
        return (len(rest) >= _TELLING and not self.closer.startswith(rest)) or bool(_special(rest))

    def _unknown(self, node: Node, begun: list[str]) -> list[str]:
        """Any text may be here. So nothing is known after the closing tag itself."""
        known = {text for text in begun if text.startswith(self.closer)}
        self.done |= known
        if isinstance(node, Name) and node.tag is Tag.NAME:
            self.calls |= known
        return []
