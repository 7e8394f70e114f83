"""Limits for what templates call: jinja2's filters, tests and functions, and the methods of Python's own types.

A guard pays (see `limits`) for its work in advance and then calls jinja2's or Python's own function, so the results are
the same as without it. A function that is not named here costs the same for every value. Each guard takes the context;
so jinja2 does not compute it while it compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from datetime import date
from decimal import Decimal
from itertools import count
from typing import Any

from jinja2 import filters as jinja_filters
from jinja2 import pass_context
from jinja2 import tests as jinja_tests
from jinja2.exceptions import FilterArgumentError
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from jinja2.utils import _PassArg, generate_lorem_ipsum

from .exact import from_json
from .failure import Exhausted
from .limits import Borrowed, Meter, current, digits
from .traced import untraced

_Guard = Callable[..., Any]


def _plain(name: str) -> Callable[..., Any]:
    """jinja2's filter, called with the context first whatever it takes there itself."""
    function: Callable[..., Any] = jinja_filters.FILTERS[name]
    wants = _PassArg.from_obj(function)

    if wants is _PassArg.context:
        return function
    if wants is _PassArg.eval_context:
        return lambda context, *args, **kwargs: function(context.eval_ctx, *args, **kwargs)
    if wants is _PassArg.environment:
        return lambda context, *args, **kwargs: function(context.environment, *args, **kwargs)
    return lambda context, *args, **kwargs: function(*args, **kwargs)


# Filters


