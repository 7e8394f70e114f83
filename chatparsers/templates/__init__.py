"""Chat templates: rendering in a sandbox, what a template can show, and cutting a turn out of a rendering.

Importing this imports neither jinja2 nor the modules below; each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .jinja.exact import from_json, to_json
    from .jinja.limits import Limits
    from .messages import Wants
    from .probe.capabilities import Capabilities
    from .render import Template

__all__ = ["Capabilities", "Limits", "Template", "Wants", "from_json", "to_json"]

_HOME = {
    "Capabilities": "probe.capabilities",
    "Limits": "jinja.limits",
    "Template": "render",
    "Wants": "messages",
    "from_json": "jinja.exact",
    "to_json": "jinja.exact",
}


__getattr__ = lazy_names(__name__, _HOME)
