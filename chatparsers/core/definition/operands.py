"""Checks the operands of every builder method, by the types that its signature names.

So no method checks them itself, and none can forget to. A type that this module does not know is an error when the
class of the method is defined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from ...errors import DefinitionError
from ...schema.tools import Argument, Tool
from ...values import Syntax
from .nodes import Node, Span, Tag
from .wrong import wrong

_Class = TypeVar("_Class", bound=type)
_Kind = tuple[Callable[[object], bool], str, str]


def _texts(given: object) -> bool:
    return isinstance(given, Mapping) and all(
        isinstance(char, str) and isinstance(text, str) and len(char) == 1 and text
        for char, text in given.items()
    )


_KINDS: Mapping[str, _Kind] = {
    "str": (lambda given: isinstance(given, str), "a text", 'write it in quotes, such as "<call>"'),
    "bool": (lambda given: isinstance(given, bool), "True or False", "give one of them"),
    "int": (
        lambda given: isinstance(given, int) and not isinstance(given, bool),
        "a whole number",
        "give how many there are",
    ),
    "None": (lambda given: given is None, "None", "leave it out"),
    "Nodelike": (
        lambda given: isinstance(given, (Node, str)),
        "a node or a text",
        "give what the builder makes, or a text",
    ),
    "Span": (lambda given: isinstance(given, Span), "a span", "make it with p.span(open, close)"),
    "Tag": (lambda given: isinstance(given, Tag), "a tag", "give one such as Tag.CONTENT"),
    "Syntax": (
        lambda given: isinstance(given, Syntax),
        "a value syntax",
        "import Json, Raw, Python or Gemma from chatparsers.core",
    ),
    "Tool": (
        lambda given: isinstance(given, Tool),
        "the tool that make() was given, or ANY_TOOL",
        "pass on what make(tool) was given",
    ),
    "Argument": (
        lambda given: isinstance(given, Argument),
        "the argument that make() was given, or ANY_ARGUMENT",
        "pass on what make(arg) was given",
    ),
    "Callable": (callable, "a function", "write lambda tool: … or lambda arg: …"),
    "tuple": (
        lambda given: isinstance(given, tuple) and all(isinstance(text, str) for text in given),
        "a tuple of texts",
        'write ("…",)',
    ),
    "Mapping": (_texts, "a mapping of characters to texts", 'write {"<": "&lt;"}'),
}


def checked(cls: _Class) -> _Class:
    """Makes every public method of a builder's class check its operands."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(cls, name, _checked(method))
    return cls


def _checked(method: Callable[..., Node]) -> Callable[..., Node]:
    name = f"p.{method.__name__}"
    signature = inspect.signature(method)
    _, *operands = signature.parameters.values()
    expected = {operand.name: _expected(name, operand) for operand in operands}

    @wraps(method)
    def check(self: Any, *given: Any, **named: Any) -> Node:
        try:
            bound = signature.bind(self, *given, **named)
        except TypeError as error:
            wrong(name, f"expected {_shown(operands)}: {error}", "give each operand once")
        for operand in operands:
            if operand.name not in bound.arguments:
                continue
            value = bound.arguments[operand.name]
            many = operand.kind in (operand.VAR_POSITIONAL, operand.VAR_KEYWORD)
            values = (value.values() if isinstance(value, dict) else value) if many else (value,)
            fits, what, mend = expected[operand.name]
            for one in values:
                if not fits(one):
                    found = f"{one!r:.60}" if isinstance(one, str) else f"{type(one).__name__}: {one!r:.60}"
                    wrong(name, f"expected {what} as {operand.name}, found {found}", mend)
        return method(self, *given, **named)

    return check


def _shown(operands: list[inspect.Parameter]) -> str:
    return ", ".join(operand.name for operand in operands) or "no operands"


def _expected(method: str, operand: inspect.Parameter) -> _Kind:
    """What the annotation of an operand says."""
    names = [part.split("[")[0] for part in _parts(str(operand.annotation))]
    unknown = [name for name in names if name not in _KINDS]
    if unknown:
        raise DefinitionError(
            f"{method}: operands.py does not know the type {unknown[0]!r} of {operand.name}"
        )
    kinds = [_KINDS[name] for name in names]
    return lambda given: any(fits(given) for fits, _, _ in kinds), kinds[0][1], kinds[0][2]


def _parts(annotation: str) -> list[str]:
    """The members of a union."""
    depth, found = 0, [""]
    for char in annotation:
        depth += (char == "[") - (char == "]")
        if char == "|" and not depth:
            found.append("")
        else:
            found[-1] += char
    return [part.strip() for part in found]
