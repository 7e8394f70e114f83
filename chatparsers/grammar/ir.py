"""The form of a grammar before it is written in a dialect: a small tree, free of any engine's syntax.

Strategy: the reader (read.py, schemas) says *what* is generated. The writers decide *how*, because engines are fast at
different things. Two things decide the speed of a mask: text up to a stop, and the inside of a JSON string. They stay
whole here, both as a `Lang`, a regular language given by its constraints. One writer turns it into an automaton's
rules, another into a terminal. `Shared` marks a node that should be a rule of its own. The nodes form a DAG; only `Ref`
makes cycles (recursive schemas). Nodes must not change once they are made.

The constructors `seq` and `alt` flatten, join literals, and fuse text up to a stop with the marker that follows it. So
the end of such text is exact: its first stop is the marker itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

Ranges = tuple[tuple[int, int], ...]
"""Code points as sorted, disjoint, inclusive intervals."""

Encoding = Literal["raw", "json"]
"""How the characters of a `Lang` are spelt: verbatim, or as a string literal with its quotes."""

LAST = 0x10FFFF


class Ir:
    """A node."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class Text(Ir):
    """Exactly this text."""

    text: str


@dataclass(eq=False, slots=True)
class TokenRef(Ir):
    """A special token, or its text if the dialect or the tokenizer has no such token."""

    text: str


@dataclass(eq=False, slots=True)
class Chars(Ir):
    """One character of a set."""

    ranges: Ranges


@dataclass(eq=False, slots=True)
class Seq(Ir):
    """The nodes one after the other."""

    items: tuple[Ir, ...]


@dataclass(eq=False, slots=True)
class Alt(Ir):
    """Any of the options. Without options, nothing matches."""

    options: tuple[Ir, ...]


@dataclass(eq=False, slots=True)
class Rep(Ir):
    """``node`` from ``least`` to ``most`` times (None: any number of times)."""

    node: Ir
    least: int
    most: int | None


@dataclass(eq=False, slots=True)
class Shared(Ir):
    """The same as ``node``, written as a rule of its own. ``hint`` is for the rule's name. ``lexeme``: the node is
    regular and best read as one terminal (a number)."""

    hint: str
    node: Ir
    lexeme: bool = False


@dataclass(eq=False, slots=True)
class Ref(Ir):
    """The rule of that name in `Rules`. Recursion is made of these."""

    name: str


@dataclass(eq=False, slots=True)
class Nested(Ir):
    """A grammar that a user wrote in the dialect itself, with a rule ``start``."""

    text: str


@dataclass(eq=False, slots=True)
class Blank(Ir):
    """Optional white space inside JSON: nothing, one space, or a line's end and spaces or tabs; up to 64 of these where
    an engine bears to count them. A name, a colon, a value or a closing bracket follows. ``written``: the line's end
    and so many of these were written before; -1: nothing was."""

    written: int = -1


@dataclass(eq=False, slots=True)
class Part(Ir):
    """One constraint on the characters of a `Lang`: they match ``node`` (``positive``), or they do not match it.

    ``node`` is regular: made of Text, Chars, Seq, Alt, Rep, Shared. With a ``divisor``, the characters are a decimal
    integer that the divisor divides, within ``bounds`` (another part says the bounds too); the digits ``begun`` were
    written before.
    """

    node: Ir
    positive: bool = True
    divisor: int = 0
    bounds: tuple[int | None, int | None] = (None, None)
    begun: str = ""


@dataclass(eq=False, slots=True)
class Lang(Ir):
    """A string of ``least`` to ``most`` characters, for which all of ``parts`` hold.

    Raw text has none of ``stops`` inside. Its ``end`` (literals that end with one of the stops) follows it; the first
    stop in both together is then the one at the very end. ``nested``: the string is in an object or array,
    so a comma or a bracket follows, perhaps after white space. ``opened``: the opening quote was written before.
    ``within``: how many tokens the text before its end may take, which the engine counts; None: any number.
    """

    parts: tuple[Part, ...] = ()
    least: int = 0
    most: int | None = None
    encoding: Encoding = "raw"
    stops: tuple[str, ...] = ()
    end: tuple[Text | TokenRef, ...] = ()
    nested: bool = False
    opened: bool = False
    within: int | None = None

    @property
    def unconstrained(self) -> bool:
        """Whether any characters may come, any number of them, but for the stops."""
        return not self.parts and not self.least and self.most is None

    @property
    def end_text(self) -> str:
        return "".join([item.text for item in self.end])


