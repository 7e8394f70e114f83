"""From bags to nodes, type by type, in a value syntax."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import lcm
from typing import Any, Protocol

from ...core.schema.document import ANYTHING, TYPES, Document, is_of
from ...core.schema.keywords import KEYWORDS, NOTES, SILENT
from ..arrange import Member, arrange
from ..budget import Budget
from ..ir import (
    ANY,
    CHAIN,
    EMPTY,
    NOTHING,
    Alt,
    Chars,
    Ir,
    Lang,
    Part,
    Ref,
    Rep,
    Seq,
    Shared,
    Text,
    alt,
    charset,
    never,
    seq,
    texts,
)
from ..regular.automaton import TooLarge, build
from ..regular.numbers import DIGIT, INTEGER, NATURAL, NUMBER, SIGN, integer_range, number_parts
from ..regular.regex import Unsupported, read_regex
from ..steps import Steps, run
from ..syntaxes import RawText, Syntax
from .bags import Bag, Shape, Weakened, Where, narrow
from .constraints import UNEVALUATED
from .ends import has_end
from .equal import Equal, content
from .gather import Gatherer
from .judge import Judge, search
from .keywords import types_of

__all__ = ["Form", "SchemaCompiler"]

DEEPEST = 100
"""How many levels of objects and arrays are written. A deeper value may be any value."""
_MOST_STATES = 3_000
_MOST_DIVISOR = 200
_MOST_COUNTED = 256
"""The most states for counting the characters of text up to a marker."""
_MOST_PATTERNS = 4
_TENTHS = frozenset(Decimal(1).scaleb(-places) for places in range(1, 16))
_ONLY_TYPE = SILENT | {"type"}
_PLAIN = Bag()
_SPACES = Rep(Chars(charset(" \t\r\n")), 0, None)
_INTEGER = Shared("integer", INTEGER, True)
_NUMBER = Shared("number", NUMBER, True)

Parts = tuple[Part, ...]


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


@dataclass(frozen=True)
class _Others:
    """Members that are not listed: the constraints of their names and of their values."""

    parts: Parts
    least: int
    most: int | None
    wheres: list[Where]


class SchemaCompiler:
    """Compiles the schemas of one document to nodes in one value syntax.

    The compilers of one grammar share four arguments: ``rules`` receives the rules that recursion needs, ``weakened``
    the keywords that the grammar cannot enforce, ``budget`` is spent, and ``equal`` has the values that other tools'
    schemas made in the same syntax. ``open_objects``: members that a schema does
    not mention are generated, as JSON Schema says. ``counted``: the dialect counts the characters of text up to a
    marker. ``escapes``: it counts all characters of a long string, and not only those before the first escape.
    """

    def __init__(
        self,
        document: Document,
        syntax: Syntax,
        rules: dict[str, Ir],
        weakened: dict[Weakened, None],
        budget: Budget,
        open_objects: bool = False,
        counted: bool = False,
        escapes: bool = True,
        equal: Equal | None = None,
    ) -> None:
        self.document = document
        self.syntax = syntax
        self.rules = rules
        self.weakened = weakened
        self.budget = budget
        self.open_objects = open_objects
        self.counted = counted
        self.escapes = escapes
        self.equal = equal or Equal(rules, weakened, budget)
        self.gatherer = Gatherer(document, budget, self.report, open_objects)
        self.judge = Judge(document, budget)
        self.known: dict[tuple[int, ...], Ir] = {}
        self.alive: list[Any] = []
        """Keeps schemas alive whose id() is a key elsewhere, so that the id is not reused."""
        self.names: dict[tuple[int, ...], str] = {}
        boolean = Alt((syntax.true, syntax.false))
        scalars = {"integer": _INTEGER, "number": _NUMBER, "boolean": boolean, "null": syntax.null}
        self.simple: tuple[dict[str, Ir], dict[str, Ir]] = (
            {"string": syntax.string((), 0, None, False), **scalars},
            {"string": syntax.string((), 0, None, True), **scalars},
        )
        """The values of types without further constraints, outside and inside of objects and arrays."""

    def report(self, weak: Weakened) -> None:
        self.weakened[weak] = None

    def tell(self, path: str, keyword: str, why: str) -> None:
        self.weakened[Weakened(path, keyword, why)] = None

    def fits(self, value: Any, schemas: list[Any], path: str) -> bool:
        """Whether no schema refuses a value. Reports the keywords that would have to judge it and cannot."""
        fits, unsure = self.judge.fits(value, schemas)
        for keyword, why in unsure.items():
            self.tell(path, keyword, why)
        return fits

    # values

    def value(self, wheres: list[Where]) -> Ir:
        """The values that are valid under all of these schemas."""
        node = run(self.inner(wheres, 0, False))
        return node.node if isinstance(node, Shared) and node.hint == "v" else node

    def raw(self, wheres: list[Where], raw: RawText) -> Ir:
        """The values that are valid, as raw text: strings verbatim, other types as JSON."""
        return run(self.textual(wheres, raw, False, 0))

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
            self.tell(wheres[0][1], "type", why)
        return alt(free, *raw.apart)

    def arguments(self, wheres: list[Where], form: Form) -> list[Ir]:
        """The valid objects, one for each alternative. ``form`` says how their members are written."""
        found: list[Ir] = []
        for bag in self.gatherer.bags(wheres):
            if bag.values is not None:
                self.tell(
                    bag.path, "enum", "arguments are written one by one: listed objects are not compared"
                )
            if "object" in bag.types:
                self.unseal(bag, wheres)
                self.told(bag, "object")
                found.append(run(self.object(bag, form, 0)))
        return [node for node in found if not never(node)]

    def inner(self, wheres: list[Where], depth: int, nested: bool = True) -> Steps[Ir]:
        """The values that are valid under all of these schemas. ``nested``: inside of an object or array. ``depth``:
        how many objects and arrays are around the value."""
        found = self.ready(wheres, nested)
        if found is not None:
            return found
        key = _key(wheres, nested)
        name = self.names.get(key)
        if name is not None:
            self.rules.setdefault(name, EMPTY)
            return Ref(name)
        said = content(wheres[0][0]) if depth == 1 and len(wheres) == 1 else None  # an argument of a call
        equal = (nested, said)
        if said is not None:
            found = self.equal.get(equal)
            if found is not None:
                return found
        made = self.equal.watch(equal)
        over = self.budget.over() or ("" if depth < DEEPEST else "depth")
        if over:
            why = (
                f"deeper than {DEEPEST} levels, any value is generated"
                if over == "depth"
                else f"the grammar is past {over}: any value is generated"
            )
            self.tell(wheres[0][1], "*", why)
            return self.anything()
        self.alive.extend(schema for schema, _ in wheres)
        self.names[key] = name = f"{self.syntax.name[:1]}-{len(self.rules)}-{len(self.alive)}"
        before = len(self.known)
        raw = self.syntax.raw(self.types(wheres))
        node: Ir = yield (
            self.choose(wheres, None, nested, depth)
            if raw is None
            else self.textual(wheres, raw, nested, depth)
        )
        del self.names[key]
        if name in self.rules:
            self.rules[name] = node
            if has_end(name, self.rules, self.names.values()):
                node = Ref(name)
            else:  # nor do the values in it that refer to it: they are written again when they are met again
                node = NOTHING
                for inner in list(self.known)[before:]:
                    del self.known[inner]
        elif isinstance(node, Seq) or (isinstance(node, Alt) and not all(map(_short, node.options))):
            node = Shared("v", node)
        self.known[key] = node
        return node if said is None else made(node)

    def types(self, wheres: list[Where]) -> frozenset[str]:
        """The types of the values that are valid under all of these schemas, as the parser reads them."""
        found = ANYTHING
        for schema, _ in wheres:
            found = narrow(found, self.document.types(schema))
        return found

    def ready(self, wheres: list[Where], nested: bool) -> Ir | None:
        """The values that are valid under all of these schemas, if they are simple or already written."""
        if len(wheres) == 1:
            schema = wheres[0][0]
            if schema is True or schema == {}:
                return self.anything()
            simple = self.of_type_alone(schema)
            if simple is not None:
                return self.simple[nested][simple]
        return self.known.get(_key(wheres, nested))

    def of_type_alone(self, schema: Any) -> str | None:
        """The type, if a schema says nothing else and the type is neither an object nor an array."""
        if type(schema) is dict:
            kind = schema.get("type")
            if type(kind) is str and kind in self.simple[0] and _ONLY_TYPE.issuperset(schema):
                return kind
        return None

    def anything(self) -> Ir:
        """Any value."""
        name = f"{self.syntax.name}-value"
        if name not in self.rules:
            syntax, ref = self.syntax, Ref(name)
            self.rules[name] = EMPTY
            raw = syntax.raw(ANYTHING)
            if raw is not None:  # members of any name cannot be written
                self.rules[name] = alt(raw.write((), 0, None), Rep(syntax.item(ref), 1, None))
                return ref
            member = syntax.other((), 0, None, ref)
            members = seq(member, Rep(seq(syntax.comma, member), 0, None))
            items = seq(ref, Rep(seq(syntax.comma, ref), 0, None))
            self.rules[f"{self.syntax.name}-object"] = seq(
                syntax.open_object, alt(seq(members, syntax.close_object), syntax.no_members)
            )
            self.rules[f"{self.syntax.name}-array"] = seq(
                syntax.open_array, alt(seq(items, syntax.close_array), syntax.no_items)
            )
            self.rules[name] = alt(
                Ref(f"{self.syntax.name}-object"),
                Ref(f"{self.syntax.name}-array"),
                *(self.simple[0][kind] for kind in ("string", "number", "boolean", "null")),
            )
        return Ref(name)

    def choose(self, wheres: list[Where], raw: RawText | None, nested: bool, depth: int) -> Steps[Ir]:
        """The alternatives of a value. ``raw``: how its strings are written, if not in the syntax's own way."""
        simple = self.of_type_alone(wheres[0][0]) if len(wheres) == 1 else None
        if simple is not None:
            node: Ir = yield self.of_type(simple, _PLAIN, raw, nested, depth)
            return node
        bags = self.gatherer.bags(wheres)
        options: list[Ir] = []
        listed: dict[Any, Any] = {}
        for bag in bags:
            self.unseal(bag, wheres)
            if bag.values is not None:
                listed.update(bag.values)
        if listed:
            options += self.values(listed, bags[0].path, wheres, raw)
        for bag in bags:
            if bag.values is not None:
                continue
            if raw is None and not bag.path:
                return self.anything()
            kinds = bag.types if raw is None else self.meant(bag, raw)
            for kind in (*TYPES, "integer"):
                if kind in kinds:
                    made: Ir = yield self.of_type(kind, bag, raw, nested, depth)
                    options.append(made)
                    if raw is not None and raw.marked and kind in ("object", "array"):
                        raw.apart += made.options if isinstance(made, Alt) else (made,)
        return alt(*options)

    def unseal(self, bag: Bag, wheres: list[Where]) -> None:
        """Keeps ``unevaluatedProperties`` only where it is exact: if its schema is the only one that applies."""
        for schema, path in bag.sealed:
            if len(wheres) > 1 or schema is not wheres[0][0]:
                bag.told.append(Weakened(path, "unevaluatedProperties", UNEVALUATED))
                bag.sealed = []

    def meant(self, bag: Bag, raw: RawText) -> frozenset[str]:
        """The types that the reader of a raw text may take its value for."""
        kinds = narrow(bag.types, raw.types)
        if kinds != bag.types and not raw.said:
            meant = " or ".join(sorted(raw.types))
            why = f"no type is given, and the other keywords mean {meant}: no other is generated"
            self.tell(bag.path, "type", why)
        return kinds

    def values(
        self, listed: Mapping[Any, Any], path: str, wheres: list[Where], raw: RawText | None
    ) -> list[Ir]:
        """The listed values that all constraints allow."""
        size = sum(len(value) + 6 if isinstance(value, str) else 12 for value in listed.values())
        if size > self.budget.size:
            self.tell(path, "*", "the grammar would be past max_size: any value is generated")
            return [raw.write((), 0, None) if raw else self.anything()]
        self.budget.size -= size
        found: list[Ir] = []
        plain: list[str] = []
        for value in listed.values():
            if not self.fits(value, [schema for schema, _ in wheres], path):
                continue
            if raw is not None and raw.said and not is_of(value, raw.types):
                continue
            if isinstance(value, str) and raw is not None:
                if raw.may(value) and self.reads_back(value, path, wheres, raw):
                    plain.append(raw.spelt(value))
            else:
                literal = self.syntax.literal(value)
                found.append(raw.word(literal) if raw else literal)
        if plain and raw is not None:
            found.append(raw.write((Part(texts(plain)),), 0, None))
        return found

    def reads_back(self, text: str, path: str, wheres: list[Where], raw: RawText) -> bool:
        """Whether a listed text, written as raw text, is read as itself or as another valid value."""
        spelt = raw.spelt(text)
        if any(stop in spelt for stop in raw.stops):
            self.tell(path, "enum", f"{text!r} holds what ends a value: it is not generated")
            return False
        read = raw.read(spelt)
        if read == text or self.fits(read, [schema for schema, _ in wheres], path):
            return True
        self.tell(path, "enum", f"{text!r} would be read as no string: it is not generated")
        return False

    # one type

    def told(self, bag: Bag, kind: str) -> None:
        """Reports the weakened keywords of a type that is written."""
        for weak in bag.told:
            if ("number" if kind == "integer" else kind) in types_of(weak.keyword):
                self.weakened[weak] = None

    def of_type(self, kind: str, bag: Bag, raw: RawText | None, nested: bool, depth: int) -> Steps[Ir]:
        self.told(bag, kind)
        if kind == "string":
            return self.string(bag, raw, nested)
        if kind in ("number", "integer"):
            return self.number(bag, kind == "integer")
        if kind == "object":
            node: Ir = yield self.object(bag, _InSyntax(self), depth)
            return node
        if kind == "array":
            node = yield self.array(bag, depth)
            return node
        return raw.word(self.simple[0][kind]) if raw else self.simple[0][kind]

    # strings

    def regex(self, expression: str, path: str, keyword: str) -> Ir | None:
        """The strings in which the regular expression finds a match. If a grammar cannot say them, reports it and
        returns None."""
        try:
            return read_regex(expression)
        except Unsupported as reason:
            self.tell(path, keyword, f"the regular expression has {reason}")
            return None

    def parts(self, bag: Bag) -> Parts:
        """The patterns and formats of a string."""
        found: list[Part] = []
        for expression, path, keyword in bag.patterns:
            node = self.regex(expression, path, keyword)
            if node is not None:
                found.append(Part(node))
        return tuple(found)

    def string(self, bag: Bag, raw: RawText | None, nested: bool) -> Ir:
        if bag.most is not None and bag.most < bag.least:
            return NOTHING
        parts = self.parts(bag)
        least, most = bag.least, bag.most
        if raw and (parts or least or most is not None):
            parts += self.no_other(bag, raw)
        if raw:
            said = parts or least or most is not None
            parts = (raw.verbatim if said else raw.only) + parts
            if said and raw.escapes:
                spelt = ", ".join(repr(char) for char, _ in raw.escapes)
                self.tell(
                    bag.path, "type", f"no string with {spelt} is generated: it is spelt in another way"
                )
        stops = (raw or self.syntax).stops
        if parts:
            size = self.states(Lang(parts, least, most, stops=stops))
            if size == 0:
                return NOTHING
            if size is None:
                _, path, keyword = bag.patterns[-1] if bag.patterns else ("", bag.path, "maxLength")
                if least or most is not None:
                    self.tell(
                        path,
                        "maxLength" if most is not None else "minLength",
                        "beside a pattern it takes too many states",
                    )
                    least, most = 0, None
                parts = self.few(parts, stops, path, keyword)
        elif stops and not self.counted:
            # Each count has one state for each character of a stop. A state costs some engines 12 ms.
            states = 1 + sum(map(len, stops))
            why = "text up to a marker is not counted: it takes too many states"
            if most is not None and most * states > _MOST_COUNTED:
                self.tell(bag.path, "maxLength", why)
                most = None
            if least * states > _MOST_COUNTED:
                self.tell(bag.path, "minLength", why)
                least = 0
        elif not raw and not self.escapes and (least if most is None else most) > CHAIN:
            why = "characters are counted up to the first escape"
            if most is not None:
                self.tell(bag.path, "maxLength", why)
            if least:
                self.tell(bag.path, "minLength", why)
        return raw.write(parts, least, most) if raw else self.syntax.string(parts, least, most, nested)

    def no_other(self, bag: Bag, raw: RawText) -> Parts:
        """The constraints that keep raw text from being read as another type."""
        found: list[Part] = []
        if "number" in raw.types or "integer" in raw.types:
            number = NUMBER if "number" in raw.types else INTEGER
            found.append(Part(seq(_SPACES, number, _SPACES), False))
        words = [word for kind in ("boolean", "null") if kind in raw.types for word in raw.words[kind]]
        if words:
            found.append(Part(seq(_SPACES, texts(words), _SPACES), False))
        opening = "".join(char for kind, char in (("object", "{"), ("array", "[")) if kind in raw.types)
        if opening:
            found.append(Part(seq(_SPACES, Chars(charset(opening)), Rep(Chars(ANY), 0, None)), False))
            begins = " or ".join(opening)
            why = f"no string that begins with {begins} is generated: it may be read as another type"
            self.tell(bag.path, "type", why)
        return tuple(found)

    def few(self, parts: Parts, stops: tuple[str, ...], path: str, keyword: str) -> Parts:
        """As many of the constraints as fit into an automaton of limited size."""
        while parts and self.states(Lang(parts, stops=stops)) is None:
            self.tell(path, keyword, "the regular expression takes too many states")
            parts = parts[:-1]
        return parts

    def states(self, lang: Lang) -> int | None:
        """How many states the automaton of a language has: 0 if the language is empty, None if there are too many."""
        if self.budget.over():
            return None
        try:
            found = build(lang, _MOST_STATES, self.budget)
        except TooLarge:
            return None
        if found is None:
            return 0
        self.budget.size -= 24 * len(found.edges)
        return len(found.edges)

    # numbers

    def number(self, bag: Bag, integer: bool) -> Ir:
        step, integer = self.step(bag, integer)
        if integer:
            return _integer_node(bag, int(step))
        low, high = bag.low, bag.high
        if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
            return NOTHING
        found: Parts = ()
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

    def step(self, bag: Bag, integer: bool) -> tuple[Decimal, bool]:
        """The number that divides all values (0 if there is no such number), and whether the values are integers."""
        step = Decimal(0)
        for divisor, path in bag.divisors:
            if divisor == divisor.to_integral_value() and divisor <= _MOST_DIVISOR:
                joint = lcm(int(step) or 1, int(divisor))
                if joint <= _MOST_DIVISOR and (step == 0 or step == step.to_integral_value()):
                    step, integer = Decimal(joint), True
                    continue
            elif step == 0 and divisor in _TENTHS and not integer:
                step = divisor
                continue
            elif integer and divisor < 1 and divisor.is_normal() and _divides_one(divisor):
                continue
            self.tell(path, "multipleOf", "not finite: no automaton of decimal digits says it in few states")
        return step, integer

    # arrays

    def array(self, bag: Bag, depth: int) -> Steps[Ir]:
        syntax = self.syntax
        least, most = bag.least_items, bag.most_items
        size = max((len(prefix) for prefix, _, _ in bag.prefix), default=0)
        heads: list[Ir] = []
        for index in range(size if most is None else min(size, most)):
            wheres = [
                (prefix[index], f"{path}.prefixItems[{index}]")
                if index < len(prefix)
                else (rest, f"{path}.items")
                for prefix, rest, path in bag.prefix
            ]
            head = syntax.item((yield self.inner(_useful(wheres), depth + 1)))
            if never(head):
                most = index
                break
            heads.append(head)
        rest_wheres = _useful([(rest, f"{path}.items") for _, rest, path in bag.prefix])
        rest = syntax.item((yield self.inner(rest_wheres, depth + 1)))
        if never(rest):
            most = len(heads) if most is None else min(most, len(heads))
        if most is not None and most < least:
            return NOTHING
        if most == 0:
            return seq(syntax.open_array, syntax.no_items)
        full = seq(self.items(heads, rest, least, most), syntax.close_array)
        return seq(syntax.open_array, full if least else alt(full, syntax.no_items))

    def items(self, heads: list[Ir], rest: Ir, least: int, most: int | None) -> Ir:
        """One item or more: ``heads``, then ``rest``; ``least`` to ``most`` items together."""
        comma = self.syntax.comma
        tail: Ir = EMPTY
        if most is None or len(heads) < most:
            heads = heads or [rest]
            over = None if most is None else most - len(heads)
            tail = Rep(seq(comma, rest), max(0, least - len(heads)), over)
        must = max(1, min(least, len(heads)))
        for index in range(len(heads) - 1, must - 1, -1):
            more = seq(comma, heads[index], tail)
            tail = alt(more if len(heads) <= _MOST_PATTERNS else Shared("items", more), EMPTY)
        found: list[Ir] = [heads[0]]
        for head in heads[1:must]:
            found += [comma, head]
        return seq(*found, tail)

    # objects

    def object(self, bag: Bag, form: Form, depth: int) -> Steps[Ir]:
        """The objects of a bag."""
        named = dict.fromkeys(
            [
                *(name for shape in bag.shapes for name in shape.properties),
                *bag.required,
                *(name for name, _ in bag.dependent),
                *bag.maybe,
            ]
        )
        members: list[Member] = []
        for name in named:
            made = form.member(name, self.member(name, bag), name in bag.required, depth + 1)
            node: Ir = made if isinstance(made, Ir) else (yield made)
            if never(node):
                if name in bag.required:
                    return NOTHING
                continue
            self.budget.size -= 2 * len(name) + 40
            members.append(Member(name, node, name in bag.required))
        options: list[Ir] = []
        for others in self.others(bag, named):
            made = form.other(others.parts, others.least, others.most, others.wheres, depth + 1)
            node = made if isinstance(made, Ir) else (yield made)
            if not never(node):
                options.append(node)
        extra = Shared("extra", alt(*options)) if options else None
        return self.arranged(bag, members, extra, form)

    def member(self, name: str, bag: Bag) -> list[Where]:
        """The schemas that a member of that name must satisfy."""
        if not self.fits(name, [schema for schema, _ in bag.names], bag.path):
            return [(False, "")]
        found: list[Where] = []
        known = False
        for shape in bag.shapes:
            matched = False
            if name in shape.properties:
                found.append((shape.properties[name], f"{shape.path}.properties.{name}"))
                matched = known = True
            for expression, schema in shape.patterns:
                matches = search(expression, name)
                if matches:
                    found.append((schema, f"{shape.path}.patternProperties.{expression}"))
                matched = matched or matches is not False  # unknown: neither schema is sure to apply
            if not matched and shape.extra is not None:
                found.append((shape.extra, f"{shape.path}.additionalProperties"))
        if not known and name in bag.maybe and not self.open_objects:  # open, it may have any value
            found.append(({"anyOf": [schema for schema, _ in bag.maybe[name]]}, bag.maybe[name][0][1]))
        return _useful(found)

    def others(self, bag: Bag, named: Mapping[str, None]) -> list[_Others]:
        """The members with other names, by the patterns that their names match."""
        patterns = [
            (expression, schema, shape) for shape in bag.shapes for expression, schema in shape.patterns
        ]
        if any(shape.extra is False for shape in bag.shapes) and not patterns:
            return []
        base = [Part(texts(named), False)] if named else []
        least, most = 0, None
        for schema, path in bag.names:
            parts, least, most = self.name_parts(schema, path, least, most)
            if parts is None:
                return []
            base += parts
        found: list[_Others] = []
        for parts, wheres in self.regions(bag, patterns):
            every = (*base, *parts)
            if every:
                size = self.states(Lang(every, least, most))
                if size == 0:
                    continue
                if size is None:
                    where = bag.shapes[-1].path if bag.shapes else bag.path
                    self.tell(where, "propertyNames", "the names take too many states: any name is generated")
                    every = ()
            found.append(_Others(every, least, most, _useful(wheres)))
        return found

    def regions(
        self, bag: Bag, patterns: list[tuple[str, Any, Shape]]
    ) -> list[tuple[list[Part], list[Where]]]:
        """Groups of names that match the same patterns, each with the schemas of its members."""
        said: list[tuple[Ir, Where, Shape]] = []
        found: list[tuple[list[Part], list[Where]]] = []
        for expression, schema, shape in patterns:
            where = (schema, f"{shape.path}.patternProperties.{expression}")
            node = self.regex(expression, shape.path, "patternProperties")
            if len(said) == _MOST_PATTERNS:
                self.tell(shape.path, "patternProperties", f"more than {_MOST_PATTERNS} patterns")
                node = None
            if node is not None:
                said.append((node, where, shape))
            elif schema is not False:  # which names match is unknown: any may have such a value
                found.append(([], [where]))
        open_ = self.open_objects or not (patterns or any(shape.named for shape in bag.shapes))
        for chosen in range(2 ** len(said)):
            parts: list[Part] = []
            wheres: list[Where] = []
            matched: set[int] = set()
            for index, (node, where, shape) in enumerate(said):
                inside = bool(chosen >> index & 1)
                parts.append(Part(node, inside))
                if inside:
                    wheres.append(where)
                    matched.add(id(shape))
            for shape in bag.shapes:
                if id(shape) not in matched and shape.extra is not None:
                    wheres.append((shape.extra, f"{shape.path}.additionalProperties"))
            if wheres or (open_ and not bag.sealed):
                found.append((parts, wheres))
        return found

    def name_parts(
        self, schema: Any, path: str, least: int, most: int | None
    ) -> tuple[list[Part] | None, int, int | None]:
        """The constraints of ``propertyNames`` on a name; None if no name is valid."""
        bags = [bag for bag in self.gatherer.bags([(schema, path)]) if "string" in bag.types]
        if not bags:
            return None, least, most
        if len(bags) > 1:
            self.tell(path, "propertyNames", "alternatives of names")
            return [], least, most
        bag = bags[0]
        if bag.values is not None:
            listed = [value for value in bag.values.values() if isinstance(value, str)]
            names = [value for value in listed if self.fits(value, [schema], path)]
            return ([Part(texts(names))] if names else None), least, most
        tops = [bound for bound in (most, bag.most) if bound is not None]
        return list(self.parts(bag)), max(least, bag.least), min(tops, default=None)

    def arranged(self, bag: Bag, members: list[Member], extra: Ir | None, form: Form) -> Ir:
        """An object of these members, within the limits of their number."""
        least, most = bag.least_members, bag.most_members
        required = sum(member.required for member in members)
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
            return self.of_others(extra, least, most, bag, form)
        if extra is not None and (most is not None or least > required):
            keyword = "minProperties" if most is None else "maxProperties"
            self.tell(
                bag.path, keyword, "not counted where other members are allowed (additional_properties)"
            )
            least, most = 0, None
        enough = _enough(bag, members, least if least > required else 0)
        body, exact = arrange(members, form.separator, extra, enough, most)
        if not exact:
            keyword = (
                "maxProperties"
                if most is not None
                else "minProperties"
                if least > required
                else "dependentRequired"
            )
            self.tell(bag.path, keyword, "not counted among so many members")
        return form.whole(body)

    def of_others(self, extra: Ir, least: int, most: int | None, bag: Bag, form: Form) -> Ir:
        """An object of ``least`` to ``most`` members of any name."""
        if least > 1:
            why = "a grammar cannot tell whether a name that the schema does not list is there twice"
            self.tell(bag.path, "minProperties", why)
        if most == 0:
            return form.whole(EMPTY)
        over = None if most is None else most - 1
        some = seq(extra, Rep(seq(form.separator, extra), max(0, least - 1), over))
        return form.whole(some if least else Rep(some, 0, 1))


