"""How much one rendering may do. Templates come from strangers: they may loop, grow and nest as they like.

Strategy. No Python code can stop a C function halfway, so an operation is paid for *before* it runs, out of one account
per rendering. A unit stands for a character put together, or for about 50 ns of work. So the same account bounds time,
memory and output. The answer depends only on the template and the conversation, never on the machine or its load.

- Loops, macros and blocks pay for their body each time it runs, by a weight found when the template is compiled.
- Operations whose cost depends on the size of a value (operators, comparisons, filters, methods, the output) pay by
  that size.
- A value is measured as it is printed: if a list holds another list twice, that list counts twice.

Invariants: each new value is paid for before it exists, or is no larger than the values it was made from. An overdrawn
account stays overdrawn: everything later in the same call fails at once, so a hundred probes cost no more than one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from .exact import to_json
from .failure import Exhausted, explain

Measured: TypeAlias = tuple[int, int, int]
"""Of a container: about how many characters it has when it is printed, its entries, and how deep it nests."""
_NOTHING: Mapping[int, Measured] = {}


class Borrowed(Exception):
    """The template changes a list, although its data are lent."""


_T = TypeVar("_T")
_Method = TypeVar("_Method", bound=Callable[..., Any])


_SCALARS = frozenset({int, float, bool, type(None)})
_PLAIN = frozenset({list, dict, tuple})
_FEW_KEYS = 128
_BITS = 4096
_WORD = 64
_TOO_LARGE = f"the template makes a number of more than {_BITS:,} bits, or a text of that width"
_DIGITS = re.compile(r"\d+")
_WIDTHS = re.compile(r"(?:%[#0\- +]*|\.)(\d+)")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a template may do.

    ``work``: the units of one call, such as ``render`` or ``detect``; a character put together is one, and 16 million
    are about a second and at most 64 MB of text. ``growth``: the units added for each character of the conversation and
    the tools that the caller gives. ``source``: the characters of a template. ``tokens``: the names, signs and texts
    in it.
    """

    work: int = 16_000_000
    growth: int = 64
    source: int = 1_000_000
    tokens: int = 20_000


DEFAULT = Limits()


def _divided(divide: Callable[[Any, Any], Any]) -> Callable[[Meter, Any, Any], Any]:
    """A division, as a method of `Meter`."""

    def method(self: Meter, left: Any, right: Any) -> Any:
        self._numbers(left, right)
        return divide(left, right)

    return method


def _compared(compare: Callable[[Any, Any], Any]) -> Callable[[Meter, Any, Any], Any]:
    """A comparison, as a method of `Meter`."""

    def method(self: Meter, left: Any, right: Any) -> Any:
        self.pair(left, right)
        return compare(left, right)

    return method


