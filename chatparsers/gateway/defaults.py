"""What an operator says for requests that do not: thoughts, effort, and the template's own variables."""

from __future__ import annotations

from dataclasses import replace

from ..serving import Request
from ..templates.probe.thinking import EFFORT_NAMES, SWITCHES
from .settings import Settings


def with_defaults(request: Request, settings: Settings) -> Request:
    """The request with the operator's defaults for what it leaves open; with all of them if they are pinned."""
    given, own = request.template_kwargs, settings.template_kwargs
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
