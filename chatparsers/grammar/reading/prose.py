"""What free text may not be, because the parser would take it for a call.

Where text and calls are generated together, three things look like a call and are not one:

- An opener that is an ordinary word, such as ``call:``. Prose may hold it, but not with what follows it in a call
  (`in_prose`).
- A marker that begins another word. After it no text goes on (`tell_words`).
- The start of the turn, where the parser takes more than the grammar writes, such as JSON with a call's keys
  (`taken_for_calls`).

What the text loses by this beyond calls is named in `Grammar.weakened`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from ...answers import nodes as n
from ...answers.nodes import Node
from ...answers.openers import openers
from ...core.tree import first, head, tokens
from .. import ir
from ..ir import ANYTHING, EMPTY, SPACES, Ir, alt, nullable, seq
from .triggers import (
    Beginning,
    begins_words,
    declared,
    distinct,
    holds,
    ordinary,
    parsed_beginnings,
    parsed_heads,
    told_apart,
    unfinished_of,
    unnamed,
)
from .values import ValueReader

LIKE_CALLS = (
    'an answer that begins as JSON differs from a call by its keys alone: a string after "name", and "arguments" or '
    '"parameters", are generated in calls only'
)
"""In `weakened` where a part of a call decides whether the start of a turn is free text."""
KEYS_OF_CALLS = (
    'an answer that begins as JSON differs from a call by its keys alone: "name", "arguments" and the other keys of '
    "calls are generated in calls only"
)
"""In `weakened` where its keys decide, whatever value comes after them."""
RESTS = (
    "after a text that might have become a call or a marker, the rest of one without its beginning, such as "
    "'tool_call>', may be refused"
)
"""What is named where the engine takes long to tell free text from calls (`dialects.dispatch` says why)."""


class ProseReader(ValueReader):
    """Reads what the openers of calls mean in the middle of a text."""

    _left_out: set[str]
    """The tools that cannot be called (calls.py)."""

    @property
    def names(self) -> list[str]:
        """The names of the tools that can be called."""
        return [tool.name for tool in self.tools if tool.name not in self._left_out]

    def told_from_prose(
        self, node: n.Body, calls: Ir | None, triggers: tuple[str, ...]
    ) -> tuple[set[str], tuple[str, ...]]:
        """The openers of calls that are ordinary words, as far as what follows tells them from prose; and the triggers,
        those that begin with such a word long enough for that."""
        if node.calls is None or calls is None:
            return set(), triggers
        prose = {*ordinary(first(node.calls), tokens(self.request.tree))}
        found: list[str] = []
        for trigger in triggers:
            opener = next((word for word in prose if trigger.startswith(word)), None)
            longer = () if opener is None else told_apart(calls, trigger, opener)
            if opener is not None and not longer:
                prose.discard(opener)
            found += longer or (trigger,)
            if not longer:
                self.tell_words([trigger])
        return prose, tuple(found)

    def tell_words(self, openers: Iterable[str]) -> None:
        """Names the openers after which text cannot go on, though they may begin another word."""
        for opener in begins_words(openers):
            self.output.tell(
                "$.tools", "name", f"after {opener!r} no text goes on: only what the format has there"
            )

    def in_prose(self, node: n.Body, prose: Collection[str], stops: tuple[str, ...]) -> tuple[ir.Word, ...]:
        """The openers of calls that are ordinary words, ``prose``, with what free text may not be after them."""
        if node.calls is None or not prose:
            return ()
        begins, written = head(node.calls), openers(node.calls) or ()

        def after_words(names: Collection[str]) -> dict[tuple[str, bool], list[Ir]]:
            """What follows a word, in each way to begin with it. The parser reads calls that begin with none of the
            openers that are written at the beginning of a line, if their tool is declared (answers/openers.py)."""
            found: dict[tuple[str, bool], list[Ir]] = {}
            for way in parsed_heads(begins, names):
                first_, *rest = way.items if isinstance(way, ir.Seq) else (way,)
                text = first_.text if isinstance(first_, ir.Text) else ""
                word = next((word for word in prose if text.startswith(word)), "")
                if word and not holds(way, stops):
                    lacks = word not in written
                    after = declared(rest, names) if lacks else unnamed(rest)
                    found.setdefault((word, lacks), []).append(seq(ir.Text(text[len(word) :]), *after))
            return found

        # At the end of a text the parser takes any name, also after white space, for the half of one.
        halves = after_words(())
        wholes = after_words(self.names)
        if self.output.target.coarse and repr(wholes) != repr(halves):
            wholes = halves
            for opener in dict.fromkeys(word for word, _ in halves):
                why = f"after {opener!r} no text goes on as a call does, whatever its name"
                self.output.tell("$.tools", "name", why)
        return tuple(
            ir.Word(*key, alt(*ways), alt(*(seq(SPACES, unfinished_of(way)) for way in halves.get(key, ()))))
            for key, ways in wholes.items()
        )


def none_of(taken: Collection[Ir]) -> tuple[ir.Part, ...]:
    """The part of a text that is none of ``taken``. Equal texts have the same part, so that they are written once."""
    return (ir.Part(alt(*taken), False),) if taken else ()


class Taken(NamedTuple):
    """What free text at the start of a turn may not be, because the parser takes it for the beginning of calls.

    ``always``: no text is one of these. ``openers``: with these, more decides: text that begins so is none of
    ``then``. Text and calls after it is not generated where it begins so: an engine's lexer would not bear both.
    """

    always: list[Ir]
    openers: list[Ir]
    then: list[Ir]


def taken_for_calls(
    body: n.Body,
    marks: Node | None,
    heads: list[tuple[Ir, Ir]],
    stops: tuple[str, ...],
    names: Collection[str],
    coarse: bool,
) -> Taken:
    """What free text may not be, as far as it holds none of ``stops``, which free text has none of anyway. ``heads``:
    how the calls at the start are written. ``marks``: the calls that may begin anywhere. ``names``: the tools'.
    ``coarse``: of what more decides, the keys alone count."""
    written = (head for head in distinct(head for head, _ in heads) if not holds(head, stops))
    taken = Taken([seq(SPACES, head, ANYTHING) for head in written], [], [])
    anywhere = {} if marks is None else _beginnings(marks, stops, names)
    at_start = {} if body.start is None else _beginnings(body.start, stops, names)
    if anywhere:
        taken.always.append(seq(ANYTHING, alt(*(anywhere[way].whole for way in sorted(anywhere)))))
    for way in sorted(at_start.keys() - anywhere.keys()):
        begun = at_start[way]
        if begun.rest is EMPTY:
            taken.always.append(seq(SPACES, begun.whole))
        else:
            taken.openers.append(begun.head)
            taken.then.append(seq(SPACES, begun.coarse if coarse else begun.whole))
    return taken


def _beginnings(node: Node, stops: tuple[str, ...], names: Collection[str]) -> dict[str, Beginning]:
    """What the parser takes for the beginning of calls, without the white space before it, if it holds none of
    ``stops``."""
    while isinstance(node, n.Sequence) and node.items and isinstance(node.items[0], n.Space):
        node = n.Sequence.of(*node.items[1:])
    found = parsed_beginnings(head(node), names)
    return {
        way: begun
        for way, begun in found.items()
        if not nullable(begun.head) and not holds(seq(begun.head, begun.rest), stops)
    }
