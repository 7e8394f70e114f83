"""Reads a regular expression of JSON Schema (ECMA 262) as a regular grammar of the strings in which it finds a match.

Strategy: recursive descent to the regular nodes of ir.py, with the anchors as markers. Then `search` puts any text
before each branch that does not begin with ``^``, and after each branch that does not end with ``$``. An anchor
elsewhere, a lookaround, a back reference or a Unicode property is `Unsupported`: the caller weakens and reports.
"""

from __future__ import annotations

import re

from ...kept import Kept
from .. import ir

DIGITS = ir.charset([(48, 57)])
WORD = ir.charset([(48, 57), (65, 90), "_", (97, 122)])
SPACES = ir.charset(
    [(9, 13), 32, 160, 0x1680, (0x2000, 0x200A), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF]
)
DOT = ir.complement(ir.charset([10, 13, 0x2028, 0x2029]))
_CLASSES: dict[str, ir.Ranges] = {
    "d": DIGITS,
    "D": ir.complement(DIGITS),
    "w": WORD,
    "W": ir.complement(WORD),
    "s": SPACES,
    "S": ir.complement(SPACES),
}
_DEEPEST = 40
"""The deepest nesting of groups."""
_MOST_QUANTIFIERS = 4
_MOST_COUNTED = 5_000
_BOUNDS = re.compile(r"\{([0-9]{1,9})(,([0-9]{0,9}))?\}").match
_GROUP = re.compile(r":|P?<[A-Za-z_]\w*>|(?P<look><?[=!])|(?P<flags>[a-zA-Z^-]+)[:)]").match
_NUMBER = re.compile(
    r"x[0-9A-Fa-f]{2}|u\{(?P<braced>[0-9A-Fa-f]+)\}"
    r"|u(?P<high>[dD][89abAB][0-9A-Fa-f]{2})\\u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2})|u[0-9A-Fa-f]{4}"
).match
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}


class Unsupported(Exception):
    """The expression is valid, but not regular or not handled."""


class Invalid(ValueError):
    """The expression is not a regular expression; the message says where."""


class _Anchor(ir.Ir):
    __slots__ = ("end",)

    def __init__(self, end: bool) -> None:
        self.end = end


_START, _END = _Anchor(False), _Anchor(True)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def invalid(self, expected: str) -> Invalid:
        found = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
        text = self.text if len(self.text) <= 100 else self.text[:97] + "..."
        return Invalid(f"expected {expected} at character {self.at} of {text!r}, found {found}")

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def alternatives(self) -> ir.Ir:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unsupported(f"groups nested deeper than {_DEEPEST}")
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        self.depth -= 1
        return ir.alt(*options)

    def sequence(self) -> ir.Ir:
        items: list[ir.Ir] = []
        while (char := self.peek()) and char not in "|)":
            items.append(self.quantified())
        return ir.NOTHING if any(map(ir.never, items)) else ir.seq(*items)

    def quantified(self) -> ir.Ir:
        node = self.atom()
        for _ in range(_MOST_QUANTIFIERS):
            low: int
            high: int | None
            if self.take("*"):
                low, high = 0, None
            elif self.take("+"):
                low, high = 1, None
            elif self.take("?"):
                low, high = 0, 1
            elif self.peek() == "{" and (bounds := self.bounds()) is not None:
                low, high = bounds
            else:
                return node
            if isinstance(node, _Anchor):
                raise self.invalid("something to repeat")
            self.take("?")
            node = (ir.NOTHING if low else ir.EMPTY) if ir.never(node) else ir.Rep(node, low, high)
        raise Unsupported("repeats of repeats of repeats")

    def bounds(self) -> tuple[int, int | None] | None:
        found = _BOUNDS(self.text, self.at)
        if found is None:
            return None
        low = int(found[1])
        high = low if found[2] is None else int(found[3]) if found[3] else None
        if high is not None and high < low:
            raise self.invalid("a repeat count whose first number is the smaller one")
        if (high or low) > _MOST_COUNTED:
            raise Unsupported(f"a count above {_MOST_COUNTED}")
        self.at = found.end()
        return low, high

    def atom(self) -> ir.Ir:
        char = self.text[self.at]
        if char == "(":
            self.at += 1
            if self.take("?"):
                self.group()
            inner = self.alternatives()
            if not self.take(")"):
                raise self.invalid("')'")
            return ir.Alt((inner,)) if isinstance(inner, ir.Seq) and len(inner.items) != 1 else inner
        self.at += 1
        if char == "[":
            found = self.char_class()
            return ir.Chars(found) if found else ir.NOTHING
        if char == ".":
            return ir.Chars(DOT)
        if char == "^":
            return _START
        if char == "$":
            return _END
        if char == "\\":
            escaped = self.escape(False)
            return ir.Chars(escaped) if not isinstance(escaped, int) else ir.Text(chr(escaped))
        if char in "*+?":
            self.at -= 1
            raise self.invalid("something to repeat")
        return ir.Text(char)

    def group(self) -> None:
        """Reads the text after ``(?``, up to the group's inside."""
        found = _GROUP(self.text, self.at)
        if found is None:
            raise self.invalid("a group")
        self.at = found.end()
        if found["look"]:
            raise Unsupported("lookaround")
        if found["flags"]:
            raise Unsupported(f"the flags (?{found['flags']})")

    def escape(self, inside: bool) -> int | ir.Ranges:
        """Reads an escape after its backslash: one code point, or a class."""
        char = self.peek()
        if not char:
            raise self.invalid("an escape")
        self.at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "b" and inside:
            return 8
        if char in "bB":
            raise Unsupported(f"\\{char}")
        if char in "pP":
            raise Unsupported("a Unicode property")
        if char.isdigit() or char == "k":
            raise Unsupported("a back reference")
        if char == "c" and self.peek().isalpha():
            self.at += 1
            return ord(self.text[self.at - 1]) % 32
        if char in "xu":
            found = _NUMBER(self.text, self.at - 1)
            if found is None:
                raise self.invalid("hexadecimal digits")
            self.at = found.end()
            code = int(found["braced"] or found["high"] or found[0][1:], 16)
            low = int(found["low"] or "0", 16)
            return 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00 if low else code
        return ord(char)

    def char_class(self) -> ir.Ranges:
        negated = self.take("^")
        found: list[int | tuple[int, int]] = []
        while True:
            char = self.peek()
            if not char:
                raise self.invalid("']'")
            self.at += 1
            if char == "]":
                break
            low = self.escape(True) if char == "\\" else ord(char)
            if (
                self.peek() == "-"
                and self.text[self.at + 1 : self.at + 2] not in ("]", "")
                and isinstance(low, int)
            ):
                self.at += 1
                char = self.text[self.at]
                self.at += 1
                high = self.escape(True) if char == "\\" else ord(char)
                if not isinstance(high, int):
                    found += [low, ord("-"), *high]
                elif high < low:
                    raise self.invalid("a range whose first character is the smaller one")
                else:
                    found.append((low, high))
            elif isinstance(low, int):
                found.append(low)
            else:
                found.extend(low)
        ranges = ir.charset(found)
        return ir.complement(ranges) if negated else ranges


