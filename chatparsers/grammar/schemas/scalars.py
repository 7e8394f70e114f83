"""Strings and numbers: patterns, lengths, bounds and divisors, as far as engines bear them."""

from __future__ import annotations

from decimal import Decimal
from math import lcm

from .. import ir
from ..regular import numbers as n
from ..regular.regex import Unsupported, read_regex
from .cases import Bound, Case, crossed
from .written import Output

# strings

Parts = tuple[ir.Part, ...]

_MOST_COUNTED = 256
"""The most states for counting the characters of text up to a marker."""


def regex(expression: str, path: str, keyword: str, output: Output) -> ir.Ir | None:
    """The strings in which the regular expression finds a match. If a grammar cannot say them, reports it and returns
    None."""
    try:
        return read_regex(expression)
    except Unsupported as reason:
        output.tell(path, keyword, f"the regular expression has {reason}")
        return None


def string_parts(case: Case, output: Output) -> Parts:
    """The patterns of a string."""
    nodes = (regex(expression, path, keyword, output) for expression, path, keyword in case.patterns)
    return tuple(ir.Part(node) for node in nodes if node is not None)


def borne(
    case: Case, parts: Parts, stops: tuple[str, ...], output: Output, most_counted: int | None = None
) -> ir.Lang | None:
    """The strings of a case with these constraints, as far as engines bear them; None if there are none. ``stops``:
    the texts that end a string. ``most_counted``: the longest ones that are counted, of those without a stop."""
    least, most = case.least, case.most
    if most is not None and most < least:
        return None
    if stops and output.target.counts_text:
        least, most = _count(
            case, output.target.counts_text, "before a marker take the engine too many states", output
        )
    if parts:
        size = output.states(ir.Lang(parts, least, most, stops=stops))
        if size == 0:
            return None
        if size is None:
            _, path, keyword = case.patterns[-1] if case.patterns else ("", case.path, "maxLength")
            if least or most is not None:
                counted = "maxLength" if most is not None else "minLength"
                output.tell(path, counted, "beside a pattern it takes too many states")
                least, most = 0, None
            parts = _few(parts, stops, path, keyword, output)
    elif stops and not output.target.counts_text:
        least, most = _count_to_stop(case, stops, output)
    elif not stops and most_counted is not None:
        why = "are not counted: each character takes the engine 30 ms to compile"
        least, most = _count(case, most_counted, why, output)
    return ir.Lang(parts, least, most)


def _few(parts: Parts, stops: tuple[str, ...], path: str, keyword: str, output: Output) -> Parts:
    """As many of the constraints as fit into an automaton of limited size."""
    while parts and output.states(ir.Lang(parts, stops=stops)) is None:
        output.tell(path, keyword, "the regular expression takes too many states")
        parts = parts[:-1]
    return parts


def _count_to_stop(case: Case, stops: tuple[str, ...], output: Output) -> tuple[int, int | None]:
    """The lengths of text up to a stop that are counted.

    Each count has one state for each beginning of a stop that fits into it. A state costs some engines 12 ms.
    """
    why = "text up to a marker is not counted: it takes too many states"
    least, most = case.least, case.most
    if most is not None and most * _begun(stops, most) > _MOST_COUNTED:
        output.tell(case.path, "maxLength", why)
        most = None
    if least * _begun(stops, least if most is None else most) > _MOST_COUNTED:
        output.tell(case.path, "minLength", why)
        least = 0
    return least, most


def _begun(stops: tuple[str, ...], most: int) -> int:
    """How many beginnings of the stops, and none, are in ``most`` characters."""
    return len({stop[:end] for stop in stops for end in range(min(most + 1, len(stop)))})


def _count(case: Case, limit: int, why: str, output: Output) -> tuple[int, int | None]:
    """The lengths of a string that are counted, if lengths over ``limit`` are not."""
    least, most = case.least, case.most
    why = f"lengths over {limit} {why}"
    if most is not None and most > limit:
        output.tell(case.path, "maxLength", why)
        most = None
    if least > limit:
        output.tell(case.path, "minLength", why)
        least = limit
    return least, most


# numbers

INTEGER = ir.Shared("integer", n.INTEGER, True)
NUMBER = ir.Shared("number", n.NUMBER, True)

_MOST_DIVISOR = 200
_MOST_MULTIPLES = 256
"""So many multiples are listed; more are said by an automaton."""
_TENTHS = frozenset(Decimal(1).scaleb(-places) for places in range(1, 16))


def number(case: Case, integer: bool, output: Output, beside_text: bool = False) -> ir.Ir:
    """The numbers of a case. ``beside_text``: text up to a marker may be in their place."""
    step, integer = _step(case, integer, output)
    if integer:
        made = _integer(case, int(step))
        if (
            beside_text
            and output.target.counts_text
            and isinstance(made, ir.Shared)
            and isinstance(made.node, ir.Lang)
        ):
            output.tell(
                case.divisors[0][1], "multipleOf", "the engine reads no divisor beside text up to a marker"
            )
            made = _integer(case, 0)
        return made
    low, high = case.low, case.high
    if crossed(low, high):
        return ir.NOTHING
    found: tuple[ir.Part, ...] = ()
    if low is not None or high is not None:
        found = n.number_parts(
            low[0] if low else None,
            bool(low and low[1]),
            high[0] if high else None,
            bool(high and high[1]),
        )
    if step:
        places = -int(step.as_tuple().exponent)
        tail = ir.Rep(ir.seq(ir.Text("."), ir.Rep(n.DIGIT, 1, places), n.zeros(places)), 0, 1)
        found += (ir.Part(ir.seq(n.SIGN, n.NATURAL, tail)),)
    if not found:
        return NUMBER
    return ir.Shared("num", found[0].node if len(found) == 1 else ir.Lang(found), True)


def _step(case: Case, integer: bool, output: Output) -> tuple[Decimal, bool]:
    """The number that divides all values (0 if there is no such number), and whether the values are integers."""
    step = Decimal(0)
    for divisor, path in case.divisors:
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


def _integer(case: Case, step: int) -> ir.Ir:
    first = None if case.low is None else _ceiling(case.low)
    last = None if case.high is None else -_ceiling((-case.high[0], case.high[1]))
    if first is not None and last is not None and first > last:
        return ir.NOTHING
    if step <= 1:
        if first is None and last is None:
            return INTEGER
        return ir.Shared("int", n.integer_range(first, last), True)
    if first is not None and last is not None and (last - first) // step <= _MOST_MULTIPLES:
        values = range(first + -first % step, last + 1, step)
        return ir.Shared("int", ir.texts(map(str, values)), True) if values else ir.NOTHING
    # Digits are not counted beside a divisor: the automaton would have a state for each remainder and count.
    divided = ir.Part(ir.EMPTY, divisor=step, bounds=(first, last))
    return ir.Shared("int", ir.Lang((ir.Part(n.integer_range(first, last, None)), divided)), True)


def _ceiling(bound: Bound) -> int:
    """The least integer above the bound; the bound itself counts too if it is not strict."""
    value, strict = bound
    whole = int(value.to_integral_value(rounding="ROUND_CEILING"))
    return whole + 1 if strict and whole == value else whole


def _divides_one(divisor: Decimal) -> bool:
    top, bottom = divisor.as_integer_ratio()
    return bottom % top == 0
