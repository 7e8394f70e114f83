"""How the package shows its public objects: under ``chatparsers``, and without constructors that users do not call."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

_Public = TypeVar("_Public", bound=Any)


def public(shown: _Public) -> _Public:
    """Makes ``chatparsers`` the module of a class or function in its repr, in tracebacks and in pickles.

    So pickles do not depend on the file that defines it.
    """
    shown.__module__ = "chatparsers"
    return shown


def made_by(kind: str, maker: str) -> NoReturn:
    """Refuses a call of a class whose objects the package makes itself, and says which call makes one."""
    raise TypeError(f"{kind}: expected {maker} to make it, found a call of the class")
