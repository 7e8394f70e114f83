"""A thought that stands in an answer's text is found once, before anything reads the messages.

Most reasoning data, and engines that split nothing, have ``<think>T</think>A`` as one text; an engine whose prompt
opened the thought gives ``T</think>A``. Templates show such a text in every way: they cut it, print it, or put a second
pair of markers around it. So it becomes ``reasoning_content`` and ``content``, and all who read messages see two
fields.

Strategy. The markers are the format's own, as it writes them itself, and ``<think>``. An opener counts at the beginning
of the text alone. A closer without one counts if it is there once, and if the text does not quote it. Nothing is split
for a format that has no reasoning: what it reads as content is content. The same markers say which characters around
words are a thought's (`beside_thoughts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import is_not
from typing import Any, NamedTuple

from ..answers.format import Format
from ..templates.messages import is_message, reasoning_of
from ..templates.probe.turns import MARKER
from ..writer.around import written_around
from .shapes import region_after

_QUOTES = "`'\"“”«»()"


class Marks(NamedTuple):
    """What stands around a thought: ``openers``, from the longest on; ``closer``, up to the content; ``end``, what of
    it closes the thought; ``after``: what closes the content."""

    openers: tuple[str, ...]
    closer: str
    end: str
    after: str = ""


_THINK = Marks(("<think>",), "</think>", "</think>")
USUAL = (_THINK,)
"""The markers of data whose format is not known."""


@lru_cache(maxsize=256)
def marks_of(fmt: Format) -> tuple[Marks, ...]:
    """The markers of thoughts of a format; none if it has no reasoning."""
    if not fmt.features.reasoning:
        return ()
    before, closer, after = (text.strip() for text in written_around(fmt))
    if not before or not closer:
        return USUAL
    starts = [found.start() for found in MARKER.finditer(before)]
    ends = (closer[: found.end()] for found in MARKER.finditer(closer))
    end = next((end for end in ends if region_after(fmt, f"{before}T{end}") != "reasoning"), closer)
    own = Marks(tuple(before[start:] for start in dict.fromkeys((0, *starts))), closer, end, after)
    return (own,) if own[:3] == _THINK[:3] else (own, _THINK)


def with_thoughts(
    messages: Sequence[Mapping[str, Any]], marks: Sequence[Marks]
) -> Sequence[Mapping[str, Any]]:
    """The messages, with the thought of each answer in a field of its own; the same list if there is nothing to do."""
    if not _may_hold_thoughts(messages, marks):
        return messages
    found = [
        with_thought(one, marks) if is_message(one) and one["role"] == "assistant" else one
        for one in messages
    ]
    return found if any(map(is_not, found, messages)) else messages


def _may_hold_thoughts(messages: Sequence[Mapping[str, Any]], marks: Sequence[Marks]) -> bool:
    """Whether some answer has a closer in its text, or another content than a text. Each request repeats all messages,
    and mostly none does."""
    for message in messages if marks else ():
        if type(message) is not dict:
            return True
        if message.get("role") == "assistant":
            content = message.get("content") or ""
            if type(content) is not str:
                return True
            for mark in marks:
                if mark.closer in content:
                    return True
    return False


def with_thought(message: Mapping[str, Any], marks: Sequence[Marks]) -> Mapping[str, Any]:
    """The answer, with the thought that its text holds as ``reasoning_content``; the same object if it holds none, or
    if it has another thought already."""
    content = message.get("content")
    more: list[Any] | None = None
    part: Any = content
    if isinstance(content, list) and content:
        part, *more = content
    text = part.get("text") if isinstance(part, Mapping) else part
    if not isinstance(text, str):
        return message
    for mark in marks:
        found = _split(text, mark)
        if found is None:
            continue
        thought, rest = found
        had = reasoning_of(message).strip()
        if had and thought not in ("", had):
            return message
        first = {**part, "text": rest} if isinstance(part, Mapping) else rest
        split = {**message, "content": first if more is None else [first, *more]}
        if thought and not had:
            split["reasoning_content"] = thought
        return split
    return message


def _split(text: str, mark: Marks) -> tuple[str, str] | None:
    """The thought of a text and the rest of it; None if there is none."""
    at = text.find(mark.closer)
    if at < 0:
        return None
    before, rest = text[:at].lstrip(), text[at + len(mark.closer) :]
    opener = next((opener for opener in mark.openers if before.startswith(opener)), None)
    if opener is None and (mark.openers[0] in before or not _alone(text, at, mark.closer)):
        return None
    thought = before[len(opener or "") :].strip()
    rest = rest.lstrip()
    if mark.after and rest.endswith(mark.after):
        rest = rest.removesuffix(mark.after).rstrip()
    return thought, rest


def _alone(text: str, at: int, closer: str) -> bool:
    """Whether a closer without an opener closes a thought: it comes once, and no sentence, quotation marks or fence of
    code have it as a word."""
    end = at + len(closer)
    before, after = text[at - 1 : at], text[end : end + 1]
    named = before in tuple(_QUOTES) or after in tuple(_QUOTES) or (before == " " and after not in ("", "\n"))
    return not named and text.find(closer, end) < 0 and text.count("```", 0, at) % 2 == 0


Runs = Iterable[tuple[int, int, str]]
"""From, to, and the kind of a region: what a reader found in the text of an answer."""


def beside_thoughts(
    text: str, runs: Runs, marks: Sequence[Marks], *, thought: bool, reasoning: bool
) -> Iterator[tuple[int, int]]:
    """What of an answer's text a loss does not count. ``thought``: whether the answer has one; if not, an empty pair,
    or a closer, that the template writes for it. ``reasoning``: whether a thought counts; if not, it and its
    markers."""
    at = 0  # where what is not of the next thought ends
    for start, end, kind in runs:
        if kind in ("content", "call") and text[start:end].strip():
            if not thought and not at:
                yield from _empty(text, start, marks)
            at = end
        elif kind == "reasoning" and thought and not reasoning:
            lead = text[at:start]
            places = [place for mark in marks for one in mark.openers if (place := lead.rfind(one)) >= 0]
            begin = at + len(lead[: min(places)].rstrip()) if places else start if at else 0
            end = next((found for mark in marks if (found := _closed(text, end, mark.end))), end)
            yield begin, end
            at = max(at, end)
    if not thought and not at:
        yield from _empty(text, len(text), marks)


def _empty(text: str, end: int, marks: Sequence[Marks]) -> Iterator[tuple[int, int]]:
    """What is written for no thought before ``end``."""
    for mark in marks:
        closed = after_thought(text[:end], (mark,))
        if closed:
            yield 0, _blank(text, closed)
            return


def after_thought(text: str, marks: Iterable[Marks]) -> int:
    """Where the end of a thought, with the white space after it, ends last in a text; 0 if none does."""
    for mark in marks:
        place = text.rfind(mark.end)
        if place >= 0:
            return _blank(text, place + len(mark.end))
    return 0


def _closed(text: str, at: int, end: str) -> int:
    """Where a closer ends, with the white space around it, that comes next; 0 if none does."""
    start = _blank(text, at)
    return _blank(text, start + len(end)) if text.startswith(end, start) else 0


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