def _branches(node: ir.Ir, end: bool) -> list[tuple[bool, ir.Ir]]:
    """The alternatives of ``node`` without their anchor at that end, by whether they had it."""
    if isinstance(node, _Anchor) and node.end is end:
        return [(True, ir.EMPTY)]
    if isinstance(node, ir.Alt):
        return [found for option in node.options for found in _branches(option, end)]
    if isinstance(node, ir.Seq) and node.items:
        edge = node.items[-1] if end else node.items[0]
        if _has_anchor(edge):
            rest = node.items[:-1] if end else node.items[1:]
            return [
                (anchored, ir.Seq((*rest, part)) if end else ir.Seq((part, *rest)))
                for anchored, part in _branches(edge, end)
            ]
    return [(False, node)]


def _has_anchor(node: ir.Ir) -> bool:
    return isinstance(node, _Anchor) or any(map(_has_anchor, ir.children(node)))


_KNOWN: Kept[ir.Ir] = Kept(16_000_000)
_NODE = 300
"""The bytes of a node, of which an expression has about one for each character."""


def read_regex(text: str) -> ir.Ir:
    """The strings in which the regular expression ``text`` finds a match.

    Raises ValueError if it is not a regular expression, `Unsupported` if it is one that no grammar can say.
    """
    found = _KNOWN.get(text)
    if found is None:
        found = _read(text)
        _KNOWN.add(text, found, _NODE * len(text))
    return found


def _read(text: str) -> ir.Ir:
    reader = _Reader(text)
    node = reader.alternatives()
    if reader.at < len(text):
        raise reader.invalid("the end")
    found: dict[tuple[bool, bool], list[ir.Ir]] = {}
    for at_start, left in _branches(node, False):
        for at_end, inner in _branches(left, True):
            if _has_anchor(inner):
                raise Unsupported("an anchor inside the expression")
            found.setdefault((at_start, at_end), []).append(inner)
    return ir.alt(
        *(_beside_any(ir.alt(*inner), at_start, at_end) for (at_start, at_end), inner in found.items())
    )


def _beside_any(node: ir.Ir, at_start: bool, at_end: bool) -> ir.Ir:
    """A branch with any text before and after it, unless it has an anchor there."""
    if not at_end:
        node = ir.seq(_fewest(node, True), ir.ANYTHING)
    return ir.seq(node) if at_start else ir.seq(ir.ANYTHING, _fewest(node, False))


def _fewest(node: ir.Ir, end: bool) -> ir.Ir:
    """A node beside any text, without what any text says as well: ``X{2,9}`` is ``X{2}`` there."""
    if isinstance(node, ir.Alt):
        return ir.alt(*(_fewest(option, end) for option in node.options))
    if isinstance(node, ir.Seq) and node.items:
        rest, edge = (node.items[:-1], node.items[-1]) if end else (node.items[1:], node.items[0])
        short = _fewest(edge, end)
        if isinstance(short, ir.Seq) and not short.items:
            return _fewest(ir.seq(*rest), end)
        return ir.seq(*rest, short) if end else ir.seq(short, *rest)
    if isinstance(node, ir.Rep) and node.least != node.most:
        return (
            ir.seq(*[node.node] * node.least) if node.least < 2 else ir.Rep(node.node, node.least, node.least)
        )
    return node
