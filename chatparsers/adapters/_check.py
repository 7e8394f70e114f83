"""Checks of private seams: the parameters that a host's function must have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["check_parameters"]


def check_parameters(function: Callable[..., Any], expected: Sequence[str], host: str) -> None:
    """Raises ImportError if the first parameters of ``function`` are not ``expected``. ``host``: its name and version,
    for the error."""
    found = tuple(inspect.signature(function).parameters)
    if found[: len(expected)] != tuple(expected):
        name = f"{function.__module__}.{function.__qualname__}"
        raise ImportError(
            f"{host}: {name} has the parameters ({', '.join(found)}), and chatparsers expects "
            f"({', '.join(expected)}): use a version that `python -m chatparsers.adapters` names as tested"
        )
