"""From schemas to nodes: the alternatives of a value, and objects and arrays in as many orders and numbers as a grammar
can say. Strings and numbers are in scalars.py, raw text in raw_text.py.

An object's members are written as its form says: as the value syntax has them, or as a format writes the arguments of a
call one by one. The members that no schema lists are written by groups, one for each set of patterns that their names
match.

A value stands ``depth`` objects and arrays deep; 0 is a value alone. With ``raw``, a value is raw text: a string is
verbatim, other types are JSON, as far as the reader of the text does not take one value for another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Protocol

from ... import values
from ...schema.document import Document, Unresolved
from ...schema.keywords import ANYTHING, NOTES, SILENT, TYPES
from ..arrange import Member, apart, arrange, loosely
from ..ir import (
    EMPTY,
    NOTHING,
    Alt,
    Blank,
    Ir,
    Lang,
    Part,
    Ref,
    Rep,
    Shared,
    alt,
    children,
    never,
    seq,
    texts,
)
from ..steps import Steps, run
from ..syntaxes import Syntax
from .cases import Case, Located, Shape, narrow, useful
from .judge import Judge
from .raw_text import RawText
from .scalars import INTEGER, NUMBER, borne, number, regex, string_parts
from .written import Equal, Output, Written, content

DEEPEST = 100
"""How many levels of objects and arrays are written. A deeper value may be any value."""
_MOST_PATTERNS = 4
_SHORT = 4
"""Up to so many items at the beginning, each is written in its place."""
_KINDS = (*TYPES, "integer")
_ONLY_TYPE = SILENT | {"type"}
_ALONE = NOTES | {"$ref", "type"}
_OF_TYPE = {kind: {"type": kind} for kind in _KINDS}

TWICE = "a name that the schema does not list cannot be written twice: such members are not generated"


class Form(Protocol):
    """How an object's members are written."""

    separator: Ir

    def member(self, name: str, schemas: list[Located], required: bool, depth: int) -> Ir | Steps[Ir]:
        """A member with its name; nothing if no value is valid."""
        ...

    def other(self, name: Lang, schemas: list[Located], depth: int) -> Ir | Steps[Ir]:
        """A member whose name is of this language."""
        ...

    def whole(self, body: Ir) -> Ir:
        """The object around its members."""
        ...


@lru_cache(maxsize=8)
def _scalars(syntax: Syntax) -> tuple[dict[str, Ir], dict[str, Ir]]:
    boolean = Alt((syntax.true, syntax.false))
    others = {"integer": INTEGER, "number": NUMBER, "boolean": boolean, "null": syntax.null}
    outside, inside = (syntax.string((), 0, None, nested) for nested in (False, True))
    return {"string": outside, **others}, {"string": inside, **others}


