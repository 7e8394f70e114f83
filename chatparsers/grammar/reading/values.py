"""The values of a grammar: a schema compiled in a value syntax, each pair of document and syntax with one compiler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...answers.nodes import Node, Value
from ...schema.document import Document
from ...values import Json, Raw, Syntax
from ..ir import Ir
from ..schemas import Equal, Located, Output, SchemaCompiler, content
from ..schemas.raw_text import RawText, wordless_openers
from ..steps import run
from ..syntaxes import syntax_of
from .place import At
from .request import Request

JSON = Json()


class ValueReader(ABC):
    """Reads values, and writes equal ones once. The readers of calls and of the turn are made of it.

    ``read`` reads any node of the format's tree. No part of a reader refers back to it: in a circle, they would keep
    the whole grammar until a pass of the garbage collector, which stops all threads.
    """

    def __init__(self, request: Request, output: Output) -> None:
        self.request = request
        self.output = output
        self.rules = output.rules
        self.tools = request.called
        self._markers = tuple(request.marker_ids)
        """The texts that are single tokens."""
        self._single = Equal(output)
        """The values of arguments that are written one by one."""
        self._members: dict[Syntax, Equal] = {}
        """The values inside an object of arguments, by its syntax."""
        self._compilers: dict[tuple[int, Syntax], SchemaCompiler] = {}

    @abstractmethod
    def read(self, node: Node, at: At) -> Ir:
        """The grammar of ``node``."""

    def compiler(self, document: Document, syntax: Syntax) -> SchemaCompiler:
        """The compiler of a document's schemas in this syntax."""
        key = (id(document), syntax)
        found = self._compilers.get(key)
        if found is None:
            equal = self._members.setdefault(syntax, Equal(self.output))
            written = syntax_of(syntax, self._markers, self.output.target)
            found = self._compilers[key] = SchemaCompiler(document, written, self.output, equal)
        return found

    def whole(self, schema: Any, path: str) -> Ir:
        """A value in JSON whose schema is a document of its own."""
        return self.compiler(Document(schema), JSON).value([(schema, path)])

    def argument(self, node: Value, schemas: list[Located]) -> Ir:
        """The value of an argument that is written alone. ``schemas``: its schemas."""
        argument, syntax = node.argument, node.syntax
        names = argument.beside if isinstance(syntax, Raw) and wordless_openers(syntax) else ()

        def write() -> Ir:
            if isinstance(syntax, Raw):
                raw = RawText(self.output, syntax, argument.types, self._markers, names)
                return self.compiler(argument.document, JSON).raw(schemas, raw)
            return self.compiler(argument.document, syntax).value(schemas)

        said = content(schemas)
        return run(self._single.once(said and (said, syntax, argument.types, names), write))
