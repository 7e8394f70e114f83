"""The names that users see are those of ``chatparsers``, wherever a class is defined."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["public"]

_Class = TypeVar("_Class", bound=type)


def public(cls: _Class) -> _Class:
    """Makes ``chatparsers`` the module of a class: in its repr, in tracebacks and in pickles, which then do not depend
    on the file it is defined in."""
    cls.__module__ = "chatparsers"
    return cls
