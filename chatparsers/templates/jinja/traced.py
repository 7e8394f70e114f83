"""A text that knows from which source each run of its characters came, whatever a template does with it.

Strategy. `Traced` is a ``str`` with *runs*. Its methods give what those of ``str`` give, and move the runs along: a
slice cuts them, a sum shifts them, ``strip`` and ``split`` are slices. An operation that is none of these (a filter
that wraps lines, ``repr`` of a list) is done by its own code, and its result is searched for the traced texts that went
in (`carried`). So a traced rendering has the same characters as a plain one: the runs never decide on a text.

`Tracing` is the account of a traced rendering. What a template does goes through its account (`limits`), so this is the
place where operators, output and filters see traced texts. Nothing of this runs in a plain rendering.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any, SupportsIndex

from .exact import to_json
from .limits import Meter, current, used

Run = tuple[int, int, int, int, int]
"""From, to; the number of the source; the first of its characters that it shows, and the place after the last. Where
both spans have the same length, the characters are the source's own, else another spelling of them."""

_ESCAPED = re.compile('[\\\\"\x00-\x1f\x7f\ud800-\udfff]')
_ESCAPED_ASCII = re.compile("[^ !#-\\[\\]-~]")
_SHORT = frozenset('"\\\n\r\t\b\f')


def _at_start(method: Callable[..., str]) -> Callable[..., str]:
    """A method whose result is the beginning of the text, under its name: by that the sandbox knows what it costs."""
    return wraps(method)(lambda self, *given: self._cut(0, len(method(self, *given))))


def _at_end(method: Callable[..., str]) -> Callable[..., str]:
    """A method whose result is the end of the text."""
    return wraps(method)(lambda self, *given: self._cut(len(self) - len(method(self, *given)), len(self)))


def _as_long(method: Callable[..., str]) -> Callable[..., str]:
    """A method whose result is mostly as long as the text, and shows its characters in their order."""

    @wraps(method)
    def spelt(self: Traced) -> str:
        result = method(self)
        return traced(result, self._runs) if len(result) == len(self) else carried(result, self)

    return spelt


def _in_pieces(method: Any) -> Any:
    """A method whose result are pieces of the text in their order, in a list with its first argument between them."""

    @wraps(method)
    def cut(self: Traced, *given: Any, **named: Any) -> Any:
        pieces = method(self, *given, **named)
        between = named.get("sep", given[0] if given else None)
        step = len(between) if type(pieces) is list and isinstance(between, str) else 0
        return type(pieces)(self._pieces(pieces, step))

    return cut


