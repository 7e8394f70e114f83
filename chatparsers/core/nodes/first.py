"""How a node begins. All who ask follow the paths through it (`Paths`), and differ in what they note on the way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeAlias, TypeVar

from ...errors import DefinitionError
from .control import Look, Many, Not, Wrapper
from .node import Choice, Inner, Leaf, Literal, Node, Sequence, Silent, Space, Token
from .text import End

_Path = TypeVar("_Path")


def distinct(paths: Iterable[_Path]) -> list[_Path]:
    """The paths, equal ones once."""
    return list(dict.fromkeys(paths))


class Paths(ABC, Generic[_Path]):
    """Follows all paths through a node at once. A path is what its reader noted of the nodes on it."""

    generated = False
    """Whether the grammar's reading is followed, not the parser's."""
    most = float("inf")
    """The most paths that are followed. An item of a sequence that leads to more is read as a leaf."""

    def after(self, node: Node, paths: list[_Path]) -> list[_Path]:
        """The paths to the end of ``node``, each of which goes on from one of ``paths``."""
        if not paths:
            return paths
        if isinstance(node, Leaf):
            return self.leaf(node, paths)
        if isinstance(node, Sequence):
            for item in node.items:
                found = self.after(item, paths)
                paths = found if len(found) <= self.most else self.leaf(item, paths)
            return paths
        if isinstance(node, Choice):
            return self.choice(node, paths)
        if isinstance(node, Inner):
            return self.inner(node, paths)
        if isinstance(node, Many):
            return self.repeat(node, paths)
        return self.look(node, paths) if isinstance(node, Look) else self.leaf(node, paths)

    def choice(self, node: Choice, paths: list[_Path]) -> list[_Path]:
        """The paths through each option."""
        return distinct(path for option in node.options for path in self.after(option, paths))

    def repeat(self, node: Many, paths: list[_Path]) -> list[_Path]:
        """The paths once through what is repeated, and those that leave it out."""
        found = self.after(node.node, paths)
        return found if node.least else distinct([*found, *paths])

    def look(self, node: Look, paths: list[_Path]) -> list[_Path]:
        """The paths on which ``node`` looks ahead."""
        return self.leaf(node, paths)

    def inner(self, node: Inner, paths: list[_Path]) -> list[_Path]:
        """The paths through what ``node`` stands for."""
        return self.after(node.inner(self.generated), paths)

    @abstractmethod
    def leaf(self, node: Node, paths: list[_Path]) -> list[_Path]:
        """The paths, with ``node`` at the end of each."""


_MOST = 250
"""The most texts that begin a section: the parser looks for each of them, wherever it reads text."""


class Beginnings(Paths[str]):
    """The texts that the parser sees at the beginning of nodes, each until it is more than white space (``done``). A
    path is a text that is not yet. ``unknown``: the paths to a node that may begin with any text, or in too many ways,
    and the node."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.unknown: dict[str, Node] = {}

    def look(self, node: Look, paths: list[str]) -> list[str]:
        return paths if isinstance(node, Not) else self.after(node.node, paths)

    def leaf(self, node: Node, paths: list[str]) -> list[str]:
        if isinstance(node, (Space, Silent)) and not isinstance(node, End):
            return paths  # the parser looks for the text after it
        texts = node.names if isinstance(node, (Literal, Token)) else ()
        found = {path + text for text in texts for path in paths}
        if not found or len(found) > _MOST:
            for path in paths:
                self.unknown.setdefault(path, node)
            return []
        short = {text for text in found if not text.strip()}
        self.done |= found - short
        return list(short)


def first(node: Node) -> tuple[str, ...]:
    """The texts that ``node`` can begin with, each extended until it is more than white space; longest first.

    The parser looks for these texts in running text to know that the node may begin there. They leave out white space
    (`Space`) in front: the parser looks for the text after it. Raises `DefinitionError` for a node that does not begin
    with text.
    """
    found = Beginnings()
    short = found.after(node, [""])
    strange = [node for node in found.unknown.values() if not isinstance(node, (Literal, Token))]
    if strange:
        kind = type(strange[0]).__name__
        raise DefinitionError(
            f"a section must begin with a literal or a token to be found in running text, not {kind}"
        )
    if found.unknown or len(found.done) > _MOST:
        raise DefinitionError(
            f"a section in running text must not begin in more than {_MOST} ways: write p.space() for any white "
            "space, or begin with what they share"
        )
    if short:
        raise DefinitionError(
            "a section in running text must begin with a literal or a token, not with white space alone"
        )
    return tuple(sorted(found.done, key=lambda text: (-len(text), text)))


def begins(*nodes: Node) -> tuple[str, ...]:
    """The texts with which the nodes begin, one node after the other; none if they may begin with any text."""
    try:
        return first(Sequence(nodes))
    except DefinitionError:
        return ()


Opening: TypeAlias = tuple[tuple[Literal | Token, ...], bool]


class _Openings(Paths[Opening]):
    generated = True
    most = 250

    def repeat(self, node: Many, paths: list[Opening]) -> list[Opening]:
        found = self._ended(self.after(node.node, paths))
        return found if node.least else distinct([*found, *paths])

    def inner(self, node: Inner, paths: list[Opening]) -> list[Opening]:
        found = super().inner(node, paths)
        return self._ended(found) if node.repeats else found

    def leaf(self, node: Node, paths: list[Opening]) -> list[Opening]:
        if isinstance(node, Silent):
            return paths
        if isinstance(node, Space) and not node.free:
            node = Literal(node.text)
        if not isinstance(node, (Literal, Token)):
            return self._ended(paths)
        return [((*path, node), True) if more else (path, False) for path, more in paths]

    def _ended(self, paths: list[Opening]) -> list[Opening]:
        return distinct((path, False) for path, _ in paths)


def opens(node: Node) -> list[Opening]:
    """The literals that ``node`` can begin with when it is generated, before any name, and whether they are all of
    it."""
    return _Openings().after(node, [((), True)])


def head(node: Node, generated: bool = False) -> Node:
    """The part of ``node`` before its first commitment. If it follows, the node counts as begun."""
    known: dict[int, tuple[Node, tuple[Node, bool]]] = {}  # a node may be in hundreds of places

    def begin(node: Node) -> tuple[Node, bool]:
        """The head of ``node``, and whether it ends before the node does."""
        if id(node) not in known:
            known[id(node)] = node, found(node)
        return known[id(node)][1]

    def found(node: Node) -> tuple[Node, bool]:
        if isinstance(node, (Sequence, Choice)):
            parts: list[Node] = []
            over = False
            for part in node.parts(generated):
                beginning, ended = begin(part)
                parts.append(beginning)
                over = over or ended
                if ended and isinstance(node, Sequence):
                    break
            return (node.of(*parts), over) if over or isinstance(node, Choice) else (node, False)
        if isinstance(node, (Many, Inner)):
            beginning, ended = begin(node.parts(generated)[0])
            return (beginning, ended) if ended or not isinstance(node, (Many, Wrapper)) else (node, False)
        return (Sequence(()), True) if node.commits() else (node, False)

    return begin(node)[0]
