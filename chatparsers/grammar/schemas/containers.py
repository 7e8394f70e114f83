"""Objects and arrays: their members, listed and others, in the orders and numbers that a grammar can say; their items.

An object's members are written as its form says: as the value syntax has them, or as a format writes the arguments of a
call one by one. The members that no schema lists are written by groups, one for each set of patterns that their names
match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..arrange import Member, arrange
from ..ir import EMPTY, NOTHING, Ir, Lang, Part, Rep, Shared, alt, never, seq, texts
from ..steps import Steps
from ..syntaxes import Syntax
from .cases import Case, Located, Shape, useful
from .judge import Judge
from .scalars import regex, string_parts
from .written import Output

_MOST_PATTERNS = 4
_SHORT = 4
"""Up to so many items at the beginning, each is written in its place."""


class Compiler(Protocol):
    """What the writers of values ask the compiler of their schemas."""

    syntax: Syntax
    output: Output
    judge: Judge

    def inner(self, schemas: list[Located], depth: int) -> Ir | Steps[Ir]:
        """The values under these schemas, below so many objects and arrays."""
        ...


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


TWICE = "a name that the schema does not list cannot be written twice: such members are not generated"


# objects


def objects(case: Case, form: Form, compiler: Compiler, depth: int) -> Steps[Ir]:
    """The objects of a case. ``form`` says how their members are written."""
    output = compiler.output
    named = dict.fromkeys(
        [
            *(name for shape in case.shapes for name in shape.properties),
            *case.required,
            *(name for name, _, _ in case.dependent),
            *case.maybe,
        ]
    )
    members: list[Member] = []
    for name in named:
        node: Ir = yield form.member(name, _schemas(name, case, compiler), name in case.required, depth + 1)
        if never(node):
            if name in case.required:
                return NOTHING
            continue
        output.budget.size -= 2 * len(name) + 40
        members.append(Member(name, node, name in case.required))
    options: list[Ir] = []
    for other, schemas in _others(case, named, compiler):
        node = yield form.other(other, schemas, depth + 1)
        if not never(node):
            options.append(node)
    extra = Shared("extra", alt(*options)) if options else None
    return _arranged(case, members, extra, form, output)


def _schemas(name: str, case: Case, compiler: Compiler) -> list[Located]:
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
        return _of_others(extra, case, form, output)
    if extra is not None and (most is not None or least > required):
        why = "not counted where other members are allowed (additional_properties)"
        if most is not None:
            output.tell(case.path, "maxProperties", why)
        if least > required:
            output.tell(case.path, "minProperties", why)
        least, most = 0, None
    enough = _enough(case, members, least if least > required else 0)
    body, exact = arrange(members, form.separator, extra, enough, most)
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
    there = frozenset(member.name for member in members)
    dependent = [(name, needed) for name, needed, _ in case.dependent if name in there and needed]
    if not least and not dependent:
        return None
    return lambda names: (
        len(names) >= least
        and all(name not in names or names.issuperset(needed) for name, needed in dependent)
    )


# members that no schema lists


def _others(case: Case, named: Mapping[str, None], compiler: Compiler) -> list[tuple[Lang, list[Located]]]:
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


def _names(names: Located, compiler: Compiler) -> Lang | None:
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


def arrays(case: Case, compiler: Compiler, depth: int) -> Steps[Ir]:
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
    full = seq(_items(heads, rest, least, most, syntax.comma), syntax.close_array)
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
