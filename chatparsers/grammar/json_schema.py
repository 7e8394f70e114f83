"""JSON Schema to grammar nodes, in any value syntax.

Strategy: a schema (or several that must all hold) becomes a short list of `_Bag`s, of which any must hold. A
bag gathers all keywords that apply to one value: ``allOf`` and ``$ref`` merge into it, ``anyOf`` and
``oneOf`` multiply the bags, so what is left is one table of constraints a type, written as nodes type by
type. Members and items stay schemas until it is their turn, which is what makes recursion end: a value is
known by the identities of the schemas that apply to it, and one that is met again inside itself becomes a
rule. What a grammar cannot say is left out, which admits more, and reported.

Objects are closed by default: where a schema names properties and is silent about others, no others are
generated. Numbers are written as JSON writes them, an integer without a fraction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from ..core.errors import SchemaError
from ..core.references import SPELLINGS, TYPES, Document, Unresolved, type_of
from .arrange import Member, arrange
from .automaton import TooLarge, build
from .ir import (
    ANY,
    EMPTY,
    NOTHING,
    Alt,
    Chars,
    Ir,
    Lang,
    Part,
    Ref,
    Rep,
    Shared,
    Text,
    alt,
    charset,
    never,
    seq,
    texts,
)
from .numbers import DIGIT, INTEGER, NATURAL, NUMBER, SIGN, integer_range, number_parts
from .regex import Unsupported, read_regex
from .string_formats import EXPRESSIONS, UNSAID
from .syntaxes import RawText, Syntax

__all__ = ["SchemaCompiler", "Weakened"]

_ALL = frozenset(TYPES)
_DEFAULT_LIMIT = 64
_MOST_STATES = 3_000
_MOST_DIVISOR = 200
_MOST_COUNTED = 256
"""How many states counting the characters of text up to a marker may take."""


@dataclass(frozen=True, slots=True)
class Weakened:
    """A keyword that the grammar does not hold the model to: where it stands, its name, and why."""

    path: str
    keyword: str
    why: str


Where = tuple[Any, str]
"""A schema and its JSON path."""


@dataclass(slots=True)
class _Shape:
    """What one schema object says of members."""

    properties: Mapping[str, Any]
    named: bool
    """Whether it lists properties, perhaps none."""
    patterns: tuple[tuple[str, Any], ...]
    extra: Any
    """The schema of other members; None where the schema is silent."""
    path: str


@dataclass(slots=True)
class _Bag:
    """All that applies to one value."""

    types: frozenset[str] = _ALL
    values: list[Any] | None = None
    low: tuple[Decimal, bool] | None = None
    high: tuple[Decimal, bool] | None = None
    divisors: list[tuple[Decimal, str]] = field(default_factory=list)
    least: int = 0
    most: int | None = None
    patterns: list[tuple[str, str, str]] = field(default_factory=list)
    """(regular expression, path, keyword)"""
    shapes: list[_Shape] = field(default_factory=list)
    required: dict[str, None] = field(default_factory=dict)
    names: list[Where] = field(default_factory=list)
    least_members: int = 0
    most_members: int | None = None
    dependent: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    sealed: bool = False
    prefix: list[tuple[list[Any], Any, str]] = field(default_factory=list)
    """(schemas of the first items, schema of the others, path)"""
    least_items: int = 0
    most_items: int | None = None
    told: list[Weakened] = field(default_factory=list)
    """What is weakened, by type: reported only where that type is written."""
    path: str = field(default="$", compare=False)
    """Where the schema stands that was gathered last."""

    def copy(self) -> _Bag:
        return _Bag(
            self.types,
            self.values,
            self.low,
            self.high,
            self.divisors[:],
            self.least,
            self.most,
            self.patterns[:],
            self.shapes[:],
            self.required.copy(),
            self.names[:],
            self.least_members,
            self.most_members,
            self.dependent[:],
            self.sealed,
            self.prefix[:],
            self.least_items,
            self.most_items,
            self.told[:],
            self.path,
        )


def _narrow(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """The types in both; an integer is a number."""
    both = left & right
    if ("integer" in left and "number" in right) or ("integer" in right and "number" in left):
        both |= {"integer"}
    return both - {"integer"} if "number" in both else both


def _same(left: Any, right: Any) -> bool:
    """JSON equality: numbers by value, booleans are no numbers."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    return (type(left) is type(right) and bool(left == right)) or (
        isinstance(left, (int, float)) and isinstance(right, (int, float)) and left == right
    )


