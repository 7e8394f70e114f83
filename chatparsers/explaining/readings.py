"""How other formats read a text: each format whose markers are in it tries.

A reading counts if all its calls are whole and name declared tools. Of several, the best is the one whose format writes
the calls exactly as the text has them, else the one that leaves the least text as content. A format whose markers are
nearly in the text (spelling.py) reads it too, after the others.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from ..answers.format import Format, Turn
from ..answers.idioms import Options
from ..answers.nodes import Body
from ..core.tree import first, head, once
from ..errors import ChatParsersError
from ..registry import get_format, list_formats
from ..schema.tools import Toolset
from ..streams.message import Message, ToolCall
from .spelling import Respelt, respelt


class Reading(NamedTuple):
    """How one format reads the text, whose markers it may have spelt nearly so. ``rank``: smaller is better."""

    turn: Turn
    message: Message
    rank: tuple[bool, int, bool]
    spelling: Respelt

    @property
    def name(self) -> str:
        return self.turn.format.name

    @property
    def meaning(self) -> str:
        """The calls, by what they say."""
        return json.dumps([(call.name, call.parsed_arguments) for call in self.message.tool_calls])


def readings(text: str, tools: Toolset, but: str = "") -> tuple[list[Reading], list[str]]:
    """The readings that count, the best first, and why others do not. The format named ``but`` is not asked."""
    found: list[Reading] = []
    doubts: dict[str, None] = {}
    for info in list_formats():
        format = get_format(info.name)
        if format.name == but or not format.features.tools:
            continue
        own: list[Reading] = []
        nearly = respelt(format, text)
        for spelling in (Respelt(text), nearly) if nearly.steps else (Respelt(text),):
            if not (spelling.steps or _may_read(format, text)):
                continue
            turn = format.bind(tools=tools, id_seed="reading")
            message = turn.parse(spelling.text)
            unknown = [call.name for call in message.tool_calls if call.name not in tools]
            broken = [call.name for call in message.tool_calls if not call.complete]
            if unknown:
                doubts[f"no tool of the request has the name {unknown[0]:.80}"] = None
            elif broken:
                doubts[f"the call of {broken[0]:.80} is not whole"] = None
            elif whole(message, tools):
                left = len("".join(message.content.split()))
                rank = not _writes(turn, message), left, bool(spelling.steps)
                own.append(Reading(turn, message, rank, spelling))
        if own:
            found.append(min(own, key=lambda reading: reading.rank))
    return sorted(found, key=lambda reading: reading.rank), list(doubts)


def whole(message: Message, tools: Toolset) -> bool:
    """Whether calls were read, all whole, all of declared tools, and none the quotation of a tool's schema."""
    return bool(message.tool_calls) and all(
        call.complete and call.name in tools and not _is_schema(call) for call in message.tool_calls
    )


def own_markers(format: Format, text: str) -> bool:
    """Whether a special token of the format, or a marker of its calls that is more than punctuation of JSON, is in the
    text."""
    markers = (*format.preserved_tokens, *_markers(format))
    return any(marker in text for marker in markers if marker.strip("[]{} \n"))


def _is_schema(call: ToolCall) -> bool:
    found = call.parsed_arguments or {}
    return found.get("type") == "object" and isinstance(found.get("properties"), dict)


@lru_cache(maxsize=1024)
def _markers(format: Format) -> tuple[str, ...]:
    """Texts of which one is in each text with a call of the format; none if a call needs none."""
    bodies = [node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body)]
    if any(body.start is not None for body in bodies):
        return ()
    parts = [part for body in bodies for part in (body.calls, body.marks) if part is not None]
    texts = {*format.preserved_tokens, *(text.strip() for part in parts for text in first(head(part)))}
    return tuple({*texts, *(text.replace("｜", "|") for text in texts)})


def _may_read(format: Format, text: str) -> bool:
    markers = _markers(format)
    return not markers or any(marker in text for marker in markers)


def _writes(turn: Turn, message: Message) -> bool:
    """Whether the format writes the calls as they are in the text."""
    answer = {"role": "assistant", "content": "", "tool_calls": message.to_openai()["tool_calls"]}
    try:
        written = turn.format.render(answer, turn.tools)
    except ChatParsersError:
        return False
    return written.strip() in message.text
