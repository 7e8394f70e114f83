"""What follows from a format's tree: the tree, built and checked once, and the features that are read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from ..core.tree import children, once, tokens, walk
from ..errors import DefinitionError, author_line
from ..public import public
from .check import check
from .idioms import Builder, Options
from .nodes import Args, Body, Calls, EachArg, Header, JsonName, Many, Name, Node, Span, Tag, Tagged, Think


class Definition(Protocol):
    """What the readers of a tree need of a format. `Format` has it, and binds requests besides."""

    @property
    def name(self) -> str: ...
    @property
    def build(self) -> Callable[[Builder], Node]: ...
    @property
    def stops(self) -> tuple[str, ...]: ...
    @property
    def mends(self) -> tuple[str, ...]: ...
    @property
    def features(self) -> Features: ...
    @property
    def late_ids(self) -> bool: ...
    @property
    def preserved_tokens(self) -> tuple[str, ...]: ...
    def tree(self, options: Options) -> Node: ...
    def __hash__(self) -> int: ...


@public
@dataclass(frozen=True, slots=True)
class Features:
    """Whether a format has reasoning, tool calls, several calls in a turn, and call ids that the model must write."""

    reasoning: bool
    tools: bool
    parallel: bool
    ids: bool


@lru_cache(maxsize=1024)
def tree_of(format: Definition, options: Options) -> Node:
    """The format's tree for these options, built and checked once. Raises `DefinitionError` if it is wrong."""
    try:
        tree = _built(format, options)
        check(tree)
    except DefinitionError as error:
        raise DefinitionError(f"format {format.name!r}: {error}") from error
    return tree


def _built(format: Definition, options: Options) -> Node:
    try:
        return format.build(Builder(options, format.stops, format.mends))
    except (DefinitionError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever an author's code raises
        what = f"build failed: {type(error).__name__}: {error}"
        raise DefinitionError(what + author_line(error)) from error


class Facts(NamedTuple):
    """What is read once from the tree of a format."""

    features: Features
    preserved_tokens: tuple[str, ...]
    """The special tokens of the tree."""
    late_ids: bool
    """Whether a call's id may come after its arguments."""


@lru_cache(maxsize=1024)
def facts_of(format: Definition) -> Facts:
    """The facts of the format's tree for requests with tools."""
    tree = format.tree(Options(tools=True))
    nodes = list(once(tree))
    calls = [node for node in nodes if isinstance(node, Tagged) and node.tag is Tag.CALL]
    features = Features(
        reasoning=bool(reasoning_spans(tree)),
        tools=bool(calls),
        parallel=any(isinstance(node, Calls) for node in nodes),
        ids=any(map(_is_id, _written(tree))),
    )
    late = any(map(_is_id, nodes)) and any(map(_has_late_id, calls))
    return Facts(features, tokens(tree), late)


def reasoning_spans(tree: Node) -> list[Span]:
    """The runs of reasoning, at the start of the turn and in its body."""
    nodes = list(once(tree))
    bodies = [node.reasoning for node in nodes if isinstance(node, Body) and node.reasoning is not None]
    return [node.span for node in nodes if isinstance(node, Think)] + bodies


def _written(node: Node) -> Iterator[Node]:
    """``node`` and all nodes below it that are always generated."""
    yield node
    for child in children(node, True):
        if not (isinstance(child, Many) and child.least == 0):
            yield from _written(child)


def _has_late_id(call: Node) -> bool:
    nodes = iter(walk(call))
    arguments = any(isinstance(n, (Args, EachArg)) for n in nodes)
    return arguments and any(map(_is_id, nodes))


def _is_id(node: Node) -> bool:
    if isinstance(node, Header):
        return node.id
    return isinstance(node, (Name, JsonName)) and node.tag is Tag.ID
