"""Finds the schemas that hold together for one value, and judges given values (those that a schema lists, names, a
call's arguments) by what is gathered for the grammar.

Strategy: the alternatives of a schema are sets of schemas (`Together`). A value must satisfy all schemas of one set.
``$ref`` and ``allOf`` join sets, ``anyOf`` and ``oneOf`` list them. Each schema's alternatives are found once. Sets are
known by the identities in them, so equal sets are kept once; their number is limited. A schema that leads back to
itself adds nothing there, and is reported. At last the keywords of each set are gathered in a case.

So a keyword means the same for a value that is generated and for one that is given. A keyword that no grammar enforces
may still say whether it holds for one value (`Case.weaken`). A verdict is True, False, or None: not known. ``not`` and
the like turn verdicts round, so what is not known must not count as satisfied before the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...errors import SchemaError
from ...schema.document import LEADING, Document, Unresolved, contradictory, is_of, references
from ...schema.keywords import KEYWORDS, NOTES, SILENT, names
from ...schema.tools import Tool
from ..budget import Budget
from ..steps import Steps, run
from .cases import UNEVALUATED, Case, Located, Unsaid, Verdict, Weakened, disjoint, shown
from .keywords import RULES, SPEAKING, Gather, condition_member, counted, decided_by
from .written import Output

Together = dict[int, Located]
"""Schemas that must all hold, by their identity. Must not change once it is passed on."""

_MOST_COMBINED = 256
"""The most alternatives in a product of alternatives."""
_MOST_LISTED = 10_000
"""The most alternatives in a list of alternatives."""
_MOST_CASES = 200
"""The most members in the cases that conditions make of one case."""
_FEW_VALUES = (("boolean", True), ("boolean", False), ("null", None))
_CONDITION = frozenset({"if", "then", "else"})
_LONGEST_PATH = 1_000
_NO_VALUE = "no listed value has the type: those that are listed and those of the type are generated"
_ITEMS = "no listed value is an array: they are taken for the items"
_ALWAYS = frozenset({"$ref", "allOf"})
_LISTING = SILENT | {"type", "enum", "const"}
"""A schema of these keywords alone admits each value that it lists and that has its type."""
_CHOOSING = frozenset(row.name for row in KEYWORDS.values() if row.same) - _ALWAYS
"""The keywords whose schemas may apply to the same value, or may not."""


class Judge:
    """Finds the cases of values of one document, and judges values by them."""

    def __init__(self, document: Document, output: Output) -> None:
        self.document = document
        self.output = output
        self.budget = output.budget
        self.tell = output.tell
        self.known: dict[int, list[Together]] = {}
        self.active: set[int] = set()
        self.loose: dict[int, list[Unsaid]] = {}
        """What the sets do not say of a schema, by its identity."""
        self.cyclic = False
        """Whether a schema led back to itself since the last call of `gathered`."""
        self.verdicts: dict[tuple[int, ...], Verdict] = {}
        """The verdicts on a value and its parts, by the identities of the part and its schemas."""
        self.unsure: dict[Weakened, None] = {}
        """What would have to be known to judge the value."""
        self.without: dict[int, Mapping[str, Any]] = {}
        """Schemas without their conditions, by the identities of the schemas."""
        self.alive: list[Any] = []
        """Keeps objects alive whose id() is a key elsewhere, so that the id is not reused."""
        self.unsaid = True
        """Whether keywords count that no grammar enforces."""

    def fits(self, value: Any, schemas: list[Located]) -> bool:
        """Whether no schema refuses ``value``. Reports the keywords on which that depends and that are not known."""
        return not schemas or self._reported(self.accepts(value, schemas))

    def cases(self, schemas: list[Located]) -> list[Case]:
        """The cases of a value. If a case lists values, only those that it admits are left."""
        cases = self.gathered(schemas)
        for case in cases:
            if case.values is None:
                continue
            listed = case.values.items()
            if all(type(schema) is dict and _LISTING.issuperset(schema) for schema, _ in schemas):
                self.output.budget.work -= len(listed)
                case.values = {key: one for key, one in listed if is_of(one, case.types)}
            else:
                case.values = {key: one for key, one in listed if self._reported(self._within(one, case))}
        return cases

    def _reported(self, steps: Steps[Verdict]) -> bool:
        self.verdicts.clear()
        self.unsure.clear()
        verdict = run(steps)
        if verdict is None:
            self.output.weakened.update(self.unsure)
        return verdict is not False

    def accepts(self, value: Any, schemas: list[Located]) -> Steps[Verdict]:
        """Whether the schemas accept a value."""
        key = (id(value), *sorted(id(schema) for schema, _ in schemas))
        if key in self.verdicts:
            return self.verdicts[key]
        self.verdicts[key] = None  # until it is known: a schema may ask for itself
        if self.output.budget.work < 0:
            why = "the grammar is past max_work: values are not judged"
            self.unsure[Weakened(schemas[0][1], "*", why)] = None
            return None
        found: Verdict = False
        for case in self.gathered(schemas):
            verdict: Verdict = yield self._within(value, case)
            if verdict:
                found = True
                break
            found = None if verdict is None else found
        self.verdicts[key] = found
        return found

    def _within(self, value: Any, case: Case) -> Steps[Verdict]:
        """Whether all constraints of a case hold for a value."""
        self.output.budget.work -= 1
        return case.holds(value, self.accepts, self.unsure, self.unsaid)

    # the cases

    def gathered(self, schemas: list[Located]) -> list[Case]:
        """The cases of a value to which all of these schemas apply."""
        first = schemas[0][0]
        if (
            len(schemas) == 1
            and type(first) is dict
            and LEADING.isdisjoint(first)
            and not contradictory(first)
            and not decided_by(first)
        ):
            found: list[Together] = [{0: schemas[0]}]
        else:
            found = [{}]
            self.cyclic = False
            for schema, path in schemas:
                found = self.both(found, run(self.alternatives(schema, path)), path, "allOf")
            if self.cyclic:  # the alternatives found in a circle depend on the schema at which it was entered
                self.known.clear()
        cases: list[Case] = []
        for together in found:
            case = self.case(together)
            if case is not None:
                cases += self.by_member(case, together) if case.conditions else [case]
        for case in cases:
            for schema, path in case.sealed:  # exact only if no other schema applies
                if len(schemas) > 1 or schema is not first or not self.plain(schema):
                    case.weaken(path, "unevaluatedProperties", UNEVALUATED)
                    case.sealed = ()
        return cases

    def alternatives(self, schema: Any, path: str) -> Steps[list[Together]]:
        """The sets of schemas; a value must satisfy one set."""
        if schema is True or schema is False:
            return [{}] if schema else []
        if not isinstance(schema, (dict, Mapping)):
            raise SchemaError(f"expected a schema (an object, true or false), found {shown(schema)}", path)
        key = id(schema)
        if key in self.known:
            return self.known[key]
        if key in self.active:
            self.cyclic = True
            self.tell(path, "$ref", "the schema leads back to itself, which adds nothing")
            return [{}]
        self.active.add(key)
        self.budget.work -= 1
        if contradictory(schema):
            either: list[Together] = []
            meant = self.document.meant(schema)
            for option in meant:
                either += yield self.alternatives(option, path)
            self.tell(path, "enum", _NO_VALUE if len(meant) > 1 else _ITEMS)
            self.active.discard(key)
            self.known[key] = either
            return either
        found: list[Together] = [{key: (schema, path)} if SPEAKING & schema.keys() else {}]
        loose: list[Unsaid] = []
        for keyword, ref in references(schema):
            # A chain of references is one step of the path.
            step = path if path.endswith(f".{keyword}") else f"{path}.{keyword}"
            target = self.resolve(ref, schema, path, keyword, loose)
            found = self.both(found, (yield self.alternatives(target, step)), path, keyword)
        self.beside_reference(schema, path)
        decided = decided_by(schema)
        if decided:
            chosen = yield self.alternatives(schema.get(decided, True), f"{path}.{decided}")
            found = self.both(found, chosen, path, decided)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword not in schema:
                continue
            listed = schema[keyword]
            if not isinstance(listed, (list, tuple)) or not listed:
                raise SchemaError(
                    f"expected a list of at least one schema, found {shown(listed)}", f"{path}.{keyword}"
                )
            every: list[list[Together]] = []
            for index, option in enumerate(listed):
                every.append((yield self.alternatives(option, _below(path, f".{keyword}[{index}]"))))
            if keyword == "allOf":
                for inner_found in every:
                    found = self.both(found, inner_found, path, keyword)
                continue
            if keyword == "oneOf" and not self.disjoint(every, found):
                why = "alternatives may hold together: any of them is generated, as under anyOf"
                options = [(option, f"{path}.oneOf[{index}]") for index, option in enumerate(listed)]
                loose.append((Weakened(path, keyword, why), partial(counted, options, 1, 1)))
            united = _once([one for options in every for one in options])
            self.budget.work -= 8 * len(united)
            found = self.both(found, united, path, keyword)
        if loose:
            self.loose[key] = loose
            found = self.both(found, [{key: (schema, path)}], path, loose[0][0].keyword)
        self.active.discard(key)
        self.known[key] = found
        return found

    def beside_reference(self, schema: Mapping[str, Any], path: str) -> None:
        """Reports keywords beside ``$ref`` that drafts up to 7 ignore, where a schema may be meant for such a draft."""
        if "$ref" not in schema:
            return
        root = self.document.root
        draft = root.get("$schema") if isinstance(root, Mapping) else None
        old = isinstance(draft, str) and any(name in draft for name in _OLD_DRAFTS)
        if "$id" in schema:
            why = "it changes what the reference beside it names; drafts up to 7 ignore it there"
            self.tell(path, "$id", why)
        elif old and not schema.keys() <= _SILENT_BESIDE:
            why = "drafts up to 7 ignore the keywords beside it; they apply here"
            self.tell(path, "$ref", why)

    def both(self, left: list[Together], right: list[Together], path: str, keyword: str) -> list[Together]:
        """The combinations of a set of ``left`` and one of ``right``. If there are too many, reports it and returns
        ``left``."""
        if right == [{}]:
            return left
        if not left or not right:
            return []
        if left == [{}]:
            if len(right) <= _MOST_LISTED and self.budget.work >= 0:
                return right
        elif len(left) * len(right) <= max(_MOST_COMBINED, len(left), len(right)) and self.budget.work >= 0:
            self.budget.work -= 4 * (sum(map(len, left)) * len(right) + sum(map(len, right)) * len(left))
            if len(left) == 1 and len(right) == 1:
                return [{**left[0], **right[0]}]
            return _once([{**one, **other} for one in left for other in right])
        self.tell(path, keyword, "too many combinations of alternatives")
        return left

    def disjoint(self, every: list[list[Together]], beside: list[Together]) -> bool:
        """Whether no value can be in two of the alternatives. ``beside`` has the schemas that apply to all of them."""
        common = beside[0] if len(beside) == 1 else {}
        groups: list[list[Case]] = []
        for options in every:
            cases = [self.case({**common, **together}) for together in options]
            groups.append([case for case in cases if case is not None])
        return disjoint(groups)

    def resolve(self, ref: Any, schema: Any, path: str, keyword: str, loose: list[Unsaid]) -> Any:
        """The schema that a reference in ``schema`` names. If it leads out of the document, notes it in ``loose`` and
        returns True."""
        try:
            return self.document.resolve(ref, schema, keyword)
        except Unresolved as reason:
            if not reason.outside:
                raise SchemaError(reason.why, f"{path}.{keyword}") from None
            loose.append((Weakened(path, keyword, reason.why), None))
            return True

    def case(self, together: Together) -> Case | None:
        """The keywords of all the schemas; None if they admit no value."""
        case = Case()
        late: list[tuple[Gather, Any, str, Any]] = []
        for key, (schema, path) in together.items():
            case.unsaid += self.loose.get(key, ())
            if SPEAKING.isdisjoint(schema):
                continue
            case.path = path
            soon: dict[Gather, Any] = {}
            for keyword, value in schema.items():
                rule = RULES.get(keyword)
                if rule is not None and rule.late:
                    late.append((rule.gathers, value, path, schema))
                elif rule is not None:
                    soon[rule.gathers] = value
            for gathers, value in soon.items():
                gathers(case, value, path, schema)
        for gathers, value, path, schema in late:
            gathers(case, value, path, schema)
        return None if late and not case.types else case

    # conditions

    def by_member(
        self, case: Case, together: Together, room: int = _MOST_CASES, decided: frozenset[int] = frozenset()
    ) -> list[Case]:
        """A case with conditions as one case for each way in which the values of one member decide them, such as
        ``kind`` of ``"a"`` or ``"b"``; itself if no member does. ``room``: how many members may be written in all.
        ``decided``: the schemas whose conditions are; one that leads back to itself is decided alike."""
        names = {name: None for shape in case.shapes for name in shape.properties}
        for name in dict.fromkeys(condition_member(schema) for schema, _ in case.conditions):
            conditions = [one for one in case.conditions if condition_member(one[0]) == name]
            ways = self.ways(case, name, conditions) if name in names and case.types == {"object"} else {}
            if not ways or len(ways) * len(names) > room or self.budget.work < 0:
                continue
            decided = decided.union(id(schema) for schema, _ in conditions)
            found: list[Case] = []
            for verdicts, member in ways.items():
                self.budget.work -= 8
                parts = [part for part in together.values() if id(part[0]) not in decided]
                parts += [(self.unconditional(schema), path) for schema, path in conditions]
                sets: list[Together] = [{id(part[0]): part for part in (*parts, (member, case.path))}]
                for (schema, path), holds in zip(conditions, verdicts, strict=True):
                    keyword = "then" if holds else "else"
                    chosen = run(self.alternatives(schema.get(keyword, True), f"{path}.{keyword}"))
                    sets = self.both(sets, chosen, path, keyword)
                for one in sets:
                    left = {key: part for key, part in one.items() if id(part[0]) not in decided}
                    inner = self.case(left)
                    if inner is not None:
                        more = room // len(ways)
                        found += self.by_member(inner, left, more, decided) if inner.conditions else [inner]
            return found
        return [case]

    def ways(
        self, case: Case, name: str, conditions: list[Located]
    ) -> dict[tuple[bool, ...], dict[str, Any]]:
        """What a member of an object may be, by which of the conditions hold then, as a schema of the object; empty if
        the values of the member are not listed, where they count."""
        values: list[Any] | None = [None]
        counts = any("properties" in schema["if"] for schema, _ in conditions)
        if counts:
            values = self.listed(case.of_member(name)[0])
        if values is None:
            return {}
        objects: list[dict[str, Any]] = [{name: value} for value in values]
        if name not in case.required:
            objects.append({})
        found: dict[tuple[bool, ...], dict[str, Any]] = {}
        self.alive += objects, found
        for given in objects:
            verdicts = [run(self.accepts(given, [(one["if"], f"{path}.if")])) for one, path in conditions]
            if None in verdicts:
                return {}
            key = tuple(map(bool, verdicts))
            if not given:  # the last one
                absent = {"properties": {name: False}}
                found[key] = {**found[key], "required": []} if key in found else absent
                continue
            way = found.setdefault(
                key, {"properties": {name: {"enum": []} if counts else {}}, "required": [name]}
            )
            if counts:
                way["properties"][name]["enum"].append(given[name])
        return found

    def listed(self, schemas: list[Located]) -> list[Any] | None:
        """The values that the schemas allow, if they list them; else None."""
        found: list[Any] = []
        for case in self.gathered(schemas):
            values = case.values
            if values is None and case.types <= {"boolean", "null"}:
                values = {one: one for kind, one in _FEW_VALUES if kind in case.types}
            if values is None:
                return None
            found += [one for one in values.values() if run(self._within(one, case)) is not False]
        return found

    def unconditional(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema without its condition."""
        found = self.without.get(id(schema))
        if found is None:
            left = {keyword: value for keyword, value in schema.items() if keyword not in _CONDITION}
            found = self.without[id(schema)] = left
            self.loose[id(found)] = self.loose.get(id(schema), [])
            self.alive.append(schema)
        return found

    def plain(self, schema: Mapping[str, Any]) -> bool:
        """Whether a schema judges members only by their names."""
        seen: set[int] = set()
        todo: list[Any] = [schema]
        while todo:
            part = todo.pop()
            if not isinstance(part, Mapping):
                if part is False:
                    return False
                continue
            if id(part) in seen:
                continue
            if _CHOOSING & part.keys() or (seen and "unevaluatedProperties" in part):
                return False
            seen.add(id(part))
            listed = part.get("allOf")
            todo += listed if isinstance(listed, (list, tuple)) else ()
            if "$ref" in part:
                try:
                    todo.append(self.document.resolve(part["$ref"], part))
                except Unresolved:
                    return False
        return True


_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
_SILENT_BESIDE = NOTES | names("document") | {"$ref"}
"""Keywords that may be beside ``$ref`` in every draft, because they constrain and name nothing."""


def _below(path: str, step: str) -> str:
    """The path of a part. A very long path is not extended."""
    return path + step if len(path) < _LONGEST_PATH else path


def _once(listed: list[Together]) -> list[Together]:
    """The sets, each once; if one set says nothing, only that one."""
    found: dict[frozenset[int], Together] = {}
    for together in listed:
        found.setdefault(frozenset(together), together)
    if frozenset() in found:
        return [{}]
    return list(found.values())


def fits(tool: Tool, arguments: Any) -> bool:
    """Whether the schema of a tool does not refuse ``arguments``. What no keyword judges is not refused."""
    output = Output(budget=Budget(work=_FEW))
    judge = Judge(tool.document, output)
    try:
        return judge.fits(arguments, [(tool.parameters, "$")])
    except (
        SchemaError,
        RecursionError,
    ):  # a malformed keyword, or arguments too deep to be compared: unknown
        return True


_FEW = 100_000
"""How much work the arguments of one call may take."""
