"""What an operator says for requests that do not: thoughts, effort, the template's own variables; and whether tools are
guided by their schemas whatever they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..serving import Request
from ..templates import Template
from ..templates.probe.thinking import EFFORT_NAMES, SWITCHES
from .settings import Settings


def with_defaults(request: Request, settings: Settings) -> Request:
    """The request with the operator's defaults for what it leaves open; with all of them if they are pinned. Its tools
    are strict if the settings want that."""
    if settings.strict_tools and (request.tools or request.loaded):
        strict = [[*map(_strict, some)] if some else some for some in (request.tools, request.loaded)]
        request = replace(request, tools=strict[0], loaded=strict[1])
    given, own = request.template_kwargs, settings.template_kwargs
    if settings.thinking is None and settings.effort is None and not own:
        return request
    if settings.pin_template_kwargs:
        return replace(
            request,
            thinking=request.thinking if settings.thinking is None else settings.thinking,
            effort=settings.effort or request.effort,
            template_kwargs={**given, **own},
        )
    says = request.effort is not None or not given.keys().isdisjoint(SWITCHES | EFFORT_NAMES)
    return replace(
        request,
        thinking=settings.thinking if request.thinking is None and not says else request.thinking,
        effort=request.effort or (None if says else settings.effort),
        template_kwargs={**own, **given},
    )


_KEEP = {
    "preserve_thinking": True,
    "preserved_thinking": True,
    "clear_thinking": False,
    "truncate_history_thinking": False,
}
"""The variables by which templates keep the thoughts of earlier turns."""


def with_all_thoughts(request: Request, template: Template) -> Request:
    """The request, with the thoughts of earlier turns if it asks for them and the template has a variable for it."""
    if not request.keeps_thoughts:
        return request
    read = template.variables.intersection(_KEEP)
    return replace(
        request, template_kwargs={**{name: _KEEP[name] for name in read}, **request.template_kwargs}
    )


def _strict(tool: dict[str, Any]) -> dict[str, Any]:
    """The tool as if it did not say ``strict: false``: its grammar keeps to its schema."""
    function = tool["function"]
    if function.get("strict") is not False:
        return tool
    return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}
