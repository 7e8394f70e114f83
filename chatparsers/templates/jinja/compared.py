"""The words to which a template compares its variables: values that are worth a rendering.

Strategy: a variable's value is followed through ``set``, namespaces, filters and conditions to what it is compared
with, looked up in, or defaults to. What is found here proves nothing; it only says what to try (`probe.dial`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .environment import environment

if TYPE_CHECKING:
    from jinja2 import nodes

Value = str | int | float | bool
_HANDED_ON = 3
"""How often a value may be handed on from variable to variable."""
_ASKED = frozenset({"defined", "undefined", "none"})
_DEFAULTS = frozenset({"default", "d"})
_LOOKED_UP = frozenset({"get", "startswith", "index"})


def compared_of(source: str, names: Iterable[str]) -> Mapping[str, tuple[Value, ...]]:
    """Of each variable that a caller may give the literals that the source compares it with, in the source's order;
    none if the source nests too deep to say. ``names``: the variables that the source reads."""
    try:
        return _Compared(environment().parse(source), names).found()
    except RecursionError:
        return {}


class _Compared:
    def __init__(self, tree: nodes.Template, names: Iterable[str]) -> None:
        from jinja2 import nodes

        self._nodes = nodes
        self._tree = tree
        own = self._set_alone()
        self._found: dict[str, dict[tuple[type, Value], None]] = {
            name: {} for name in sorted(names) if name not in own
        }
        self._lists: dict[str, list[Value]] = {}
        self._carried: dict[str, set[str]] = {name: {name} for name in self._found}
        """For each name in the source the callers' variables whose value it may have."""
        for _ in range(_HANDED_ON):
            for node in tree.find_all(nodes.Assign):
                self._assign(node)

    def _set_alone(self) -> set[str]:
        """Names that the template sets in a branch, and never asks a caller for."""
        nodes, asked, own, others = self._nodes, set[str](), set[str](), set[str]()
        for test in self._tree.find_all((nodes.Test, nodes.Filter)):
            names = _ASKED if isinstance(test, nodes.Test) else _DEFAULTS
            if test.name in names and isinstance(test.node, nodes.Name):
                asked.add(test.node.name)
        for assign in self._tree.find_all((nodes.Assign, nodes.AssignBlock)):
            value = assign.node if isinstance(assign, nodes.Assign) else None
            read = {name.name for name in _within(value, nodes.Name)} if value is not None else set()
            for target in _within(assign.target, nodes.Name):
                own.add(target.name)
                if target.name not in read:
                    others.add(target.name)
        return own & others - asked

    def _assign(self, node: nodes.Assign) -> None:
        nodes, target = self._nodes, self._key(node.target)
        if target is None:
            return
        if isinstance(node.node, (nodes.List, nodes.Tuple, nodes.Dict)):
            self._lists[target] = self._literals(node.node)
        self._carried.setdefault(target, set()).update(self._values(node.node))
        if isinstance(node.node, nodes.Call) and getattr(node.node.node, "name", "") == "namespace":
            for pair in node.node.kwargs:
                self._carried.setdefault(f"{target}.{pair.key}", set()).update(self._values(pair.value))

    def _key(self, node: nodes.Node) -> str | None:
        nodes = self._nodes
        if isinstance(node, nodes.Name):
            return str(node.name)
        if isinstance(node, nodes.NSRef):
            return f"{node.name}.{node.attr}"
        if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
            return f"{node.node.name}.{node.attr}"
        return None

    def _values(self, node: nodes.Node | None) -> set[str]:
        """The variables whose value this expression may have, not those that it only asks."""
        nodes = self._nodes
        if isinstance(node, nodes.CondExpr):
            return self._values(node.expr1) | self._values(node.expr2)
        if isinstance(node, nodes.Filter):
            return self._values(node.node)
        if isinstance(node, (nodes.Or, nodes.And)):
            return self._values(node.left) | self._values(node.right)
        if isinstance(node, nodes.Call):
            return self._values(node.node.node) if isinstance(node.node, nodes.Getattr) else set()
        key = None if node is None else self._key(node)
        return set() if key is None else self._carried.get(key, set())

    def _literals(self, node: nodes.Node | None) -> list[Value]:
        nodes = self._nodes
        if isinstance(node, nodes.Const):
            return [node.value]
        if isinstance(node, (nodes.List, nodes.Tuple)):
            return [value for item in node.items for value in self._literals(item)]
        if isinstance(node, nodes.Dict):
            return [value for pair in node.items for value in self._literals(pair.key)]
        if isinstance(node, nodes.Name):
            return self._lists.get(node.name, [])
        if isinstance(node, nodes.CondExpr):
            return self._literals(node.expr1) + self._literals(node.expr2)
        return []

    def _add(self, names: Iterable[str], values: Iterable[Any]) -> None:
        for name in names:
            for value in values:
                if isinstance(value, (str, int, float)) and value != "":
                    self._found[name][type(value), value] = None

    def found(self) -> dict[str, tuple[Value, ...]]:
        nodes, find = self._nodes, self._tree.find_all
        for compare in find(nodes.Compare):
            sides = [compare.expr, *(operand.expr for operand in compare.ops)]
            for one in sides:
                for other in sides:
                    if one is not other:
                        self._add(self._values(one), self._literals(other))
        for default in find(nodes.Filter):
            if default.name in _DEFAULTS and default.args:
                self._add(self._values(default.node), self._literals(default.args[0]))
        for choice in find(nodes.CondExpr):  # 'high' if effort == 'high' else 'max': both are words to try
            asked = choice.test.expr if isinstance(choice.test, nodes.Compare) else None
            self._add(self._values(asked), self._literals(choice))
        for item in find(nodes.Getitem):
            self._add(self._values(item.arg), self._literals(item.node))
        for assign in find(nodes.Assign):
            self._add(self._carried.get(self._key(assign.target) or "", ()), self._literals(assign.node))
        for call in find(nodes.Call):
            if isinstance(call.node, nodes.Getattr) and call.node.attr in _LOOKED_UP and call.args:
                self._add(self._values(call.args[0]), self._literals(call.node.node))
        return {name: tuple(value for _, value in values) for name, values in self._found.items()}


def _within(node: nodes.Node, kind: type[nodes.Name]) -> Iterator[nodes.Name]:
    if isinstance(node, kind):
        yield node
    else:
        yield from node.find_all(kind)
