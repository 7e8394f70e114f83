"""What each special token of a turn does: one table, which the rules of a turn and the tests read."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..core.tree import first, once, tokens
from . import nodes as n
from .nodes import Node
from .without_opener import ending

Role: TypeAlias = Literal["opener", "closer", "inner", "marker", "stop", "header"]
"""``opener``: a section or a thought begins with it. ``closer``: something ends with it, and nothing begins. ``inner``:
it is only within something. ``marker``: it is markup by itself. ``stop``: it ends the turn. ``header``: it stands in
the opener of a section, after its first text."""


def roles(tree: Node, stops: tuple[str, ...] = ()) -> dict[str, Role]:
    """The role of each special token of the tree, and of its stops. In running text, a closer is markup, and what is
    inner is text."""
    nodes = list(once(tree))
    bodies = [node for node in nodes if isinstance(node, n.Body)]
    spans = [node.span for node in nodes if isinstance(node, n.Think)]
    spans += [span for body in bodies for span in body.spans]
    marks = [body.marks for body in bodies if body.marks is not None]
    sections = [
        part for body in bodies for part in (body.calls, body.marks, body.closers) if part is not None
    ]
    starts = [body.start for body in bodies if body.start is not None]
    calls = [node for node in nodes if isinstance(node, (n.Calls, n.EachTool))]
    closes = [span.close for span in spans if span.close is not None]
    openers: set[str] = set().union(*map(first, (*sections, *(span.open for span in spans))))
    closers: set[str] = set().union(*map(ending, (*calls, *sections, *starts, *closes)))
    of_spans: set[str] = set().union(*(tokens(part) for span in spans for part in span.parts))
    marked: set[str] = set().union(*map(first, marks))
    known = (*openers, *(text for start in starts for text in tokens(start)))
    found: dict[str, Role] = {}
    for text in tokens(tree):
        begins = any(one.endswith(text) for one in known)
        if not begins and text in closers:
            found[text] = "closer"
        elif not begins or (text not in openers and text not in of_spans):
            found[text] = (
                "inner"  # so is the end of an opener, and a token of calls at the start, where it is alone
            )
        elif text in marked:
            found[text] = "marker"
        elif text in openers:
            found[text] = "opener"
        else:
            found[text] = "header"
    return found | {stop: "stop" for stop in stops if stop not in found}