class State(NamedTuple):
    """One state of an `Order`: the options for what comes next.

    An option is one or two numbers: a member, a member and the state after it, or only a state. The members have the
    numbers from 0, then comes the extra member, then the states. ``begun``: members come before this state, so a
    separator comes first. ``may_end``: the order may end here.
    """

    options: tuple[tuple[int, ...], ...]
    begun: bool
    may_end: bool


@dataclass(eq=False, slots=True)
class Order(Ir):
    """Members with ``separator`` between them, in the orders that an automaton without cycles allows.

    ``states``: each comes after the states that it leads to, so the last one is the start. ``extra``: a member that may
    come any number of times, before each of the others and at the end. ``declared``: the only order is that of
    ``members``, and ``required`` says which of them must come.
    """

    members: tuple[Shared, ...]
    separator: Ir
    extra: Ir | None
    states: tuple[State, ...]
    declared: bool
    required: tuple[bool, ...]

    def unfold(self) -> Ir:
        """The same as choices and sequences."""
        lead = tuple(_flat((self.separator,)))
        more: tuple[Ir, ...] = ()
        if self.extra is not None:
            more = (Rep(Seq((*lead, self.extra)), 0, None),)
        nodes: list[Ir] = [*self.members, self.extra or EMPTY]
        for state in self.states:
            node: Ir = EMPTY
            if state.options:
                node = alt(*(Seq(tuple(nodes[number] for number in option)) for option in state.options))
                if state.begun:
                    node = Seq((*lead, node))
                if state.may_end:
                    node = alt(node, EMPTY)
            if state.begun:
                node = Seq((*more, node))
            nodes.append(Shared("s", node))
        return nodes[-1]


@dataclass(eq=False, slots=True)
class AnyOrder(Ir):
    """Members with ``separator`` between them in any order, each at most once, for an engine whose rules have a
    parameter: states of all orders would be too many.

    ``required``: which members must come. ``extra``: a member that may come any number of times, anywhere. ``begun``:
    a member was written before, so the separator comes first. ``some``: at least one member comes.
    """

    members: tuple[Shared, ...]
    separator: Ir
    extra: Ir | None
    required: tuple[bool, ...]
    begun: bool = False
    some: bool = False

    def after(self, number: int) -> AnyOrder:
        """What follows that member; a number past the last one is ``extra``."""
        members, required = (
            (*parts[:number], *parts[number + 1 :]) for parts in (self.members, self.required)
        )
        return replace(self, members=members, required=required, begun=True, some=False)


class Word(NamedTuple):
    """An ordinary word that opens calls.

    ``begins``: what the parser takes for the beginning of a call after the word, and ``halves``: for one that the end
    of the text cuts. Both are regular. ``at_line``: only a word at the beginning of a line opens a call.
    """

    text: str
    at_line: bool
    begins: Ir
    halves: Ir

    @property
    def call(self) -> Ir:
        """Any text, the word, and what begins a call."""
        return seq(self._before, Text(self.text), self.begins, ANYTHING)

    @property
    def half(self) -> Ir:
        """Any text, the word, and what is the half of that."""
        return seq(self._before, Text(self.text), self.halves)

    @property
    def _before(self) -> Ir:
        return alt(SPACES, seq(ANYTHING, Text("\n"))) if self.at_line else ANYTHING


