"""Reads a rendered conversation, such as a dataset's row or a log, back into messages, and marks the model's parts.

The headers that the template writes for each role show where messages begin (templates/probe/roles.py). The format's
parser reads an assistant's turn. Text that a template drops or merges cannot come back: the tools stay in
the system text, the reasoning of earlier turns is gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.errors import TemplateError
from ..core.format import Format
from ..core.public import public
from ..templates.probe.edges import opening
from ..templates.probe.roles import ANY, Headers

__all__ = ["PromptMessage", "read_back"]


@public
@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of a rendered conversation.

    ``message``: OpenAI-shaped. ``start``, ``end``: the span of its content in the text. An assistant's span begins
    behind the generation prompt and includes the text that ends its turn: all that the model writes, and so all that a
    loss counts. ``tokens``: the same in
    tokens, None without a tokenizer.
    """

    message: dict[str, Any]
    start: int
    end: int
    tokens: tuple[int, int] | None = None

    @property
    def written(self) -> bool:
        """Whether the model wrote it."""
        return bool(self.message["role"] == "assistant")


class _Place(NamedTuple):
    """The place of a message. Its header goes from ``begin`` to ``start``."""

    role: str
    header: str
    begin: int
    start: int


def read_back(
    text: str,
    headers: Mapping[str, Headers],
    fmt: Format,
    name: str,
    tokenizer: Any = None,
    prefixes: Sequence[str] = (),
) -> list[PromptMessage]:
    """The messages of a rendered conversation. ``prefixes``: what generation prompts write of an answer; the first that
    stands there is not the model's. Raises `TemplateError` if the template marks no roles."""
    if not headers:
        raise TemplateError(
            f"template {name}: no message can be found in its text, as it does not mark where a user's message and the "
            "answer to it begin (read the text with a format's parser, turn by turn)"
        )
    places = _places(text, headers)
    offsets = None if tokenizer is None else tokenizer.encode(text, add_special_tokens=False).offsets
    out: list[PromptMessage] = []
    for number, place in enumerate(places):
        last = number + 1 == len(places)
        end = len(text) if last else places[number + 1].begin
        after = headers[place.role].after
        if place.role == "assistant":
            message, end = _answer(text, place, end, fmt, after)
            if not (message.get("content") or message.get("tool_calls")):
                continue  # a generation prompt, or nothing between two headers
            given = (prefix for prefix in prefixes if prefix and text.startswith(prefix, place.start, end))
            place = place._replace(start=place.start + len(next(given, "")))
        else:
            content = _without(text[place.start : end], after)
            message, end = {"role": place.role, "content": content}, place.start + len(content)
        out.append(PromptMessage(message, place.start, end, _tokens(offsets, place.start, end)))
    return _answered(out)


def _places(text: str, headers: Mapping[str, Headers]) -> list[_Place]:
    """Every header in the text, in order. If two begin at one place, the longer one."""
    known = [(role, before) for role, header in headers.items() for before in header.before]
    known.sort(key=lambda item: -len(item[1].strip()))
    spelt = (re.escape(before.strip()).replace(re.escape(ANY), r"[^\s<>]+") for _, before in known)
    pattern = re.compile("|".join(f"({one})" for one in spelt))
    found: list[_Place] = []
    for match in pattern.finditer(text):
        role, header = known[(match.lastindex or 1) - 1]
        lead, trail = header[: len(header) - len(header.lstrip())], header[len(header.rstrip()) :]
        begin = match.start() - (len(lead) if text.endswith(lead, 0, match.start()) else 0)
        start = match.end() + (len(trail) if text.startswith(trail, match.end()) else 0)
        found.append(_Place(role, header, begin, start))
    return found


def _answer(text: str, place: _Place, end: int, fmt: Format, after: str) -> tuple[dict[str, Any], int]:
    """The message in an assistant's text, and the position at which the model's own text ends."""
    wire = text[place.start : end]
    ends = [at + len(stop) for stop in fmt.stops if (at := wire.find(stop)) >= 0]
    if ends:
        wire = wire[: min(ends)]
    elif after.strip() or wire.endswith(after):
        wire = _without(wire, after)
    turn = fmt.bind(tools=[{"name": "any"}], prefix=opening(fmt, place.header))
    return turn.parse(wire).to_openai(), place.start + len(wire)


def _without(text: str, end: str) -> str:
    """``text`` without ``end``, or without as much of its marker and white space as is there."""
    if end and text.endswith(end):
        return text[: -len(end)]
    marker = end.strip()
    at = text.rfind(marker) if marker else -1
    return text[:at] if at >= 0 and not text[at + len(marker) :].strip() else text


def _tokens(offsets: list[tuple[int, int]] | None, start: int, end: int) -> tuple[int, int] | None:
    """The tokens that hold a character of the span."""
    if offsets is None:
        return None
    inside = [number for number, (first, last) in enumerate(offsets) if first < end and last > start]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _answered(messages: list[PromptMessage]) -> list[PromptMessage]:
    """Results with the ids and names of the calls that they answer, in their order."""
    waiting: list[Mapping[str, Any]] = []
    for item in messages:
        if item.message["role"] == "assistant":
            waiting = list(item.message.get("tool_calls") or ())
        elif item.message["role"] == "tool" and waiting:
            call = waiting.pop(0)
            item.message.update(tool_call_id=call["id"], name=call["function"]["name"])
    return messages
