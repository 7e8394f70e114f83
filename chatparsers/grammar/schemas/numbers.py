"""Numbers: bounds and divisors as digits."""

from __future__ import annotations

from decimal import Decimal
from math import lcm

from ..ir import EMPTY, NOTHING, Ir, Lang, Part, Rep, Shared, Text, seq, texts
from ..regular.numbers import DIGIT, NATURAL, SIGN, integer_range, number_parts, zeros
from ..regular.numbers import INTEGER as _ANY_INTEGER
from ..regular.numbers import NUMBER as _ANY_NUMBER
from .bags import Bag, Bound, crossed
from .output import Output

INTEGER = Shared("integer", _ANY_INTEGER, True)
NUMBER = Shared("number", _ANY_NUMBER, True)

_MOST_DIVISOR = 200
_MOST_MULTIPLES = 256
"""So many multiples are listed; more are said by an automaton."""
_TENTHS = frozenset(Decimal(1).scaleb(-places) for places in range(1, 16))


def number(bag: Bag, integer: bool, output: Output) -> Ir:
    """The numbers of a bag."""
    step, integer = _step(bag, integer, output)
    if integer:
        return _integer(bag, int(step))
    low, high = bag.low, bag.high
    if crossed(low, high):
        return NOTHING
    found: tuple[Part, ...] = ()
    if low is not None or high is not None:
        found = number_parts(
            low[0] if low else None,
            bool(low and low[1]),
            high[0] if high else None,
            bool(high and high[1]),
        )
    if step:
        places = -int(step.as_tuple().exponent)
        tail = Rep(seq(Text("."), Rep(DIGIT, 1, places), zeros(places)), 0, 1)
        found += (Part(seq(SIGN, NATURAL, tail)),)
    if not found:
        return NUMBER
    return Shared("num", found[0].node if len(found) == 1 else Lang(found), True)


def _step(bag: Bag, integer: bool, output: Output) -> tuple[Decimal, bool]:
    """The number that divides all values (0 if there is no such number), and whether the values are integers."""
    step = Decimal(0)
    for divisor, path in bag.divisors:
        if divisor == divisor.to_integral_value() and divisor <= _MOST_DIVISOR:
            joint = lcm(int(step) or 1, int(divisor))
            if joint <= _MOST_DIVISOR and step == step.to_integral_value():
                step, integer = Decimal(joint), True
                continue
        elif step == 0 and divisor in _TENTHS and not integer:
            step = divisor
            continue
        elif integer and divisor < 1 and divisor.is_normal() and _divides_one(divisor):
            continue
        output.tell(path, "multipleOf", "not finite: no automaton of decimal digits says it in few states")
    return step, integer


def _integer(bag: Bag, step: int) -> Ir:
    first = None if bag.low is None else _ceiling(bag.low)
    last = None if bag.high is None else -_ceiling((-bag.high[0], bag.high[1]))
    if first is not None and last is not None and first > last:
        return NOTHING
    if step <= 1:
        if first is None and last is None:
            return INTEGER
        return Shared("int", integer_range(first, last), True)
    if first is not None and last is not None and (last - first) // step <= _MOST_MULTIPLES:
        values = range(first + -first % step, last + 1, step)
        return Shared("int", texts(map(str, values)), True) if values else NOTHING
    # Digits are not counted beside a divisor: the automaton would have a state for each remainder and count.
    divided = Part(EMPTY, divisor=step, bounds=(first, last))
    return Shared("int", Lang((Part(integer_range(first, last, None)), divided)), True)


def _ceiling(bound: Bound) -> int:
    """The least integer above the bound; the bound itself counts too if it is not strict."""
    value, strict = bound
    whole = int(value.to_integral_value(rounding="ROUND_CEILING"))
    return whole + 1 if strict and whole == value else whole


def _divides_one(divisor: Decimal) -> bool:
    top, bottom = divisor.as_integer_ratio()
    return bottom % top == 0
