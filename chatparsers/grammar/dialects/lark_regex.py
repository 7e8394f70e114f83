"""Regular expressions as Lark's terminals have them.

A character inside a JSON string has several spellings: itself, an escape, ``\\u`` and four digits. What a grammar
generates has those that a model writes; what it excludes has all.
"""

from __future__ import annotations

import re

from ...kept import kept
from .. import ir
from ..ir import ANY, LAST, Encoding, Ir, Ranges, charset, complement, overlap
from ..reading.residual import BEYOND_ASCII
from .escaped import Spellings, high_spellings, spellings
from .rules import suffix

ANY_CHARACTER = "(?s:.)"
_NEVER = r"[^\s\S]"
_SURROGATES: Ranges = ((0xD800, 0xDFFF),)
"""No text of a model has them, and llguidance refuses a set that begins or ends with one."""

_OF_SYNTAX = re.compile(r"[^A-Za-z0-9 _\-<>=:,;\"'!@%~`]").sub


def escape(text: str) -> str:
    return _OF_SYNTAX(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if " " < char <= "~":
        return "\\" + char
    return char if char.isalpha() and not char.isascii() else f"\\x{{{ord(char):X}}}"


def _point(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in " _<>=:,;\"'!@%") else f"\\x{{{code:X}}}"


@kept(4096, 128)
def char_class(ranges: Ranges) -> str:
    if ranges == ANY:
        return ANY_CHARACTER
    negated = ranges[-1][1] == LAST
    shown = complement(ranges) if negated else ranges
    if any(first <= edge <= last for first, last in _SURROGATES for pair in shown for edge in pair):
        shown = overlap(shown, complement(_SURROGATES))
        if not shown:
            return ANY_CHARACTER if negated else _NEVER
    if len(shown) == 1 and shown[0][0] == shown[0][1] and not negated:
        return _point(shown[0][0])
    parts = [_point(low) if low == high else f"{_point(low)}-{_point(high)}" for low, high in shown]
    return f"[{'^' if negated else ''}{''.join(parts)}]"


@kept(4096, 128)
def _encoded(ranges: Ranges) -> str:
    """The spellings of one character inside a JSON string; the same as the GBNF writer's."""
    return _options(spellings(ranges), [])


def _in_every_way(ranges: Ranges) -> str:
    """The same, and those that are not generated of a part of the characters beyond ASCII."""
    spelt = spellings(ranges)
    return _options(spelt, [] if spelt.high else high_spellings(ranges))


def _options(spelt: Spellings, others: list[str]) -> str:
    options = [escape(text) + "".join(map(char_class, sets)) for text, sets in spelt.ways]
    options += [BEYOND_ASCII] if spelt.high else others
    return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"


EXACT = _encoded(ANY)
"""Any character inside a JSON string, as it is generated."""
_SPELT_SO = re.compile(r"[ !#-\[\]-~]*").fullmatch
"""Finds the texts that have no other spelling inside a JSON string."""


def regex(node: Ir, encoding: Encoding, every: bool = False) -> str:
    """A regular node as a regular expression. ``every``: in all spellings, because they are to be excluded."""
    encoded = _in_every_way if every else _encoded
    if isinstance(node, ir.Text):
        if encoding == "raw":
            return escape(node.text)
        if _SPELT_SO(node.text):
            return escape(node.text)
        return "".join([encoded(charset(char)) for char in node.text])
    if isinstance(node, ir.Chars):
        return char_class(node.ranges) if encoding == "raw" else encoded(node.ranges)
    if isinstance(node, ir.Seq):
        return "".join([regex(item, encoding, every) for item in node.items])
    if isinstance(node, ir.Alt):
        return "(?:" + ("|".join([regex(option, encoding, every) for option in node.options]) or _NEVER) + ")"
    if isinstance(node, ir.Rep):
        inner = regex(node.node, encoding, every)
        count = suffix(node.least, node.most)
        one = isinstance(node.node, ir.Alt) or (isinstance(node.node, ir.Chars) and inner[0] in "[(")
        return f"{inner}{count}" if one or len(inner) == 1 else f"(?:{inner}){count}"
    if isinstance(node, ir.Shared):
        return regex(node.node, encoding, every)
    raise TypeError(f"not regular: {type(node).__name__}")
