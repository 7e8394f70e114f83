"""Writes structural tags: the JSON that xgrammar, vLLM and SGLang take.

Strategy: the tag holds one grammar in xgrammar's own dialect: GBNF with ``TagDispatch`` for text up to a marker and
``Regex`` for strings. These two compile in a tenth of the time of equal rules. xgrammar makes the same grammar of its
native formats (``any_text``, ``triggered_tags``), but of several pieces each has the rules of all tools. Free text with
calls is ``(text call)* text``. xgrammar's ``json_schema`` is not used: it cannot say that members come in any order and
that some are required.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from .. import ir
from ..ir import Encoding, State
from ..reading.residual import CHARACTER
from ..regular.dfa import Dfa
from ..target import TAGS, Target
from .dispatch import states_of
from .gbnf import CHAIN, XgrammarWriter, automaton_of, literal, regex
from .rules import suffix

_STRING = f'"{CHARACTER}*"'
"""A JSON string."""
_BEFORE_NAME = ' (= ["])'
"""The text after a comma and its white space in an object: the quote of a name."""


class _Writer(XgrammarWriter):
    """GBNF with xgrammar's own forms."""

    def __init__(
        self, rules: Mapping[str, ir.Ir], token_ids: Mapping[str, int] | None, target: Target
    ) -> None:
        super().__init__(rules, token_ids, target)
        white = "".join(char for char, least in ((" ", 1), ("\\r", 2), ("\\n", 1)) if _allowed(target, least))
        self.inside = f" (= [{white},}}\\]])"
        """The text after a string in an object or array. With this look-ahead, xgrammar tries fewer tokens at run time,
        so a mask inside a string takes less time. It has the white space that the grammar allows: a look-ahead hides
        each token that ends the string and goes on otherwise."""
        self.closings: dict[tuple[int, tuple[int, ...]], tuple[ir.State, ...]] = {}
        self.closed_names: dict[int, str] = {}

    def order(self, node: ir.Order) -> str:
        """An order. A string at the end of an object's member takes in the comma.

        A token that holds the quote at the end of a string and the comma after it runs through two rules. So xgrammar
        tries it at run time, for each mask inside the string. If the comma belongs to the string's rule, xgrammar
        decides about the token once, when it compiles.
        """
        names = [*map(self.shared, node.members)]
        closed: dict[int, str] = {}
        if node.extra is None and len(names) > 1 and self.regexes:
            comma = self.choice(node.separator)
            found = ((at, self.closed(member, comma)) for at, member in enumerate(node.members))
            closed = {at: name for at, name in found if name}
        if not closed:
            return self.in_order(node, names, node.states)
        key = (id(node.states), tuple(closed))
        states = self.closings.get(key)
        if states is None:
            self.alive.append(node.states)
            states = self.closings[key] = closing(node.states, len(names), tuple(closed))
        return self.in_order(node, [*names, *closed.values()], states)

    def closed(self, node: ir.Ir, comma: str) -> str:
        """The right side of a member and the comma after it, if a string at its end can take in the comma; else ""."""
        if isinstance(node, ir.Lang):
            plain = node.nested and node.unconstrained
            return self.rule("string", regex(f"{_STRING},{self.white}") + _BEFORE_NAME) if plain else ""
        if isinstance(node, ir.Shared):
            name = self.closed_names.get(id(node))
            if name is None:
                found = self.closed(node.node, comma)
                name = self.closed_names[id(node)] = found and self.rule(node.hint.lower(), found)
                self.alive.append(node)
            return name
        if isinstance(node, ir.Seq) and node.items:
            last = self.closed(node.items[-1], comma)
            if last and isinstance(node.items[-1], ir.Alt):
                last = f"({last})"
            return last and " ".join([*self.atoms(node.items[:-1]), last])
        if isinstance(node, ir.Alt):
            each = [self.closed(option, comma) for option in node.options]
            if any(each):
                options = zip(each, node.options, strict=True)
                return " | ".join([one or f"{self.choice(option)} {comma}" for one, option in options])
        return ""

    def new_lang(self, node: ir.Lang) -> str:
        if node.unconstrained and not node.opened and node.within is None:
            if node.encoding != "raw" and self.regexes:
                return self.rule("string", regex(_STRING) + (self.inside if node.nested else ""))
            by_id = node.end and node.end[-1].text in self.token_ids
            if node.encoding == "raw" and node.stops and not by_id and not _overlapping(node):
                text = self.rule("text", _without(node.stops))
                return self.rule("text", " ".join([text, *map(self.atom, node.end)])) if node.end else text
        if node.encoding == "raw" and node.parts and node.end and not _overlapping(node):
            return self.rule("text", " ".join([self.lang(replace(node, end=())), *map(self.atom, node.end)]))
        return super().new_lang(node)

    def counted(self, node: ir.Lang) -> str:
        if not node.within:
            return '""'
        text, most = self.lang(replace(node, end=(), within=None)), node.within
        key = f"[max_tokens={most}] {text}"
        name = self.bodies.get(key)
        if name is None:
            name = self.bodies[key] = self.fresh("text")
            del self.out[name]
            self.out[f"{name}[max_tokens={most}]"] = text
        return name

    def automaton(self, dfa: Dfa, encoding: Encoding, then: str = "") -> str:
        """As of GBNF; what plain text takes for states that are like it. ``then``: what may follow where the text may
        not end."""
        states = states_of(dfa) if encoding == "raw" else None
        if states is None or not states.found or dfa.runs(CHAIN):
            return super().automaton(dfa, encoding)
        names: dict[int, str] = {}
        todo: list[int] = []

        def named(state: int) -> str:
            key = states.known_as(state)
            if key not in names:
                names[key] = self.fresh("text")
                todo.append(state)
            return names[key]

        first = named(0)
        for state in todo:
            found = states.plain(state)
            if found is not None:
                body = _dispatch(found.excluded, [(text, named(after)) for text, after in found.triggers])
            else:
                ends = '""' if state in dfa.accepting else then
                options = [ends] if ends else []
                for ranges, after in dfa.edges[state]:
                    options += self.edge(ranges, encoding, named(after) if dfa.edges[after] else "")
                body = " | ".join(options)
            self.out[named(state)] = body
        return first

    def free(self, node: ir.Free) -> str:
        """Text, and calls wherever a trigger begins."""
        if node.within is not None:
            return f"({self.lang(node.text)} ({self.atom(node.calls)} {self.atom(node.after)})?)"
        if node.words and (node.most is None or (node.most == 1 and not node.left)):
            return self.free_with_words(node)
        text = self.lang(node.text) if node.taken else _without((*node.triggers, *node.excludes))
        text = self.rule("text", text)
        last = self.lang(node.last) if node.taken else text
        call = self.rule("calls", f"{text} {self.atom(node.calls)}")
        if node.most == 1 and not node.left:
            return f"({call} | {last})"
        return f"({call}{suffix(0, node.most)} {last})"

    def free_with_words(self, node: ir.Free) -> str:
        """Text in which words may begin calls, and calls. Where the text may not end, in the half of such a beginning,
        a call may follow all the same: one automaton says both."""
        text = self.fresh("text")
        calls = self.rule(
            "calls", f"{self.atom(node.calls)} {text}" if node.most is None else self.atom(node.calls)
        )
        self.out[text] = f"{self.automaton(automaton_of(node.last), 'raw', calls)} {calls}?"
        return text


