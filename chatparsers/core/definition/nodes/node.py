"""What is known of every kind of node: its facts; and the kinds that the operators make.

A *fact* is a method that every kind must have: what it contains, whether it can be empty, how it begins, how an error
spells it, what it checks of its operands. A kind that lacks one cannot be defined. A fact that is the same for all
nodes of a kind is a keyword of its class: ``class End(Silent, commits=False)``. A *family* (`Leaf`, `Silent`, …)
answers some of the facts for kinds that are alike in them; by its base, a kind says that it is.

The readers that do not ask facts alone keep a table with a row for each kind (`of_every_kind`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, TypeVar

from ....errors import DefinitionError
from ....schema.tools import Argument, Tool
from ..wrong import check_characters, spelt, wrong

_Fact = TypeVar("_Fact", bound=Callable[..., Any])
_Row = TypeVar("_Row")

Begun: TypeAlias = tuple[set[str], set[str]]
"""Texts that begin a node: those that are more than white space, and those that the node after it must extend."""

Rules: TypeAlias = Container[str]
"""The names of the rules that the parser can match without reading a character."""


class Reader(Protocol):
    """One of the two readings of a tree, as the check of a node sees it."""

    tool: Tool
    """`ANY_TOOL` in the parser's reading, a probe in the grammar's."""
    generated: bool
    """Whether this is the grammar's reading."""
    argument: Argument

    def empty(self, node: Node) -> bool:
        """Whether ``node`` can be read without reading a character."""

    def commitment(self, node: Node) -> Node | None:
        """A node in ``node`` that commits, None if there is none."""

    def walk(self, node: Node) -> Iterator[Node]:
        """``node`` and all below it."""


def _fact(method: _Fact) -> _Fact:
    """Marks what every kind of node must say."""
    method.fact = True  # type: ignore[attr-defined]
    return method


def _constant(value: Any) -> Callable[..., Any]:
    """The method of a fact that is the same for all nodes of a kind."""
    return lambda *given: value


class Node:
    """One node of a format's tree; ``+`` is sequence, ``<<`` sequence with white space between, ``|`` ordered
    choice."""

    __slots__ = ()

    def __init_subclass__(cls, *, family: bool = False, **constants: Any) -> None:
        for fact, value in constants.items():
            if fact not in _FACTS:
                raise DefinitionError(
                    f"{cls.__name__}: {fact} is no fact: expected one of {', '.join(_FACTS)}"
                )
            setattr(cls, fact, _constant(value))
        if family:
            return
        missing = [fact for fact in _FACTS if getattr(cls, fact) is getattr(Node, fact)]
        if missing:
            methods = ", ".join(f"{fact}()" for fact in missing)
            raise DefinitionError(
                f"{cls.__name__}: a kind of node says all its facts, and {methods} is missing; write the method, or "
                "derive the kind from a family (Leaf, Silent, …) that says it"
            )
        _KINDS[f"{cls.__module__}.{cls.__qualname__}"] = cls

    @_fact
    def parts(self, generated: bool) -> tuple[Node, ...]:
        """The nodes directly below: in the grammar's reading if ``generated``, else in the parser's."""
        raise NotImplementedError

    @_fact
    def stands_for(self, generated: bool) -> Node | None:
        """The node whose beginning is the beginning of this one: the one that this one names, tags, holds, gives two
        readings or repeats as a call. None if this one stands for itself."""
        raise NotImplementedError

    @_fact
    def tokens(self) -> tuple[str, ...]:
        """The special tokens that this node reads itself."""
        raise NotImplementedError

    @_fact
    def empty(self, rules: Rules) -> bool:
        """Whether the parser can match it without reading a character. ``rules``: the rules of which it can."""
        raise NotImplementedError

    @_fact
    def anywhere(self) -> bool:
        """Whether the parser can match it at any place."""
        raise NotImplementedError

    @_fact
    def begins(self, prefixes: set[str]) -> Begun:
        """``prefixes``, texts before it that are not yet more than white space, extended by the texts that the parser
        sees at its beginning. Raises `DefinitionError` if it does not begin with text."""
        raise NotImplementedError

    @_fact
    def opens(self) -> list[Opening]:
        """The literals that it can begin with when it is generated, before any name, and whether they are all of it."""
        raise NotImplementedError

    @_fact
    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        """The ways in which the parser can read it: in each, one character or node after the other."""
        raise NotImplementedError

    @_fact
    def commits(self) -> bool:
        """Whether the parser commits to a call when it reads it. What looks ahead or is held must not."""
        raise NotImplementedError

    @_fact
    def header(self, generated: bool) -> tuple[Node, bool]:
        """The part of it before its first commitment, and whether it has one."""
        raise NotImplementedError

    @_fact
    def shown(self) -> str:
        """The builder's calls that make it."""
        raise NotImplementedError

    @_fact
    def check(self, reader: Reader) -> None:
        """Raises `DefinitionError` if its operands are wrong in this reading."""
        raise NotImplementedError

    def __add__(self, other: Nodelike) -> Node:
        return Sequence.of(self, other)

    def __radd__(self, other: Nodelike) -> Node:
        return Sequence.of(other, self)

    def __lshift__(self, other: Nodelike) -> Node:
        return Sequence.of(self, Space(""), other)

    def __rlshift__(self, other: Nodelike) -> Node:
        return Sequence.of(other, Space(""), self)

    def __or__(self, other: Nodelike) -> Node:
        return Choice.of(self, other)

    def __ror__(self, other: Nodelike) -> Node:
        return Choice.of(other, self)

    def __bool__(self) -> bool:
        raise DefinitionError("a node has no truth value: write `a | b` for ordered choice, not `a or b`")


