"""The values of a grammar: a schema compiled in a value syntax, each pair of document and syntax with one compiler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.definition.nodes import Value
from ...schema.document import Document
from ...values import Json, Raw, Syntax
from ..ir import Ir
from ..schemas import Equal, Output, SchemaCompiler, Where, content
from ..syntaxes import RawText, syntax_of, wordless_openers

JSON = Json()


class Values:
    """Writes values, and writes equal ones once. ``markers``: the texts that are single tokens."""

    def __init__(self, output: Output, markers: Iterable[str]) -> None:
        self.output = output
        self.markers = tuple(markers)
        self._single = Equal(output)
        """The values of arguments that are written one by one."""
        self._members: dict[Syntax, Equal] = {}
        """The values inside an object of arguments, by its syntax."""
        self._compilers: dict[tuple[int, Syntax], SchemaCompiler] = {}

    def compiler(self, document: Document, syntax: Syntax) -> SchemaCompiler:
        """The compiler of a document's schemas in this syntax."""
        key = (id(document), syntax)
        found = self._compilers.get(key)
        if found is None:
            equal = self._members.setdefault(syntax, Equal(self.output))
            found = self._compilers[key] = SchemaCompiler(
                document, syntax_of(syntax, self.markers), self.output, equal
            )
        return found

    def close(self) -> None:
        """Forgets the compilers, each of which is in a circle with its parts."""
        for compiler in self._compilers.values():
            vars(compiler).clear()

    def whole(self, schema: Any, path: str) -> Ir:
        """A value in JSON whose schema is a document of its own."""
        return self.compiler(Document(schema), JSON).value([(schema, path)])

    def argument(self, node: Value, wheres: list[Where]) -> Ir:
        """The value of an argument that is written alone. ``wheres``: its schemas."""
        argument, syntax = node.argument, node.syntax
        said = content(wheres[0][0]) if len(wheres) == 1 else None
        names = argument.beside if isinstance(syntax, Raw) and wordless_openers(syntax) else ()
        key = (syntax, argument.types, names, said)
        if said is not None:
            found = self._single.get(key)
            if found is not None:
                return found
        made = self._single.watch(key)
        if isinstance(syntax, Raw):
            raw = RawText(syntax, argument.types, self.markers, names)
            value = self.compiler(argument.document, JSON).raw(wheres, raw)
        else:
            value = self.compiler(argument.document, syntax).value(wheres)
        return value if said is None else made(value)
