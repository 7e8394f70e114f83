"""Formats tried on the turns that a template renders: which of them returns every message."""

from __future__ import annotations

import json
from typing import Any

from ..answers.format import Format
from ..errors import ChatParsersError
from ..registry import FormatInfo, list_formats
from ..streams.message import Message
from ..templates.probe.edges import opening
from ..templates.probe.stand_ins import ARGUMENTS, TOOLS
from .shown import Probe


class Contest:
    """Formats tried on the probes. ``shown``: those of which a marker is in the renderings, with their markers there.
    ``best``: the name of the highest-ranked format that returns all probes."""

    def __init__(self, rendered: str, probes: list[Probe]) -> None:
        self.probes = probes
        self.best: str | None = None
        self.evidence: tuple[str, ...] = ()
        self.tried: list[str] = []
        self.broken: list[str] = []
        seen = [(info, tuple([text for text in info.markers if text in rendered])) for info in list_formats()]
        self.shown = [(info, markers) for info, markers in seen if markers]
        self._thinks = any("reasoning_content" in probe.message for probe in probes)
        self._rank = (False, 0, False, False)

    @property
    def settled(self) -> bool:
        """Whether a format is found, and one that declares the reasoning which the template shows or cuts out."""
        return self.best is not None and self._rank[0]

    def formats(self, whole: bool) -> list[FormatInfo]:
        """The formats of which all markers are in the renderings, or those of which only some are."""
        return [info for info, markers in self.shown if (markers == info.markers) is whole]

    def enter(self, info: FormatInfo, *, writing: bool = False) -> None:
        """Tries a format. ``writing``: the format must also write the call as the template does."""
        try:
            fmt = info.load()
            exact = [probe for probe in self.probes if reads(fmt, probe)]
            alike = not writing or all(writes(fmt, probe) for probe in exact)
            reasoning = fmt.features.reasoning
        except Exception as error:  # a broken format must not stop the others
            self.broken.append(f"{info.name} is left out: {error}")
            return
        self.tried.append(f"{info.name}: {len(exact)} of {len(self.probes)} probe turns parsed back exactly")
        markers = next(markers for other, markers in self.shown if other is info)
        own = fmt.build.__module__.endswith("." + fmt.name.replace("-", "_"))  # not another family's
        rank = (reasoning or not self._thinks, sum(map(len, markers)), reasoning, own)
        if exact and len(exact) == len(self.probes) and alike and rank > self._rank:
            self.best, self._rank = info.name, rank
            self.evidence = (
                f"markers in the rendering: {', '.join(map(repr, markers))}",
                f"parsed back exactly: {', '.join(probe.what for probe in exact)}",
            )


def reads(fmt: Format, probe: Probe) -> bool:
    """Whether the format's parser returns the message exactly."""
    try:
        turn = fmt.bind(tools=TOOLS, prefix=opening(fmt, probe.opening))
        message = turn.parse(probe.wire)
    except ChatParsersError:
        return False
    return message.complete and _said(message) == _asked(probe)


def writes(fmt: Format, probe: Probe) -> bool:
    """Whether the format writes the calls of the message exactly as the rendering has them."""
    calls = probe.message.get("tool_calls")
    return not calls or fmt.render({"content": "", "tool_calls": calls}, TOOLS).strip() in probe.wire


def _said(message: Message) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.content, message.reasoning, calls


def _asked(probe: Probe) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(call["function"]["name"], ARGUMENTS) for call in probe.message.get("tool_calls", ())]
    return probe.message["content"], probe.message.get("reasoning_content", ""), calls