@dataclass(eq=False, slots=True)
class Free(Ir):
    """Free text with calls in it (mode auto): wherever one of ``triggers`` begins, ``calls`` follow.

    ``most``: how many calls (None: any number). If only one may come, no text follows it. ``excludes``: the other
    texts that the parser takes for the beginning of a call or of reasoning; the free text has none of them. Only
    dialects with a native form write this node. The others are lazy instead.
    """

    calls: Ir
    triggers: tuple[str, ...]
    most: int | None
    excludes: tuple[str, ...] = ()
    left: bool = False
    """Whether calls were written before, so that text follows the last one also where only one may come."""
    within: int | None = None
    """How many tokens of text may come before the first call; None: any number. The engine counts them."""
    counted: bool = False
    """Whether all text is counted, so that none comes after a call."""
    marks: tuple[str, ...] = ()
    """The tokens around content, which free text may have, if an engine takes no token for its text."""
    words: tuple[Word, ...] = ()
    """The openers of calls that are ordinary words. Each is text until what follows tells it from prose."""

    @property
    def taken(self) -> tuple[Ir, ...]:
        """What the parser takes for the beginning of a call, and any text before and after it: regular. Free text is
        none of these."""
        return (alt(*(word.call for word in self.words)),) if self.words else ()

    @property
    def unfinished(self) -> tuple[Ir, ...]:
        """The texts that end within such a beginning: the free text at the end of the turn is none of these either."""
        return (alt(*(word.half for word in self.words)),) if self.words else ()

    @property
    def text(self) -> Lang:
        """The free text before a call."""
        parts = tuple(Part(node, False) for node in self.taken)
        return Lang(parts, stops=(*self.triggers, *self.excludes), within=self.within)

    @property
    def last(self) -> Lang:
        """The free text at the end of the turn."""
        text = self.text
        return replace(text, parts=(*text.parts, *(Part(node, False) for node in self.unfinished)))

    @property
    def after(self) -> Ir:
        """What follows a call."""
        if self.counted:
            return Seq((Rep(Seq((GAP, self.calls)), 0, None if self.most is None else self.most - 1), GAP))
        if self.most is None:
            return self if self.within is None else replace(self, within=None)
        if self.most == 1:
            return self.last if self.left else EMPTY
        return replace(self, most=self.most - 1, left=True, within=None)

    def ends(self, trigger: str) -> int:
        """Where free text ends in ``trigger``: at its end, or at the end of the first excluded text in it."""
        found = [at + len(text) for text in self.excludes if (at := trigger.find(text)) >= 0]
        return min(found, default=len(trigger))


EMPTY = Seq(())
BLANKS = Rep(
    Alt((Text(" "), Seq((Rep(Text("\r"), 0, 1), Text("\n"), Rep(Chars(((9, 9), (32, 32))), 0, None))))),
    0,
    1,
)
"""`Blank` as a regular node."""
GAP = Rep(Shared("gap", Alt((Seq((Text("\n"), Rep(Text("\n"), 0, 1))), Text(" ")))), 0, 1)
"""White space that models write beside markers, where templates differ: up to two newlines, or one space."""
SPACES = Rep(Chars(((9, 10), (13, 13), (32, 32))), 0, None)
"""Any white space."""
NOTHING = Alt(())
ANY: Ranges = ((0, LAST),)
ANYTHING = Rep(Chars(ANY), 0, None)
"""Any text, as a regular node."""


