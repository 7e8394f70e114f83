"""Names whose module is imported at their first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A ``__getattr__`` for a package: each name is imported from its module in ``homes`` when it is first used.

    The modules are given relative to the package, as ``{"Turn": "answers.format"}``. A name whose module has the same
    name is the module itself.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        value: object = module if homes[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get


def load_reference(reference: str) -> Any:
    """The object that ``"module:attribute"`` names; imports its module.

    Raises ImportError or AttributeError as the import does.
    """
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


def installed(package: str) -> bool:
    """Whether ``package`` can be imported. It is not imported."""
    from importlib.util import find_spec  # takes a millisecond, and few ask

    return find_spec(package) is not None