def _paid(name: str, pay: Callable[..., Any]) -> _Guard:
    """jinja2's filter. ``pay`` takes the account and what the filter takes, and returns the value that it gets."""
    call, spells = _plain(name), pay is not _ordered  # which returns an item as it is
    printed = name == "pprint"  # which writes only plain dicts in the order of their keys

    @pass_context
    def guard(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        meter = current()
        value = pay(meter, value, *args, **kwargs)
        result = call(context, untraced(value) if printed else value, *args, **kwargs)
        return meter.made(meter.carried(result, value) if meter.traces and spells else result)

    return guard


def _linear(grow: int = 2, cost: int = 0, square: bool = False, spread: str = "") -> Callable[..., Any]:
    """Of a filter whose result is at most ``grow`` times its arguments; ``cost`` more units a character, or its square.
    ``spread``: its arguments, or blanks as many as they say, may come after each character, or each line."""

    def pay(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(value) is str:
            size = len(value)
        else:
            value = list(meter.stream(value)) if isinstance(value, Iterator) else value
            size = meter.size(value)
        more = meter.size(args) + meter.size(kwargs) if args or kwargs else 0
        if spread:
            wide = sum(max(item, 0) for item in (*args, *kwargs.values()) if isinstance(item, int))
            meter.afford(grow * size)
            places = len(value.splitlines()) + 1 if spread == "lines" and isinstance(value, str) else size + 1
            meter.afford(grow * size + places * (grow + more + wide))
        size += more
        meter.afford(grow * size)
        meter.spend((size >> 3) + cost * size + (size * size >> 6 if square else 0))
        return value

    return pay


def _streamed(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Of a filter that looks at one item after the other."""
    meter.spend(110)  # its two generators can be kept: 1.3 kB in Python 3.10
    cost = 8 + 20 * (meter.size(args) + meter.size(kwargs))  # an attribute's name may have a million parts
    return meter.stream(value, cost) if value else value


def _ordered(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Of a filter that compares its items with each other."""
    items = list(meter.stream(value, 8 + 20 * (meter.size(args) + meter.size(kwargs))))
    size = sum(meter.size(item) for item in items)
    meter.spend((size >> 4) * len(items).bit_length() + 8 * len(items))
    return items


def _dictsort(
    meter: Meter, value: Any, case_sensitive: bool = False, by: Any = "key", reverse: bool = False
) -> Any:
    if isinstance(value, Mapping):
        size = meter.size(list(value) if by == "key" else value)
        meter.spend((size >> 4) * len(value).bit_length() + 40 * len(value))
    return value


def _unique(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> Any:
    seen = count()
    return meter.stream(
        value, lambda item: 8 + (meter.size(item) >> 3) + (0 if isinstance(item, str) else next(seen) >> 3)
    )


def _list(meter: Meter, value: Any) -> Any:
    # A number or a letter that is not Latin is an object of its own.
    return meter.stream(value, 21 if isinstance(value, str) and not value.isascii() else 10)


def _batch(meter: Meter, value: Any, linecount: Any, fill_with: Any = None) -> Any:
    if fill_with is not None and isinstance(linecount, int):
        meter.spend(2 * max(linecount, 0))
    return meter.stream(value)


def _slice(meter: Meter, value: Any, slices: Any, fill_with: Any = None) -> Any:
    if isinstance(slices, int):
        meter.spend(32 * max(slices, 0))
    return list(meter.stream(value))


def _round(meter: Meter, value: Any, precision: Any = 0, method: Any = "common") -> Any:
    meter.number(value)
    if isinstance(precision, int) and abs(precision) > digits():
        raise Exhausted(f"the template rounds to {precision} digits; at most {digits()} are counted")
    return value


def _int(meter: Meter, value: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(value, Decimal):
        meter.number(value)
    elif isinstance(value, str):
        meter.spend(len(value))
    return value


@pass_context
def _safe(context: Context, value: Any) -> Any:
    text = value if type(value) is str else current().text(value)
    return current().made(current().carried(jinja_filters.do_mark_safe(text), text))


@pass_context
def _keywords(context: Context, value: Any) -> Any:
    """The keywords after ``**`` in a call."""
    return current().mapping(value) if isinstance(value, Mapping) else value


@pass_context
def _sum(context: Context, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    meter = current()
    if isinstance(start, str):
        raise TypeError("sum() can't sum strings [use ''.join(seq) instead]")
    if attribute is not None:
        iterable = map(jinja_filters.make_attrgetter(context.environment, attribute), iterable)
    for item in meter.stream(iterable, 8 + 20 * meter.size(attribute)):
        start = meter.add(start, item)
    return start


@pass_context
def _join(context: Context, value: Any, d: Any = "", attribute: Any = None) -> Any:
    meter = current()
    items = list(meter.stream(value, 8 if attribute is None else 8 + 20 * meter.size(attribute)))
    if attribute is not None:
        items = list(map(jinja_filters.make_attrgetter(context.environment, attribute), items))
    _joined(meter, d, items)
    between = d if context.eval_ctx.autoescape else str(d)
    return meter.made(_plain("join")(context, items, meter.lifted(between, *items)))


def _joined(meter: Meter, between: Any, items: list[Any]) -> None:
    """Pays for nothing, but sees that there is enough for the items with ``between`` between them."""
    markup = 6 if any(hasattr(item, "__html__") for item in (between, *items)) else 1
    size = sum(map(meter.size, items)) + meter.size(between) * len(items)
    meter.afford(markup * (size if all(type(item) is str for item in items) else 2 * size))


@pass_context
def _replace(context: Context, s: Any, old: Any, new: Any, count: Any = None) -> Any:
    meter = current()
    s, old, new = (value if isinstance(value, str) else meter.text(value) for value in (s, old, new))
    _replaced(meter, s, old, new, count)
    s = meter.lifted(s, new)
    return meter.made(_plain("replace")(context, s, old, new, count))


def _replaced(meter: Meter, text: Any, old: Any, new: Any, count: Any = None) -> None:
    if not any(hasattr(value, "__html__") for value in (text, old, new)):
        meter.search(len(text), len(old))
        times: int = text.count(old)
        if isinstance(count, int) and count >= 0:
            times = min(times, count)
        meter.afford(len(text) + times * len(new))
    else:  # markup, which escapes
        meter.afford(6 * meter.size(text) * (1 + meter.size(new)))


@pass_context
def _format(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
    if args and kwargs:
        raise FilterArgumentError("can't handle positional and keyword arguments at the same time")
    meter = current()
    return meter.modulo(value if isinstance(value, str) else meter.text(value), kwargs or args)


@pass_context
def _tojson(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    meter = current()
    if isinstance(value, Iterator):
        value = list(meter.stream(value))
    size = meter.size(value)
    if separators is not None:
        size += (size >> 2) * meter.size(separators)
    if indent is not None:
        wide = max(indent, 0) if isinstance(indent, int) else meter.size(indent)
        if (wide + 1) * (size >> 2) ** 2 > meter.left:  # a text is copied once for each level around it
            _, _, depth = meter.known.get(id(value)) or meter.measured(value)
            meter.afford(depth * (wide * (size >> 2) + (size >> 3)))
    meter.afford(2 * size)
    return meter.made(meter.json(value, ensure_ascii, indent, separators, sort_keys))


@pass_context
def _from_json(context: Context, text: Any) -> Any:
    meter = current()
    text = text if isinstance(text, str) else meter.text(text)
    meter.spend(12 * len(text))
    return meter.read(from_json(text), text)


_PAID: dict[str, Callable[..., Any]] = {
    "abs filesizeformat float lower reverse string": _linear(),
    "capitalize trim truncate upper": _linear(3),
    "e escape forceescape": _linear(6),
    "title urlencode wordcount xmlattr": _linear(12, cost=4),
    "pprint striptags": _linear(6, cost=4, square=True),
    "urlize wordwrap": _linear(80, cost=8, square=True, spread="characters"),
    "center indent": _linear(16, spread="lines"),
    "map reject rejectattr select selectattr": _streamed,
    "groupby max min sort": _ordered,
    "batch": _batch,
    "dictsort": _dictsort,
    "int": _int,
    "list": _list,
    "round": _round,
    "slice": _slice,
    "unique": _unique,
}
FILTERS: dict[str, Callable[..., Any]] = {
    **{name: _paid(name, pay) for names, pay in _PAID.items() for name in names.split()},
    "chatparsers.keywords": _keywords,
    "format": _format,
    "from_json": _from_json,
    "join": _join,
    "replace": _replace,
    "safe": _safe,
    "sum": _sum,
    "tojson": _tojson,
}


# Tests


def _test(compare: Callable[[Meter, Any, Any], Any]) -> Callable[..., Any]:
    @pass_context
    def guard(context: Context, value: Any, other: Any) -> Any:
        return compare(current(), value, other)

    return guard


def _remainder(divisor: int | None, rest: int) -> Callable[..., bool]:
    @pass_context
    def guard(context: Context, value: Any, num: Any = divisor) -> bool:
        return bool(current().modulo(value, num) == rest)

    return guard


def _cased(name: str) -> Callable[..., bool]:
    test: Callable[[str], bool] = jinja_tests.TESTS[name]  # type: ignore[assignment]

    @pass_context
    def guard(context: Context, value: Any) -> bool:
        return test(current().text(value))

    return guard


@pass_context
def _step(context: Context, value: Any, cost: Any) -> bool:
    """The condition of ``{% for … if … %}``, paid for at each item. A template may name this test: it can but pay."""
    current().spend(max(cost, 0) if isinstance(cost, int) else 0)
    return bool(value)


TESTS: dict[str, Callable[..., Any]] = {
    "chatparsers.step": _step,
    "divisibleby": _remainder(None, 0),
    "even": _remainder(2, 0),
    "odd": _remainder(2, 1),
    "in": _test(Meter.inside),
    "lower": _cased("lower"),
    "upper": _cased("upper"),
    **{name: _test(Meter.equal) for name in ("==", "eq", "equalto")},
    **{name: _test(Meter.unequal) for name in ("!=", "ne")},
    **{name: _test(Meter.greater) for name in (">", "gt", "greaterthan")},
    **{name: _test(Meter.at_least) for name in (">=", "ge")},
    **{name: _test(Meter.less) for name in ("<", "lt", "lessthan")},
    **{name: _test(Meter.at_most) for name in ("<=", "le")},
}


# Functions


def _lipsum(n: int = 5, html: bool = True, min: int = 20, max: int = 100) -> str:
    current().spend(200 + 40 * abs(n) * (abs(min) + abs(max) + 2))
    return generate_lorem_ipsum(n, html, min, max)


GLOBALS: dict[str, Callable[..., Any]] = {"lipsum": _lipsum}


def formatted(environment: SandboxedEnvironment, bound: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``str.format`` or ``str.format_map`` of one text, in the sandbox and within limits."""
    text, meter = bound.__self__, current()
    if bound.__name__ == "format_map":
        if kwargs or len(args) != 1:
            raise TypeError(f"format_map() takes exactly one argument ({len(args) + len(kwargs)} given)")
        kwargs, args = args[0], ()
    meter.spend(len(text) + 100)
    escape = getattr(text, "escape", None)  # markup
    fields = _EscapedFields(environment, escape=escape) if escape else _Fields(environment)
    result = fields.vformat(text, args, kwargs)
    return type(text)(result) if escape else meter.carried(str(result), text, args, kwargs)


class _Fields(SandboxedFormatter):
    def format_field(self, value: Any, format_spec: str) -> Any:
        meter = current()
        meter.number(value)
        meter.widths(format_spec)
        meter.afford(12 * meter.size(value) if hasattr(value, "__html__") else 2 * meter.size(value))
        return meter.made(super().format_field(value, format_spec))

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion is not None:
            current().afford(6 * current().size(value))
            return current().made(super().convert_field(value, conversion))
        return value


class _EscapedFields(_Fields, SandboxedEscapeFormatter):
    pass


# Methods


REFUSED = frozenset({"encode", "from_bytes", "fromhex", "fromkeys", "maketrans", "to_bytes", "translate"})
"""The methods that no template may call: they make bytes or tables, for which nothing here has a price."""


def method(meter: Meter, bound: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a method of one of Python's own types."""
    owner, name = bound.__self__, bound.__name__
    if isinstance(owner, str):
        if meter.traces:
            owner = meter.lifted(owner, *args, *kwargs.values())
            bound = getattr(owner, name)
        return _text_method(meter, bound, owner, name, args, kwargs)
    if isinstance(owner, dict):
        if args:
            meter.key(args[0])
    elif isinstance(owner, (list, tuple, range)):
        if meter.lent and name in ("append", "pop"):
            raise Borrowed
        if name in ("count", "index", "pop", "copy"):
            meter.spend(len(owner) * (1 + (meter.size(args) >> 6)) if args else len(owner) >> 3)
    elif isinstance(owner, Set):
        meter.keys(owner)
        args = tuple(meter.keys(value) if isinstance(value, Iterable) else value for value in args)
    else:  # a date's pattern of one letter is a whole date
        meter.spend((meter.size(args) + meter.size(kwargs)) * (256 if isinstance(owner, date) else 16))
    return meter.made(bound(*args, **kwargs))


_SEARCHES = frozenset(
    {"count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "startswith"}
    | {"lstrip", "rstrip", "strip"}
)
_BACKWARD = frozenset({"rfind", "rindex", "rpartition"})
_SPLITS = frozenset({"rsplit", "split", "splitlines"})
_WIDTHS = frozenset({"center", "ljust", "rjust", "zfill"})


def _text_method(
    meter: Meter, bound: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Pays for a method of a text, by what makes it long or slow, and calls it."""
    length = len(owner)
    first = args[0] if args else None
    if name in _SEARCHES or name in _BACKWARD:
        sought = sum(map(meter.size, first)) if isinstance(first, tuple) else meter.size(first)
        meter.search(length, sought, name in _BACKWARD)
    elif name in _SPLITS:
        sep: Any = kwargs.get("sep", first)
        if sep and isinstance(sep, str):
            meter.search(length, len(sep), name == "rsplit")
            pieces = owner.count(sep) + 1
        else:
            pieces = length // 2 + 1 if name != "splitlines" else length
            meter.spend(length >> 3)
        meter.afford(length + 16 * pieces)
        parts = bound(*args, **kwargs)
        meter.spend(length + 16 * len(parts))
        return parts
    elif name in _WIDTHS:
        meter.afford(max(first, 0) if isinstance(first, int) else 0)
        meter.size(args)
    elif name == "join":
        items = list(meter.stream(args[0])) if args else []
        _joined(meter, owner, items)
        return meter.made(meter.lifted(owner, *items).join(items, *args[1:], **kwargs))
    elif name == "replace":
        _replaced(meter, owner, *args, **kwargs)
    elif name == "expandtabs":
        wide = kwargs.get("tabsize", first)
        meter.afford(length + owner.count("\t") * (max(wide, 0) if isinstance(wide, int) else 8))
    else:
        meter.afford(4 * length)
        meter.spend((length >> 3) + meter.size(args))
    result = bound(*args, **kwargs)
    return meter.made(meter.carried(result, owner, args) if meter.traces else result)
