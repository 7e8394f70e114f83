"""From schemas to nodes: the alternatives of a value, each type written by its own module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...schema.document import ANYTHING, TYPES, Document
from ...schema.keywords import KEYWORDS, NOTES, SILENT
from ..ir import EMPTY, NOTHING, Alt, Ir, Ref, Rep, Shared, alt, never, seq
from ..steps import Steps, run
from ..syntaxes import RawText, Syntax
from .arrays import array
from .bags import Bag, Where, narrow
from .constraints import UNEVALUATED
from .equal import Equal, content
from .form import Form, InSyntax
from .gather import Gatherer
from .judge import Judge
from .listing import Listing
from .numbers import INTEGER, NUMBER, number
from .objects import Objects
from .output import Output
from .strings import string
from .written import Written

DEEPEST = 100
"""How many levels of objects and arrays are written. A deeper value may be any value."""
_ONLY_TYPE = SILENT | {"type"}
_PLAIN = Bag()


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
        self.equal = equal or Equal(output)
        self.gatherer = Gatherer(document, output)
        self.judge = Judge(self.gatherer, output)
        self.listing = Listing(self.judge, syntax, output)
        self.objects = Objects(self.gatherer, self.judge, output)
        self.members = InSyntax(syntax, output, self.inner, self.ready)
        self.written = Written(output.rules, syntax.name[:1])
        boolean = Alt((syntax.true, syntax.false))
        scalars = {"integer": INTEGER, "number": NUMBER, "boolean": boolean, "null": syntax.null}
        self.simple: tuple[dict[str, Ir], dict[str, Ir]] = (
            {"string": syntax.string((), 0, None, False), **scalars},
            {"string": syntax.string((), 0, None, True), **scalars},
        )
        """The values of types without further constraints, outside and inside of objects and arrays."""

    def value(self, wheres: list[Where]) -> Ir:
        """The values that are valid under all of these schemas."""
        node = run(self.inner(wheres, 0, False))
        return node.node if isinstance(node, Shared) and node.hint == "v" else node

    def raw(self, wheres: list[Where], raw: RawText) -> Ir:
        """The values that are valid, as raw text: strings verbatim, other types as JSON."""
        return run(self.textual(wheres, raw, False, 0))

    def arguments(self, wheres: list[Where], form: Form) -> list[Ir]:
        """The valid objects, one for each alternative. ``form`` says how their members are written."""
        found: list[Ir] = []
        for bag in self.gatherer.bags(wheres):
            if bag.values is not None:
                why = "arguments are written one by one: listed objects are not compared"
                self.output.tell(bag.path, "enum", why)
            if "object" in bag.types:
                self.unseal(bag, wheres)
                self.output.report_told(bag, "object")
                found.append(run(self.objects.write(bag, form, 0)))
        return [node for node in found if not never(node)]

    def inner(self, wheres: list[Where], depth: int, nested: bool = True) -> Steps[Ir]:
        """The values that are valid under all of these schemas. ``nested``: inside of an object or array. ``depth``:
        how many objects and arrays are around the value."""
        found = self.ready(wheres, nested)
        if found is not None:
            return found
        key = Written.key(wheres, nested)
        said = content(wheres[0][0]) if depth == 1 and len(wheres) == 1 else None  # an argument of a call
        equal = (nested, said)
        if said is not None:
            found = self.equal.get(equal)
            if found is not None:
                return found
        made = self.equal.watch(equal)
        over = self.output.budget.over()
        if over or depth >= DEEPEST:
            what = f"the grammar is past {over}:" if over else f"deeper than {DEEPEST} levels,"
            self.output.tell(wheres[0][1], "*", f"{what} any value is generated")
            return self.anything()
        self.written.begin(key, wheres)
        raw = self.syntax.raw(self.types(wheres))
        node: Ir = yield (
            self.choose(wheres, None, nested, depth)
            if raw is None
            else self.textual(wheres, raw, nested, depth)
        )
        node = self.written.end(key, node)
        return node if said is None else made(node)

    def ready(self, wheres: list[Where], nested: bool) -> Ir | None:
        """The values that are valid under all of these schemas, if they are simple, written or being written."""
        if len(wheres) == 1:
            schema = wheres[0][0]
            if schema is True or schema == {}:
                return self.anything()
            simple = self.of_type_alone(schema)
            if simple is not None:
                return self.simple[nested][simple]
        return self.written.get(Written.key(wheres, nested))

    def types(self, wheres: list[Where]) -> frozenset[str]:
        """The types of the values that are valid under all of these schemas, as the parser reads them."""
        found = ANYTHING
        for schema, _ in wheres:
            found = narrow(found, self.document.types(schema))
        return found

    def of_type_alone(self, schema: Any) -> str | None:
        """The type, if a schema says nothing else and the type is neither an object nor an array."""
        if type(schema) is dict:
            kind = schema.get("type")
            if type(kind) is str and kind in self.simple[0] and _ONLY_TYPE.issuperset(schema):
                return kind
        return None

    def anything(self) -> Ir:
        """Any value."""
        syntax, rules = self.syntax, self.output.rules
        name = f"{syntax.name}-value"
        ref = Ref(name)
        if name in rules:
            return ref
        rules[name] = EMPTY
        raw = syntax.raw(ANYTHING)
        if raw is not None:  # members of any name cannot be written
            rules[name] = alt(raw.write((), 0, None), Rep(syntax.item(ref), 1, None))
            return ref
        member = syntax.other((), 0, None, ref)
        members = seq(member, Rep(seq(syntax.comma, member), 0, None))
        items = seq(ref, Rep(seq(syntax.comma, ref), 0, None))
        rules[f"{syntax.name}-object"] = seq(
            syntax.open_object, alt(seq(members, syntax.close_object), syntax.no_members)
        )
        rules[f"{syntax.name}-array"] = seq(
            syntax.open_array, alt(seq(items, syntax.close_array), syntax.no_items)
        )
        scalars = (self.simple[0][kind] for kind in ("string", "number", "boolean", "null"))
        rules[name] = alt(Ref(f"{syntax.name}-object"), Ref(f"{syntax.name}-array"), *scalars)
        return ref

    # the alternatives of a value

    def choose(self, wheres: list[Where], raw: RawText | None, nested: bool, depth: int) -> Steps[Ir]:
        """The alternatives of a value. ``raw``: how its strings are written, if not in the syntax's own way."""
        simple = self.of_type_alone(wheres[0][0]) if len(wheres) == 1 else None
        if simple is not None:
            node: Ir = yield self.of_type(simple, _PLAIN, raw, nested, depth)
            return node
        bags = self.gatherer.bags(wheres)
        options: list[Ir] = []
        for bag in bags:
            self.unseal(bag, wheres)
        if any(bag.values for bag in bags):
            written = self.listing.write(bags, wheres, raw)
            options += [raw.write((), 0, None) if raw else self.anything()] if written is None else written
        for bag in bags:
            if bag.values is not None:
                continue
            if raw is None and not bag.path:
                self.output.report_told(bag)
                return self.anything()
            kinds = bag.types if raw is None else self.meant(bag, raw)
            for kind in (*TYPES, "integer"):
                if kind in kinds:
                    made: Ir = yield self.of_type(kind, bag, raw, nested, depth)
                    options.append(made)
                    if raw is not None and raw.marked and kind in ("object", "array"):
                        raw.apart += made.options if isinstance(made, Alt) else (made,)
        return alt(*options)

    def of_type(self, kind: str, bag: Bag, raw: RawText | None, nested: bool, depth: int) -> Steps[Ir]:
        """The values of a bag that have one type."""
        self.output.report_told(bag, kind)
        if kind == "string":
            return string(bag, raw, nested, self.syntax, self.output)
        if kind in ("number", "integer"):
            return number(bag, kind == "integer", self.output)
        if kind == "object":
            node: Ir = yield self.objects.write(bag, self.members, depth)
            return node
        if kind == "array":
            node = yield array(bag, self.syntax, self.output.target.open_objects, self.inner, depth)
            return node
        return raw.word(self.simple[0][kind]) if raw else self.simple[0][kind]

    def unseal(self, bag: Bag, wheres: list[Where]) -> None:
        """Keeps ``unevaluatedProperties`` only where it is exact: if its schema is the only one that applies."""
        for schema, path in bag.sealed:
            if len(wheres) > 1 or schema is not wheres[0][0]:
                bag.weaken(path, "unevaluatedProperties", UNEVALUATED)
                bag.sealed = []

    # raw text

    def textual(self, wheres: list[Where], raw: RawText, nested: bool, depth: int) -> Steps[Ir]:
        """As `raw`. If any text may be the value, only text is written."""
        simple = self.of_type_alone(wheres[0][0]) if len(wheres) == 1 else None
        if simple is not None:
            if raw.said:
                said = narrow(frozenset({simple}), raw.types)
                if not said:
                    return NOTHING
                (simple,) = said
            return raw.write(raw.only, 0, None) if simple == "string" else raw.word(self.simple[0][simple])
        node: Ir = yield self.choose(wheres, raw, nested, depth)
        found = raw.written
        if raw.said or not found:
            return node
        options = node.options if isinstance(node, Alt) else (node,)
        others = [option for option in options if option not in found and option not in raw.apart]
        free = next(
            (text for text in found if text.parts == raw.only and not text.least and text.most is None), None
        )
        if free is None or (not others and raw.types == {"string"}):
            return node
        if not (others or raw.apart) or not all(_whole(schema) for schema, _ in wheres):
            why = "text is also generated that reads as another type, without that type's constraints"
            self.output.tell(wheres[0][1], "type", why)
        return alt(free, *raw.apart)

    def meant(self, bag: Bag, raw: RawText) -> frozenset[str]:
        """The types that the reader of a raw text may take its value for."""
        kinds = narrow(bag.types, raw.types)
        if kinds != bag.types and not raw.said:
            meant = " or ".join(sorted(raw.types))
            why = f"no type is given, and the other keywords mean {meant}: no other is generated"
            self.output.tell(bag.path, "type", why)
        return kinds


def _whole(schema: Any) -> bool:
    """Whether the schema admits every value of each type that it admits beside strings."""
    if not isinstance(schema, Mapping):
        return True
    if set(schema) <= _OF_STRINGS:
        return True
    options = schema.get("anyOf") or schema.get("oneOf")
    return set(schema) <= _OF_STRINGS | {"anyOf", "oneOf"} and all(
        isinstance(option, Mapping) and set(option) <= _OF_STRINGS for option in options or ()
    )


_OF_STRINGS = (
    NOTES
    | {"type", "nullable"}
    | {row.name for row in KEYWORDS.values() if row.types == {"string"} and not row.silent}
)
"""Keywords that do not constrain values other than strings."""