class _InSyntax:
    """Members as the value syntax writes them."""

    def __init__(self, compiler: SchemaCompiler) -> None:
        self.compiler = compiler
        self.syntax = compiler.syntax
        self.separator = self.syntax.comma

    def member(self, name: str, wheres: list[Where], required: bool, depth: int) -> Ir | Steps[Ir]:
        node = self.compiler.ready(wheres, True)
        if node is None:
            return self._member(name, wheres, depth)
        return self.named(name, node)

    def _member(self, name: str, wheres: list[Where], depth: int) -> Steps[Ir]:
        node = yield self.compiler.inner(wheres, depth)
        return self.named(name, node)

    def named(self, name: str, node: Ir) -> Ir:
        return node if never(node) else self.syntax.member(name, node)

    def other(self, parts: Parts, least: int, most: int | None, wheres: list[Where], depth: int) -> Steps[Ir]:
        node = yield self.compiler.inner(wheres, depth)
        made: Ir = node if never(node) else self.syntax.other(parts, least, most, node)
        if never(made) and not never(node) and wheres:
            why = (
                "a name that the schema does not list cannot be written twice: such members are not generated"
            )
            self.compiler.tell(wheres[0][1], "additionalProperties", why)
        return made

    def whole(self, body: Ir) -> Ir:
        syntax = self.syntax
        if body is EMPTY:
            return seq(syntax.open_object, syntax.no_members)
        return seq(syntax.open_object, body, syntax.close_object)