@lru_cache(maxsize=256)
def closing(states: tuple[State, ...], count: int, closed: tuple[int, ...]) -> tuple[State, ...]:
    """The states of the same orders, with a second form of the members ``closed``: one that takes in the comma, where
    another member follows.

    ``count``: how many members there are. The second forms have the numbers after theirs, then comes the extra member
    (which these orders do not have), then the states.
    """
    second = {member: count + index for index, member in enumerate(closed)}
    entered: set[int] = set()
    """The states that come after a second form."""
    reached = {count + len(states)}
    """The states that come after anything else, and the start."""
    for state in states:
        for option in state.options:
            (entered if len(option) > 1 and option[0] in second else reached).add(option[-1])
    made: list[State] = []
    whole: dict[int, int] = {}
    """The new numbers of the states, by the old ones."""
    inner: dict[int, int] = {}
    """The numbers of the states as they are after a comma, by the old numbers."""

    def add(options: list[tuple[int, ...]], begun: bool, may_end: bool) -> int:
        made.append(State(tuple(options), begun, may_end))
        return count + len(closed) + len(made)

    for at, state in enumerate(states, count + 1):
        options: list[tuple[int, ...]] = []
        for option in state.options:
            first, last = option[0], option[-1]
            if len(option) == 1:
                options.append((whole.get(first, first),))
            elif first not in second:
                options.append((first, whole[last]))
            else:
                options.append((second[first], inner[last]))
                if states[last - count - 1].may_end:
                    options.append((first,))
        if at in entered:
            inner[at] = add(options, False, False)
            options = [(inner[at],)]
        if at in reached:
            whole[at] = add(options, state.begun, state.may_end)
    return tuple(made)


def _allowed(target: Target, count: int) -> bool:
    """Whether so many characters of white space may be inside JSON."""
    return target.whitespace is None or target.whitespace >= count


def _without(stops: Iterable[str]) -> str:
    """Text that holds none of the stops."""
    return _dispatch(stops, ())


def _dispatch(excluded: Iterable[str], triggers: Iterable[tuple[str, str]]) -> str:
    """Text that holds none of ``excluded``, up to the first of ``triggers``, after which its rule follows."""
    parts = [f"({literal(text)}, {rule})" for text, rule in triggers]
    if parts:
        parts.append("loop_after_dispatch=false")
    stops = ", ".join(map(literal, excluded))
    return f"TagDispatch({', '.join([*parts, f'excludes=({stops},)'] if stops else parts)})"


def _overlapping(node: ir.Lang) -> bool:
    """Whether text without a stop can form one with the beginning of the end marker."""
    end = node.end_text
    return any(
        stop.endswith(end[:size]) and len(stop) > size for stop in node.stops for size in range(1, len(end))
    )


def write_structural_tag(
    root: ir.Ir, rules: Mapping[str, ir.Ir], token_ids: Mapping[str, int] | None = None, target: Target = TAGS
) -> str:
    """The structural tag as JSON text. ``token_ids``: the markers that are written by their ids."""
    grammar = _Writer(rules, token_ids, target).write(root)
    tag = {"type": "structural_tag", "format": {"type": "grammar", "grammar": grammar}}
    return json.dumps(tag, ensure_ascii=False)