class Meter:
    """The account of one call: ``left`` units.

    ``lent``: the template's data are used again, so that it may not change a list. ``known``: of parts of such data, by
    their identity, their measures.
    """

    __slots__ = ("_given", "known", "left", "lent", "limits")
    traces = False
    """Whether texts carry their runs: see `traced`."""

    def __init__(self, limits: Limits, given: tuple[object, ...] = ()) -> None:
        self.limits = limits
        self.left = limits.work
        self.lent = False
        self.known: Mapping[int, Measured] = _NOTHING
        self._given: tuple[object, ...] | None = given

    def spend(self, units: int) -> None:
        """Pays ``units``. Raises `Exhausted` if the account has fewer."""
        self.left -= units
        if self.left < 0:
            self.stretch()

    def afford(self, units: int) -> None:
        """Raises `Exhausted` if the account has fewer than ``units``. Pays nothing."""
        if units > self.left:
            self.spend(units)
            self.left += units

    def stretch(self) -> None:
        """Adds, once, the units that the caller's data allow. Raises `Exhausted` if that is not enough."""
        if self._given is not None:
            # Measured only now, as few templates get here. It is the caller's own data: templates change only copies.
            self.left += self.limits.growth * _characters(self._given)
            self._given = None
        if self.left < 0:
            raise Exhausted(
                f"the template does more than its limits allow ({self.limits.work:,} units of work, "
                f"{self.limits.growth} more for each character of the conversation)"
            )

    # What a traced rendering does otherwise: see `traced`

    def carried(self, result: Any, *given: object) -> Any:
        """The ``result`` of an operation on ``given`` values."""
        return result

    def lifted(self, text: Any, *given: object) -> Any:
        """The ``text`` of which a method is called with ``given`` values."""
        return text

    def read(self, value: Any, text: Any) -> Any:
        """A ``value`` that was read from a JSON ``text``."""
        return value

    json = staticmethod(to_json)
    together = staticmethod("".join)
    """Pieces of a text as one."""

    # What values cost

    def size(self, value: object) -> int:
        """About how many characters the value has when it is printed, and what its entries take; pays for the walk."""
        kind = type(value)
        if kind is str:
            return len(value)  # type: ignore[arg-type]
        if kind in _SCALARS:
            if kind is int and value.bit_length() > _WORD:  # type: ignore[attr-defined]
                self.number(value)
            return 8
        known = self.known.get(id(value))
        if known is None:
            total, nodes, _ = self.measured(value)
        else:
            total, nodes, _ = known
            if total + 2 * nodes > self.left:
                self.afford(total + 2 * nodes)
        self.spend(2 * nodes + 2)
        return total

    def measured(self, value: object) -> Measured:
        """The measures of a container. Raises `Exhausted` if the account cannot pay it."""
        total, nodes, depth = 0, 0, 0
        level: list[Any] = [value]
        while level:
            depth += 1
            inner: list[Any] = []
            for item in level:
                kind = type(item)
                if kind is str:
                    total += len(item)
                elif kind in _SCALARS:
                    total += 4
                    if kind is int and item.bit_length() > _WORD:
                        self.number(item)
                elif kind is dict or kind is list or kind is tuple:
                    nodes += len(item)
                    total += 8 * len(item) + 8
                    if total + 2 * nodes > self.left:
                        self.afford(total + 2 * nodes)
                    if kind is dict:
                        try:
                            total += len("".join(item))
                        except TypeError:  # a key that is not a text
                            inner.extend(item)
                        item = item.values()
                    inner.extend(item)
                elif isinstance(item, str):  # markup escapes what is added to it
                    total += len(item) * (6 if hasattr(item, "__html__") else 1)
                elif isinstance(item, Decimal):
                    total += len(str(item))
                elif (found := entries(item)) is not None:
                    inner.append(list(found))
            level = inner
        return total, nodes, depth

    def made(self, value: _T) -> _T:
        """``value``, which an operation has just made out of values at least as large, once it is paid for."""
        kind = type(value)
        if kind is str:
            self.left -= len(value)  # type: ignore[arg-type]
        elif kind in _SCALARS:
            return value
        elif kind is list or kind is tuple:
            self.left -= 2 * len(value)  # type: ignore[arg-type]
        elif isinstance(value, (dict, Set)):
            self.left -= 25 * len(value)
        elif isinstance(value, str):
            self.left -= len(value)
        if self.left < 0:
            self.stretch()
        return value

    def stream(self, values: Iterable[_T], cost: Callable[[_T], int] | int = 8) -> Iterator[_T]:
        """``values``, each paid for when it is asked for."""
        for value in values:
            self.left -= cost if isinstance(cost, int) else cost(value)
            if self.left < 0:
                self.stretch()
            yield value

    def key(self, value: _T) -> _T:
        """``value``, once it is paid for that it is hashed."""
        if type(value) is not str and isinstance(value, tuple):
            self.spend(self.size(value))
        return value

    def keys(self, values: Iterable[Any]) -> list[Any]:
        """``values`` as keys of a dict or a set. Each is paid for; keys that could be chosen to collide must be few."""
        keys = list(self.stream(values, 25))
        if len(keys) > _FEW_KEYS and not all(isinstance(key, str) for key in keys):
            raise Exhausted(
                f"the template makes a dict or set of more than {_FEW_KEYS} keys that are no texts"
            )
        for key in keys:
            self.key(key)
        return keys

    def number(self, value: object) -> None:
        """Pays for calculating with a number. Raises `Exhausted` if it has too many digits."""
        if isinstance(value, int):
            bits = value.bit_length()
            if bits > _WORD:
                if bits > 2 * _BITS:
                    raise Exhausted(_TOO_LARGE)
                self.spend(bits >> 2)
        elif isinstance(value, Decimal) and (len(str(value)) > _BITS or abs(value.adjusted()) > digits()):
            raise Exhausted(_TOO_LARGE)

    def _numbers(self, left: object, right: object) -> None:
        if type(left) is not float:
            self.number(left)
        if type(right) is not float:
            self.number(right)

    # Output

    def text(self, value: object) -> str:
        """``str(value)``."""
        if type(value) is str:
            return value
        if type(value) in _SCALARS:
            self.size(value)
            return str(value)
        self.afford(2 * self.size(value))
        result = str(value)
        self.spend(len(result))
        return result

    def trim(self, value: Any) -> Any:
        """The filter ``trim`` without arguments."""
        if type(value) is not str:
            value = value if isinstance(value, str) else self.text(value)
        self.left -= 2 * len(value)
        if self.left < 0:
            self.stretch()
        return value.strip()

    def join(self, pieces: Iterable[str]) -> str:
        """The pieces as one text."""
        parts = pieces if isinstance(pieces, (list, tuple)) else list(pieces)
        self.left -= sum(map(len, parts))
        if self.left < 0:
            self.stretch()
        return self.together(parts)

    def concat(self, values: tuple[object, ...]) -> str:
        """The operator ``~``: the values as texts, joined."""
        return self.join([self.text(value) for value in values])

    # Operators

    def add(self, left: Any, right: Any) -> Any:
        """``left + right``."""
        if type(left) is str and type(right) is str:
            self.left -= len(left) + len(right)
            if self.left < 0:
                self.stretch()
        elif isinstance(left, str) and isinstance(right, str):  # markup, which escapes what is added to it
            self.left -= 12 * (len(left) + len(right))
            if self.left < 0:
                self.stretch()
        elif type(left) is not int or type(right) is not int:
            if isinstance(left, (str, list, tuple)):
                self.spend(2 * (self._flat(left) + (self._flat(right) if hasattr(right, "__len__") else 0)))
            else:
                self._numbers(left, right)
        return left + right

    def subtract(self, left: Any, right: Any) -> Any:
        """``left - right``, of numbers or the keys of dicts."""
        if type(left) not in _SCALARS and isinstance(left, Set):
            left = set(self.keys(left))
            right = self.keys(right) if isinstance(right, Iterable) else right
            return self.made(left.difference(right))
        self._numbers(left, right)
        return left - right

    def multiply(self, left: Any, right: Any) -> Any:
        """``left * right``."""
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() + right.bit_length()
            if bits > _WORD:
                if bits > 2 * _BITS:
                    raise Exhausted(_TOO_LARGE)
                self.spend(bits >> 2)
        elif isinstance(right, int) and hasattr(left, "__len__"):
            self.spend(max(right, 0) * self._flat(left))
        elif isinstance(left, int) and hasattr(right, "__len__"):
            self.spend(max(left, 0) * self._flat(right))
        else:
            self._numbers(left, right)
        return left * right

    def power(self, left: Any, right: Any) -> Any:
        """``left ** right``."""
        self._numbers(left, right)
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * abs(right)
            if bits > 2 * _BITS:
                raise Exhausted(_TOO_LARGE)
            self.spend(bits >> 2)
        return left**right

    divide = _divided(operator.truediv)
    floor_divide = _divided(operator.floordiv)

    def negative(self, value: Any) -> Any:
        """``-value``."""
        self.number(value)
        return -value

    def positive(self, value: Any) -> Any:
        """``+value``."""
        self.number(value)
        return +value

    def modulo(self, left: Any, right: Any) -> Any:
        """``left % right``: of numbers, or a text with places for values."""
        if not isinstance(left, str):
            self._numbers(left, right)
            return left % right
        self.widths(left, _DIGITS if isinstance(right, Mapping) else _WIDTHS)
        for value in right if isinstance(right, tuple) else (right,):
            if "*" in left and isinstance(value, int):
                self.afford(abs(value))
            self.number(value)
        shown = self.size(right) * (left.count("%") if isinstance(right, Mapping) else 1)
        self.afford(2 * shown * (6 if hasattr(left, "__html__") else 1) + len(left))
        return self.made(left % right)

    def widths(self, form: str, numbers: re.Pattern[str] = _DIGITS) -> None:
        """Raises `Exhausted` if the numbers in ``form`` together make a text wider than the account can pay."""
        wide = [number.lstrip("0") for number in numbers.findall(form)]
        if any(len(number) > 9 for number in wide):
            raise Exhausted(_TOO_LARGE)
        self.afford(sum(int(number or 0) for number in wide))

    def shown(self, value: _T) -> _T:
        """``value``, once it is paid for that it is printed with its markup escaped."""
        size = self.size(value)
        self.afford(6 * size)
        self.spend(2 * size)
        return value

    def mapping(self, value: Any) -> Any:
        """``value`` as what a dict is made of: another one, or pairs."""
        if isinstance(value, Mapping):
            self.spend(25 * len(value))
            return value
        pairs = list(self.stream(value, 25))
        self.keys(pair[0] for pair in pairs if isinstance(pair, (list, tuple, str)) and pair)
        return pairs

    def _flat(self, value: Any) -> int:
        """What a copy of a sequence costs: a character, or an entry of a list."""
        return len(value) * ((6 if hasattr(value, "__html__") else 1) if isinstance(value, str) else 2)

    # Comparisons

    def pair(self, left: object, right: object) -> None:
        """Pays for a comparison of the two."""
        if type(left) in _SCALARS or type(right) in _SCALARS:
            return
        if isinstance(left, str) or isinstance(right, str):
            if isinstance(left, str) and isinstance(right, str):
                self.left -= min(len(left), len(right)) >> 6
                if self.left < 0:
                    self.stretch()
            return
        if type(left) is type(right) or not (type(left) in _PLAIN and type(right) in _PLAIN):
            self.spend(self.size(left))

    equal = _compared(operator.eq)
    unequal = _compared(operator.ne)
    less = _compared(operator.lt)
    at_most = _compared(operator.le)
    greater = _compared(operator.gt)
    at_least = _compared(operator.ge)

    def inside(self, item: Any, container: Any) -> bool:
        """``item in container``."""
        if type(container) is dict:
            self.key(item)
        elif isinstance(container, str):
            self.search(len(container), len(item) if isinstance(item, str) else 1)
        elif isinstance(container, (Mapping, Set)):
            self.key(item)
        elif hasattr(container, "__len__"):
            self.spend(len(container) * (1 + (self.size(item) >> 6)))
        elif isinstance(container, Iterator):
            container = self.stream(container, 8 + (self.size(item) >> 6))
        return item in container

    def outside(self, item: Any, container: Any) -> bool:
        """``item not in container``."""
        return not self.inside(item, container)

    def search(self, text: int, sought: int, backward: bool = False) -> None:
        """Pays for looking for ``sought`` characters in ``text``: from some lengths on, CPython's search is linear."""
        length = sought if backward or text < 30_000 else min(sought, 64)
        self.spend((text >> 4) + (text * length >> 6 if sought <= text else 0))