class SchemaCompiler:
    """Compiles the schemas of one document to nodes in one value syntax.

    ``rules`` receives the rules that recursion needs, ``weakened`` what could not be said; both are shared by
    the compilers of one grammar. ``open_objects``: members that a schema does not mention are generated, as
    JSON Schema has it. ``counted``: the dialect counts the characters of text up to a marker.
    """

    def __init__(
        self,
        document: Document,
        syntax: Syntax,
        rules: dict[str, Ir],
        weakened: dict[Weakened, None],
        open_objects: bool = False,
        counted: bool = False,
    ) -> None:
        self.document = document
        self.syntax = syntax
        self.rules = rules
        self.weakened = weakened
        self.open_objects = open_objects
        self.counted = counted
        self.known: dict[tuple[int, ...], Ir] = {}
        self.alive: list[Any] = []
        self.names: dict[tuple[int, ...], str] = {}
        self.alone = True
        self.simple: dict[str, Ir] = {
            "string": syntax.string((), 0, None, False),
            "integer": _INTEGER,
            "number": _NUMBER,
            "boolean": _boolean(syntax),
            "null": syntax.null,
        }
        self.nested = False
        """Whether the value that is written now stands in an object or array."""
        self.simple_nested = {**self.simple, "string": syntax.string((), 0, None, True)}

    # values

    def value(self, wheres: list[Where], nested: bool = False) -> Ir:
        """What is valid under all of these schemas; ``nested``: in an object or array."""
        if len(wheres) == 1:
            schema = wheres[0][0]
            if schema is True or schema == {}:
                return self.anything()
            simple = self.of_type_alone(schema)
            if simple is not None:
                return (self.simple_nested if nested else self.simple)[simple]
        key = (int(nested), *sorted({id(schema) for schema, _ in wheres}))
        found = self.known.get(key)
        if found is not None:
            return found
        name = self.names.get(key)
        if name is not None:
            self.rules.setdefault(name, EMPTY)
            return Ref(name)
        self.alive.extend(schema for schema, _ in wheres)
        self.names[key] = name = f"{self.syntax.name[:1]}-{len(self.rules)}-{len(self.names)}"
        outer, self.nested = self.nested, nested
        node = self.choose(wheres, None)
        self.nested = outer
        del self.names[key]
        if name in self.rules:
            self.rules[name] = node
            node = Ref(name)
        self.known[key] = node
        return node

    def of_type_alone(self, schema: Any) -> str | None:
        """The type, where a schema says nothing else and it is neither an object nor an array."""
        if type(schema) is dict:
            kind = schema.get("type")
            if type(kind) is str and kind in self.simple and _ONLY_TYPE.issuperset(schema):
                return kind
        return None

    def anything(self) -> Ir:
        """Any value."""
        name = f"{self.syntax.name}-value"
        if name not in self.rules:
            syntax, ref = self.syntax, Ref(name)
            self.rules[name] = EMPTY
            string = syntax.string((), 0, None, False)
            members = seq(
                syntax.any_key((), 0, None),
                ref,
                Rep(seq(syntax.comma, syntax.any_key((), 0, None), ref), 0, None),
            )
            items = seq(ref, Rep(seq(syntax.comma, ref), 0, None))
            self.rules[f"{self.syntax.name}-object"] = seq(
                syntax.open_object, alt(seq(members, syntax.close_object), Text("}"))
            )
            self.rules[f"{self.syntax.name}-array"] = seq(
                syntax.open_array, alt(seq(items, syntax.close_array), Text("]"))
            )
            self.rules[name] = alt(
                Ref(f"{self.syntax.name}-object"),
                Ref(f"{self.syntax.name}-array"),
                string,
                _NUMBER,
                _boolean(syntax),
                syntax.null,
            )
        return Ref(name)

    def choose(self, wheres: list[Where], raw: RawText | None) -> Ir:
        """The alternatives of a value; ``raw``: how its strings are written where not as the syntax has them."""
        self.alone = len(wheres) == 1
        simple = self.of_type_alone(wheres[0][0]) if self.alone else None
        if simple is not None:
            return self.of_type(simple, _PLAIN, raw)
        bags = [_Bag()]
        for schema, path in wheres:
            bags = self.expand(bags, schema, path, ())
        options: list[Ir] = []
        for bag in bags:
            if bag.values is not None:
                options += self.values(bag, wheres, raw)
                continue
            if bag.types == _ALL and bag == _Bag() and raw is None:
                return self.anything()
            kinds = bag.types if raw is None else self.meant(bag, raw)
            options += (self.of_type(kind, bag, raw) for kind in (*TYPES, "integer") if kind in kinds)
        return alt(*options)

    def meant(self, bag: _Bag, raw: RawText) -> frozenset[str]:
        """The types of a value as raw text: those that its reader takes it for."""
        kinds = _narrow(bag.types, raw.types)
        if kinds != bag.types:
            meant = " or ".join(sorted(raw.types))
            self.tell(
                bag.path,
                "type",
                f"no type is given, and the other keywords mean {meant}: no other is generated",
            )
        return kinds

    def values(
        self,
        bag: _Bag,
        wheres: list[Where],
        raw: RawText | None,
    ) -> list[Ir]:
        """The listed values that all constraints allow."""
        found: list[Ir] = []
        plain: list[str] = []
        for value in bag.values or ():
            if not all(self.valid(value, schema, 0) for schema, _ in wheres):
                continue
            if isinstance(value, str) and raw is not None:
                read = raw.read(value)
                if read == value or all(self.valid(read, schema, 0) for schema, _ in wheres):
                    plain.append(value)
                else:
                    self.tell(bag.path, "enum", f"{value!r} would be read as no string: it is not generated")
            else:
                literal = self.syntax.literal(value)
                found.append(raw.word(literal) if raw else literal)
        if plain and raw is not None:
            found.append(raw.write((Part(texts(plain)),), 0, None))
        return found

    # gathering

    def expand(self, bags: list[_Bag], schema: Any, path: str, active: tuple[int, ...]) -> list[_Bag]:
        """The bags with ``schema`` applied to each."""
        if schema is True:
            return bags
        if schema is False:
            return []
        if not isinstance(schema, Mapping):
            raise SchemaError(f"expected a schema (an object, true or false), found {_shown(schema)}", path)
        if id(schema) in active:
            return bags
        active = (*active, id(schema))
        for bag in bags:
            self.gather(bag, schema, path)
        if "unevaluatedProperties" in schema:
            self.seal(bags, schema, path, len(active) == 1)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in schema and bags:
                target = self.resolve(schema[keyword], schema, path, keyword)
                bags = self.expand(bags, target, f"{path}.{keyword}", active)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword not in schema:
                continue
            listed = schema[keyword]
            if not isinstance(listed, (list, tuple)) or not listed:
                raise SchemaError(
                    f"expected a list of at least one schema, found {_shown(listed)}", f"{path}.{keyword}"
                )
            if keyword == "allOf":
                for index, option in enumerate(listed):
                    bags = self.expand(bags, option, f"{path}.allOf[{index}]", active)
                continue
            if len(bags) * len(listed) > _DEFAULT_LIMIT * 4:
                self.tell(path, keyword, "too many combinations of alternatives")
                continue
            many: list[_Bag] = []
            for index, option in enumerate(listed):
                copies = [bag.copy() for bag in bags]
                many += self.expand(copies, option, f"{path}.{keyword}[{index}]", active)
            if keyword == "oneOf" and not _disjoint(many):
                self.tell(
                    path, keyword, "alternatives may hold together: any of them is generated, as under anyOf"
                )
            bags = many
        if "not" in schema:
            bags = self.negated(bags, schema["not"], f"{path}.not")
        return bags

    def seal(self, bags: list[_Bag], schema: Mapping[str, Any], path: str, top: bool) -> None:
        """``unevaluatedProperties``: exact where every member that may be there is named by what applies
        without a choice."""
        value = schema["unevaluatedProperties"]
        if value is True:
            return
        for bag in bags:
            if value is False and top and self.alone and self.plain(schema, 0):
                bag.sealed = True
            else:
                why = "a grammar cannot know which members another keyword has judged"
                bag.told.append(Weakened(path, "unevaluatedProperties", why))

    def plain(self, schema: Any, depth: int) -> bool:
        """Whether a schema judges members by their names alone."""
        if not isinstance(schema, Mapping):
            return schema is not False
        if depth > 20 or _CHOOSING & schema.keys() or (depth and "unevaluatedProperties" in schema):
            return False
        parts = [*schema.get("allOf", ())]
        if "$ref" in schema:
            try:
                parts.append(self.document.resolve(schema["$ref"], schema))
            except Unresolved:
                return False
        return all(self.plain(part, depth + 1) for part in parts)

    def negated(self, bags: list[_Bag], schema: Any, path: str) -> list[_Bag]:
        """Without what ``schema`` describes, where that can be said."""
        if schema is True or schema == {}:
            return []
        if schema is False:
            return bags
        if not isinstance(schema, Mapping):
            raise SchemaError(f"expected a schema (an object, true or false), found {_shown(schema)}", path)
        said = set(schema) - _ANNOTATIONS
        if said == {"type"}:
            kinds = _types(schema["type"], path)
            if "integer" not in kinds or all("number" not in bag.types for bag in bags):
                for bag in bags:
                    bag.types = bag.types - kinds - ({"integer"} if "number" in kinds else set())
                return [bag for bag in bags if bag.types]
        for bag in bags:
            if bag.values is None:
                bag.told.append(Weakened(path.removesuffix(".not"), "not", "a grammar cannot take away"))
        return bags

    def gather(self, bag: _Bag, schema: Mapping[str, Any], path: str) -> None:
        """Merges one schema object's own keywords into the bag."""
        bag.path = path
        for keyword, value in schema.items():
            method = _KEYWORDS.get(keyword)
            if method is not None:
                method(self, bag, value, path, schema)
            elif keyword not in _ANNOTATIONS and keyword in _UNSAID:
                bag.told.append(Weakened(path, keyword, _UNSAID[keyword]))
        if _SHAPES & schema.keys():
            properties = schema.get("properties", {})
            _expect(properties, Mapping, "an object of schemas", path, "properties")
            patterns = schema.get("patternProperties", {})
            _expect(patterns, Mapping, "an object of schemas", path, "patternProperties")
            for expression in patterns:
                self.regex(expression, path, "patternProperties", check_only=True)
            bag.shapes.append(
                _Shape(
                    properties,
                    "properties" in schema,
                    tuple(patterns.items()),
                    schema.get("additionalProperties"),
                    path,
                )
            )
        if _ITEMS & schema.keys():
            prefix, rest = schema.get("prefixItems", []), schema.get("items")
            if isinstance(rest, (list, tuple)):
                prefix, rest = rest, schema.get("additionalItems")
            if not isinstance(prefix, (list, tuple)):
                raise SchemaError(
                    f"expected a list of schemas, found {_shown(prefix)}", f"{path}.prefixItems"
                )
            if rest is not None and not isinstance(rest, (bool, Mapping)):
                raise SchemaError(
                    f"expected a schema (an object, true or false), found {_shown(rest)}", f"{path}.items"
                )
            if rest is None and prefix and not self.open_objects:
                rest = False
            bag.prefix.append((list(prefix), True if rest is None else rest, path))

    def tell(self, path: str, keyword: str, why: str) -> None:
        self.weakened[Weakened(path, keyword, why)] = None

    def resolve(self, ref: Any, schema: Any, path: str, keyword: str) -> Any:
        """The schema that a reference in ``schema`` names."""
        try:
            return self.document.resolve(ref, schema, keyword)
        except Unresolved as reason:
            if not reason.outside:
                raise SchemaError(reason.why, f"{path}.{keyword}") from None
            self.tell(path, keyword, reason.why)
            return True

    def regex(self, expression: Any, path: str, keyword: str, check_only: bool = False) -> Ir | None:
        """The strings that the regular expression finds a match in; None, and reported, where a grammar
        cannot say it."""
        if not isinstance(expression, str):
            raise SchemaError(
                f"expected a regular expression, found {_shown(expression)}", f"{path}.{keyword}"
            )
        try:
            return read_regex(expression)
        except Unsupported as reason:
            if not check_only:
                self.tell(path, keyword, f"the regular expression has {reason}")
            return None
        except ValueError as error:
            raise SchemaError(f"invalid regular expression: {error}", f"{path}.{keyword}") from None

    # one type

    def of_type(self, kind: str, bag: _Bag, raw: RawText | None) -> Ir:
        for weak in bag.told:
            if _APPLIES.get(weak.keyword, kind) == kind:
                self.weakened[weak] = None
        if kind == "string":
            return self.string(bag, raw)
        if kind in ("number", "integer"):
            return self.number(bag, kind == "integer")
        if kind == "object":
            return self.object(bag)
        if kind == "array":
            return self.array(bag)
        return raw.word(self.simple[kind]) if raw else self.simple[kind]

    def parts(self, bag: _Bag) -> tuple[Part, ...]:
        """The patterns and formats of a string."""
        found: list[Part] = []
        for expression, path, keyword in bag.patterns:
            node = self.regex(EXPRESSIONS[expression] if keyword == "format" else expression, path, keyword)
            if node is not None:
                found.append(Part(node))
        return tuple(found)

    def string(self, bag: _Bag, raw: RawText | None) -> Ir:
        if bag.most is not None and bag.most < bag.least:
            return NOTHING
        parts = self.parts(bag)
        least, most = bag.least, bag.most
        if raw and (parts or least or most is not None):
            parts += self.no_other(bag, raw)
        stops = (raw or self.syntax).stops
        if parts:
            try:
                if build(Lang(parts, least, most, stops=stops), _MOST_STATES) is None:
                    return NOTHING
            except TooLarge:
                _, path, keyword = bag.patterns[-1]
                if least or most is not None:
                    self.tell(
                        path,
                        "maxLength" if most is not None else "minLength",
                        "beside a pattern it takes too many states",
                    )
                    least, most = 0, None
                parts = self.few(parts, stops, path, keyword)
        elif stops and not self.counted:
            # One state for each character of a stop, at each count: each costs some engines 12 ms.
            states = 1 + sum(map(len, stops))
            why = "text up to a marker is not counted: it takes too many states"
            if most is not None and most * states > _MOST_COUNTED:
                self.tell(bag.path, "maxLength", why)
                most = None
            if least * states > _MOST_COUNTED:
                self.tell(bag.path, "minLength", why)
                least = 0
        return raw.write(parts, least, most) if raw else self.syntax.string(parts, least, most, self.nested)

    def no_other(self, bag: _Bag, raw: RawText) -> tuple[Part, ...]:
        """What keeps raw text from being read as another type."""
        found: list[Part] = []
        if "number" in raw.types or "integer" in raw.types:
            found.append(Part(seq(_SPACES, NUMBER if "number" in raw.types else INTEGER, _SPACES), False))
        words = [word for kind in ("boolean", "null") if kind in raw.types for word in raw.words[kind]]
        if words:
            found.append(Part(seq(_SPACES, texts(words), _SPACES), False))
        opening = "".join(char for kind, char in (("object", "{"), ("array", "[")) if kind in raw.types)
        if opening:
            found.append(Part(seq(_SPACES, Chars(charset(opening)), Rep(Chars(ANY), 0, None)), False))
            self.tell(
                bag.path,
                "type",
                f"no string that begins with {' or '.join(opening)} is generated: it may be read as another type",
            )
        return tuple(found)

    def few(
        self, parts: tuple[Part, ...], stops: tuple[str, ...], path: str, keyword: str
    ) -> tuple[Part, ...]:
        """As many of the constraints as an automaton can bear."""
        try:
            build(Lang(parts, stops=stops), _MOST_STATES)
        except TooLarge:
            self.tell(path, keyword, "the regular expression takes too many states")
            return self.few(parts[:-1], stops, path, keyword)
        return parts

    def number(self, bag: _Bag, integer: bool) -> Ir:
        low, high = bag.low, bag.high
        step = Decimal(0)
        for divisor, path in bag.divisors:
            if divisor == divisor.to_integral_value() and divisor <= _MOST_DIVISOR:
                joint = _lcm(int(step) or 1, int(divisor))
                if joint <= _MOST_DIVISOR and (step == 0 or step == step.to_integral_value()):
                    step, integer = Decimal(joint), True
                    continue
            elif step == 0 and divisor in _TENTHS and not integer:
                step = divisor
                continue
            elif integer and divisor < 1 and 1 % divisor == 0:
                continue
            self.tell(path, "multipleOf", "not finite: no automaton of decimal digits says it in few states")
        if integer:
            first = None if low is None else _ceiling(low)
            last = None if high is None else -_ceiling((-high[0], high[1]))
            if first is not None and last is not None and first > last:
                return NOTHING
            if step <= 1:
                return (
                    _INTEGER
                    if first is None and last is None
                    else Shared("int", integer_range(first, last), True)
                )
            if first is not None and last is not None and (last - first) // int(step) <= 256:
                values = range(first + -first % int(step), last + 1, int(step))
                return Shared("int", texts(map(str, values)), True) if values else NOTHING
            return Shared(
                "int",
                Lang(
                    (Part(integer_range(first, last)), Part(EMPTY, divisor=int(step), bounds=(first, last)))
                ),
                True,
            )
        if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
            return NOTHING
        found: tuple[Part, ...] = ()
        if low is not None or high is not None:
            found = number_parts(
                low[0] if low else None,
                bool(low and low[1]),
                high[0] if high else None,
                bool(high and high[1]),
            )
        if step:
            places = -int(step.as_tuple().exponent)
            tail = Rep(seq(Text("."), Rep(DIGIT, 1, places), Rep(Text("0"), 0, None)), 0, 1)
            found += (Part(seq(SIGN, NATURAL, tail)),)
        if not found:
            return _NUMBER
        return Shared("num", found[0].node if len(found) == 1 else Lang(found), True)

    # arrays

    def array(self, bag: _Bag) -> Ir:
        syntax = self.syntax
        least, most = bag.least_items, bag.most_items
        size = max((len(prefix) for prefix, _, _ in bag.prefix), default=0)
        heads: list[Ir] = []
        for index in range(size):
            wheres = [
                (prefix[index], f"{path}.prefixItems[{index}]")
                if index < len(prefix)
                else (rest, f"{path}.items")
                for prefix, rest, path in bag.prefix
            ]
            heads.append(self.value(_useful(wheres), True))
        rest = self.value(_useful([(rest, f"{path}.items") for _, rest, path in bag.prefix]), True)
        for index, head in enumerate(heads):
            if never(head):
                most = index if most is None else min(most, index)
                heads = heads[:index]
                break
        else:
            if never(rest):
                most = len(heads) if most is None else min(most, len(heads))
        if most is not None and most < least:
            return NOTHING
        if most == 0:
            return seq(syntax.open_array, Text("]"))
        heads = heads[:most]
        comma = syntax.comma
        if len(heads) < (most if most is not None else len(heads) + 1):
            more = seq(comma, rest)
            tail: Ir = Rep(
                more, max(0, least - max(len(heads), 1)), None if most is None else most - max(len(heads), 1)
            )
            if not heads:
                heads = [rest]
        else:
            tail = EMPTY
        node = seq(heads[-1], tail)
        for index in range(len(heads) - 2, -1, -1):
            following = seq(comma, node)
            node = seq(heads[index], following if index + 1 < least else alt(following, EMPTY))
        full = seq(node, syntax.close_array)
        return seq(syntax.open_array, full if least else alt(full, Text("]")))

    # objects

    def object(self, bag: _Bag) -> Ir:
        syntax = self.syntax
        named: dict[str, list[Where]] = {}
        for shape in bag.shapes:
            for name in shape.properties:
                named.setdefault(name, [])
        for name in bag.required:
            named.setdefault(name, [])
        for name, _ in bag.dependent:
            named.setdefault(name, [])
        members: list[Member] = []
        for name in named:
            if not all(self.valid(name, schema, 0) for schema, _ in bag.names):
                wheres: list[Where] = [(False, "")]
            else:
                wheres = self.member(name, bag)
            node = self.value(_useful(wheres), True)
            if never(node):
                if name in bag.required:
                    return NOTHING
                continue
            members.append(Member(name, seq(syntax.key(name), node), name in bag.required))
        extra = self.extra(bag, tuple(named))
        least, most = bag.least_members, bag.most_members
        required = sum(member.required for member in members)
        if most is not None and most < max(required, least):
            return NOTHING
        if extra is None and least > len(members):
            return NOTHING
        if extra is None and most is not None and most >= len(members):
            most = None
        if extra is not None and least > required + 1:
            why = "a grammar cannot tell whether a name that the schema does not list is there twice"
            self.tell(bag.path, "minProperties", why)
        if not members and extra is not None and (least or most is not None):
            more = seq(syntax.comma, extra)
            inner = seq(
                extra, Rep(more, max(0, least - 1), None if most is None else most - 1), syntax.close_object
            )
            if most == 0:
                return seq(syntax.open_object, Text("}"))
            return seq(syntax.open_object, inner if least else alt(inner, Text("}")))
        enough: Callable[[frozenset[str]], bool] | None = None
        if least > required or bag.dependent:
            there = frozenset(member.name for member in members)
            dependent = [(name, needed) for name, needed in bag.dependent if name in there]
            if least > required or dependent:

                def there_are(names: frozenset[str], least: int = least) -> bool:
                    return len(names) >= least and all(
                        name not in names or names.issuperset(needed) for name, needed in dependent
                    )

                enough = there_are

        if extra is not None and (most is not None or least > required):
            self.tell(
                bag.shapes[-1].path if bag.shapes else "$",
                "minProperties" if most is None else "maxProperties",
                "not counted where other members are allowed",
            )
            least, most = 0, None
            enough = None if not bag.dependent else enough
        body, exact = arrange(members, syntax.comma, extra, enough, most)
        if not exact:
            keyword = (
                "maxProperties"
                if most is not None
                else "minProperties"
                if least > required
                else "dependentRequired"
            )
            self.tell(
                bag.shapes[-1].path if bag.shapes else "$", keyword, "not counted among so many members"
            )
        if not members and extra is None:
            return seq(syntax.open_object, Text("}"))
        return seq(syntax.open_object, body, syntax.close_object)

    def member(self, name: str, bag: _Bag) -> list[Where]:
        """The schemas that a member of that name must satisfy."""
        found: list[Where] = []
        for shape in bag.shapes:
            matched = False
            if name in shape.properties:
                found.append((shape.properties[name], f"{shape.path}.properties.{name}"))
                matched = True
            for expression, schema in shape.patterns:
                if _search(expression, name):
                    found.append((schema, f"{shape.path}.patternProperties.{expression}"))
                    matched = True
            if not matched and shape.extra is not None:
                found.append((shape.extra, f"{shape.path}.additionalProperties"))
        return found

    def extra(self, bag: _Bag, named: tuple[str, ...]) -> Ir | None:
        """A member of any other name; None where there is none."""
        open_ = self.open_objects or not any(shape.named for shape in bag.shapes)
        others = [
            (shape.extra, f"{shape.path}.additionalProperties")
            for shape in bag.shapes
            if shape.extra is not None
        ]
        patterns = [
            (expression, schema, f"{shape.path}.patternProperties.{expression}", shape)
            for shape in bag.shapes
            for expression, schema in shape.patterns
        ]
        if any(schema is False for schema, _ in others) and not patterns:
            return None
        base: list[Part] = [Part(texts(named), False)] if named else []
        least, most = 0, None
        for schema, path in bag.names:
            parts, least, most = self.name_parts(schema, path, least, most)
            if parts is None:
                return None
            base += parts
        regions: list[tuple[tuple[Part, ...], list[Where]]] = []
        if len(patterns) > 4:
            self.tell(patterns[0][3].path, "patternProperties", "more than four patterns")
            patterns = []
        nodes = [
            self.regex(expression, shape.path, "patternProperties") for expression, _, _, shape in patterns
        ]
        for chosen in range(2 ** len(patterns)):
            parts = list(base)
            wheres: list[Where] = []
            matched: set[int] = set()
            for index, (_, schema, path, shape) in enumerate(patterns):
                node = nodes[index]
                if node is None:
                    continue
                inside = bool(chosen >> index & 1)
                parts.append(Part(node, inside))
                if inside:
                    wheres.append((schema, path))
                    matched.add(id(shape))
            if any(chosen >> index & 1 and nodes[index] is None for index in range(len(patterns))):
                continue
            for shape in bag.shapes:
                if id(shape) not in matched and shape.extra is not None:
                    wheres.append((shape.extra, f"{shape.path}.additionalProperties"))
            if not wheres and (
                bag.sealed or (not open_ and not matched) or (patterns and not self.open_objects)
            ):
                continue
            regions.append((tuple(parts), wheres))
        options: list[Ir] = []
        for found, wheres in regions:
            node_value = self.value(_useful(wheres), True)
            if never(node_value):
                continue
            try:
                if found and build(Lang(found, least, most), _MOST_STATES) is None:
                    continue
            except TooLarge:
                self.tell(
                    bag.shapes[-1].path if bag.shapes else "$",
                    "propertyNames",
                    "the names take too many states",
                )
                found = tuple(base[:1]) if named else ()
            options.append(seq(self.syntax.any_key(found, least, most), node_value))
        return Shared("extra", alt(*options)) if options else None

    def name_parts(
        self, schema: Any, path: str, least: int, most: int | None
    ) -> tuple[list[Part] | None, int, int | None]:
        """What ``propertyNames`` asks of a name; None where no name will do."""
        bags = self.expand([_Bag(types=frozenset({"string"}))], schema, path, ())
        bags = [bag for bag in bags if "string" in bag.types]
        if not bags:
            return None, least, most
        if len(bags) > 1:
            self.tell(path, "propertyNames", "alternatives of names")
            return [], least, most
        bag = bags[0]
        if bag.values is not None:
            names = [value for value in bag.values if isinstance(value, str) and self.valid(value, schema, 0)]
            return ([Part(texts(names))] if names else None), least, most
        tops = [bound for bound in (most, bag.most) if bound is not None]
        return list(self.parts(bag)), max(least, bag.least), min(tops, default=None)

    # judging listed values

    def valid(self, value: Any, schema: Any, depth: int) -> bool:
        """Whether a listed value is valid; keywords that are not handled count as valid."""
        if isinstance(schema, bool) or not isinstance(schema, Mapping) or depth > 40:
            return schema is not False
        kind = type_of(value)
        if "type" in schema:
            kinds = _types(schema["type"], "$")
            integral = kind == "number" and float(value).is_integer()
            if kind not in kinds and not (integral and "integer" in kinds):
                return False
        if "enum" in schema and not any(_same(value, other) for other in schema["enum"]):
            return False
        if "const" in schema and not _same(value, schema["const"]):
            return False
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema and not self.valid(
                value, self.resolve(schema[keyword], schema, "$", keyword), depth + 1
            ):
                return False
        if not all(self.valid(value, option, depth + 1) for option in schema.get("allOf", ())):
            return False
        if "anyOf" in schema and not any(self.valid(value, option, depth + 1) for option in schema["anyOf"]):
            return False
        if "oneOf" in schema and sum(self.valid(value, option, depth + 1) for option in schema["oneOf"]) != 1:
            return False
        if "not" in schema and self.valid(value, schema["not"], depth + 1):
            return False
        if kind == "number":
            exact = Decimal(str(value))
            bounds = [
                ("minimum", exact.__ge__),
                ("maximum", exact.__le__),
                ("exclusiveMinimum", exact.__gt__),
                ("exclusiveMaximum", exact.__lt__),
            ]
            for keyword, test in bounds:
                bound = schema.get(keyword)
                if (
                    isinstance(bound, (int, float))
                    and not isinstance(bound, bool)
                    and not test(Decimal(str(bound)))
                ):
                    return False
            step = schema.get("multipleOf")
            return not step or exact % Decimal(str(step)) == 0
        if kind == "string":
            if "pattern" in schema and not _search(schema["pattern"], value):
                return False
            return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))
        if kind == "array":
            items = schema.get("items")
            prefix = items if isinstance(items, (list, tuple)) else schema.get("prefixItems", ())
            rest = schema.get("additionalItems") if isinstance(items, (list, tuple)) else items
            if not all(self.valid(item, part, depth + 1) for item, part in zip(value, prefix, strict=False)):
                return False
            if rest is not None and not all(
                self.valid(item, rest, depth + 1) for item in value[len(prefix) :]
            ):
                return False
            if schema.get("uniqueItems") and any(_same(a, b) for i, a in enumerate(value) for b in value[:i]):
                return False
            return bool(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)))
        if kind == "object":
            if not all(name in value for name in schema.get("required", ())):
                return False
            properties = schema.get("properties", {})
            for name, member in value.items():
                found = [properties[name]] if name in properties else []
                found += [s for e, s in schema.get("patternProperties", {}).items() if _search(e, name)]
                if not found and "additionalProperties" in schema:
                    found = [schema["additionalProperties"]]
                if not all(self.valid(member, part, depth + 1) for part in found):
                    return False
            return bool(
                schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value))
            )
        return True


