"""From schemas to nodes: the alternatives of a value, each type written by its own module.

A value stands ``depth`` objects and arrays deep; 0 is a value alone. With ``raw``, a value is raw text: a string is
verbatim, other types are JSON, as far as the reader of the text does not take one value for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial

from ... import values
from ...schema.document import Document, Unresolved
from ...schema.keywords import ANYTHING, NOTES, SILENT, TYPES
from ..ir import EMPTY, NOTHING, Alt, Ir, Lang, Ref, Rep, Shared, alt, never, seq
from ..steps import Steps, run
from ..syntaxes import Syntax
from .cases import Case, Located, narrow
from .containers import TWICE, Form, arrays, objects
from .judge import Judge
from .raw_text import RawText
from .scalars import INTEGER, NUMBER, borne, number, string_parts
from .written import Equal, Output, Written, content

DEEPEST = 100
"""How many levels of objects and arrays are written. A deeper value may be any value."""
_ONLY_TYPE = SILENT | {"type"}
_ALONE = NOTES | {"$ref"}


@lru_cache(maxsize=8)
def _scalars(syntax: Syntax) -> tuple[dict[str, Ir], dict[str, Ir]]:
    boolean = Alt((syntax.true, syntax.false))
    others = {"integer": INTEGER, "number": NUMBER, "boolean": boolean, "null": syntax.null}
    outside, inside = (syntax.string((), 0, None, nested) for nested in (False, True))
    return {"string": outside, **others}, {"string": inside, **others}


@lru_cache(maxsize=8)
def _anything(syntax: Syntax) -> Mapping[str, Ir]:
    """The rules of any value, the same ones in all grammars, so that a writer may know them."""
    value, object_, array = (f"{syntax.name}-{kind}" for kind in ("value", "object", "array"))
    ref = Ref(value)
    if syntax.as_text:  # members of any name cannot be written
        return {value: alt(syntax.string((), 0, None, True), Rep(syntax.item(ref), 1, None))}
    member = syntax.other((), 0, None, ref)
    members = seq(member, Rep(seq(syntax.comma, member), 0, None))
    items = seq(ref, Rep(seq(syntax.comma, ref), 0, None))
    scalars = (_scalars(syntax)[0][kind] for kind in ("string", "number", "boolean", "null"))
    return {
        value: alt(Ref(object_), Ref(array), *scalars),
        object_: seq(syntax.open_object, alt(seq(members, syntax.close_object), syntax.no_members)),
        array: seq(syntax.open_array, alt(seq(items, syntax.close_array), syntax.no_items)),
    }


class SchemaCompiler:
    """Compiles the schemas of one document to nodes in one value syntax.

    ``output`` is shared by the compilers of one grammar. ``equal`` has the values that other documents' schemas made
    in the same syntax.
    """

    def __init__(
        self, document: Document, syntax: Syntax, output: Output, equal: Equal | None = None
    ) -> None:
        self.document = document
        self.syntax = syntax
        self.output = output
        self.judge = Judge(document, output)
        self.written = Written(output.rules, syntax.name[:1])
        self.equal = equal or Equal(output)
        self.separator = syntax.comma
        self.scalars = _scalars(syntax)
        """The values of types without further constraints, outside and inside of objects and arrays."""

    def value(self, schemas: list[Located]) -> Ir:
        """The values that are valid under all of these schemas."""
        node = self.inner(schemas, 0)
        node = node if isinstance(node, Ir) else run(node)
        return node.node if isinstance(node, Shared) and node.hint == "v" else node

    def raw(self, schemas: list[Located], raw: RawText) -> Ir:
        """The values that are valid, as raw text."""
        return run(self.alternatives(schemas, 0, raw))

    def arguments(self, schemas: list[Located], form: Form) -> list[Ir]:
        """The valid objects, one for each alternative. ``form`` says how their members are written."""
        found: list[Ir] = []
        for case in self.judge.cases(schemas):
            if case.values is not None:
                why = "arguments are written one by one: listed objects are not compared"
                self.output.tell(case.path, "enum", why)
            if "object" in case.types:
                self.output.tell_unsaid(case, "object")
                found.append(run(objects(case, form, self, 0)))
        return [node for node in found if not never(node)]

    def inner(self, schemas: list[Located], depth: int) -> Ir | Steps[Ir]:
        """The values that are valid under all of these schemas, or the steps that write them."""
        schemas = self._named(schemas)
        found = self._ready(schemas, depth)
        if found is not None:
            return found
        if depth != 1:
            return self._made(schemas, depth)
        return self.equal.once(content(schemas), partial(self._made, schemas, depth))  # an argument of a call

    def _ready(self, schemas: list[Located], depth: int) -> Ir | None:
        """The values, if they are simple, written or being written."""
        if len(schemas) == 1:
            schema = schemas[0][0]
            if schema is True or schema == {}:
                return self.anything()
            scalar = self._scalar(schemas)
            if scalar is not None:
                return self.scalars[depth > 0][scalar]
        return self.written.get(schemas, depth)

    def _made(self, schemas: list[Located], depth: int) -> Steps[Ir]:
        """The values, written now."""
        found: Ir | None = None
        over = self.output.budget.over()
        if over or depth >= DEEPEST:
            what = f"the grammar is past {over}:" if over else f"deeper than {DEEPEST} levels,"
            self.output.tell(schemas[0][1], "*", f"{what} any value is generated")
            return self.anything()
        while found is None:
            end = self.written.begin(schemas, depth)
            raw: RawText | None = None
            if self.syntax.as_text:
                until = values.Raw(until=self.syntax.stops)
                raw = RawText(self.output, until, self._types(schemas), marked=True)
            node: Ir = yield self.alternatives(schemas, depth, raw)
            node = end(node)
            found = self._ready(schemas, depth) if self.written.endless() else node
        return found

    def _named(self, schemas: list[Located]) -> list[Located]:
        """The schemas; for a reference alone what it names, so that this is written once for all references to it."""
        if len(schemas) > 1:
            return schemas
        schema, path = schemas[0]
        seen: set[int] = set()
        while type(schema) is dict and "$ref" in schema and schema.keys() <= _ALONE:
            if id(schema) in seen:
                return schemas
            seen.add(id(schema))
            try:
                schema = self.document.resolve(schema["$ref"], schema)
            except Unresolved:
                return schemas
            path = path if path.endswith(".$ref") else f"{path}.$ref"
        return [(schema, path)] if seen else schemas

    def _types(self, schemas: list[Located]) -> frozenset[str]:
        """The types of the values that are valid under all of these schemas, as the parser reads them."""
        found = ANYTHING
        for schema, _ in schemas:
            found = narrow(found, self.document.types(schema))
        return found

    def _scalar(self, schemas: list[Located]) -> str | None:
        """The type, if a single schema says nothing else and the type is neither an object nor an array."""
        schema = schemas[0][0]
        if len(schemas) == 1 and type(schema) is dict:
            kind = schema.get("type")
            if type(kind) is str and kind in self.scalars[0] and _ONLY_TYPE.issuperset(schema):
                return kind
        return None

    def anything(self) -> Ir:
        """Any value."""
        name, rules = f"{self.syntax.name}-value", self.output.rules
        if name not in rules:
            rules.update(_anything(self.syntax))
        return Ref(name)

    def alternatives(self, schemas: list[Located], depth: int, raw: RawText | None) -> Steps[Ir]:
        """The alternatives of a value."""
        cases = self.judge.cases(schemas)
        listed = self.output.listed(cases)
        if listed is None:
            options = [self.anything() if raw is None else raw.write((), 0, None)]
        elif raw is None:
            options = [*map(self.syntax.literal, listed)]
        else:
            options = raw.listed(listed, cases, self.syntax)
        for case in cases:
            if case.values is not None:
                continue
            if raw is None and not case.path:
                self.output.tell_unsaid(case)
                return self.anything()
            kinds = case.types if raw is None else raw.kinds(case)
            for kind in (*TYPES, "integer"):
                if kind in kinds:
                    options.append((yield self._of_type(kind, case, depth, raw)))
        found = alt(*options)
        return found if raw is None else raw.told_apart(found, cases, schemas[0][1])

    def _of_type(self, kind: str, case: Case, depth: int, raw: RawText | None) -> Steps[Ir]:
        """The values of a case that have one type."""
        output = self.output
        output.tell_unsaid(case, kind)
        node: Ir
        if kind == "string":
            return self._string(case, depth) if raw is None else raw.strings(case)
        if kind in ("number", "integer"):
            return number(case, kind == "integer", output, raw is not None and "string" in raw.types)
        if kind in ("boolean", "null"):
            node = self.scalars[0][kind]
            return node if raw is None else raw.word(node)
        if kind == "object":
            node = yield objects(case, self, self, depth)
        else:
            node = yield arrays(case, self, depth)
        if raw is not None and raw.marked:
            raw.apart += node.options if isinstance(node, Alt) else (node,)
        return node

    def _string(self, case: Case, depth: int) -> Ir:
        """The strings of a case."""
        syntax, output = self.syntax, self.output
        found = borne(case, string_parts(case, output), syntax.stops, output, output.target.most_counted)
        return NOTHING if found is None else syntax.string(found.parts, found.least, found.most, depth > 0)

    # members as the value syntax writes them (`Form`)

    def member(self, name: str, schemas: list[Located], required: bool, depth: int) -> Steps[Ir]:
        node: Ir = yield self.inner(schemas, depth)
        return node if never(node) else self.syntax.member(name, node)

    def other(self, name: Lang, schemas: list[Located], depth: int) -> Steps[Ir]:
        syntax, output = self.syntax, self.output
        node: Ir = yield self.inner(schemas, depth)
        if never(node):
            return node
        parts = name.parts
        if syntax.bare and parts:
            named = output.names(Lang((*parts, *syntax.bare), name.least, name.most), schemas[0][1])
            if not isinstance(named, Lang):
                return NOTHING
            parts = named.parts[: -len(syntax.bare)]
        member = syntax.other(parts, name.least, name.most, node)
        if never(member):
            output.tell(schemas[0][1], "additionalProperties", TWICE)
        return member

    def whole(self, body: Ir) -> Ir:
        syntax = self.syntax
        if body is EMPTY:
            return seq(syntax.open_object, syntax.no_members)
        return seq(syntax.open_object, body, syntax.close_object)