def _key(wheres: list[Where], nested: bool) -> tuple[int, ...]:
    if len(wheres) == 1:
        return (int(nested), id(wheres[0][0]))
    return (int(nested), *sorted({id(schema) for schema, _ in wheres}))


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


def _short(node: Ir) -> bool:
    return isinstance(node, (Text, Shared))


def _useful(wheres: list[Where]) -> list[Where]:
    """The schemas without those that say nothing."""
    found = [where for where in wheres if where[0] is not True and where[0] != {}]
    return found or [(True, "")]


def _enough(bag: Bag, members: list[Member], least: int) -> Callable[[frozenset[str]], bool] | None:
    """A test of the names of an object's members; None if it would always hold."""
    there = frozenset(member.name for member in members)
    dependent = [(name, needed) for name, needed in bag.dependent if name in there and needed]
    if not least and not dependent:
        return None
    return lambda names: (
        len(names) >= least
        and all(name not in names or names.issuperset(needed) for name, needed in dependent)
    )


def _integer_node(bag: Bag, step: int) -> Ir:
    first = None if bag.low is None else _ceiling(bag.low)
    last = None if bag.high is None else -_ceiling((-bag.high[0], bag.high[1]))
    if first is not None and last is not None and first > last:
        return NOTHING
    if step <= 1:
        if first is None and last is None:
            return _INTEGER
        return Shared("int", integer_range(first, last), True)
    if first is not None and last is not None and (last - first) // step <= 256:
        values = range(first + -first % step, last + 1, step)
        return Shared("int", texts(map(str, values)), True) if values else NOTHING
    divided = Part(EMPTY, divisor=step, bounds=(first, last))
    return Shared("int", Lang((Part(integer_range(first, last)), divided)), True)


def _ceiling(bound: tuple[Decimal, bool]) -> int:
    """The least integer above the bound; the bound itself counts too if it is not strict."""
    value, strict = bound
    whole = int(value.to_integral_value(rounding="ROUND_CEILING"))
    return whole + 1 if strict and whole == value else whole


def _divides_one(divisor: Decimal) -> bool:
    top, bottom = divisor.as_integer_ratio()
    return bottom % top == 0