# the keywords


def _expect(value: Any, kind: type | tuple[type, ...], expected: str, path: str, keyword: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise SchemaError(f"expected {expected}, found {_shown(value)}", f"{path}.{keyword}")


def _types(value: Any, path: str) -> frozenset[str]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(kind, str) for kind in listed):
        raise SchemaError(f"expected a type or a list of types, found {_shown(value)}", f"{path}.type")
    kinds = frozenset(SPELLINGS.get(kind, kind) for kind in listed)
    for kind in kinds:
        if kind not in _ALL and kind != "integer":
            raise SchemaError(
                f"expected one of {', '.join((*TYPES, 'integer'))}, found {kind!r}", f"{path}.type"
            )
    return kinds


def _on_type(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    kinds = _types(value, path)
    for kind in [value] if isinstance(value, str) else value:
        if kind in SPELLINGS:
            why = f"{kind!r} is no type of JSON: it is read as {SPELLINGS[kind]!r}"
            bag.told.append(Weakened(path, "type", why))
    if schema.get("nullable") is True:
        kinds |= {"null"}
    bag.types = _narrow(bag.types, kinds)


def _on_values(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    _expect(value, (list, tuple), "a list of values", path, "enum")
    listed = [*value, None] if schema.get("nullable") is True and "type" not in schema else list(value)
    if bag.values is None:
        unique: list[Any] = []
        strings: set[str] = set()
        for one in listed:
            if isinstance(one, str):
                if one not in strings:
                    strings.add(one)
                    unique.append(one)
            elif not any(_same(one, other) for other in unique):
                unique.append(one)
        bag.values = unique
    else:
        bag.values = [one for one in bag.values if any(_same(one, other) for other in listed)]


def _on_const(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    _on_values(self, bag, [value], path, schema)


def _decimal(value: Any, path: str, keyword: str) -> Decimal:
    _expect(value, (int, float), "a number", path, keyword)
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise SchemaError(f"expected a number, found {_shown(value)}", f"{path}.{keyword}") from None


def _bound(keyword: str, lower: bool, strict: bool) -> _Keyword:
    def gather(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
        if isinstance(value, bool) and strict:
            plain = schema.get("minimum" if lower else "maximum")
            if not value or plain is None:
                return
            value = plain
        new = (_decimal(value, path, keyword), strict)
        if lower:
            if bag.low is None or (new[0], new[1]) > (bag.low[0], bag.low[1]):
                bag.low = new
        elif bag.high is None or (-new[0], new[1]) > (-bag.high[0], bag.high[1]):
            bag.high = new

    return gather


def _on_multiple(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    step = _decimal(value, path, "multipleOf")
    if step <= 0:
        raise SchemaError(f"expected a number above 0, found {_shown(value)}", f"{path}.multipleOf")
    bag.divisors.append((step.normalize(), path))


def _count(keyword: str, attribute: str, lower: bool) -> _Keyword:
    def gather(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
        whole = (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and float(value).is_integer()
            and value >= 0
        )
        if not whole:
            raise SchemaError(
                f"expected a whole number from 0 on, found {_shown(value)}", f"{path}.{keyword}"
            )
        now = getattr(bag, attribute)
        number = int(value)
        setattr(bag, attribute, max(now, number) if lower else number if now is None else min(now, number))

    return gather


def _on_pattern(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    self.regex(value, path, "pattern", check_only=True)
    bag.patterns.append((value, path, "pattern"))


def _on_format(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    _expect(value, str, "a format's name", path, "format")
    if value in EXPRESSIONS:
        bag.patterns.append((value, path, "format"))
    elif value in UNSAID:
        bag.told.append(Weakened(path, "format", f"no grammar for {value!r}"))


def _on_required(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    if isinstance(value, bool):
        return
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise SchemaError(f"expected a list of names, found {_shown(value)}", f"{path}.required")
    bag.required.update(dict.fromkeys(value))


def _on_names(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    bag.names.append((value, f"{path}.propertyNames"))


def _on_dependent(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    _expect(value, Mapping, "an object of lists of names", path, "dependentRequired")
    for name, needed in value.items():
        if isinstance(needed, (list, tuple)):
            if needed:
                bag.dependent.append((name, tuple(needed)))
                for other in needed:
                    bag.dependent.append((other, ()))
        elif needed is not True:
            bag.told.append(
                Weakened(path, "dependencies", "a grammar cannot look back at the members before")
            )


def _on_unique(self: SchemaCompiler, bag: _Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    _expect(value, bool, "true or false", path, "uniqueItems")
    if value and schema.get("maxItems", 2) > 1:
        bag.told.append(Weakened(path, "uniqueItems", "a grammar cannot compare items"))


_Keyword = Callable[[SchemaCompiler, _Bag, Any, str, Mapping[str, Any]], None]

_KEYWORDS: dict[str, _Keyword] = {
    "type": _on_type,
    "enum": _on_values,
    "const": _on_const,
    "minimum": _bound("minimum", True, False),
    "maximum": _bound("maximum", False, False),
    "exclusiveMinimum": _bound("exclusiveMinimum", True, True),
    "exclusiveMaximum": _bound("exclusiveMaximum", False, True),
    "multipleOf": _on_multiple,
    "minLength": _count("minLength", "least", True),
    "maxLength": _count("maxLength", "most", False),
    "pattern": _on_pattern,
    "format": _on_format,
    "required": _on_required,
    "propertyNames": _on_names,
    "minProperties": _count("minProperties", "least_members", True),
    "maxProperties": _count("maxProperties", "most_members", False),
    "dependentRequired": _on_dependent,
    "dependencies": _on_dependent,
    "minItems": _count("minItems", "least_items", True),
    "maxItems": _count("maxItems", "most_items", False),
    "uniqueItems": _on_unique,
}

_UNSAID = {
    "if": "a grammar cannot decide one part of a value by another",
    "contains": "a grammar cannot count the items that satisfy a schema",
    "dependentSchemas": "a grammar cannot look back at the members before",
    "unevaluatedItems": "a grammar cannot know which items another keyword has judged",
    "contentSchema": "the inside of a string is not parsed",
}
_APPLIES = {
    "contains": "array",
    "uniqueItems": "array",
    "unevaluatedItems": "array",
    "dependentSchemas": "object",
    "dependencies": "object",
    "unevaluatedProperties": "object",
    "contentSchema": "string",
    "format": "string",
}
_ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$schema",
    }
    | {"$defs", "definitions", "$id", "id", "$anchor"}
)
_ONLY_TYPE = _ANNOTATIONS | {"type"}
_SHAPES = frozenset({"properties", "patternProperties", "additionalProperties"})
_ITEMS = frozenset({"items", "prefixItems"})
_CHOOSING = frozenset(
    {
        "anyOf",
        "oneOf",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependencies",
        "not",
        "$dynamicRef",
        "$recursiveRef",
    }
)
_TENTHS = frozenset(Decimal(1).scaleb(-places) for places in range(1, 16))
_PLAIN = _Bag()
_SPACES = Rep(Chars(charset(" \t\r\n")), 0, None)
_INTEGER = Shared("integer", INTEGER, True)
_NUMBER = Shared("number", NUMBER, True)


def _boolean(syntax: Syntax) -> Ir:
    return Alt((syntax.true, syntax.false))


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _useful(wheres: list[Where]) -> list[Where]:
    """Without schemas that say nothing."""
    found = [where for where in wheres if where[0] is not True and where[0] != {}]
    return found or [(True, "")]


def _ceiling(bound: tuple[Decimal, bool]) -> int:
    """The least integer that is above the bound, or equal where it is not strict."""
    value, strict = bound
    whole = int(value.to_integral_value(rounding="ROUND_CEILING"))
    return whole + 1 if strict and whole == value else whole


def _lcm(left: int, right: int) -> int:
    return left * right // math.gcd(left, right)


def _disjoint(bags: list[_Bag]) -> bool:
    """Whether no value can be in two of the bags, as far as types and listed values tell."""

    def apart(left: _Bag, right: _Bag) -> bool:
        if left.values is not None and right.values is not None:
            return not any(_same(a, b) for a in left.values for b in right.values)
        kinds = [
            frozenset(map(type_of, bag.values)) if bag.values is not None else bag.types
            for bag in (left, right)
        ]
        both = _narrow(kinds[0], kinds[1])
        if not both:
            return True
        if both <= {"number", "integer"}:
            pairs = ((left.low, right.high), (right.low, left.high))
            return any(
                low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])))
                for low, high in pairs
            )
        if both == {"object"}:
            return _told_apart(left, right)
        return False

    return all(apart(left, right) for i, left in enumerate(bags) for right in bags[:i])


def _told_apart(left: _Bag, right: _Bag) -> bool:
    """Whether a required member's listed values, or closed members, tell two objects apart."""

    def closed(bag: _Bag) -> set[str] | None:
        if any(shape.extra is False and not shape.patterns for shape in bag.shapes):
            return {name for shape in bag.shapes for name in shape.properties}
        return None

    def listed(bag: _Bag, name: str) -> list[Any] | None:
        for shape in bag.shapes:
            schema = shape.properties.get(name)
            if isinstance(schema, Mapping):
                if "const" in schema:
                    return [schema["const"]]
                if isinstance(schema.get("enum"), (list, tuple)):
                    return list(schema["enum"])
        return None

    for bag, other in ((left, right), (right, left)):
        names = closed(other)
        if names is not None and any(name not in names for name in bag.required):
            return True
    for name in left.required:
        if name in right.required:
            a, b = listed(left, name), listed(right, name)
            if a is not None and b is not None and not any(_same(x, y) for x in a for y in b):
                return True
    return False


def _search(expression: str, text: str) -> bool:
    """Whether a regular expression of JSON Schema finds a match in ``text``."""
    try:
        node = read_regex(expression)
        return build(Lang((Part(node), Part(Text(text)))), 20_000) is not None
    except (Unsupported, TooLarge):
        return True
