"""Tells whether a recursive value has a finite text."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..ir import Alt, Ir, Order, Ref, Rep, Seq, Shared
from ..steps import Steps, run


def has_end(name: str, rules: Mapping[str, Ir], begun: Collection[str]) -> bool:
    """Whether the rule ``name`` has a finite text. The rules in ``begun`` are not yet written; they count as finite."""
    todo, found = [name], {name}
    while todo:
        for other in _named(rules[todo.pop()]):
            if other not in found and other not in begun:
                found.add(other)
                todo.append(other)
    ending: set[str] = set(begun)
    more = True
    while more:
        more = False
        for rule in found - ending:
            if run(_ends(rules[rule], ending, {})):
                ending.add(rule)
                more = True
    return name in ending


def _parts(node: Ir) -> tuple[Ir, ...]:
    if isinstance(node, Seq):
        return node.items
    if isinstance(node, Alt):
        return node.options
    if isinstance(node, (Rep, Shared)):
        return (node.node,)
    if isinstance(node, Order):
        return node.members if node.extra is None else (*node.members, node.extra)
    return ()


def _named(node: Ir) -> set[str]:
    """The rules that a node names."""
    seen: set[int] = set()
    found: set[str] = set()
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, Ref):
            found.add(part.name)
        elif id(part) not in seen:
            seen.add(id(part))
            todo += _parts(part)
    return found


def _ends(node: Ir, ending: set[str], known: dict[int, bool]) -> Steps[bool]:
    if isinstance(node, Ref):
        return node.name in ending
    found = known.get(id(node))
    if found is not None:
        return found
    if isinstance(node, Order):
        found = yield _order_ends(node, ending, known)
    elif isinstance(node, Rep):
        found = not node.least or bool((yield _ends(node.node, ending, known)))
    else:
        parts = _parts(node)
        wanted = isinstance(node, Alt)  # a choice needs one part that ends, other nodes need all
        found = not wanted
        for part in parts:
            if (yield _ends(part, ending, known)) is wanted:
                found = wanted
                break
    known[id(node)] = found
    return found


def _order_ends(node: Order, ending: set[str], known: dict[int, bool]) -> Steps[bool]:
    """Whether all required members of an order end. A member is required if no state can be the last without it."""
    ends: list[bool] = []
    for member in node.members:
        ends.append((yield _ends(member, ending, known)))
    ends.append(node.extra is not None and (yield _ends(node.extra, ending, known)))
    for state in node.states:
        options = any(all(ends[number] for number in option) for option in state.options)
        ends.append(state.may_end or options or not state.options)
    return ends[-1]
