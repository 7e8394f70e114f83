"""Objects: their members, listed and others, in the orders and numbers that a grammar can say."""

from __future__ import annotations

from collections.abc import Callable

from ..arrange import Member, arrange
from ..ir import EMPTY, NOTHING, Ir, Rep, Shared, alt, never, seq
from ..steps import Steps
from .bags import Bag, Where, useful
from .form import Form
from .gather import Gatherer
from .judge import Judge
from .names import others
from .output import Output


class Objects:
    """Writes the objects of one document."""

    def __init__(self, gatherer: Gatherer, judge: Judge, output: Output) -> None:
        self.gatherer = gatherer
        self.judge = judge
        self.output = output

    def write(self, bag: Bag, form: Form, depth: int) -> Steps[Ir]:
        """The objects of a bag. ``form`` says how their members are written."""
        named = dict.fromkeys(
            [
                *(name for shape in bag.shapes for name in shape.properties),
                *bag.required,
                *(name for name, _, _ in bag.dependent),
                *bag.maybe,
            ]
        )
        members: list[Member] = []
        for name in named:
            made = form.member(name, self._schemas(name, bag), name in bag.required, depth + 1)
            node: Ir = made if isinstance(made, Ir) else (yield made)
            if never(node):
                if name in bag.required:
                    return NOTHING
                continue
            self.output.budget.size -= 2 * len(name) + 40
            members.append(Member(name, node, name in bag.required))
        options: list[Ir] = []
        for other in others(bag, named, self.gatherer, self.judge, self.output):
            made = form.other(other.parts, other.least, other.most, other.wheres, depth + 1)
            node = made if isinstance(made, Ir) else (yield made)
            if not never(node):
                options.append(node)
        extra = Shared("extra", alt(*options)) if options else None
        return self._arranged(bag, members, extra, form)

    def _schemas(self, name: str, bag: Bag) -> list[Where]:
        """The schemas that a member of that name must satisfy."""
        if not self.judge.fits(name, bag.names):
            return [(False, "")]
        found, listed, _ = bag.of_member(name)
        if (
            not listed and name in bag.maybe and not self.output.target.open_objects
        ):  # open, it may have any value
            found.append(({"anyOf": [schema for schema, _ in bag.maybe[name]]}, bag.maybe[name][0][1]))
        return useful(found)

    def _arranged(self, bag: Bag, members: list[Member], extra: Ir | None, form: Form) -> Ir:
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
            return self._of_others(extra, least, most, bag, form)
        if extra is not None and (most is not None or least > required):
            why = "not counted where other members are allowed (additional_properties)"
            if most is not None:
                self.output.tell(bag.path, "maxProperties", why)
            if least > required:
                self.output.tell(bag.path, "minProperties", why)
            least, most = 0, None
        enough = _enough(bag, members, least if least > required else 0)
        body, exact = arrange(members, form.separator, extra, enough, most)
        if not exact:
            keywords = {keyword: None for _, needed, keyword in bag.dependent if needed}
            keywords |= {"minProperties": None} if least > required else {}
            keywords |= {"maxProperties": None} if most is not None else {}
            for keyword in keywords:
                self.output.tell(bag.path, keyword, "not counted among so many members")
        return form.whole(body)

    def _of_others(self, extra: Ir, least: int, most: int | None, bag: Bag, form: Form) -> Ir:
        """An object of ``least`` to ``most`` members of any name."""
        if least > 1:
            why = "a grammar cannot tell whether a name that the schema does not list is there twice"
            self.output.tell(bag.path, "minProperties", why)
        if most == 0:
            return form.whole(EMPTY)
        over = None if most is None else most - 1
        some = seq(extra, Rep(seq(form.separator, extra), max(0, least - 1), over))
        return form.whole(some if least else Rep(some, 0, 1))


def _enough(bag: Bag, members: list[Member], least: int) -> Callable[[frozenset[str]], bool] | None:
    """A test of the names of an object's members; None if it would always hold."""
    there = frozenset(member.name for member in members)
    dependent = [(name, needed) for name, needed, _ in bag.dependent if name in there and needed]
    if not least and not dependent:
        return None
    return lambda names: (
        len(names) >= least
        and all(name not in names or names.issuperset(needed) for name, needed in dependent)
    )
