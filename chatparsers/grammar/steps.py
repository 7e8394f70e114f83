"""Recursion with a stack of its own, so that a deep schema does not deepen Python's stack.

A function that would call itself is a generator: it yields the generator of the inner call, and receives its result.
What is no generator is a result already.
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]


def run(steps: Steps[T]) -> T:
    """The result of a function made of steps."""
    stack: list[Steps[Any]] = [steps]
    value: Any = None
    while stack:
        try:
            value = stack[-1].send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
        else:
            if type(value) is GeneratorType:
                stack.append(value)
                value = None
    result: T = value
    return result