_FACTS = tuple(name for name, method in vars(Node).items() if getattr(method, "fact", False))
_KINDS: dict[str, type[Node]] = {}
_OWN = __name__.rpartition(".")[0] + "."


def kinds() -> tuple[type[Node], ...]:
    """All kinds of node that the builder makes."""
    return tuple(kind for name, kind in _KINDS.items() if name.startswith(_OWN))


def of_every_kind(
    reader: str, rows: Mapping[type[Node], _Row], *without: type[Node]
) -> Mapping[type[Node], _Row]:
    """``rows``, a table with a row for each kind but ``without``; the row of a family is for its kinds that have none.
    Raises `DefinitionError` for a kind that is missing, or that has a row and should have none."""
    found: dict[type[Node], _Row] = {}
    for kind in kinds():
        row = next((rows[base] for base in kind.__mro__ if base in rows), None)
        if (row is None) is not (kind in without):
            raise DefinitionError(
                f"{reader}: expected a row for each kind of node, and that of {kind.__name__} "
                + ("is missing: write it" if row is None else "is one too many: leave it out")
            )
        if row is not None:
            found[kind] = row
    return found


Nodelike: TypeAlias = Node | str


def as_node(value: Nodelike) -> Node:
    """``value``, a string as its literal."""
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, Node):
        return value
    raise DefinitionError(f"expected a node or a string, found {type(value).__name__}: {value!r}")


_BEGINNINGS = 250
"""The most texts that begin a section. The parser looks for each of them, wherever it reads text."""


def _check_number(texts: set[str]) -> None:
    if len(texts) > _BEGINNINGS:
        raise DefinitionError(
            f"a section in running text must not begin in more than {_BEGINNINGS} ways: write p.space() for any white "
            "space, or begin with what they share"
        )


def extended(prefixes: set[str], texts: Iterable[str]) -> Begun:
    """Each of ``prefixes`` with each of ``texts`` after it."""
    found = {prefix + text for text in texts for prefix in prefixes}
    _check_number(found)
    done = {text for text in found if text.strip()}
    return done, found - done


def first(node: Node) -> tuple[str, ...]:
    """The texts that ``node`` can begin with, each extended until it is more than white space; longest first.

    The parser looks for these texts in running text to know that the node may begin there. They leave out white space
    (`Space`) in front: the parser looks for the text after it. Raises `DefinitionError` for a node that does not begin
    with text.
    """
    found, rest = node.begins({""})
    _check_number(found)
    if rest:
        raise DefinitionError(
            "a section in running text must begin with a literal or a token, not with white space alone"
        )
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def head(node: Node, generated: bool = False) -> Node:
    """The part of ``node`` before its first commitment. If it follows, the node counts as begun."""
    return node.header(generated)[0]


# families


class Leaf(Node, family=True, stands_for=None):
    """Kinds that contain no node."""

    __slots__ = ()

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return ()

    def header(self, generated: bool) -> tuple[Node, bool]:
        return (Sequence(()), True) if self.commits() else (self, False)


class Unforeseen(Leaf, family=True):
    """Leaves that read characters which no definition knows before: their beginning is no text to look for."""

    __slots__ = ()

    def begins(self, prefixes: set[str]) -> Begun:
        raise DefinitionError(
            f"a section must begin with a literal or a token to be found in running text, not {type(self).__name__}"
        )

    def opens(self) -> list[Opening]:
        return [([], False)]

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return ((self,),)


class Needed(Unforeseen, family=True, tokens=(), empty=False, anywhere=False, commits=False):
    """Unforeseen leaves that read at least a character, and commit to nothing."""

    __slots__ = ()