@lru_cache(maxsize=8)
def any_value(syntax: Syntax) -> Mapping[str, Ir]:
    """The rules of any value: the same nodes for the same syntax."""
    value, object_, array = (f"{syntax.name}-{kind}" for kind in ("value", "object", "array"))
    ref = Ref(value)
    if syntax.as_text:  # members of any name cannot be written
        return {value: alt(syntax.string((), 0, None, True), Rep(syntax.item(ref), 1, None))}
    member = syntax.other((), 0, None, ref)
    members = seq(member, Rep(seq(syntax.between_members, member), 0, None))
    items = seq(ref, Rep(seq(syntax.between_items, ref), 0, None))
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
        self.separator = syntax.between_members
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
            node: Ir = end((yield self.alternatives(schemas, depth, raw)))
            found = self._ready(schemas, depth) if self.written.endless() else node
        return found

    def _named(self, schemas: list[Located]) -> list[Located]:
        """The schemas; for a reference what it names, and the type beside it. So this is written once for all
        references to it."""
        for schema, _ in schemas:
            if type(schema) is dict and "$ref" in schema:
                return [found for schema, path in schemas for found in self._referred(schema, path)]
        return schemas

    def _referred(self, schema: Any, path: str) -> list[Located]:
        """What a reference names, and the types beside it; the schema itself if it says more, or is no reference."""
        given = [(schema, path)]
        types: list[Located] = []
        seen: set[int] = set()
        while type(schema) is dict and "$ref" in schema and schema.keys() <= _ALONE:
            kind = schema.get("type")
            if id(schema) in seen or ("type" in schema and not isinstance(kind, str)):
                return given
            seen.add(id(schema))
            if kind is not None:
                if kind not in _OF_TYPE:
                    return given
                types.append((_OF_TYPE[kind], path))
                self.judge.beside_reference(schema, path)
            try:
                schema = self.document.resolve(schema["$ref"], schema)
            except Unresolved:
                return given
            path = path if path.endswith(".$ref") else f"{path}.$ref"
        return [(schema, path), *types]

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
            rules.update(any_value(self.syntax))
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
            for kind in _KINDS:
                if kind in kinds:
                    node = self._of_type(kind, case, depth, raw)
                    options.append(node if isinstance(node, Ir) else (yield node))
        found = alt(*options)
        return found if raw is None else raw.told_apart(found, cases, schemas[0][1])

    def _of_type(self, kind: str, case: Case, depth: int, raw: RawText | None) -> Ir | Steps[Ir]:
        """The values of a case that have one type, or the steps that write them."""
        output = self.output
        output.tell_unsaid(case, kind)
        if kind == "string":
            return self._string(case, depth) if raw is None else raw.strings(case)
        if kind in ("number", "integer"):
            return number(case, kind == "integer", output, raw is not None and "string" in raw.types)
        if kind in ("boolean", "null"):
            node = self.scalars[0][kind]
            return node if raw is None else raw.word(node)
        steps = objects(case, self, self, depth) if kind == "object" else arrays(case, self, depth)
        return steps if raw is None or not raw.marked else self._apart(steps, raw)

    def _apart(self, steps: Steps[Ir], raw: RawText) -> Steps[Ir]:
        """The steps of objects or arrays, which raw text must not begin as."""
        node: Ir = yield steps
        raw.apart += node.options if isinstance(node, Alt) else (node,)
        return node

    def _string(self, case: Case, depth: int) -> Ir:
        """The strings of a case."""
        syntax, output = self.syntax, self.output
        found = borne(case, string_parts(case, output), syntax.stops, output, output.target.most_counted)
        return NOTHING if found is None else syntax.string(found.parts, found.least, found.most, depth > 0)

    # members as the value syntax writes them (`Form`)

    def member(self, name: str, schemas: list[Located], required: bool, depth: int) -> Ir | Steps[Ir]:
        node = self.inner(schemas, depth)
        return self._named_so(name, node) if isinstance(node, Ir) else self._then_named(name, node)

    def _then_named(self, name: str, steps: Steps[Ir]) -> Steps[Ir]:
        node: Ir = yield steps
        return self._named_so(name, node)

    def _named_so(self, name: str, node: Ir) -> Ir:
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
        # If the brace takes the white space after it, that of an object without members would come twice.
        spaced = Blank in map(type, children(syntax.open_object))
        some, none = apart(body) if spaced else (body, False)
        whole = seq(some, syntax.close_object)
        return seq(syntax.open_object, alt(whole, syntax.no_members) if none else whole)


# objects


def objects(case: Case, form: Form, compiler: SchemaCompiler, depth: int) -> Steps[Ir]:
    """The objects of a case. ``form`` says how their members are written."""
    output = compiler.output
    named: dict[str, None] = {}
    for names in (
        *[shape.properties for shape in case.shapes],
        case.required,
        [name for name, _, _ in case.dependent],
        case.maybe,
    ):
        named |= dict.fromkeys(names)
    members: list[Member] = []
    for name in named:
        must = name in case.required
        found = form.member(name, _schemas(name, case, compiler), must, depth + 1)
        node: Ir = found if isinstance(found, Ir) else (yield found)
        if never(node):
            if must:
                return NOTHING
            continue
        output.budget.size -= 2 * len(name) + 40
        members.append(Member(name, node, must))
    options: list[Ir] = []
    for other, schemas in _others(case, named, compiler):
        node = yield form.other(other, schemas, depth + 1)
        if not never(node):
            options.append(node)
    extra = Shared("extra", alt(*options)) if options else None
    return _arranged(case, members, extra, form, output)


