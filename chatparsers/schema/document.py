"""References and types of a JSON Schema document: one meaning for the parser and for the grammar.

Strategy: a `Document` is read at most once, when the first reference needs it. The walk notes the resources (``$id``)
and their anchors. For each schema it notes the resource that the schema is in, because references are relative to
that. A schema is known by its identity; the document keeps it alive. Every walk has its own stack, so a deep schema
does not deepen Python's stack. A walk visits a schema once, however many references lead to it.

The types of a schema are the solution of a system of equations, one for each schema that applies to the same value:
``$ref`` and ``allOf`` intersect, ``anyOf`` and ``oneOf`` unite. A schema that leads back to itself adds nothing there
(the greatest solution). Two sets are solved for at once: the types that a value may have, and the types that the author
means. For example, a schema with ``properties`` and no ``type`` means an object, though it admits any value.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

from .keywords import ANYTHING, KEYWORDS, TYPES

Schema = Any
"""A JSON Schema: a mapping, or True/False."""

SPELLINGS: Mapping[str, str] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    **{name.upper(): name for name in (*TYPES, "integer")},
}
"""Python's names of types, and those of Google's API, which tool authors write instead of JSON's."""

_REFERENCES = tuple(row.name for row in KEYWORDS.values() if row.reference)
LEADING = frozenset(row.name for row in KEYWORDS.values() if row.same in ("all", "one"))
"""The keywords whose schemas apply to the same value: all of them, or one."""
_ALL_OF = tuple(row.name for row in KEYWORDS.values() if row.same == "all" and "list" in row.schemas)
_ONE_OF = tuple(row.name for row in KEYWORDS.values() if row.same == "one")
_HOLDING = {row.name: row.schemas for row in KEYWORDS.values() if row.schemas}
"""The keywords that hold schemas, and how."""
_MEANING = tuple(
    (kind, frozenset(row.name for row in KEYWORDS.values() if row.means and kind in row.types))
    for kind in ("object", "array")
)
"""The keywords by which an author means a type without naming it. The first that is found decides."""


class Unresolved(Exception):
    """A reference that names no schema. ``outside``: it leads out of the document, or cannot be resolved."""

    def __init__(self, why: str, outside: bool) -> None:
        super().__init__(why)
        self.why = why
        self.outside = outside


