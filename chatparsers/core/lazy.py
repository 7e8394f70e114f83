"""References of the form ``"module:attribute"``, whose module is imported at the first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["load_reference"]


def load_reference(reference: str) -> Any:
    """The object that ``"module:attribute"`` names; imports its module.

    Raises ImportError or AttributeError as the import does.
    """
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)
