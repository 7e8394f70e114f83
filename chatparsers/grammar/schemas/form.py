"""How an object's members are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..ir import EMPTY, NOTHING, Ir, Lang, never, seq
from ..steps import Steps
from ..syntaxes import Syntax
from .arrays import Inner
from .bags import Where
from .output import Output
from .strings import Parts


class Form(Protocol):
    """How an object's members are written."""

    separator: Ir

    def member(self, name: str, wheres: list[Where], required: bool, depth: int) -> Ir | Steps[Ir]:
        """A member with its name; nothing if no value is valid."""
        ...

    def other(
        self, parts: Parts, least: int, most: int | None, wheres: list[Where], depth: int
    ) -> Ir | Steps[Ir]:
        """A member whose name has these constraints."""
        ...

    def whole(self, body: Ir) -> Ir:
        """The object around its members."""
        ...


class InSyntax:
    """Members as the value syntax writes them. ``ready``: a value that needs no steps."""

    def __init__(
        self,
        syntax: Syntax,
        output: Output,
        inner: Inner,
        ready: Callable[[list[Where], bool], Ir | None],
    ) -> None:
        self.syntax = syntax
        self.output = output
        self.inner = inner
        self.ready = ready
        self.separator = syntax.comma

    def member(self, name: str, wheres: list[Where], required: bool, depth: int) -> Ir | Steps[Ir]:
        node = self.ready(wheres, True)
        return self._member(name, wheres, depth) if node is None else self._named(name, node)

    def _member(self, name: str, wheres: list[Where], depth: int) -> Steps[Ir]:
        node: Ir = yield self.inner(wheres, depth)
        return self._named(name, node)

    def _named(self, name: str, node: Ir) -> Ir:
        return node if never(node) else self.syntax.member(name, node)

    def other(self, parts: Parts, least: int, most: int | None, wheres: list[Where], depth: int) -> Steps[Ir]:
        node: Ir = yield self.inner(wheres, depth)
        bare = self.syntax.bare
        if bare and parts and not never(node):
            named = self.output.names(Lang((*parts, *bare), least, most), wheres[0][1])
            if not isinstance(named, Lang):
                return NOTHING
            parts = named.parts[: -len(bare)]
        made: Ir = node if never(node) else self.syntax.other(parts, least, most, node)
        if never(made) and not never(node) and wheres:
            why = (
                "a name that the schema does not list cannot be written twice: such members are not generated"
            )
            self.output.tell(wheres[0][1], "additionalProperties", why)
        return made

    def whole(self, body: Ir) -> Ir:
        syntax = self.syntax
        if body is EMPTY:
            return seq(syntax.open_object, syntax.no_members)
        return seq(syntax.open_object, body, syntax.close_object)