class Silent(Leaf, family=True, tokens=(), empty=True):
    """Leaves that read and generate nothing."""

    __slots__ = ()

    def begins(self, prefixes: set[str]) -> Begun:
        return set(), prefixes

    def opens(self) -> list[Opening]:
        return [([], True)]

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return ((self,),)


class Inner(Node, family=True, tokens=()):
    """Kinds that stand for another node: they are as empty and begin as that one does, and readers read that one."""

    __slots__ = ()

    def inner(self, generated: bool) -> Node:
        found = self.stands_for(generated)
        assert found is not None
        return found

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.inner(generated),)

    def empty(self, rules: Rules) -> bool:
        return self.inner(False).empty(rules)

    def anywhere(self) -> bool:
        return self.inner(False).anywhere()

    def begins(self, prefixes: set[str]) -> Begun:
        return self.inner(False).begins(prefixes)

    def opens(self) -> list[Opening]:
        return self.inner(True).opens()

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return self.inner(False).spellings()

    def commits(self) -> bool:
        return False  # what it stands for is asked itself

    def header(self, generated: bool) -> tuple[Node, bool]:
        return self.inner(generated).header(generated)


# the nodes of the operators


@dataclass(frozen=True, slots=True)
class Literal(Leaf, tokens=(), commits=False):
    """Parses and generates exactly ``text``."""

    text: str

    def empty(self, rules: Rules) -> bool:
        return not self.text

    def anywhere(self) -> bool:
        return not self.text

    def begins(self, prefixes: set[str]) -> Begun:
        return extended(prefixes, (self.text,))

    def opens(self) -> list[Opening]:
        return [([self], True)]

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return (tuple(self.text),)

    def shown(self) -> str:
        return repr(self.text)

    def check(self, reader: Reader) -> None:
        check_characters(self, self.text)