def _schemas(name: str, case: Case, compiler: SchemaCompiler) -> list[Located]:
    """The schemas that a member of that name must satisfy."""
    if not compiler.judge.fits(name, case.names):
        return [(False, "")]
    found, listed, _ = case.of_member(name)
    open_ = compiler.output.target.open_objects
    if not listed and name in case.maybe and not open_:  # open, it may have any value
        either = compiler.judge.document.either([schema for schema, _ in case.maybe[name]])
        found.append((either, case.maybe[name][0][1]))
    return useful(found)


def _arranged(case: Case, members: list[Member], extra: Ir | None, form: Form, output: Output) -> Ir:
    """An object of these members, within the limits of their number."""
    least, most = case.least_members, case.most_members
    required = sum([member.required for member in members])
    if most is not None and most < max(required, least):
        return NOTHING
    if extra is None:
        if least > len(members):
            return NOTHING
        if most is not None and most >= len(members):
            most = None
        if not members:
            return form.whole(EMPTY)
    elif not members and (least or most is not None):
        return _of_others(extra, case, form, output)
    if extra is not None and (most is not None or least > required):
        why = "not counted where other members are allowed (additional_properties)"
        if most is not None:
            output.tell(case.path, "maxProperties", why)
        if least > required:
            output.tell(case.path, "minProperties", why)
        least, most = 0, None
    borne = output.target.most_members
    if borne is not None and len(members) > borne:
        why = f"more than {borne} members: in any order, each any number of times, and none must come"
        limits = {"minProperties": least, "maxProperties": most, "required": required}
        for keyword in ("properties", *(keyword for keyword, limit in limits.items() if limit)):
            output.tell(case.path, keyword, why)
        return form.whole(loosely(members, form.separator, extra))
    enough = _enough(case, members, least if least > required else 0)
    body, exact = arrange(members, form.separator, extra, enough, most, output.target.bits)
    if not exact:
        keywords = {keyword: None for _, needed, keyword in case.dependent if needed}
        keywords |= {"minProperties": None} if least > required else {}
        keywords |= {"maxProperties": None} if most is not None else {}
        for keyword in keywords:
            output.tell(case.path, keyword, "not counted among so many members")
    return form.whole(body)


def _of_others(extra: Ir, case: Case, form: Form, output: Output) -> Ir:
    """An object of members of any name."""
    least, most = case.least_members, case.most_members
    if least > 1:
        why = "a grammar cannot tell whether a name that the schema does not list is there twice"
        output.tell(case.path, "minProperties", why)
    if most == 0:
        return form.whole(EMPTY)
    over = None if most is None else most - 1
    some = seq(extra, Rep(seq(form.separator, extra), max(0, least - 1), over))
    return form.whole(some if least else Rep(some, 0, 1))


def _enough(case: Case, members: list[Member], least: int) -> Callable[[frozenset[str]], bool] | None:
    """A test of the names of an object's members; None if it would always hold."""
    if not least and not case.dependent:
        return None
    there = frozenset(member.name for member in members)
    dependent = [(name, needed) for name, needed, _ in case.dependent if name in there and needed]
    if not least and not dependent:
        return None
    return lambda names: (
        len(names) >= least
        and all(name not in names or names.issuperset(needed) for name, needed in dependent)
    )


# members that no schema lists


def _others(
    case: Case, named: Mapping[str, None], compiler: SchemaCompiler
) -> list[tuple[Lang, list[Located]]]:
    """Names that are not in ``named``, with the schemas of their members: one for each group of names that the same
    schemas concern."""
    output = compiler.output
    patterns = [(expression, schema, shape) for shape in case.shapes for expression, schema in shape.patterns]
    if any(shape.extra is False for shape in case.shapes) and not patterns:
        return []
    base = [Part(texts(named), False)] if named else []
    least, most = 0, None
    for one in case.names:
        names = _names(one, compiler)
        if names is None:
            return []
        base += names.parts
        least = max(least, names.least)
        most = names.most if most is None else most if names.most is None else min(most, names.most)
    found: list[tuple[Lang, list[Located]]] = []
    for parts, schemas in _groups(case, patterns, output):
        name = Lang((*base, *parts), least, most)
        if name.parts:
            size = output.states(name)
            if size == 0:
                continue
            if size is None:
                path = case.shapes[-1].path if case.shapes else case.path
                output.tell(path, "propertyNames", "the names take too many states: any name is generated")
                name = Lang((), least, most)
        found.append((name, useful(schemas or [(True, case.path)])))
    return found


