"""Formats tried on the turns that a template renders: which of them returns every message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..answers.format import Format
from ..errors import ChatParsersError
from ..registry import FormatInfo, list_formats
from ..streams.message import Message
from ..templates.probe.edges import edges_of
from ..templates.probe.stand_ins import ARGUMENTS, NAME, TOOLS
from .shown import Probe


class Contest:
    """Formats tried on the probes. ``shown``: those of which a marker is in the renderings, with their markers there.
    ``best``: the name of the highest-ranked format that returns all probes. ``cut``: probes of thoughts that the
    template cuts out, which only rank: a guard against them is often copied. ``missed``: those that the best does not
    read. ``nearest``: of the formats whose markers are all there and that return a call, the one that returns most
    probes, and those that it does not read."""

    def __init__(self, rendered: str, probes: list[Probe], cut: Sequence[Probe] = ()) -> None:
        self.probes = probes
        self.cut = cut
        self.missed: list[Probe] = []
        self.nearest: tuple[str, list[Probe]] | None = None
        self.best: str | None = None
        self.evidence: tuple[str, ...] = ()
        self.tried: list[str] = []
        self.broken: list[str] = []
        seen = [(info, tuple([text for text in info.markers if text in rendered])) for info in list_formats()]
        self.shown = [(info, markers) for info, markers in seen if markers]
        self._thinks = any("reasoning_content" in probe.message for probe in (*probes, *cut))
        self._rank = (False, False, 0, False, False)
        self._near = (0, 0)

    @property
    def settled(self) -> bool:
        """Whether a format is found, and one that declares the reasoning which the template shows."""
        return self.best is not None and (self._rank[1] or bool(self.missed))

    def formats(self, whole: bool) -> list[FormatInfo]:
        """The formats of which all markers are in the renderings, or those of which only some are."""
        return [info for info, markers in self.shown if (markers == info.markers) is whole]

    def enter(self, info: FormatInfo, *, writing: bool = False) -> None:
        """Tries a format. ``writing``: the format must also write the call as the template does."""
        try:
            fmt = info.load()
            wrong = [probe for probe in self.probes if not reads(fmt, probe)]
            exact = [probe for probe in self.probes if probe not in wrong]
            missed = [probe for probe in self.cut if not reads(fmt, probe)]
            alike = not writing or all(writes(fmt, probe) for probe in exact)
            reasoning = fmt.features.reasoning
        except Exception as error:  # a broken format must not stop the others
            self.broken.append(f"{info.name} is left out: {error}")
            return
        self.tried.append(f"{info.name}: {len(exact)} of {len(self.probes)} probe turns parsed back exactly")
        markers = next(markers for other, markers in self.shown if other is info)
        own = fmt.build.__module__.endswith("." + fmt.name.replace("-", "_"))  # not another family's
        rank = (not missed, reasoning or not self._thinks, sum(map(len, markers)), reasoning, own)
        near = (len(exact), sum(map(len, markers)))
        if markers == info.markers and wrong and any(map(_calls, exact)) and near > self._near:
            self.nearest, self._near = (info.name, wrong), near
        if exact and not wrong and alike and rank > self._rank:
            self.best, self._rank, self.missed = info.name, rank, missed
            exact = [*exact, *(probe for probe in self.cut if probe not in missed)]
            self.evidence = (
                f"markers in the rendering: {', '.join(map(repr, markers))}",
                f"parsed back exactly: {', '.join(probe.what for probe in exact)}",
            )


def _calls(probe: Probe) -> bool:
    return "tool_calls" in probe.message


def reads(fmt: Format, probe: Probe, *, spaces: bool = True) -> bool:
    """Whether the format's parser returns the message exactly; without ``spaces``, but for white space around texts."""
    try:
        turn = fmt.bind(tools=TOOLS, prefix=edges_of(fmt).opening(probe.opening))
        message = turn.parse(probe.wire)
    except ChatParsersError:
        return False
    if not message.complete:
        return False
    content, reasoning, calls = _said(message)
    return (content, reasoning, calls) == _asked(probe) or (
        not spaces and (content.strip(), reasoning.strip(), calls) == _asked(probe)
    )


def loses_calls(fmt: Format, probe: Probe) -> bool:
    """Whether the format reads no call in a turn that has one."""
    if in_two_turns(fmt, probe):
        return False
    return not fmt.bind(tools=TOOLS, prefix=edges_of(fmt).opening(probe.opening)).parse(probe.wire).tool_calls


def in_two_turns(fmt: Format, probe: Probe) -> bool:
    """Whether the turn ends after its text, before the calls: the template writes two."""
    return any(stop.strip() in probe.wire[: probe.wire.find(NAME)] for stop in fmt.stops if stop.strip())


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
