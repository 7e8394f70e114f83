"""The rest of a grammar when the prompt has already written the beginning: its derivative by a text.

Strategy: `_Walk` takes a node along the text and yields every way to do so. Either the node is over at some place, or
the text ends inside it and a rest of the node remains. All ways are kept; but from a place that several ways reach,
what follows is walked once, so the work grows with the text and not with the ways.

The rest is exact: with the text before it, its sentences are those of the whole grammar. So where the text ends in the
half of a stop, two things are left: the other half, and text that does not go on with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from ...errors import RequestError
from .. import ir
from ..ir import ANYTHING, EMPTY, Ir, Part, Seq, Text, alt, nullable, seq
from ..regular.regex import read_regex

HEX = "[0-9a-fA-F]"
PAIR = rf"[dD](?:[0-7]{HEX}{{2}}|[89abAB]{HEX}{{2}}\\u[dD][c-fC-F]{HEX}{{2}})"
CHARACTER = rf'(?:[^"\\\x00-\x1F]|\\(?:["\\\/bfnrt]|u(?:[0-9a-cA-CefEF]{HEX}{{3}}|{PAIR})))'
"""A character of a JSON string, as the dialects write it: a surrogate is in a pair alone."""

BEYOND_ASCII = rf"\\u(?:00[89a-fA-F]{HEX}|0[1-9a-fA-F]{HEX}{{2}}|[1-9a-cA-CefEF]{HEX}{{3}}|{PAIR})"
"""The spelling of a character beyond ASCII by its number."""

_indent = re.compile(r"(?P<half>\r)|\r?\n(?P<indent>[ \t]*)").fullmatch
_ESCAPES = {f"\\{letter}": char for letter, char in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True)}
_ESCAPES |= {f"\\u{code:04x}": chr(code) for code in range(32)}
"""The spellings of characters that a grammar writes with an escape. What is beyond ASCII has others beside itself."""
_BEYOND = "\x80"
"""Any character beyond ASCII: grammars spell all or none of them with escapes."""

_Ways = Iterator[tuple[Ir | None, int]]
"""Ways to read the text: (None, the place at which the node is over), or (the rest of the node, the text's end)."""


def residual(
    node: Ir, text: str, rules: Mapping[str, Ir] | None = None, by_id: Collection[str] | None = None
) -> Ir | None:
    """The rest of ``node`` after ``text``; None if ``node`` cannot begin with ``text``. ``rules``: what `Ref` names.
    ``by_id``: the markers that are written by their ids; where given, the rest's first literals are one piece."""
    if not text:
        return node
    rests = [
        _joined(EMPTY if rest is None else rest, by_id)
        for rest, at in _Walk(text, rules or {}, by_id or ()).advance(node, 0)
        if rest is not None or at == len(text)
    ]
    return alt(*rests) if rests else None


def rest_of_call(node: ir.Free, text: str, rules: Mapping[str, Ir]) -> Ir | None:
    """The rest of a call of ``node`` inside which ``text`` ends; None if it ends in free text."""
    walk = _Walk(text, rules)
    place, rests = 0, []
    while starts := walk.starts(node, place):
        place = starts[-1] + 1  # a trigger may begin other markup
        for start in starts:
            for rest, end in walk.advance(node.calls, start):
                if rest is None:
                    place = max(place, end)
                else:
                    rests.append(rest)
        if rests:
            return alt(*rests)
    return None


def _joined(rest: Ir, by_id: Collection[str] | None) -> Ir:
    """A rest whose first literals are one piece: beside it, text may go on, and a lexer that takes a beginning of the
    piece for text does not go back."""
    if by_id is None:
        return rest
    items = rest.items if isinstance(rest, ir.Seq) else (rest,)
    first = list(
        takewhile(lambda item: isinstance(item, (Text, ir.TokenRef)) and item.text not in by_id, items)
    )
    return Seq((Text(ir.literal_text(first)), *items[len(first) :])) if len(first) > 1 else rest


def _left(order: ir.AnyOrder) -> Ir:
    """The members that are left of an order."""
    if order.members:
        return order
    return EMPTY if order.extra is None else ir.Rep(seq(order.separator, order.extra), 0, None)


class _Walk:
    """Walks nodes along ``text``."""

    def __init__(self, text: str, rules: Mapping[str, Ir], by_id: Collection[str] = ()) -> None:
        self.text = text
        self.rules = rules
        self.by_id = by_id

    def advance(self, node: Ir, at: int) -> _Ways:
        """Ways to read the text from ``at``, which is not its end."""
        text = self.text
        if isinstance(node, (ir.Text, ir.TokenRef)):
            shown = text[at : at + len(node.text)]
            if shown == node.text:
                yield None, at + len(node.text)
            elif node.text.startswith(shown):
                yield Text(node.text[len(shown) :]), len(text)
        elif isinstance(node, ir.Chars):
            if any(low <= ord(text[at]) <= high for low, high in node.ranges):
                yield None, at + 1
        elif isinstance(node, ir.Seq):
            yield from self.sequence(node.items, at)
        elif isinstance(node, ir.Alt):
            for option in node.options:
                yield from self.advance(option, at)
        elif isinstance(node, ir.Rep):
            yield from self.repeat(node, at)
        elif isinstance(node, ir.Shared):
            yield from self.advance(node.node, at)
        elif isinstance(node, ir.Ref):
            yield from self.advance(self.rules[node.name], at)
        elif isinstance(node, ir.Order):
            yield from self.advance(node.unfold(), at)
        elif isinstance(node, ir.AnyOrder):
            yield from self.any_order(node, at)
        elif isinstance(node, ir.Lang):
            yield from self.language(node, at) if node.encoding == "raw" else self.string(node, at)
        elif isinstance(node, ir.Free):
            yield from self.free(node, at)
        elif isinstance(node, ir.Blank):
            yield from self.blank(node, at)

    def sequence(self, items: tuple[Ir, ...], at: int) -> _Ways:
        places = [at]
        said = 0
        """From which item on the rest is known, if the items from there up to the current one may be empty."""
        for index, item in enumerate(items):
            after: dict[int, None] = {}
            for place in places:
                if place == len(self.text):
                    if not said or not all(map(nullable, items[said - 1 : index])):
                        yield Seq(items[index:]), place
                        said = index + 1
                    continue
                for rest, end in self.advance(item, place):
                    if rest is None:
                        after[end] = None
                    else:
                        yield seq(rest, *items[index + 1 :]), end
            places = list(after)
        yield from ((None, place) for place in places)

    def repeat(self, node: ir.Rep, at: int) -> _Ways:
        left = [(at, node.least, node.most)]
        seen = set(left)
        for place, least, most in left:  # grows
            if most == 0:
                yield None, place
                continue
            if place == len(self.text):
                yield replace(node, least=least, most=most), place
                continue
            if least == 0 or nullable(node.node):
                yield None, place
            least, most = max(0, least - 1), None if most is None else most - 1
            more = replace(node, least=least, most=most)
            for rest, end in self.advance(node.node, place):
                if rest is not None:
                    yield (rest if most == 0 else seq(rest, more)), end
                elif end > place and (end, least, most) not in seen:
                    seen.add((end, least, most))
                    left.append((end, least, most))

    def any_order(self, node: ir.AnyOrder, at: int) -> _Ways:
        left = [(at, node)]
        seen: set[tuple[int, tuple[Ir, ...]]] = set()
        for place, order in left:  # grows
            if place == len(self.text):
                yield _left(order), place
                continue
            if not order.some and not any(order.required):
                yield None, place
            lead = (order.separator,) if order.begun else ()
            for number, member in enumerate(ir.children(order)):
                then = order.after(number)
                for rest, end in self.sequence((*lead, member), place):
                    if rest is not None:
                        yield seq(rest, _left(then)), end
                    elif (end, then.members) not in seen:
                        seen.add((end, then.members))
                        left.append((end, then))

    def blank(self, node: ir.Blank, at: int) -> _Ways:
        """White space inside JSON. That of a prompt may be more than is generated; then it is over."""
        end = len(self.text) - len(self.text[at:].lstrip(" \r\n\t"))
        found = _indent("\n" * (node.written >= 0) + self.text[at:]) if at < end == len(self.text) else None
        if found is None:
            yield None, end
        else:
            indented = ir.Blank(max(node.written, 0) + len(found["indent"] or ""))
            yield seq(Text("\n" if found["half"] else ""), indented), end

    # free text with calls

    def free(self, node: ir.Free, at: int) -> _Ways:
        starts = self.starts(node, at)
        for start in starts:
            yield from self.called(node, start)
        if any(stop in self.text[at:] for stop in (*node.triggers, *node.excludes)):
            return
        begun = [_not_after(rest) for rest in self.begun((*node.triggers, *node.excludes), at)]
        taken = self.rests(node.taken, at)
        if not begun and len(taken) == len(node.taken):
            yield node, len(self.text)
            return
        if node.within is not None:
            raise RequestError(
                f"call_within, answer_tokens: the prefix ends in a part of a marker, {self.text[-20:]!r}, and a "
                "grammar cannot count what may follow: use turn.guide(…), or let the prefix end before it"
            )
        text = replace(node.text, parts=(*begun, *taken))
        last = replace(text, parts=(*text.parts, *self.rests(node.unfinished, at)))
        calls = [
            seq(text, *ir.literals(trigger, self.by_id), rest, node.after)
            for trigger in node.triggers
            if (rest := residual(node.calls, trigger, self.rules)) is not None
        ]
        yield alt(last, *calls), len(self.text)

    def rests(self, nodes: tuple[Ir, ...], at: int) -> list[ir.Part]:
        """What may not come after the text, which ``nodes`` are of the text and what follows it."""
        ways = [rest for node in nodes for rest, _ in self.advance(node, at)]
        return [ir.Part(rest, False) for rest in ways if rest is not None]

    def called(self, node: ir.Free, start: int) -> _Ways:
        """A call from ``start`` on, and what follows it. The rest of a trigger is one piece with what it begins."""
        after = node.after
        begun = self.text[start:]
        halves = [text for text in node.triggers if text.startswith(begun) and text != begun]
        if halves:
            for trigger in halves:
                rest = residual(node.calls, trigger, self.rules)
                if rest is not None:
                    yield seq(*ir.literals(trigger[len(begun) :], self.by_id), rest, after), len(self.text)
            return
        for rest, end in self.advance(node.calls, start):
            if rest is not None:
                yield seq(rest, after), end
            elif end == len(self.text):
                yield after, end
            else:
                yield from self.advance(after, end)

    def starts(self, node: ir.Free, at: int) -> list[int]:
        """Where the first call may begin: at the first trigger, or where the text ends in the half of one."""
        text = self.text
        found = sorted(
            (place + len(stop), place, stop)
            for stop in {*node.triggers, *node.excludes}
            if (place := text.find(stop, at)) >= 0
        )
        if not found:
            return sorted(
                {
                    len(text) - size
                    for trigger in node.triggers
                    for size in range(1, min(len(trigger), len(text) - at + 1))
                    if text.endswith(trigger[:size])
                }
            )
        _, place, stop = found[0]
        starts = {place} if stop in node.triggers else set()
        for trigger in node.triggers:  # one that holds the stop begins before it
            begin = place - trigger.find(stop) if stop in trigger else -1
            if begin >= at and (text.startswith(trigger, begin) or trigger.startswith(text[begin:])):
                starts.add(begin)
        return sorted(starts)

    def begun(self, stops: tuple[str, ...], at: int) -> list[str]:
        """The rests of the stops with whose halves the text ends, but for those that hold a stop themselves."""
        text = self.text
        rests = {
            stop[size:]: None
            for stop in stops
            for size in range(1, min(len(stop), len(text) - at + 1))
            if text.endswith(stop[:size])
        }
        return [rest for rest in rests if not any(stop in rest for stop in stops)]

    # texts and strings

    def language(self, node: ir.Lang, at: int) -> _Ways:
        """Text up to its first stop: over there, or the rest of it."""
        text = self.text
        end = node.end_text
        stops = (*node.stops, end) if end else node.stops
        found = sorted(
            (place + len(stop), place, stop) for stop in stops if (place := text.find(stop, at)) >= 0
        )
        if found:
            over, place, _ = found[0]
            if end and text.endswith(end, at, over):  # a stop may begin before the end that closes it
                place = over - len(end)
                if _holds(node, text[at:place]):
                    yield None, over
            elif not end and _holds(node, text[at:place]):
                yield None, place
            return
        if not stops and not node.unconstrained:  # what follows decides where it ends
            left: ir.Lang | None = node
            for place in range(at, len(text)):
                if left is None:
                    return
                if _over(left):
                    yield None, place
                left = _after(left, text[place])
        for begun in range(1, min(len(end), len(text) - at + 1)):
            if text.endswith(end[:begun]) and _holds(node, text[at : len(text) - begun]):
                yield _rest(node, begun), len(text)
        rest = _after(node, text[at:])
        if rest is not None:
            barred = tuple(_not_after(left) for left in self.begun(stops, at))
            yield replace(rest, parts=(*rest.parts, *barred)), len(text)

    def string(self, node: ir.Lang, at: int) -> _Ways:
        """A string literal, from its opening quote, or after it."""
        text = self.text
        if not node.opened and text[at] != '"':
            return
        begin = at if node.opened else at + 1
        found = re.compile(f"{CHARACTER}*").match(text, begin)
        end = found.end() if found else begin
        said = json.loads(f'"{text[begin:end]}"', strict=False)
        if text.startswith('"', end):
            if _holds(node, said):
                yield None, end + 1
            return
        if end == len(text):
            rest = _after(node, said)
            if rest is not None:
                yield replace(rest, opened=True), end
            return
        for left, char in self.escapes(end, free=node.unconstrained):
            rest = _after(node, said + char)
            if rest is not None:
                yield seq(left, replace(rest, opened=True)), len(text)

    def escapes(self, at: int, *, free: bool) -> Iterator[tuple[Ir, str]]:
        """The rests of the escape that begins at ``at`` and is not whole, and the character of each. ``free``: all
        characters count the same."""
        begun = self.text[at:]
        if not free:
            for spelt, char in _ESCAPES.items():
                if spelt.startswith(begun):
                    yield Text(spelt[len(begun) :]), char
        for rest, _ in self.advance(read_regex(f"^{CHARACTER if free else BEYOND_ASCII}$"), at):
            if rest is not None:
                yield rest, _BEYOND


def _not_after(rest: str) -> Part:
    """The constraint that a text does not go on with ``rest``."""
    return Part(seq(Text(rest), ANYTHING), False)


def _holds(node: ir.Lang, text: str) -> bool:
    """Whether the constraints of a language hold for the whole text."""
    left = _after(node, text)
    return left is not None and _over(left)


def _over(node: ir.Lang) -> bool:
    """Whether a text of the language may be over."""
    return not node.least and all(map(_met, node.parts))


def _met(part: Part) -> bool:
    if part.divisor:
        return bool(part.begun.lstrip("-")) and int(part.begun) % part.divisor == 0
    return nullable(part.node) == part.positive


def _after(node: ir.Lang, text: str) -> ir.Lang | None:
    """The language after ``text``, which holds none of its stops; None if no text of it begins so."""
    if node.most is not None and node.most < len(text):
        return None
    parts: list[Part] = []
    for part in node.parts:
        if part.divisor:
            parts.append(replace(part, begun=part.begun + text))
            continue
        left = residual(part.node, text)
        if left is not None and (part.positive or not _any_text(left)):
            parts.append(replace(part, node=left))
        elif part.positive or left is not None:
            return None
    most = None if node.most is None else node.most - len(text)
    return replace(node, parts=tuple(parts), least=max(0, node.least - len(text)), most=most)


def _any_text(node: Ir) -> bool:
    """Whether a regular node, as far as is seen at once, matches any text."""
    if isinstance(node, ir.Alt):
        return any(map(_any_text, node.options))
    if isinstance(node, ir.Rep):
        inner = node.node
        return isinstance(inner, ir.Chars) and inner.ranges == ir.ANY and not node.least and node.most is None
    return isinstance(node, Seq) and bool(node.items) and all(map(_any_text, node.items))


def _rest(node: ir.Lang, begun: int) -> Ir:
    """The rest of the end of a text after its first ``begun`` characters."""
    items: list[Ir] = []
    for item in node.end:
        if begun >= len(item.text):
            begun -= len(item.text)
        elif begun:
            items.append(Text(item.text[begun:]))
            begun = 0
        else:
            items.append(item)
    return seq(*items)
