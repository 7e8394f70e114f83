"""The explicit record of a model's format: all that is known about it, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..answers.format import Format
from ..answers.idioms import Options
from ..answers.nodes import Body, Node
from ..core.tree import first, walk
from ..detection.detect import Detection
from ..errors import DefinitionError
from ..public import public
from ..templates import Template
from ..templates.probe.dial import Dial
from ..templates.probe.roles import ANY, role_headers
from ..tokens import ModelFiles, SpecialTokens
from ..writer.around import written_around
from .inline import marks_of


@dataclass(frozen=True, slots=True)
class RoleMarkers:
    """The texts that the template writes before and after a message of one role."""

    before: str
    after: str


@public
@dataclass(frozen=True, slots=True)
class TemplateFormat:
    """A model's format in full. ``extraction`` says in words how the parser divides a text. ``thoughts``: what
    ``thinking`` and ``effort`` of `Chat.prepare` can reach: the variables of each of the ``levels``, and the level
    without a wish (``default``), ``on`` and ``off``."""

    source: str
    format: str
    title: str
    score: float
    evidence: tuple[str, ...]
    roles: Mapping[str, RoleMarkers]
    generation_prompt: str
    reasoning_markers: tuple[str, str] | None
    call_markers: tuple[str, ...]
    stops: tuple[str, ...]
    preserved_tokens: tuple[str, ...]
    thinking_switches: tuple[str, ...]
    thoughts: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    special_tokens: Mapping[str, Any]
    marker_ids: Mapping[str, int]
    stop_ids: tuple[int, ...]
    extraction: Mapping[str, str]


def record(
    files: ModelFiles, template: Template, detection: Detection, fmt: Format, tokenizer: Any, thinks: bool
) -> TemplateFormat:
    """Makes the record: renders stand-ins for the roles, reads the format's tree, asks the tokenizer. ``thinks``:
    whether the model writes thoughts."""
    can = template.probe()
    reasoning = _reasoning(fmt)
    calls = _calls(fmt)
    turn = fmt.bind(tools=[{"name": "any"}], tokenizer=tokenizer, token_config=files.special_config)
    extraction = {
        "reasoning": f"text from {reasoning[0]!r} to {reasoning[1] or 'the next section'!r}"
        if reasoning
        else "none",
        "calls": f"from {' or '.join(map(repr, calls))} on, as {fmt.title} writes them" if calls else "none",
        "content": "all else, up to " + (" or ".join(map(repr, fmt.stops)) or "the end"),
    }
    return TemplateFormat(
        source=str(files.source),
        format=fmt.name,
        title=fmt.title,
        score=detection.score,
        evidence=detection.evidence,
        roles=_roles(template, fmt),
        generation_prompt=can.generation_prompt,
        reasoning_markers=reasoning,
        call_markers=calls,
        stops=fmt.stops,
        preserved_tokens=fmt.preserved_tokens,
        thinking_switches=can.thinking_switches,
        thoughts=_thoughts(template.dial(fmt), thinks),
        capabilities=asdict(can),
        special_tokens=_special(files, tokenizer),
        marker_ids=turn.marker_ids,
        stop_ids=turn.stop_ids,
        extraction=extraction,
    )


def _thoughts(dial: Dial, thinks: bool) -> dict[str, Any]:
    """What a wish can reach; nothing if the model has no thoughts."""
    off = dial.asked("disabled", None, thinks=thinks)
    if not dial.levels and off.budget is None:
        return {}
    return {
        "levels": {level.name: dict(level.variables) for level in dial.levels},
        "default": None if dial.default is None else dial.default.name,
        "on": None if dial.on is None else dial.on.name,
        "off": str(off) if off.level or off.budget is not None else None,
    }


def _roles(template: Template, fmt: Format) -> dict[str, RoleMarkers]:
    """What is around a message of each role that the template tells apart, between messages of other roles."""
    headers = role_headers(template, fmt)
    return {
        role: RoleMarkers(headers[role].before[0].replace(ANY, "…"), headers[role].after)
        for role in ("system", "user", "assistant", "tool")
        if role in headers
    }


def _reasoning(fmt: Format) -> tuple[str, str] | None:
    """The texts that the format writes before and after reasoning; ``""`` for an end that nothing marks."""
    if not fmt.features.reasoning:
        return None
    opener, own = written_around(fmt)[0].strip(), marks_of(fmt)[0]
    return opener, own.end if opener in own.openers else ""


def _calls(fmt: Format) -> tuple[str, ...]:
    for node in walk(fmt.tree(Options(tools=True))):
        if isinstance(node, Body):
            found = [text for part in (node.calls, node.start) if part is not None for text in _starts(part)]
            return tuple(sorted({text.lstrip() for text in found}))
    return ()


def _starts(part: Node) -> tuple[str, ...]:
    """The texts that a part begins with: none if it begins with a name, as a call that lost its opener."""
    try:
        return first(part)
    except DefinitionError:
        return ()


def _special(files: ModelFiles, tokenizer: Any) -> dict[str, Any]:
    if tokenizer is None:
        return {name: text for name, text in files.special_tokens.items() if text is not None}
    special = SpecialTokens.from_tokenizer(tokenizer, files.special_config)
    return {
        "bos": asdict(special.bos) if special.bos else None,
        "eos": [asdict(token) for token in special.eos],
        "pad": asdict(special.pad) if special.pad else None,
        "added": len(special.by_id),
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields that differ between two records, with both values. Capabilities are compared one by one."""
    mine, theirs = ({**record, **record["capabilities"]} for record in (one, other))
    left_out = {"source", "capabilities", "evidence", "extraction", "special_tokens"}
    return {
        name: (mine[name], theirs[name])
        for name in mine
        if name not in left_out and mine[name] != theirs[name]
    }
