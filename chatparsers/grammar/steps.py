"""Recursion with a stack of its own, so that a deep schema does not deepen Python's stack.

A function that would call itself is a generator: it yields the generator of the inner call, and receives its result.
What is no generator is a result already.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]


def run(steps: Steps[T]) -> T:
    """The result of a function made of steps."""
    below: list[Callable[[Any], Any]] = []
    send, value = steps.send, None
    while True:
        try:
            value = send(value)
        except StopIteration as done:
            value = done.value
            if not below:
                break
            send = below.pop()
        else:
            if type(value) is GeneratorType:
                below.append(send)
                send, value = value.send, None
    result: T = value
    return result