def _characters(given: tuple[object, ...]) -> int:
    """The characters in the caller's data; each container is counted once."""
    total, seen, stack = 0, set(), list(given)
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, (Mapping, list, tuple)) and id(item) not in seen:
            seen.add(id(item))
            total += 8 * len(item)
            stack += [*item, *item.values()] if isinstance(item, Mapping) else item
    return total


def entries(value: object) -> list[Any] | tuple[Any, ...] | None:
    """The values that a container shows when it is printed; None if the value is not a container."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    if isinstance(value, Set) or type(value) in (type({}.values()), type({}.items())):
        return list(value)  # type: ignore[call-overload, no-any-return]
    fields = getattr(value, "_Namespace__attrs", None) if type(value).__name__ == "Namespace" else None
    return list(fields.values()) if isinstance(fields, dict) else None


def digits() -> int:
    """The most digits of a number that is calculated with."""
    return _BITS // 4


_current: ContextVar[Meter | None] = ContextVar("chatparsers.templates.jinja.limits", default=None)


def current() -> Meter:
    """The account of the current call. A fresh one if a template's function is called outside a rendering."""
    return _current.get() or Meter(DEFAULT)


@contextmanager
def used(account: Meter, old: Meter) -> Iterator[None]:
    """In the block, ``account`` goes on in the place of the account ``old``."""
    _hand_over(old, account)
    token = _current.set(account)
    try:
        yield
    finally:
        _current.reset(token)
        _hand_over(account, old)


def _hand_over(old: Meter, new: Meter) -> None:
    """Gives to ``new`` what is left of the account ``old``."""
    new.left, new.lent, new.known, new._given = old.left, old.lent, old.known, old._given


@contextmanager
def account(limits: Limits, name: str, *given: object) -> Iterator[None]:
    """Opens one account for everything rendered inside the block. Inside another account, that one is used.

    ``name``: the template's name in errors. ``given``: the caller's data; `Limits.growth` adds units for its size.
    Raises `TemplateError` if the outermost account is overdrawn. An inner block passes `Exhausted` on.
    """
    if _current.get() is not None:
        yield
        return
    token = _current.set(Meter(limits, given))
    try:
        yield
    except Exhausted as error:
        raise explain(error, name) from error
    finally:
        _current.reset(token)


def limited(method: _Method) -> _Method:
    """The method of an object with ``name`` and ``limits``, each call of it within one account."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _current.get() is not None:
            return method(self, *args, **kwargs)
        token = _current.set(Meter(self.limits, (args, kwargs)))
        try:
            return method(self, *args, **kwargs)
        except Exhausted as error:
            raise explain(error, self.name) from error
        finally:
            _current.reset(token)

    return call  # type: ignore[return-value]
