"""The values of a grammar: a schema compiled in a value syntax, each pair of document and syntax with one compiler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.definition.nodes import Value
from ...schema.document import Document
from ...values import Json, Raw, Syntax
from ..ir import Ir
from ..schemas import Equal, Located, Output, SchemaCompiler, content
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

    def argument(self, node: Value, schemas: list[Located]) -> Ir:
        """The value of an argument that is written alone. ``schemas``: its schemas."""
        argument, syntax = node.argument, node.syntax
        said = content(schemas)
        names = argument.beside if isinstance(syntax, Raw) and wordless_openers(syntax) else ()
        found = self._single.get(said, syntax, argument.types, names)
        if found is not None:
            return found
        made = self._single.watch(said, syntax, argument.types, names)
        if isinstance(syntax, Raw):
            raw = RawText(syntax, argument.types, self.markers, names)
            value = self.compiler(argument.document, JSON).raw(schemas, raw)
        else:
            value = self.compiler(argument.document, syntax).value(schemas)
        return made(value)
