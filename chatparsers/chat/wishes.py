"""A request's wish for thoughts and effort, and what became of it.

A wish is said by ``thinking`` and ``effort``, or in ``template_kwargs`` by the name of a switch of other templates
(``enable_thinking`` where this one reads ``thinking``). A variable that the template reads is no wish: it is given as
it is, and wins over what the dial says for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import RequestError
from ..schema.wished import Thoughts
from ..templates import Template
from ..templates.probe.dial import KINDS, Dial
from ..templates.probe.thinking import EFFORT_NAMES, SWITCHES, switch_said

_LONGEST = 100
"""How long a word of effort may be: a template may write it out."""


class Wish(NamedTuple):
    """``thinking``: one of `KINDS`. ``given``: the ``template_kwargs`` that are given as they are."""

    thinking: str | None
    effort: str | None
    given: Mapping[str, Any]

    def on(self) -> bool | None:
        """Whether the answer is to have a thought; None if that is left open."""
        if self.thinking == "enabled":
            return True
        return False if self.thinking == "disabled" or self.effort == "none" else None

    def asked(self, dial: Dial, thinks: bool) -> Thoughts:
        """What becomes of it. ``thinks``: whether the model writes thoughts at all."""
        return dial.asked(self.thinking, self.effort, thinks=thinks)


def wish_of(options: Mapping[str, Any], template: Template) -> Wish | None:
    """The wish of a request's options; None if it has none. Raises `RequestError` for one that is malformed."""
    thinking, effort = options.get("thinking"), options.get("effort")
    given = options.get("template_kwargs")
    if thinking is None and effort is None and not given:
        return None
    if isinstance(thinking, bool):
        thinking = "enabled" if thinking else "disabled"
    elif thinking is not None and not isinstance(thinking, str):
        raise RequestError(f"thinking: expected True, False or None, found {type(thinking).__name__}")
    elif thinking is not None and thinking not in KINDS:
        words = " or ".join(map(repr, KINDS))
        raise RequestError(f"thinking: expected {words}, found {thinking!r:.60}")
    if effort is not None and (not isinstance(effort, str) or not 0 < len(effort) <= _LONGEST):
        raise RequestError(f"effort: expected a word such as 'low' or 'high', found {effort!r:.60}")
    if not given or not isinstance(given, Mapping):
        return Wish(thinking, effort, given or {})
    left = dict(given)
    for name in given.keys() & (SWITCHES | EFFORT_NAMES) - template.variables:
        value = given[name]
        if name in SWITCHES and (said := switch_said(name, value)) is not None:
            thinking = thinking or said
        elif name in EFFORT_NAMES and isinstance(value, str) and value:
            effort = effort or value[:_LONGEST]
        else:
            continue
        del left[name]
    return None if thinking is None and effort is None else Wish(thinking, effort, left)
