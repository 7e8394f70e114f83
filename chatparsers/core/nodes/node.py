"""What is known of every kind of node: its facts; and the kinds that the operators make.

A *fact* is a method that every kind must have: what it contains, whether it can be empty, how an error spells it, what
it checks of its operands. A kind that lacks one cannot be defined. A fact that is the same for all
nodes of a kind is a keyword of its class: ``class End(Silent, commits=False)``. A *family* (`Leaf`, `Silent`, …)
answers some of the facts for kinds that are alike in them; by its base, a kind says that it is.

The readers that do not ask facts alone keep a table with a row for each kind (`of_every_kind`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from ...errors import DefinitionError
from ..wrong import check_characters, described, wrong

_Fact = TypeVar("_Fact", bound=Callable[..., Any])
_Row = TypeVar("_Row")

Rules: TypeAlias = Container[str]
"""The names of the rules that the parser can match without reading a character."""

NEVER, SOMETIMES, ALWAYS = range(3)
"""Where the parser can match a node without reading a character: nowhere, in some places, in all."""


class Reader(Protocol):
    """One of the two readings of a tree, as the check of a node sees it."""

    tool: Any
    """`ANY_TOOL` in the parser's reading, a probe in the grammar's."""
    generated: bool
    """Whether this is the grammar's reading."""
    argument: Any

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
    in_order = False  # whether its parts are read one after the other

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
    def tokens(self) -> tuple[str, ...]:
        """The special tokens that this node reads itself."""
        raise NotImplementedError

    @_fact
    def empty(self, rules: Rules) -> int:
        """Where the parser can match it without reading a character: `NEVER`, `SOMETIMES` or `ALWAYS`. ``rules``: the
        rules that it can match so."""
        raise NotImplementedError

    @_fact
    def commits(self) -> bool:
        """Whether the parser commits to a call when it reads it. What looks ahead or is held must not."""
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
OWN = __name__.rpartition(".")[0] + "."
"""The package of the language's own kinds; another language has its kinds in a package of its own."""


def kinds(packages: tuple[str, ...] = (OWN,)) -> tuple[type[Node], ...]:
    """All kinds of node of these packages."""
    return tuple(kind for name, kind in _KINDS.items() if name.startswith(packages))


def of_every_kind(
    reader: str,
    rows: Mapping[type[Node], _Row],
    *without: type[Node],
    packages: tuple[str, ...] = (OWN,),
) -> Mapping[type[Node], _Row]:
    """``rows``, a table with a row for each kind but ``without``; the row of a family is for its kinds that have none.
    Raises `DefinitionError` for a kind that is missing, or that has a row and should have none."""
    found: dict[type[Node], _Row] = {}
    for kind in kinds(packages):
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


# families


class Leaf(Node, family=True):
    """Kinds that contain no node."""

    __slots__ = ()

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return ()


class Needed(Leaf, family=True, tokens=(), empty=NEVER, commits=False):
    """Leaves that read at least a character which no definition knows before, and commit to nothing."""

    __slots__ = ()


class Silent(Leaf, family=True, tokens=()):
    """Leaves that read and generate nothing."""

    __slots__ = ()


class Inner(Node, family=True, tokens=()):
    """Kinds that stand for another node: they are as empty and begin as that one does, and readers read that one."""

    __slots__ = ()
    repeats = False
    """Whether it stands for one or more of a node."""

    def inner(self, generated: bool) -> Node:
        """The node that this one stands for: the first of its parts."""
        return self.parts(generated)[0]

    def empty(self, rules: Rules) -> int:
        return self.inner(False).empty(rules)

    def commits(self) -> bool:
        return False  # what it stands for is asked itself


class Around(Node, family=True, tokens=()):
    """Kinds that hold one node."""

    __slots__ = ()
    node: Node

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.node,)


# the nodes of the operators


@dataclass(frozen=True, slots=True)
class Literal(Leaf, tokens=(), commits=False):
    """Parses and generates exactly ``text``."""

    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be written as: one text, where a `Token` may have several."""
        return (self.text,)

    def empty(self, rules: Rules) -> int:
        return NEVER if self.text else ALWAYS

    def shown(self) -> str:
        return repr(self.text)

    def check(self, reader: Reader) -> None:
        check_characters(self, self.text)


@dataclass(frozen=True, slots=True)
class Token(Leaf, empty=NEVER, commits=False):
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

    def shown(self) -> str:
        return f"p.token({', '.join(map(repr, self.names))})"

    def check(self, reader: Reader) -> None:
        if not all(map(str.strip, self.names)):
            wrong(self, "a token is more than white space", "give the token's text, or leave it out")
        check_characters(self, *self.names)


@dataclass(frozen=True, slots=True)
class Space(Leaf, tokens=(), empty=ALWAYS, commits=False):
    """Parses any white space, which may be empty; generates exactly ``text``. If it is ``free`` (inside JSON), also
    generates the other white space that JSON allows there."""

    text: str
    free: bool = False

    def shown(self) -> str:
        return f"p.space({self.text!r})" if self.text else "p.space()"

    def check(self, reader: Reader) -> None:
        if self.text.strip(" \t\r\n"):
            wrong(self, "it generates what its parser does not read", "give white space, or write the text")


@dataclass(frozen=True, slots=True)
class Sequence(Node, tokens=(), commits=False, check=None):
    """``a b c``: the nodes one after the other."""

    items: tuple[Node, ...]
    in_order = True

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

    def empty(self, rules: Rules) -> int:
        least = ALWAYS
        for item in self.items:
            least = min(least, item.empty(rules))
            if not least:
                break
        return least

    def shown(self) -> str:
        return (
            " + ".join(
                f"({described(item)})" if isinstance(item, Choice) else described(item) for item in self.items
            )
            or "''"
        )


@dataclass(frozen=True, slots=True)
class Choice(Node, tokens=(), commits=False):
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

    def empty(self, rules: Rules) -> int:
        return max([option.empty(rules) for option in self.options], default=NEVER)

    def shown(self) -> str:
        return " | ".join(map(described, self.options))

    def check(self, reader: Reader) -> None:
        if not self.options:
            wrong("p.choice", "expected at least one alternative, found none", "give what is read there")
        if reader.generated:
            return
        for option in self.options[:-1]:
            if option.empty(()) == ALWAYS:
                what = f"the alternatives after {described(option)} are never tried, as it always matches"
                wrong(self, what, "put it last, or use p.optional()")