class Traced(str):
    """A text with its runs, in order and without overlaps."""

    __slots__ = ("_runs",)
    _runs: tuple[Run, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return traced, (str.__str__(self), self._runs)

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> str:
        return _added(self, other) if _is_text(other) else NotImplemented

    def __radd__(self, other: str) -> str:
        return _added(other, self) if _is_text(other) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> str:
        return concatenated((self,) * max(int(times), 0))

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        result: str = carried(str.__mod__(self, values), self, values)
        return result

    def __getitem__(self, key: Any) -> str:
        if not isinstance(key, slice):
            place = range(len(self))[key]
            return self._cut(place, place + 1)
        start, stop, step = key.indices(len(self))
        return self._cut(start, max(start, stop)) if step == 1 else carried(str.__getitem__(self, key), self)

    def __iter__(self) -> Iterator[str]:
        return (self._cut(place, place + 1) for place in range(len(self)))

    def _cut(self, start: int, end: int) -> str:
        if start <= 0 and end >= len(self):
            return self
        if start >= end:
            return ""
        piece = str.__getitem__(self, slice(start, end))
        runs: list[Run] = []
        for begin, stop, source, first, last in self._runs:
            if stop <= start:
                continue
            if begin >= end:
                break
            left, right = max(begin, start), min(stop, end)
            if stop - begin == last - first:
                first, last = first + left - begin, last - stop + right
            runs.append((left - start, right - start, source, first, last))
        return traced(piece, tuple(runs)) if runs else piece

    lstrip, removeprefix = map(_at_end, (str.lstrip, str.removeprefix))
    rstrip, removesuffix = map(_at_start, (str.rstrip, str.removesuffix))

    def strip(self, chars: str | None = None) -> str:
        return self.lstrip(chars).rstrip(chars)

    def _pieces(self, pieces: Iterable[str], step: int) -> Iterator[str]:
        """The pieces, which are in this text in this order. ``step``: the length of what is between them, if known."""
        at = 0
        for piece in pieces:
            at = str.find(self, piece, at)
            yield self._cut(at, at + len(piece)) if piece else ""
            at += len(piece) + step

    split, rsplit, splitlines, partition, rpartition = map(
        _in_pieces, (str.split, str.rsplit, str.splitlines, str.partition, str.rpartition)
    )

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:
        if not old:
            result: str = carried(str.replace(self, old, new, count), self, new)
            return result
        return interleaved(new, self.split(old, count)) if old in self else self

    def join(self, items: Iterable[str]) -> str:
        return interleaved(self, list(items))

    lower, upper, title, capitalize = map(_as_long, (str.lower, str.upper, str.title, str.capitalize))


def traced(text: str, runs: tuple[Run, ...] = ()) -> str:
    """A text with these runs."""
    made: Traced = str.__new__(Traced, text)
    made._runs = runs
    return made


def _is_text(value: object) -> bool:
    """Whether it can be put beside a text as it is: markup escapes what is beside it."""
    return isinstance(value, str) and not hasattr(value, "__html__")


def runs_of(text: str) -> tuple[Run, ...]:
    """The runs of a text; none if it is not traced."""
    return () if type(text) is str else getattr(text, "_runs", ())


def _moved(runs: Iterable[Run], by: int) -> Iterable[Run]:
    if not by:
        return runs
    return [(start + by, end + by, source, first, last) for start, end, source, first, last in runs]


def _added(left: str, right: str) -> str:
    """``left + right``, of which one is traced."""
    made: Traced = str.__new__(Traced, str.__add__(left, right))
    if type(right) is not Traced:
        made._runs = left._runs  # type: ignore[attr-defined]  # one of them is traced
    elif type(left) is Traced:
        made._runs = (*left._runs, *_moved(right._runs, len(left)))
    else:
        made._runs = tuple(_moved(right._runs, len(left)))
    return made


def concatenated(pieces: Iterable[str]) -> str:
    """The pieces as one text."""
    pieces = pieces if isinstance(pieces, (list, tuple)) else list(pieces)
    text = "".join(pieces)
    runs: list[Run] = []
    at = 0
    for piece in pieces:
        if type(piece) is not str and (found := runs_of(piece)):
            if len(piece) == len(text) and type(piece) is Traced:
                return piece
            runs += _moved(found, at)
        at += len(piece)
    return traced(text, tuple(runs)) if runs else text


def interleaved(between: str, items: list[str]) -> str:
    """The items with a text between them."""
    if _STR.issuperset(map(type, (between, *items))):
        return between.join(items)
    pieces = [between] * (2 * len(items) - 1)
    pieces[::2] = items
    return concatenated(pieces)


def carried(result: Any, *given: object) -> Any:
    """The ``result`` of an operation on ``given`` values: the texts among them are looked for in it, in their order, as
    they are or as JSON spells them. If none is there, and all are of one source, the whole is another spelling of that.
    """
    if not isinstance(result, str) or not result or runs_of(result):
        return result
    runs: list[Run] = []
    inputs: list[Run] = []
    at = 0
    for text in _texts(given):
        inputs += runs_of(text)
        for way in (text, _spelt(text), _spelt(text, ascii=True)) if text else ():
            found = str.find(result, way, at)
            if found >= 0:
                runs += ((found + start, found + end, *rest) for start, end, *rest in runs_of(way))  # type: ignore[misc]
                at = found + len(way)
                break
    if not runs and len({run[2] for run in inputs}) == 1:
        first, last = min(run[3] for run in inputs), max(run[4] for run in inputs)
        runs = [(0, len(result), inputs[0][2], first, last)]
    if not runs:
        return result
    if not hasattr(result, "__html__"):
        return traced(result, tuple(runs))
    from .markup import TracedMarkup

    return TracedMarkup(result, runs=tuple(runs))


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """All traced texts in a value, in their order."""
    for value in values:
        kind = type(value)
        if kind is str or kind is int:
            continue
        if isinstance(value, str):
            if runs_of(value):
                yield value
        elif isinstance(value, (list, tuple)):
            yield from _texts(value)
        elif kind is dict or isinstance(value, Mapping):
            yield from _texts(item for pair in value.items() for item in pair)


def untraced(value: Any) -> Any:
    """The value with plain texts."""
    kind = type(value)
    if kind is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, dict):
        return {untraced(key): untraced(item) for key, item in value.items()}
    return [untraced(item) for item in value] if kind is list else value


def within(value: Any, text: str) -> Any:
    """A value that was read from ``text``: each text in it is of the same source."""
    runs = runs_of(text) if isinstance(text, str) else ()
    if not runs or len({run[2] for run in runs}) > 1:
        return value
    span = runs[0][2], runs[0][3], runs[-1][4]

    def read(value: Any) -> Any:
        if type(value) is str and value:
            return traced(value, ((0, len(value), *span),))
        if type(value) is dict:
            return {read(key): read(item) for key, item in value.items()}
        return [read(item) for item in value] if type(value) is list else value

    return read(value)


