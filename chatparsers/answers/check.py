"""Checks a format's tree when it is made, and reports its author's mistakes.

Strategy: a tree has two readings, the parser's and the grammar's. Both are checked, the grammar's for a probe tool. In
each reading, every node checks its own operands (a fact of its kind), and all paths through every call are followed
(answers/paths.py).

Every error names the node in the words of the builder, says what is wrong with it, and what to write instead. A tree
that passes compiles without an error. The stream that reads it never raises and never hangs, and the arguments of
a complete call are a JSON object.
"""

from __future__ import annotations

import re

from ..core.rules import check_left
from ..core.wrong import wrong
from ..schema.tools import ANY_TOOL
from .nodes import Body, Node, Sequence, Tag, Tagged
from .paths import check_call
from .reading import PARTS_OF_A_CALL, PROBE, Reading
from .taken import check_taken


def check(tree: Node) -> None:
    """Raises `DefinitionError` for a tree that cannot be compiled, parsed or generated as its author means it."""
    if not isinstance(tree, Node):
        wrong(
            "build",
            f"expected it to return a node, found {tree!r}",
            "return what it made, such as p.body(calls)",
        )
    parsed, generated = Reading(tree, ANY_TOOL), Reading(tree, PROBE)
    for reading in (parsed, generated):
        _check_rules(reading)
        if not any(isinstance(node, Body) for node in reading.nodes):
            half = "generated" if reading.generated else "parsed"
            wrong("build", f"what is {half} has no p.body()", "return a tree that ends with p.body(calls)")
        for node in reading.nodes:
            node.check(reading)
        _check_places(reading, tree, True, {})
    check_taken(parsed.nodes)


def check_model(what: str, pattern: str) -> None:
    """Raises `DefinitionError` if ``pattern`` is no regular expression for a model's name."""
    try:
        empty = re.match(pattern, "") is not None
    except (re.error, RecursionError, OverflowError) as error:
        wrong(what, f"expected a regular expression, found {pattern!r}: {error}", "escape its special signs")
    if empty:
        wrong(what, f"{pattern!r} fits every name", 'write a part of the model\'s name, such as "acme-2"')
    if re.search("[A-Z_ ]", re.sub(r"\\.|\(\?P", "", pattern)):
        said = "fits no name, as names are compared in lower case, with - for every run of other signs"
        wrong(what, f"{pattern!r} {said}", "write acme-2-5 for Acme 2.5")


def _check_rules(reading: Reading) -> None:
    """Refuses a rule that calls itself before it reads a character, and one that never ends."""
    check_left(reading.rules, reading.empty, reading.parts)
    for name in reading.endless():
        mend = f"add an alternative without p.ref({name!r})"
        wrong(f"p.rule({name!r})", "it has no end, as each way through it calls itself", mend)


def _check_places(reading: Reading, node: Node, last: bool, passed: dict[tuple[int, bool], Node]) -> None:
    """Checks that parts of a call are only in calls, that each call is sound, and that the body comes last.

    ``last``: nothing is read after ``node``. ``passed``: what was checked, as a node may be in many places.
    """
    if (id(node), last) in passed:
        return
    passed[id(node), last] = node
    if isinstance(node, Tagged) and node.tag is Tag.CALL:
        check_call(reading, node)
        return
    if isinstance(node, PARTS_OF_A_CALL):
        what = "it stands outside a call, so what it reads is lost"
        wrong(node, what, "put it into what make(tool) returns for p.each_tool()")
    if isinstance(node, Body) and not last:
        wrong(node, "nothing is read after it, as it takes the rest of the turn", "put it last")
    parts = reading.parts(node)
    for part in parts:
        ends = last and (part is parts[-1] or not isinstance(node, Sequence))
        _check_places(reading, part, ends, passed)
