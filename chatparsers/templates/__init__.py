"""Chat templates: rendering in a sandbox, what a template can show, and cutting a turn out of a rendering.

Importing this imports neither jinja2 nor the modules below; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .capabilities import Capabilities
    from .exact import from_json, to_json
    from .limits import Limits
    from .messages import Wants
    from .render import Template

__all__ = ["Capabilities", "Limits", "Template", "Wants", "from_json", "to_json"]

_HOMES = {
    "Capabilities": "capabilities",
    "Limits": "limits",
    "Template": "render",
    "Wants": "messages",
    "from_json": "exact",
    "to_json": "exact",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
