"""References to things that are loaded when they are first needed: ``"module:attribute"``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["load_reference"]


def load_reference(reference: str) -> Any:
    """What ``"module:attribute"`` names, its module imported now.

    Raises ImportError or AttributeError as the import does.
    """
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)