def _groups(
    case: Case, patterns: list[tuple[str, Any, Shape]], output: Output
) -> list[tuple[list[Part], list[Located]]]:
    """Groups of names that match the same patterns, each with the schemas of its members."""
    said: list[tuple[Ir, Located, Shape]] = []
    found: list[tuple[list[Part], list[Located]]] = []
    for expression, schema, shape in patterns:
        one = (schema, f"{shape.path}.patternProperties.{expression}")
        node = regex(expression, shape.path, "patternProperties", output)
        if len(said) == _MOST_PATTERNS:
            output.tell(shape.path, "patternProperties", f"more than {_MOST_PATTERNS} patterns")
            node = None
        if node is not None:
            said.append((node, one, shape))
        elif schema is not False:  # which names match is unknown: any may have such a value
            found.append(([], [one]))
    open_ = output.target.open_objects or not (patterns or any(shape.named for shape in case.shapes))
    for chosen in range(2 ** len(said)):
        parts: list[Part] = []
        schemas: list[Located] = []
        matched: set[int] = set()
        for index, (node, one, shape) in enumerate(said):
            inside = bool(chosen >> index & 1)
            parts.append(Part(node, inside))
            if inside:
                schemas.append(one)
                matched.add(id(shape))
        for shape in case.shapes:
            if id(shape) not in matched and shape.extra is not None:
                schemas.append((shape.extra, f"{shape.path}.additionalProperties"))
        if schemas or (open_ and not case.sealed):
            found.append((parts, schemas))
    return found


def _names(names: Located, compiler: SchemaCompiler) -> Lang | None:
    """The names that a schema of ``propertyNames`` admits; None if it admits none."""
    output = compiler.output
    cases = [case for case in compiler.judge.cases([names]) if "string" in case.types]
    if not cases:
        return None
    if len(cases) > 1:
        output.tell(names[1], "propertyNames", "alternatives of names")
        return Lang()
    case = cases[0]
    if case.values is not None:
        listed = [text for text in case.values.values() if isinstance(text, str)]
        return Lang((Part(texts(listed)),)) if listed else None
    output.tell_unsaid(case, "string")
    return Lang(string_parts(case, output), case.least, case.most)


# arrays


def arrays(case: Case, compiler: SchemaCompiler, depth: int) -> Steps[Ir]:
    """The arrays of a case: the items at the beginning one by one, then the others."""
    syntax, open_ = compiler.syntax, compiler.output.target.open_objects
    least, most = case.least_items, case.most_items
    size = max((len(prefix) for prefix, _, _ in case.prefix), default=0)
    heads: list[Ir] = []
    for index in range(size if most is None else min(size, most)):
        head = syntax.item((yield compiler.inner(useful(case.of_item(index, open_)), depth + 1)))
        if never(head):
            most = index
            break
        heads.append(head)
    rest = syntax.item((yield compiler.inner(useful(case.of_item(size, open_)), depth + 1)))
    if never(rest):
        most = len(heads) if most is None else min(most, len(heads))
    if most is not None and most < least:
        return NOTHING
    if most == 0:
        return seq(syntax.open_array, syntax.no_items)
    full = seq(_items(heads, rest, least, most, syntax.between_items), syntax.close_array)
    return seq(syntax.open_array, full if least else alt(full, syntax.no_items))


def _items(heads: list[Ir], rest: Ir, least: int, most: int | None, comma: Ir) -> Ir:
    """One item or more: ``heads``, then ``rest``; ``least`` to ``most`` items together."""
    tail: Ir = EMPTY
    if most is None or len(heads) < most:
        heads = heads or [rest]
        over = None if most is None else most - len(heads)
        tail = Rep(seq(comma, rest), max(0, least - len(heads)), over)
    must = max(1, min(least, len(heads)))
    for index in range(len(heads) - 1, must - 1, -1):
        more = seq(comma, heads[index], tail)
        tail = alt(more if len(heads) <= _SHORT else Shared("items", more), EMPTY)
    found: list[Ir] = [heads[0]]
    for head in heads[1:must]:
        found += [comma, head]
    return seq(*found, tail)