def charset(points: Iterable[int | str | tuple[int, int]]) -> Ranges:
    """The union of code points, characters and intervals."""
    spans = sorted(
        (p, p) if isinstance(p, int) else (ord(p), ord(p)) if isinstance(p, str) else p for p in points
    )
    merged: list[tuple[int, int]] = []
    for low, high in spans:
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Every code point that is not in ``ranges``."""
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


def overlap(left: Ranges, right: Ranges) -> Ranges:
    """The code points that both have."""
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def without(left: Ranges, right: Ranges) -> Ranges:
    """The code points of ``left`` that are not in ``right``."""
    return overlap(left, complement(right))


def literals(text: str, tokens: Iterable[str]) -> list[Text | TokenRef]:
    """Cuts ``text`` into the special tokens of ``tokens`` that it holds, and the texts between them."""
    found: list[Text | TokenRef] = []
    end = 0
    for match in _any_of(tuple(tokens))(text):
        found += [Text(text[end : match.start()])] if match.start() > end else []
        found.append(TokenRef(match[0]))
        end = match.end()
    return [*found, Text(text[end:])] if end < len(text) else found


@lru_cache(maxsize=256)
def _any_of(texts: tuple[str, ...]) -> Callable[[str], Iterator[re.Match[str]]]:
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)").finditer


def literal_text(items: Iterable[Ir]) -> str:
    """The text of a run of literals."""
    return "".join(item.text for item in items if isinstance(item, (Text, TokenRef)))


def _flat(items: Iterable[Ir]) -> Iterator[Ir]:
    for item in items:
        if isinstance(item, Seq):
            yield from _flat(item.items)
        else:
            yield item


def _first_stop(text: str, stops: tuple[str, ...]) -> int:
    """The place at which the first stop in ``text`` ends (the earliest end), 0 if ``text`` holds no stop."""
    ends = [at + len(stop) for stop in stops if (at := text.find(stop)) >= 0]
    return min(ends, default=0)


def _stops(node: Ir) -> tuple[str, ...]:
    """The stops of the text in which ``node`` may end, if they are still to come."""
    if isinstance(node, Lang):
        return node.stops if node.encoding == "raw" and not node.end else ()
    if isinstance(node, Alt):
        return next((found for option in node.options if (found := _stops(option))), ())
    if isinstance(node, Shared):
        return _stops(node.node)
    return _stops(node.items[-1]) if isinstance(node, Seq) and node.items else ()


def _fuse(node: Ir, end: tuple[Text | TokenRef, ...]) -> Ir:
    if isinstance(node, Lang) and _stops(node):
        return replace(node, end=end)
    if isinstance(node, Alt):
        parted = any(_begins(option, end[0].text) for option in node.options)
        return Alt(tuple(made for option in node.options for made in _fused(option, end, parted)))
    if isinstance(node, Shared) and _stops(node):
        return _fuse(node.node, end)
    if isinstance(node, Seq) and node.items and _stops(node.items[-1]):
        return seq(*node.items[:-1], _fuse(node.items[-1], end))
    return seq(node, *end)


def closed(node: Ir, marker: Text | TokenRef) -> Ir | None:
    """``node`` and the marker after it, fused, if ``node`` may end in text up to that marker; else None."""
    return _fuse(node, (marker,)) if marker.text in _stops(node) else None


def _fused(option: Ir, end: tuple[Text | TokenRef, ...], parted: bool) -> tuple[Ir, ...]:
    """An option of a choice and its end, fused.

    ``parted``: another option begins with the end's marker. Then empty text is an option of its own, so that a lexer
    does not take the other option's marker for the end of empty text.
    """
    if parted and isinstance(option, Lang) and _stops(option) and not option.parts and not option.least:
        text = replace(option, least=1, end=end)
        return text, seq(*end)
    return (_fuse(option, end),)


def _begins(node: Ir, text: str) -> bool:
    """Whether ``node`` may begin with the literal ``text``."""
    if isinstance(node, (Shared, Rep)):
        return _begins(node.node, text)
    if isinstance(node, Alt):
        return any(_begins(option, text) for option in node.options)
    if isinstance(node, Seq):
        return bool(node.items) and _begins(node.items[0], text)
    return isinstance(node, (Text, TokenRef)) and node.text.startswith(text)


def _begins_literally(node: Ir) -> bool:
    return isinstance(node.items[0] if isinstance(node, Seq) and node.items else node, (Text, TokenRef))


def _split(
    literals: list[Text | TokenRef], length: int
) -> tuple[list[Text | TokenRef], list[Text | TokenRef]]:
    """The literals up to ``length`` characters, and the rest. A token is not cut."""
    head: list[Text | TokenRef] = []
    for index, item in enumerate(literals):
        if length <= 0:
            return head, literals[index:]
        if isinstance(item, Text) and len(item.text) > length:
            return [*head, Text(item.text[:length])], [Text(item.text[length:]), *literals[index + 1 :]]
        head.append(item)
        length -= len(item.text)
    return head, []


def seq(*items: Ir) -> Ir:
    """The items one after the other. Flattens them, joins adjacent texts, and fuses text up to a stop with the marker
    that ends it."""
    out: list[Ir] = []
    flat: list[Ir] = []
    for item in items:
        if type(item) is Seq:
            flat.extend(_flat(item.items) if Seq in map(type, item.items) else item.items)
        else:
            flat.append(item)
    index = 0
    while index < len(flat):
        item = flat[index]
        index += 1
        kind = type(item)
        if kind in _PLAIN:
            out.append(item)
            continue
        if kind is Text:
            if not item.text:  # type: ignore[attr-defined]
                continue
            if out and type(out[-1]) is Text:
                out[-1] = Text(out[-1].text + item.text)  # type: ignore[attr-defined]
                continue
        elif never(item):
            return NOTHING
        if not out:
            out.append(item)
            continue
        last = out[-1]
        if type(last) in _ENDED:
            out.append(item)
            continue
        if isinstance(item, (Text, TokenRef)) and (stops := _stops(last)):
            literals: list[Text | TokenRef] = [item]
            end = _first_stop(item.text, stops)
            while not end and index < len(flat):
                following = flat[index]
                if not isinstance(following, (Text, TokenRef)):
                    break
                literals.append(following)
                index += 1
                end = _first_stop(literal_text(literals), stops)
            if end:
                head, rest = _split(literals, end)
                fused = _fuse(out.pop(), tuple(head))
                out.extend(fused.items if isinstance(fused, Seq) else (fused,))
                flat[index:index] = rest
                continue
            out.extend(literals)
            continue
        if isinstance(item, Alt) and _stops(last) and all(map(_begins_literally, item.options)):
            out.pop()
            item = alt(*(seq(last, option) for option in item.options))
        out.append(item)
    return out[0] if len(out) == 1 else Seq(tuple(out))


_PLAIN = frozenset({Shared, Ref, Blank, Order, AnyOrder, Rep, Chars})
"""Nodes that neither join with the node before them nor are changed by it."""
_ENDED = _PLAIN - {Shared} | {Text, TokenRef}
"""Nodes that do not end in text up to a stop."""


def alt(*options: Ir) -> Ir:
    """Any of the options. Flattens them, and leaves out those that match nothing."""
    out: list[Ir] = []
    for option in options:
        if isinstance(option, Alt):
            out.extend(option.options)
        else:
            out.append(option)
    return out[0] if len(out) == 1 else Alt(tuple(out))


def never(node: Ir) -> bool:
    """Whether no text matches ``node``."""
    return isinstance(node, Alt) and not node.options


def opt(node: Ir) -> Ir:
    """The node or nothing."""
    return Rep(node, 0, 1)


def texts(options: Iterable[str]) -> Ir:
    """One of the texts."""
    return alt(*[Text(option) if option else EMPTY for option in dict.fromkeys(options)])


# what a node is made of


def unshared(node: Ir) -> Ir:
    """The node that a shared one stands for; any other, itself."""
    return node.node if isinstance(node, Shared) else node


def children(node: Ir) -> tuple[Ir, ...]:
    """The nodes that a node is made of."""
    if isinstance(node, Seq):
        return node.items
    if isinstance(node, Alt):
        return node.options
    if isinstance(node, (Rep, Shared)):
        return (node.node,)
    if isinstance(node, (Order, AnyOrder)):
        return node.members if node.extra is None else (*node.members, node.extra)
    return ()


def named(node: Ir) -> set[str]:
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
            todo += children(part)
    return found


def nullable(node: Ir, empty: Collection[str] = ()) -> bool:
    """Whether a node matches the empty text. ``empty``: the rules that match it. A `Lang` counts as text."""
    if isinstance(node, Text):
        return not node.text
    if isinstance(node, Seq):
        return all(nullable(item, empty) for item in node.items)
    if isinstance(node, Alt):
        return any(nullable(option, empty) for option in node.options)
    if isinstance(node, Rep):
        return node.least == 0 or nullable(node.node, empty)
    if isinstance(node, Ref):
        return node.name in empty
    return isinstance(node, Shared) and nullable(node.node, empty)
