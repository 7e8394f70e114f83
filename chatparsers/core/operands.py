"""Checks the operands of every builder method, by the types that its signature names.

So no method checks them itself, and none can forget to. A type that this module does not know is an error when the
class of the method is defined.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import chain, repeat
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import DefinitionError
from .nodes import Node, Tag
from .wrong import wrong

_Class = TypeVar("_Class", bound=type)

KINDS: dict[Any, tuple[str, str]] = {
    str: ("a text", 'write it in quotes, such as "<call>"'),
    bool: ("True or False", "give one of them"),
    int: ("a whole number", "give how many there are"),
    NoneType: ("None", "leave it out"),
    Node: ("a node or a text", "give what the builder makes, or a text"),
    Tag: ("a tag", "give one such as Tag.CONTENT"),
    Callable: ("a function", "write lambda tool: … or lambda arg: …"),
    tuple: ("a tuple of texts", 'write ("…",)'),
    Mapping: ("a mapping of characters to texts", 'write {"<": "&lt;"}'),
}
"""What is expected for each type, and what to write instead of anything else. A language adds types of its own."""


def _fits(given: Any, kind: Any) -> bool:
    if not isinstance(given, kind):
        return False
    if kind is tuple:
        return all(isinstance(text, str) for text in given)
    if kind is Mapping:
        texts = [text for item in given.items() for text in item]
        return all(isinstance(text, str) and text for text in texts) and all(len(char) == 1 for char in given)
    return not (kind is int and isinstance(given, bool))


def checked(cls: _Class) -> _Class:
    """Makes every public method of a builder's class check its operands."""
    methods = {name: it for name, it in vars(cls).items() if inspect.isfunction(it) and name[0] != "_"}
    written = {hint: hint for method in methods.values() for hint in method.__annotations__.values()}
    types = get_type_hints(SimpleNamespace(__annotations__=written), vars(sys.modules[cls.__module__]))
    for name, method in methods.items():
        setattr(cls, name, _checked(method, types))
    return cls


def _checked(method: Callable[..., Node], types: Mapping[str, Any]) -> Callable[..., Node]:
    name = f"p.{method.__name__}"
    expected = {operand: _expected(name, types[hint]) for operand, hint in method.__annotations__.items()}
    code = method.__code__  # a signature takes ten times as long to make
    _, *alone = code.co_varnames[: code.co_argcount]
    stars = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
    rest = stars[0] if code.co_flags & inspect.CO_VARARGS else None
    others = stars[rest is not None] if code.co_flags & inspect.CO_VARKEYWORDS else ""

    @wraps(method)
    def check(self: Any, *given: Any, **named: Any) -> Node:
        # A tree calls this a hundred times, so what is given is bound to the signature only if it is wrong.
        for operand, one in (*zip(chain(alone, repeat(rest)), given, strict=False), *named.items()):
            at = operand if operand in expected else others
            kinds = expected.get(at)
            if kinds is not None and not any(_fits(one, kind) for kind in kinds):
                what, mend = KINDS[kinds[0]]
                found = f"{one!r:.60}" if isinstance(one, str) else f"{type(one).__name__}: {one!r:.60}"
                wrong(name, f"expected {what} as {at}, found {found}", mend)
        try:
            return method(self, *given, **named)
        except TypeError:
            signature = inspect.signature(method)
            try:
                signature.bind(self, *given, **named)
            except TypeError as error:
                operands = ", ".join([*signature.parameters][1:]) or "no operands"
                wrong(name, f"expected {operands}: {error}", "give each operand once")
            raise

    return check


def _expected(method: str, hint: Any) -> list[Any]:
    """The types that an operand may have."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [get_origin(member) or member for member in members]
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise DefinitionError(f"{method}: operands.py does not know the type {unknown[0]!r}")
    return kinds
