"""Shows a public class to users under ``chatparsers``, whatever module defines it."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["public"]

_Class = TypeVar("_Class", bound=type)


def public(cls: _Class) -> _Class:
    """Makes ``chatparsers`` the module of a class in its repr, in tracebacks and in pickles. So pickles do not depend
    on the file that defines it."""
    cls.__module__ = "chatparsers"
    return cls