@dataclass(frozen=True, slots=True)
class Token(Leaf, commits=False):
    """A special token: parses one token where ids are fed and the tokenizer has it, else its text; generates its text
    (a token reference in dialects that have them).

    ``also``: its names in other checkpoints of the family. Parses any of the names. Generates the one that the
    tokenizer or the prompt has, else ``text``.
    """

    text: str
    also: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All its names."""
        return (self.text, *self.also)

    def tokens(self) -> tuple[str, ...]:
        return self.names

    def empty(self, rules: Rules) -> bool:
        return not self.text

    def anywhere(self) -> bool:
        return not self.text

    def begins(self, prefixes: set[str]) -> Begun:
        return extended(prefixes, self.names)

    def opens(self) -> list[Opening]:
        return [([self], True)]

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return ((self,),)

    def shown(self) -> str:
        return f"p.token({', '.join(map(repr, self.names))})"

    def check(self, reader: Reader) -> None:
        if not all(map(str.strip, self.names)):
            wrong(self, "a token is more than white space", "give the token's text, or leave it out")
        check_characters(self, *self.names)


Opening: TypeAlias = tuple[list[Literal | Token], bool]


@dataclass(frozen=True, slots=True)
class Space(Leaf, tokens=(), empty=True, anywhere=True, commits=False):
    """Parses any white space, which may be empty; generates exactly ``text``. If it is ``free`` (inside JSON), also
    generates the other white space that JSON allows there."""

    text: str
    free: bool = False

    def begins(self, prefixes: set[str]) -> Begun:
        return set(), prefixes  # the parser looks for the text after it

    def opens(self) -> list[Opening]:
        return [([], False)] if self.free else [([Literal(self.text)], True)]

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        return ((self,),)

    def shown(self) -> str:
        return f"p.space({self.text!r})" if self.text else "p.space()"

    def check(self, reader: Reader) -> None:
        if self.text.strip(" \t\r\n"):
            wrong(self, "it generates what its parser does not read", "give white space, or write the text")


@dataclass(frozen=True, slots=True)
class Sequence(Node, stands_for=None, tokens=(), commits=False, check=None):
    """``a b c``: the nodes one after the other."""

    items: tuple[Node, ...]

    @staticmethod
    def of(*items: Nodelike) -> Node:
        flat: list[Node] = []
        for item in map(as_node, items):
            if isinstance(item, Sequence):
                flat.extend(item.items)
            elif not (isinstance(item, Literal) and item.text == ""):
                flat.append(item)
        return flat[0] if len(flat) == 1 else Sequence(tuple(flat))

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return self.items

    def empty(self, rules: Rules) -> bool:
        return all(item.empty(rules) for item in self.items)

    def anywhere(self) -> bool:
        return all(item.anywhere() for item in self.items)

    def begins(self, prefixes: set[str]) -> Begun:
        done: set[str] = set()
        short = prefixes
        for item in self.items:
            now, short = item.begins(short)
            done |= now
            if not short:
                break
        return done, short

    def opens(self) -> list[Opening]:
        whole: list[Opening] = [([], True)]
        for item in self.items:
            if not any(more for _, more in whole):
                break
            after = item.opens()
            if len(whole) * len(after) > _OPENINGS:
                return [(begin, False) for begin, _ in whole]
            whole = [
                (begin + then, then_more) if more else (begin, False)
                for begin, more in whole
                for then, then_more in (after if more else [([], False)])
            ]
        return whole

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        ways: tuple[tuple[Node | str, ...], ...] = ((),)
        for item in self.items:
            found = item.spellings()
            if len(ways) * len(found) > _WAYS:
                found = ((item,),)
            ways = tuple(way + then for way in ways for then in found)
        return ways

    def header(self, generated: bool) -> tuple[Node, bool]:
        kept: list[Node] = []
        for item in self.items:
            shortened, ended = item.header(generated)
            kept.append(shortened)
            if ended:
                return Sequence.of(*kept), True
        return self, False

    def shown(self) -> str:
        return (
            " + ".join(f"({spelt(item)})" if isinstance(item, Choice) else spelt(item) for item in self.items)
            or "''"
        )


_OPENINGS = 250
"""The most beginnings of a node that are told apart."""
_WAYS = 16
"""The most ways to read a sequence that a choice compares."""


@dataclass(frozen=True, slots=True)
class Choice(Node, stands_for=None, tokens=(), commits=False):
    """``a / b / c``: the first that matches (PEG ordered choice); generates any of them."""

    options: tuple[Node, ...]

    @staticmethod
    def of(*options: Nodelike) -> Node:
        flat: list[Node] = []
        for option in map(as_node, options):
            flat.extend(option.options if isinstance(option, Choice) else (option,))
        return flat[0] if len(flat) == 1 else Choice(tuple(flat))

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return self.options

    def empty(self, rules: Rules) -> bool:
        return any(option.empty(rules) for option in self.options)

    def anywhere(self) -> bool:
        return any(option.anywhere() for option in self.options)

    def begins(self, prefixes: set[str]) -> Begun:
        done: set[str] = set()
        short: set[str] = set()
        for option in self.options:
            now, rest = option.begins(prefixes)
            done |= now
            short |= rest
        return done, short

    def opens(self) -> list[Opening]:
        return [found for option in self.options for found in option.opens()]

    def spellings(self) -> tuple[tuple[Node | str, ...], ...]:
        ways = [way for option in self.options for way in option.spellings()]
        # If one began another, the machine would not read the other: it never goes back into a choice.
        texts = sorted("".join(map(str, way)) for way in ways if all(isinstance(part, str) for part in way))
        apart = len(texts) == len(ways) <= _WAYS and not any(b.startswith(a) for a, b in pairwise(texts))
        return tuple(ways) if apart else ((self,),)

    def header(self, generated: bool) -> tuple[Node, bool]:
        parts = [option.header(generated) for option in self.options]
        return Choice.of(*(part for part, _ in parts)), any(ended for _, ended in parts)

    def shown(self) -> str:
        return " | ".join(map(spelt, self.options))

    def check(self, reader: Reader) -> None:
        if not self.options:
            wrong("p.choice", "expected at least one alternative, found none", "give what is read there")
        if reader.generated:
            return
        for option in self.options[:-1]:
            if option.anywhere():
                what = f"the alternatives after {spelt(option)} are never tried, as it always matches"
                wrong(self, what, "put it last, or use p.optional()")
        before: dict[tuple[Node | str, ...], Node] = {}
        lengths: list[int] = []
        spellings = [option.spellings() for option in self.options]
        longest = max(len(way) for ways in spellings for way in ways)
        for option, ways in zip(self.options, spellings, strict=True):
            shorter = [_shorter(way, before, lengths) for way in ways]
            if None not in shorter:
                first = " and ".join(dict.fromkeys(spelt(node) for node in shorter if node is not None))
                what = f"{spelt(option)} is never tried, as {first} before it is how it begins"
                wrong(self, what, "put the longer alternative first")
            for way in ways:
                if len(way) < longest:  # else it begins no other
                    before.setdefault(way, option)
                    if len(way) not in lengths:
                        lengths = sorted((*lengths, len(way)))


def _shorter(
    way: tuple[Node | str, ...], ways: Mapping[tuple[Node | str, ...], Node], lengths: list[int]
) -> Node | None:
    """The node of one of ``ways``, which have these ``lengths``, that is a beginning of ``way`` and not all of it."""
    begins = (ways.get(way[:length]) for length in lengths if length < len(way))
    return next((node for node in begins if node is not None), None)
