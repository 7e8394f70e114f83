"""Numbers within bounds, as regular grammars of their decimal spelling.

A bound is compared digit by digit: ``[lower, upper]`` splits into runs. In a run, a common beginning is fixed, one
digit has a range, and the other digits are free. Bounded numbers have no exponent.

A model may fall into a loop of digits, so their number is bounded: 19 before the point (more only if a bound has more),
24 after it, 3 in an exponent. `ANY_INTEGER` and `ANY_NUMBER` are all that a reader takes for a number.
"""

from __future__ import annotations

from decimal import Decimal

from ..ir import NOTHING, Alt, Chars, Ir, Part, Rep, Text, alt, opt, seq

DIGIT = Chars(((48, 57),))
FIRST = Chars(((49, 57),))
SIGN = opt(Text("-"))
_WHOLE, PLACES, _EXPONENT = 19, 24, 3
"""The most digits before the point, after it, and in an exponent."""


def _natural_of(most: int | None) -> Ir:
    return alt(Text("0"), seq(FIRST, Rep(DIGIT, 0, None if most is None else most - 1)))


def _fraction_of(most: int | None) -> Ir:
    return opt(seq(Text("."), Rep(DIGIT, 1, most)))


def _exponent_of(most: int | None) -> Ir:
    sign = opt(Chars(((43, 43), (45, 45))))
    return opt(seq(Chars(((69, 69), (101, 101))), sign, Rep(DIGIT, 1, most)))


NATURAL = _natural_of(_WHOLE)
INTEGER = seq(SIGN, NATURAL)
FRACTION = _fraction_of(PLACES)
NUMBER = seq(SIGN, NATURAL, FRACTION, _exponent_of(_EXPONENT))
ANY_INTEGER = seq(SIGN, _natural_of(None))
ANY_NUMBER = seq(SIGN, _natural_of(None), _fraction_of(None), _exponent_of(None))


def _digit(low: int, high: int) -> Ir:
    return NOTHING if low > high else Text(str(low)) if low == high else Chars(((48 + low, 48 + high),))


def _free(count: int) -> Ir:
    return Rep(DIGIT, count, count) if count > 1 else DIGIT if count else seq()


def _between(low: str, high: str) -> Ir:
    """Digit strings of one length, from ``low`` to ``high``."""
    if not low:
        return seq()
    a, b, rest = int(low[0]), int(high[0]), len(low) - 1
    nines, zeros = "9" * rest, "0" * rest
    if low[1:] == zeros and high[1:] == nines:
        return seq(_digit(a, b), _free(rest))
    if a == b:
        return seq(Text(low[0]), _between(low[1:], high[1:]))
    options = [seq(Text(low[0]), _between(low[1:], nines)), seq(_digit(a + 1, b - 1), _free(rest))]
    return alt(*options, seq(Text(high[0]), _between(zeros, high[1:])))


def _natural(low: int, high: int | None, most: int | None = _WHOLE) -> Ir:
    """Natural numbers from ``low`` to ``high``; without ``high``, those of at most ``most`` digits."""
    if high is None:
        digits = len(str(low))
        options = [_natural(low, 10**digits - 1)] if low else [Text("0"), _natural(1, 9)]
        return alt(*options, seq(FIRST, Rep(DIGIT, digits, None if most is None else max(digits, most - 1))))
    options = []
    while low <= high:
        end = min(high, 10 ** len(str(low)) - 1)
        options.append(_between(str(low), str(end)))
        low = end + 1
    return alt(*options)


def integer_range(low: int | None, high: int | None, most: int | None = _WHOLE) -> Ir:
    """Integers from ``low`` to ``high``, both included (None: no bound, but that of ``most`` digits)."""
    if low is None and high is None:
        return seq(SIGN, _natural_of(most))
    options: list[Ir] = []
    if low is None or low < 0:
        first = 1 if high is None or high >= 0 else -high
        if low is None or first <= -low:
            options.append(seq(Text("-"), _natural(first, None if low is None else -low, most)))
    if high is None or high >= 0:
        first = max(low or 0, 0)
        if high is None or first <= high:
            options.append(_natural(first, high, most))
    return alt(*options)


def _places(written: int) -> Ir:
    """Any further digits after ``written`` digits after the point."""
    return Rep(DIGIT, 0, max(0, PLACES - written))


def zeros(written: int, least: int = 0) -> Ir:
    """Zeros after ``written`` digits after the point."""
    return Rep(Text("0"), least, max(least, PLACES - written))


def _more(written: int) -> Ir:
    """Digits after ``written`` digits after the point, not all of them zeros."""
    found: Ir = FIRST
    for left in range(PLACES - written - 1):
        found = alt(seq(Text("0"), found), seq(FIRST, Rep(DIGIT, 0, left + 1)))
    return found


def _split(bound: Decimal) -> tuple[int, str]:
    """The whole part of a bound's magnitude, and the digits after its point."""
    whole, _, fraction = f"{abs(bound):f}".partition(".")
    return int(whole), fraction.rstrip("0")


def _at_least(bound: Decimal, strict: bool) -> Ir:
    """Magnitudes from ``bound`` on."""
    whole, fraction = _split(bound)
    point, size = Text("."), len(fraction)
    options = [seq(_natural(whole + 1, None), FRACTION)]
    tails: list[Ir] = []
    if fraction or strict:
        for index, digit in enumerate(fraction):
            tails.append(seq(point, Text(fraction[:index]), _digit(int(digit) + 1, 9), _places(index + 1)))
        tails.append(seq(point, Text(fraction), _more(size) if strict else _places(size)))
    else:
        tails.append(FRACTION)
    return alt(*options, seq(Text(str(whole)), alt(*tails)))


def _at_most(bound: Decimal, strict: bool) -> Ir:
    """Magnitudes up to ``bound``."""
    whole, fraction = _split(bound)
    point = Text(".")
    options: list[Ir] = [seq(_natural(0, whole - 1), FRACTION)] if whole else []
    tails: list[Ir] = []
    if fraction:
        tails.append(seq())
        for index, digit in enumerate(fraction):
            if index:
                tails.append(seq(point, Text(fraction[:index])))
            tails.append(seq(point, Text(fraction[:index]), _digit(0, int(digit) - 1), _places(index + 1)))
        if not strict:
            tails.append(seq(point, Text(fraction), zeros(len(fraction))))
    elif not strict:
        tails.append(opt(seq(point, zeros(0, 1))))
    if tails:
        options.append(seq(Text(str(whole)), alt(*tails)))
    return alt(*options)


def _side(bound: Decimal, strict: bool, lower: bool) -> Ir:
    minus, positive = Text("-"), seq(NATURAL, FRACTION)
    if (bound >= 0) is lower:
        inside = _at_least(bound, strict)
        return inside if lower else seq(minus, inside)
    inside = _at_most(bound, strict)
    return alt(positive, seq(minus, inside)) if lower else alt(seq(minus, positive), inside)


def number_parts(
    low: Decimal | None, low_strict: bool, high: Decimal | None, high_strict: bool
) -> tuple[Part, ...]:
    """The constraints that keep a number within its bounds. At least one bound must be given."""
    found: list[Part] = []
    if low is not None:
        found.append(Part(_side(low, low_strict, True)))
    if high is not None:
        if high == 0 and not high_strict:
            found.append(Part(Alt((seq(Text("-"), NATURAL, FRACTION), _at_most(high, False)))))
        else:
            found.append(Part(_side(high, high_strict, False)))
    return tuple(found)
