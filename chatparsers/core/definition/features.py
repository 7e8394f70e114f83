"""What follows from a format's tree: the tree, built and checked once, and the features that are read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from ...errors import DefinitionError
from ...public import public
from .check import check
from .idioms import Builder, Options
from .nodes import Args, Body, Calls, EachArg, Header, JsonName, Many, Name, Node, Span, Tag, Tagged, Think
from .tree import children, once, tokens, walk
from .wrong import author_line


class Definition(Protocol):
    """What the readers of a tree need of a format. `Format` has it, and binds requests besides."""

    @property
    def name(self) -> str: ...
    @property
    def build(self) -> Callable[[Builder], Node]: ...
    @property
    def stops(self) -> tuple[str, ...]: ...
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
        return format.build(Builder(options, format.stops))
    except (DefinitionError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever an author's code raises
        what = f"build failed: {type(error).__name__}: {error}"
        raise DefinitionError(what + author_line(error)) from error


@lru_cache(maxsize=1024)
def features_of(format: Definition) -> Features:
    """The features of the format."""
    nodes = list(once(format.tree(Options(tools=True))))
    return Features(
        reasoning=bool(reasoning_spans(format.tree(Options(tools=True)))),
        tools=any(isinstance(n, Tagged) and n.tag is Tag.CALL for n in nodes),
        parallel=any(isinstance(n, Calls) for n in nodes),
        ids=any(map(_is_id, _written(format.tree(Options(tools=True))))),
    )


def reasoning_spans(tree: Node) -> list[Span]:
    """The runs of reasoning, at the start of the turn and in its body."""
    nodes = list(once(tree))
    bodies = (node.reasoning for node in nodes if isinstance(node, Body))
    return [node.span for node in nodes if isinstance(node, Think)] + [
        span for span in bodies if span is not None
    ]


def _written(node: Node) -> Iterator[Node]:
    """``node`` and all nodes below it that are always generated."""
    yield node
    for child in children(node, True):
        if not (isinstance(child, Many) and child.least == 0):
            yield from _written(child)


@lru_cache(maxsize=1024)
def preserved_tokens(format: Definition) -> tuple[str, ...]:
    """The special tokens of the tree."""
    return tokens(format.tree(Options(tools=True)))


@lru_cache(maxsize=1024)
def late_ids(format: Definition) -> bool:
    """Whether a call's id may come after its arguments."""
    calls = [n for n in once(format.tree(Options(tools=True))) if isinstance(n, Tagged) and n.tag is Tag.CALL]
    return any(map(_has_late_id, calls))


def _has_late_id(call: Node) -> bool:
    nodes = iter(walk(call))
    arguments = any(isinstance(n, (Args, EachArg)) for n in nodes)
    return arguments and any(map(_is_id, nodes))


def _is_id(node: Node) -> bool:
    if isinstance(node, Header):
        return node.id
    return isinstance(node, (Name, JsonName)) and node.tag is Tag.ID
