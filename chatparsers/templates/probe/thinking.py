"""The switch of thinking: the variables with which a template turns thinking on and off, found by rendering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...kept import cached
from ..trace import Trace

ABSENT = object()
# How templates spell the switch: (keyword, value for on, value for off).
_SWITCHES: tuple[tuple[str, object, object], ...] = (
    ("enable_thinking", True, False),
    ("thinking", True, False),
    ("thinking_mode", "thinking", "chat"),
    ("thinking_mode", "enabled", "disabled"),
    ("thinking_mode", "on", "off"),
    ("thinking_option", "on", "off"),
    ("thinking_budget", ABSENT, 0),
    ("force_reasoning", True, False),
    ("skip_reasoning", False, True),
)
SWITCHES = frozenset(name for name, _, _ in _SWITCHES)
"""The variables with which templates spell the switch of thinking."""
EFFORT_NAMES = frozenset({"reasoning_effort", "thinking_effort"})
"""The variables with which templates spell the effort."""


def switch_said(name: str, value: object) -> str | None:
    """What a value of one of `SWITCHES` says: ``enabled``, ``disabled`` or ``adaptive``; None if nothing."""
    for known, on, off in _SWITCHES:
        if known == name and type(value) in (bool, int, str):
            if value == on and type(value) is type(on):
                return "enabled"
            if value == off and type(value) is type(off):
                return "disabled"
    return "adaptive" if value == "adaptive" else None


class Thinking:
    """The switch of one template. ``ask``: the rendering of a question with a generation prompt and these variables,
    None if it is refused. ``reads``: the variables that the template reads."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, Any]], Trace | None],
        reads: frozenset[str],
    ) -> None:
        self._ask = ask
        self._reads = reads

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return tuple(name for name, _, _ in self._switches)

    @cached
    def _switches(self) -> tuple[tuple[str, object, object], ...]:
        found: list[tuple[str, object, object]] = []
        for name, on, off in _SWITCHES:
            if name not in self._reads:
                continue
            texts = [self._text(_given({name: value})) for value in (on, off)]
            if None not in texts and texts[0] != texts[1] and name not in (known for known, _, _ in found):
                found.append((name, on, off))
        if found:
            return tuple(found)
        if "reasoning_effort" not in self._reads:
            return ()
        # Not every effort has an "off": if "none" does not change the prompt's end, "low" is the least effort.
        for off in ("none", "low"):
            text, default = (self._ask(given) for given in ({"reasoning_effort": off}, {}))
            if text is None or default is None or text.text == default.text:
                continue
            if off == "low" or _end(text) != _end(default):
                return (("reasoning_effort", ABSENT, off),)
        return ()

    def _text(self, variables: Mapping[str, Any]) -> str | None:
        found = self._ask(variables)
        return None if found is None else found.text

    def switched(self, on: bool | None) -> dict[str, Any]:
        """The variables that turn thinking on or off; ``{}`` for None."""
        if on is None:
            return {}
        return _given({name: yes if on else no for name, yes, no in self._switches})

    @cached
    def default(self) -> bool | None:
        """Whether thinking is on without them; None if the prompt is neither the one nor the other."""
        if not self._switches:
            return None
        default, on, off = (self._text(self.switched(state)) for state in (None, True, False))
        return True if default == on else False if default == off else None


def _given(variables: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in variables.items() if value is not ABSENT}


def _end(found: Trace) -> str:
    """The text from the question's words on; ``""`` if they are not shown."""
    return found.text[found.spans[-1].start :] if found.spans else ""