def _spelt(text: str, ascii: bool = False) -> str:
    """A text as JSON spells it, without its quotes."""
    if (_ESCAPED_ASCII if ascii else _ESCAPED).search(text) is None:
        return text
    spelt = to_json(str.__str__(text), ascii)[1:-1]
    runs = runs_of(text)
    if runs and len(spelt) > len(text):
        runs = tuple(_spelt_runs(text, runs, ascii))
    return traced(spelt, runs) if runs else spelt


def _spelt_runs(text: str, runs: Iterable[Run], ascii: bool) -> Iterator[Run]:
    """The runs of a text that JSON spells: each character that it escapes is a run of its own."""
    escaped = list((_ESCAPED_ASCII if ascii else _ESCAPED).finditer(text))
    places = [found.start() for found in escaped]
    longer = [1 if found[0] in _SHORT else len(to_json(found[0], ascii)) - 3 for found in escaped]
    before = list(accumulate(longer, initial=0))

    def moved(place: int) -> int:
        return place + before[bisect_left(places, place)]

    for start, end, source, first, last in runs:
        inside = places[bisect_left(places, start) : bisect_left(places, end)]
        own = end - start == last - first
        cuts = sorted({start, end, *inside, *(at + 1 for at in inside)}) if own else [start, end]
        for at, to in pairwise(cuts):
            shown = (first + at - start, first + to - start) if own else (first, last)
            yield moved(at), moved(to), source, *shown


def _leaves(value: Any, ordered: bool) -> Iterator[str]:
    """The texts in a value, in the order in which JSON writes them. Raises `TypeError` for what is no plain data."""
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is str or kind is Traced:
            yield item
        elif isinstance(item, dict):
            pairs = sorted(item.items()) if ordered else list(item.items())
            for key, inner in reversed(pairs):
                if not isinstance(key, str):
                    raise TypeError
                stack += inner, key
        elif kind is list or kind is tuple:
            stack += reversed(item)
        elif isinstance(item, (str, Iterable)):
            raise TypeError


_STR, _PLAIN = frozenset({str}), frozenset({str, Traced})


class Tracing(Meter):
    """The account of a traced rendering: it goes on with that of the call."""

    __slots__ = ()
    traces = True
    together = staticmethod(concatenated)

    def size(self, value: object) -> int:
        return len(value) if type(value) is Traced else super().size(value)

    def text(self, value: object) -> str:
        if type(value) is str or type(value) is Traced:
            return value
        result: str = carried(super().text(value), value)
        return result

    def add(self, left: Any, right: Any) -> Any:
        kind, other = type(left), type(right)
        if kind in _PLAIN and other in _PLAIN:
            self.left -= len(left) + len(right)
            if self.left < 0:
                self.stretch()
            return left + right if kind is other is str else _added(left, right)
        result = super().add(left, right)
        return carried(result, left, right) if isinstance(result, str) else result

    def modulo(self, left: Any, right: Any) -> Any:
        return carried(super().modulo(left, right), left, right)

    def carried(self, result: Any, *given: object) -> Any:
        return carried(result, *given)

    def lifted(self, text: Any, *given: object) -> Any:
        return traced(text) if type(text) is str and any(type(item) is Traced for item in given) else text

    def read(self, value: Any, text: Any) -> Any:
        return within(value, text)

    def json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        result: str = to_json(value, ensure_ascii, indent, separators, sort_keys)
        if id(value) in self.known or next(_texts((value,)), None) is None:
            return result
        runs: list[Run] = []
        at = 0
        try:
            for leaf in _leaves(value, sort_keys):
                spelt = _spelt(leaf, ensure_ascii)
                at = result.index(f'"{spelt}"', at) + 1
                runs += _moved(runs_of(spelt), at)
                at += len(spelt) + 1
        except (TypeError, ValueError):
            result = carried(result, value)
            return result
        return traced(result, tuple(runs))


def tracing() -> AbstractContextManager[None]:
    """In the block, renderings carry the runs of the traced texts that they are given."""
    meter = current()
    return used(Tracing(meter.limits), meter)


def merged(text: str) -> list[Run]:
    """The runs of a text, those that go on in each other as one. A run that claims its source's own characters must
    have as many."""
    found: list[Run] = []
    for run in runs_of(text):
        last = found[-1] if found else None
        if (
            last is not None
            and last[1:3] == (run[0], run[2])
            and last[4] == run[3]
            and _own(last)
            and _own(run)
        ):
            found[-1] = (last[0], run[1], run[2], last[3], run[4])
        else:
            found.append(run)
    return found


def _own(run: Run) -> bool:
    return run[1] - run[0] == run[4] - run[3]
