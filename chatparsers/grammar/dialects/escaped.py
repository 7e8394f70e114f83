"""How the characters of a set are spelt in a JSON string; those beyond ASCII by ``\\u`` as a regular expression."""

from __future__ import annotations

from typing import NamedTuple

from ..ir import LAST, Ranges, charset, overlap, without

ESCAPED = charset(['"', "\\", (0, 31)])
HIGH = charset([(0x80, LAST)])
_CONTROLS = charset([(0, 31)])
_SHORT = {'"': '"', "\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Spellings(NamedTuple):
    """The spellings of one character of a set. A character that needs no escape has only itself.

    ``ways``: a text, and the sets of the characters after it. ``high``: whether all characters beyond ASCII are in the
    set, which may then be spelt by ``\\u``.
    """

    ways: list[tuple[str, tuple[Ranges, ...]]]
    high: bool


def spellings(ranges: Ranges) -> Spellings:
    """How one character of a set is spelt."""
    last = {"0": "", "1": ""}
    """The second digits of control characters, by the first."""
    for low, high in overlap(ranges, _CONTROLS):
        for code in range(low, high + 1):
            last[f"{code >> 4:x}"] += f"{code & 15:x}"
    first: dict[str, str] = {}
    for digit, digits in last.items():
        first[digits] = first.get(digits, "") + digit
    letters = charset(letter for letter, char in _SHORT.items() if overlap(ranges, charset(char)))
    ways: list[tuple[str, tuple[Ranges, ...]]] = [("", (without(ranges, ESCAPED),)), ("\\", (letters,))]
    ways += [("\\u00", (charset(ones), charset(digits + digits.upper()))) for digits, ones in first.items()]
    return Spellings([way for way in ways if all(way[1])], HIGH[0] in overlap(ranges, HIGH))


_PLANE = 0x10000
_HALF = 0x400
_DIGITS = "0123456789abcdef"
_ANY_DIGIT = "[0-9a-fA-F]"


def high_spellings(ranges: Ranges) -> list[str]:
    """The spellings of the characters of a set that are beyond ASCII; those beyond ``\\uFFFF`` are pairs."""
    found = [
        rf"\\u{form}" for span in overlap(ranges, ((0x80, 0xD7FF), (0xE000, 0xFFFF))) for form in _hex(*span)
    ]
    for low, high in overlap(ranges, ((_PLANE, 0x10FFFF),)):
        found += _pairs(low - _PLANE, high - _PLANE)
    return found


def _pairs(low: int, high: int) -> list[str]:
    """Pairs of surrogates: the first half says which block of 1,024 characters, the second which one in it."""
    first, last = low // _HALF, high // _HALF
    if first == last:
        blocks = [(first, last, low % _HALF, high % _HALF)]
    else:
        blocks = [(first, first, low % _HALF, _HALF - 1), (last, last, 0, high % _HALF)]
        if last - first > 1:
            blocks.append((first + 1, last - 1, 0, _HALF - 1))
    return [
        rf"\\u{one}\\u{two}"
        for begin, end, from_, to in blocks
        for one in _hex(0xD800 + begin, 0xD800 + end)
        for two in _hex(0xDC00 + from_, 0xDC00 + to)
    ]


def _hex(low: int, high: int, digits: int = 4) -> list[str]:
    """The numbers from ``low`` to ``high`` in so many digits."""
    if not digits:
        return [""]
    size = 16 ** (digits - 1)
    first, last = low // size, high // size
    if first == last:
        return [_digit(first, last) + rest for rest in _hex(low % size, high % size, digits - 1)]
    found = []
    if low % size:
        found += [_digit(first, first) + rest for rest in _hex(low % size, size - 1, digits - 1)]
        first += 1
    if high % size < size - 1:
        found += [_digit(last, last) + rest for rest in _hex(0, high % size, digits - 1)]
        last -= 1
    if first <= last:
        found.append(_digit(first, last) + _ANY_DIGIT * (digits - 1))
    return found


def _digit(first: int, last: int) -> str:
    if (first, last) == (0, 15):
        return _ANY_DIGIT
    digits = _DIGITS[first : last + 1]
    both = dict.fromkeys(digits + digits.upper())
    return "".join(both) if len(both) == 1 else f"[{''.join(both)}]"