def references(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The references of a schema, each as keyword and value."""
    for keyword in _REFERENCES:
        if keyword in schema:
            yield keyword, schema[keyword]


def items_of(schema: Mapping[str, Any]) -> tuple[Any, Schema]:
    """The schemas of an array's first items, and the schema of the others; None if it says nothing of them."""
    prefix, rest = schema.get("prefixItems", []), schema.get("items")
    return (rest, schema.get("additionalItems")) if isinstance(rest, (list, tuple)) else (prefix, rest)


def type_of(value: object) -> str:
    """The JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"


def is_of(value: object, types: frozenset[str]) -> bool:
    """Whether a value has one of these JSON types; a number without a fraction is an integer too."""
    found = type_of(value)
    if found == "number" and "integer" in types:
        return "number" in types or _integral(value)
    return found in types


def contradictory(schema: Mapping[str, Any]) -> bool:
    """Whether a schema lists values (``enum``) of which none has its type."""
    listed = schema.get("enum")
    if not isinstance(listed, (list, tuple)) or not listed or "type" not in schema:
        return False
    types = _declared(schema)
    if schema.get("nullable") is True:
        types |= {"null"}
    return bool(types) and not any(is_of(value, types) for value in listed)


def reconciled(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The schemas of which one must hold in place of a contradictory one, as its author means it: the listed values are
    those of an array's items, or else values of the type are as good as those that are listed."""
    rest = {keyword: value for keyword, value in schema.items() if keyword not in ("type", "enum")}
    listed = {"enum": schema["enum"]}
    if _declared(schema) <= {"array", "null"}:
        items = {"allOf": [rest["items"], listed]} if "items" in rest else listed
        return [{**rest, "type": schema["type"], "items": items}]
    return [{**rest, **listed}, {**rest, "type": schema["type"]}]


def _declared(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema's ``type`` names."""
    declared = schema["type"]
    names = declared if isinstance(declared, (list, tuple)) else (declared,)
    return frozenset(SPELLINGS.get(name, name) for name in names if isinstance(name, str))


def respelt(root: Schema) -> Iterator[tuple[str, str]]:
    """The types in a schema document that are spelt as in Python: the path of the schema, and the name."""
    todo: deque[tuple[Schema, str]] = deque([(root, "")])
    seen: set[int] = set()
    while todo:
        schema, path = todo.popleft()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        kind = schema.get("type")
        for name in kind if isinstance(kind, (list, tuple)) else (kind,):
            if isinstance(name, str) and name in SPELLINGS:
                yield path, name
        todo += [(part, path + _step(keyword, place)) for keyword, place, part in inside(schema)]


def inside(schema: Mapping[str, Any]) -> Iterator[tuple[str, str | int | None, Schema]]:
    """The schemas that a schema holds, each with its keyword and its name or number there."""
    for keyword, value in schema.items():
        how = _HOLDING.get(keyword)
        if how is None:
            continue
        if "names" in how and isinstance(value, Mapping):
            for name, part in value.items():
                yield keyword, name, part
        elif "list" in how and isinstance(value, (list, tuple)):
            for index, part in enumerate(value):
                yield keyword, index, part
        elif "one" in how:
            yield keyword, None, value


def _step(keyword: str, place: str | int | None) -> str:
    """The step of a path to a schema inside another one."""
    if isinstance(place, str):
        return f".{place}"
    return f".{keyword}" if place is None else f".{keyword}[{place}]"


class Document:
    """A schema document, and the schemas that its references name. It must not change while it is in use."""

    __slots__ = ("_anchors", "_homes", "_joined", "_meant", "_named", "_resources", "_types", "root")

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._resources: dict[str, Schema] | None = None
        self._anchors: dict[tuple[str, str], Schema] = {}
        self._named: Counter[str] = Counter()
        """How many resources use an anchor's name."""
        self._homes: dict[int, str] = {}
        """The resource that a schema is in, by its identity."""
        self._types: dict[int, frozenset[str]] = {}
        self._meant: dict[int, tuple[Schema, list[dict[str, Any]]]] = {}
        """What contradictory schemas mean, by their identity; each is kept, so that no other gets it."""
        self._joined: dict[tuple[str, tuple[int, ...]], Schema] = {}
        """The schemas that `every` and `either` made, by the identities of their parts; kept for the same reason."""

    def __reduce__(self) -> tuple[type[Document], tuple[Schema]]:
        return Document, (self.root,)  # the rest is known by identities, which a pickle does not keep

    def meant(self, schema: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What `reconciled` says of a contradictory schema: the same objects each time, as others know them by id."""
        kept = self._meant.get(id(schema))
        if kept is None:
            kept = self._meant[id(schema)] = (schema, reconciled(schema))
        return kept[1]

    def every(self, schemas: list[Schema]) -> Schema:
        """A schema that says that all of these must hold: the same object each time, as in `meant`."""
        return self._join("allOf", schemas)

    def either(self, schemas: list[Schema]) -> Schema:
        """A schema that says that one of these must hold: the same object each time, as in `meant`."""
        return self._join("anyOf", schemas)

    def _join(self, keyword: str, schemas: list[Schema]) -> Schema:
        if len(schemas) == 1:
            return schemas[0]
        return self._joined.setdefault((keyword, tuple(map(id, schemas))), {keyword: schemas})

    # references

    def resolve(self, ref: object, schema: Schema, keyword: str = "$ref") -> Schema:
        """The schema that ``ref`` names; ``ref`` is in ``schema``. Raises `Unresolved` if it names no schema."""
        if not isinstance(ref, str):
            raise Unresolved(f"expected a reference, found {type(ref).__name__}", False)
        resources = self._index()
        uri, _, fragment = ref.partition("#")
        home = self._homes.get(id(schema), self._homes.get(id(self.root), ""))
        if uri:
            home = _join(home, uri)
            if home not in resources:
                raise Unresolved("the reference leads out of the document", True)
        if keyword == "$dynamicRef" and fragment and not fragment.startswith("/"):
            if self._named[fragment] > 1:
                raise Unresolved("what it names depends on where it is used", True)
        elif keyword == "$recursiveRef" and len({id(found) for found in resources.values()}) > 1:
            raise Unresolved("what it names depends on where it is used", True)
        if not fragment:
            return resources[home]
        if not fragment.startswith("/"):
            if (home, _unquote(fragment)) not in self._anchors:
                raise Unresolved(f"the reference {ref!r} leads nowhere", False)
            return self._anchors[home, _unquote(fragment)]
        try:
            return self._pointed(fragment, home, ref)
        except Unresolved:
            if uri or resources[home] is self.root:
                raise
            return self._pointed(fragment, "", ref)  # authors mean the whole document also below an inner $id

    def _pointed(self, pointer: str, home: str, ref: str) -> Schema:
        """The schema that a JSON pointer names in the resource ``home``."""
        target = self._index()[home]
        for part in pointer[1:].split("/"):
            name = _unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping) and name in target:
                target = target[name]
            elif isinstance(target, (list, tuple)) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                raise Unresolved(f"the reference {ref!r} leads nowhere: there is no {name!r}", False)
            home = self._homes.get(id(target), home)
        if isinstance(target, Mapping) and id(target) not in self._homes:
            self._walk(target, home)
        return target

    def _index(self) -> dict[str, Schema]:
        """The document's resources by their absolute URI; the root also by the empty one."""
        if self._resources is None:
            self._resources = {"": self.root}
            self._walk(self.root, "")
        return self._resources

    def _walk(self, schema: Schema, home: str) -> None:
        """Notes the resources and anchors of ``schema``, which is in the resource ``home``."""
        resources = self._resources
        assert resources is not None
        draft = self.root.get("$schema") if isinstance(self.root, Mapping) else None
        named = "id" if isinstance(draft, str) and "draft-04" in draft else "$id"
        todo: list[tuple[Any, str]] = [(schema, home)]
        while todo:
            schema, home = todo.pop()
            if not isinstance(schema, (dict, Mapping)) or id(schema) in self._homes:
                continue
            uri = schema.get(named)
            if isinstance(uri, str):
                uri, _, fragment = uri.partition("#")
                if fragment:
                    self._anchor(home, fragment, schema)
                if uri:
                    home = _join(home, uri)
                    resources.setdefault(home, schema)
            self._homes[id(schema)] = home
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(keyword), str):
                    self._anchor(home, schema[keyword], schema)
            todo += [(part, home) for _, _, part in inside(schema)]

    def _anchor(self, home: str, name: str, schema: Schema) -> None:
        if (home, name) not in self._anchors:
            self._anchors[home, name] = schema
            self._named[name] += 1

    # members

    def members(self, schema: Schema) -> tuple[dict[str, Schema], set[str], Schema]:
        """The members that the objects of ``schema`` may have, with their schemas; the names of the required members;
        and the schema of members with other names.

        The members are gathered through references and compositions, each schema once. A schema from an alternative or
        a condition is one of several that the member may have.
        """
        every: dict[str, list[Schema]] = {}
        either: dict[str, list[Schema]] = {}
        required: set[str] = set()
        others: list[Schema] = []
        for part, always in self._gathered(schema, conditions=True):
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                for name, member in properties.items():
                    (every if always else either).setdefault(name, []).append(member)
            names = part.get("required")
            if always and isinstance(names, (list, tuple)):
                required.update(name for name in names if isinstance(name, str))
            patterns = part.get("patternProperties")
            others += patterns.values() if isinstance(patterns, Mapping) else ()
            if part.get("additionalProperties", False) is not False:
                others.append(part["additionalProperties"])
        listed = {
            name: self.either(either[name]) if name not in every else self.every(every[name])
            for name in (*every, *(name for name in either if name not in every))
        }
        return listed, required, self.either(others) if others else True

    def items(self, schema: Schema, index: int) -> Schema:
        """The schema of the item at ``index`` in the arrays of ``schema``, gathered as in `members`."""
        every: list[Schema] = []
        either: list[Schema] = []
        for part, always in self._gathered(schema, conditions=False):
            prefix, rest = items_of(part)
            if isinstance(prefix, (list, tuple)) and index < len(prefix):
                (every if always else either).append(prefix[index])
            elif rest is not None:
                (every if always else either).append(rest)
        return self.every(every) if every else self.either(either) if either else True

    def _gathered(self, schema: Schema, *, conditions: bool) -> Iterator[tuple[Mapping[str, Any], bool]]:
        """The schemas that ``schema`` is made of, each once, and whether a value must always fit it: first those, then
        the alternatives and, with ``conditions``, the schemas of conditions."""
        seen: set[int] = set()
        later: list[Schema] = []
        for always, todo in ((True, [schema]), (False, later)):
            while todo:
                part = todo.pop()
                if not isinstance(part, Mapping) or id(part) in seen:
                    continue
                seen.add(id(part))
                yield part, always
                for group in self._groups(part):
                    (todo if len(group) == 1 else later).extend(group)
                if conditions:
                    later += [part[keyword] for keyword in ("then", "else") if keyword in part]
                    dependent = part.get("dependentSchemas")
                    later += dependent.values() if isinstance(dependent, Mapping) else ()

    # types

    def types(self, schema: Schema) -> frozenset[str]:
        """The JSON types that an author means by ``schema``; ``integer`` if the author means no other number."""
        found = self._types.get(id(schema))
        if found is None:
            if not isinstance(schema, Mapping):
                return ANYTHING
            bits = _own_types(schema) if LEADING.isdisjoint(schema) else self._solve(schema)
            found = self._types[id(schema)] = _names(bits >> _MEANT) or _names(bits) or ANYTHING
        return found

    def other_type(self, schema: Schema, value: object, path: str) -> str:
        """What was expected in place of the first value of another type than meant, in ``value`` at ``path``; "" if
        there is none."""
        todo: list[tuple[Schema, object, str]] = [(schema, value, path)]
        known: dict[int, tuple[dict[str, Schema], set[str], Schema]] = {}
        while todo:
            schema, value, path = todo.pop()
            types = self.types(schema)
            if not is_of(value, types):
                return f"{' or '.join(sorted(types))} at {path}, not {type_of(value)}"
            inner: list[tuple[Schema, object, str]] = []
            if isinstance(value, dict):
                members, _, other = known.get(id(schema)) or known.setdefault(
                    id(schema), self.members(schema)
                )
                inner = [(members.get(name, other), each, f"{path}.{name}") for name, each in value.items()]
            elif isinstance(value, list):
                inner = [
                    (self.items(schema, index), each, f"{path}[{index}]") for index, each in enumerate(value)
                ]
            todo += reversed(inner)
        return ""

    def _solve(self, schema: Schema) -> int:
        own: dict[int, int] = {}
        every: dict[int, list[list[Schema]]] = {}
        users: dict[int, list[int]] = {}
        order: list[int] = []
        todo: list[tuple[Schema, bool]] = [(schema, False)]
        while todo:
            part, over = todo.pop()
            key = id(part)
            if over:
                order.append(key)
                continue
            if key in own:
                continue
            own[key] = _own_types(part) if isinstance(part, Mapping) else 0 if part is False else _ALL
            every[key] = groups = self._groups(part) if isinstance(part, Mapping) else []
            todo.append((part, True))
            for group in groups:
                for option in group:
                    users.setdefault(id(option), []).append(key)
                    todo.append((option, False))
        solved = dict.fromkeys(own, _ALL)
        changed = set(own)
        while changed:
            for key in order:
                if key not in changed:
                    continue
                changed.discard(key)
                bits = own[key]
                for group in every[key]:
                    united = 0
                    for option in group:
                        united |= solved[id(option)]
                    bits &= united
                if bits != solved[key]:
                    solved[key] = bits
                    changed.update(users.get(key, ()))
        return solved[id(schema)]

    def _groups(self, schema: Mapping[str, Any]) -> list[list[Schema]]:
        """The groups of schemas that apply to the same value: one schema of each group must hold."""
        groups: list[list[Schema]] = []
        for keyword, ref in references(schema):
            try:
                groups.append([self.resolve(ref, schema, keyword)])
            except Unresolved:
                continue
        for keyword in _ALL_OF:
            listed = schema.get(keyword)
            if isinstance(listed, (list, tuple)):
                groups += [[part] for part in listed]
        for keyword in _ONE_OF:
            listed = schema.get(keyword)
            if isinstance(listed, (list, tuple)) and listed:
                groups.append(list(listed))
        return groups


# One bit for each type: first the types that a value may have, above them the types that the author means.
_BITS = {
    "object": 1,
    "array": 2,
    "string": 4,
    "integer": 8,
    "number": 8 | 16,
    "boolean": 32,
    "null": 64,
}
_EVERY = 127
_MEANT = 7
_ALL = _EVERY << _MEANT | _EVERY


def _own_types(schema: Mapping[str, Any]) -> int:
    """The types that a schema's own keywords allow."""
    declared = schema.get("type")
    names = [declared] if isinstance(declared, str) else declared
    bits = 0
    if isinstance(names, (list, tuple)):
        for name in names:
            bits |= _BITS.get(SPELLINGS.get(name, name), 0) if isinstance(name, str) else 0
    bits = bits or _EVERY
    listed = schema.get("enum")
    if "const" in schema:
        bits &= _listed_types([schema["const"]]) or bits
    if isinstance(listed, (list, tuple)):
        if contradictory(schema):
            bits |= 0 if _declared(schema) <= {"array", "null"} else _listed_types(listed)
        else:
            bits &= _listed_types(listed) or bits
    if schema.get("nullable") is True and (declared is not None or listed is not None):
        bits |= _BITS["null"]
    meant = bits
    if bits == _EVERY:
        for kind, keywords in _MEANING:
            if not keywords.isdisjoint(schema):
                meant = _BITS[kind]
                break
    return meant << _MEANT | bits


def _listed_types(values: list[Any] | tuple[Any, ...]) -> int:
    bits = 0
    for value in values:
        name = type_of(value)
        bits |= _BITS["integer" if name == "number" and _integral(value) else name]
    return bits


def _integral(value: object) -> bool:
    """Whether a number has no fraction."""
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _names(bits: int) -> frozenset[str]:
    found = {name for name in TYPES if bits & _BITS[name] == _BITS[name]}
    if "number" not in found and bits & _BITS["number"]:
        found.add("integer" if bits & _BITS["integer"] else "number")
    return frozenset(found)


def _join(base: str, uri: str) -> str:
    from urllib.parse import urljoin

    try:
        return urljoin(base, uri)
    except ValueError:
        return uri


def _unquote(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)
