"""The members of an object that its schemas do not list, by the patterns that their names match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import Ir, Lang, Part, texts
from .bags import Bag, Shape, Where, useful
from .gather import Gatherer
from .judge import Judge
from .output import Output
from .strings import Parts, regex, string_parts

_MOST_PATTERNS = 4


@dataclass(frozen=True)
class Others:
    """Members that are not listed: the constraints of their names and of their values."""

    parts: Parts
    least: int
    most: int | None
    wheres: list[Where]


def others(
    bag: Bag, named: Mapping[str, None], gatherer: Gatherer, judge: Judge, output: Output
) -> list[Others]:
    """The members with names that are not in ``named``, one for each group of names that the same schemas concern."""
    patterns = [(expression, schema, shape) for shape in bag.shapes for expression, schema in shape.patterns]
    if any(shape.extra is False for shape in bag.shapes) and not patterns:
        return []
    base = [Part(texts(named), False)] if named else []
    least, most = 0, None
    for schema, path in bag.names:
        parts, least, most = _names(schema, path, least, most, gatherer, judge, output)
        if parts is None:
            return []
        base += parts
    found: list[Others] = []
    for parts, wheres in _groups(bag, patterns, output):
        every = (*base, *parts)
        if every:
            size = output.states(Lang(every, least, most))
            if size == 0:
                continue
            if size is None:
                where = bag.shapes[-1].path if bag.shapes else bag.path
                output.tell(where, "propertyNames", "the names take too many states: any name is generated")
                every = ()
        found.append(Others(every, least, most, useful(wheres or [(True, bag.path)])))
    return found


def _groups(
    bag: Bag, patterns: list[tuple[str, Any, Shape]], output: Output
) -> list[tuple[list[Part], list[Where]]]:
    """Groups of names that match the same patterns, each with the schemas of its members."""
    said: list[tuple[Ir, Where, Shape]] = []
    found: list[tuple[list[Part], list[Where]]] = []
    for expression, schema, shape in patterns:
        where = (schema, f"{shape.path}.patternProperties.{expression}")
        node = regex(expression, shape.path, "patternProperties", output)
        if len(said) == _MOST_PATTERNS:
            output.tell(shape.path, "patternProperties", f"more than {_MOST_PATTERNS} patterns")
            node = None
        if node is not None:
            said.append((node, where, shape))
        elif schema is not False:  # which names match is unknown: any may have such a value
            found.append(([], [where]))
    open_ = output.target.open_objects or not (patterns or any(shape.named for shape in bag.shapes))
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


def _names(
    schema: Any,
    path: str,
    least: int,
    most: int | None,
    gatherer: Gatherer,
    judge: Judge,
    output: Output,
) -> tuple[list[Part] | None, int, int | None]:
    """The constraints of ``propertyNames`` on a name; None if no name is valid."""
    bags = [bag for bag in gatherer.bags([(schema, path)]) if "string" in bag.types]
    if not bags:
        return None, least, most
    if len(bags) > 1:
        output.tell(path, "propertyNames", "alternatives of names")
        return [], least, most
    bag = bags[0]
    if bag.values is not None:
        names = [
            value for value in bag.values.values() if isinstance(value, str) and judge.within(value, bag)
        ]
        return ([Part(texts(names))] if names else None), least, most
    output.report_told(bag, "string")
    tops = [bound for bound in (most, bag.most) if bound is not None]
    return list(string_parts(bag, output)), max(least, bag.least), min(tops, default=None)
