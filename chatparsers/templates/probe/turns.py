"""Cuts one assistant turn out of a rendered conversation.

A conversation rendered with the assistant's answer is not always the prompt followed by the model's text. A prompt may
prefill ``<think>`` that the history does not show again. A template may always write its header, or a fixed text after
the last message. Traces say where words are; only the text between two messages' words is compared here, never the
template's source. The rules, in their order:

1. A *trailer*, text that follows the last message in every rendering, is removed from the end.
2. The text between the last words of the history and the first of the answer is compared with what the prompt writes
   after the same words. The role header is in both (`aligned`), maybe with other white space, and maybe after a command
   that only the prompt has (LongCat's ``/think_on``). It ends where answers differ from the prompt. If nothing of the
   header is there (a classifier puts an answer into its question), what all answers have in its place is no answer's.
3. If all that the prompt writes is there, the wire text begins after it. Exception: the prompt ends in an open marker
   (``<think>``) and the message's content follows at once. Then the template has put content into the prefilled
   reasoning, and the returned prompt ends before the prefill.
4. Else the wire text begins after what both share, never after the role header and never inside a marker. It has the
   template's text in place of the prefill, and the returned prompt ends there. If reasoning follows the header at once,
   without any marker, it continues the prefill, and the prompt stays whole.
5. White space that the template writes after its end-of-turn marker is not the model's and is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..trace import Trace

NEEDLE = "永needlecontent"
"""Content for comparison; its first character begins no template's prefill."""

FOLLOW_UP = "Needle goes on."
"""Content of the user message after it."""

MARKER = re.compile("|".join((*(rf"{'<' * n}[^<>\s]+{'>' * n}" for n in (3, 2, 1)), r"\[/?[A-Z_]+\]")))
"""A marker, with as many brackets after it as before: ``<<think>>`` is one, and ``<|assistant|>>>>`` is one and three
more characters."""

WHOLE = re.compile(rf"<\|(?:open|close)\|>[^<]*<\|sep\|>|{MARKER.pattern}")
"""What no cut divides: a marker, or a tag that is written with two of them (Kimi K3)."""

_MARKERS = re.compile(f"({MARKER.pattern})")
_MOST_PARTS = 48
"""Of how many parts of a header its beginning and its end are looked for, the nearest to the answer: a guard model's
template writes its whole policy between a question and the answer."""

_PART = re.compile(rf"{MARKER.pattern}|\s+(?=\S)", MARKER.flags)
"""Where a part of a header begins: at a marker or, in LongCat's ``/think_on ASSISTANT:``, at a word."""


@dataclass(frozen=True, slots=True)
class Renderings:
    """One conversation rendered in several states; None if the template refuses that state.

    ``plain``: the history. ``prompt``: with generation prompt. ``full``: with the answer. ``needle``: with an
    answer whose content is ``NEEDLE``. ``followed``: with that answer and a user message after it.
    """

    plain: Trace
    prompt: Trace
    full: Trace
    needle: Trace | None
    followed: Trace | None


def common(a: str, b: str) -> int:
    """How many characters the two begin with alike."""
    limit = min(len(a), len(b))
    low, high = 0, limit  # a[:low] is common, a[:high + 1] is not
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a.startswith(b[low:middle], low) else (low, middle - 1)
    return low


def outside_marker(text: str, position: int) -> int:
    """``position``, or the start of the marker of ``text`` that it lies inside."""
    for found in WHOLE.finditer(text, max(0, position - 80)):
        if found.start() < position < found.end():
            return found.start()
        if found.start() >= position:
            break
    return position


def trailer(answered: Trace | None, continued: Trace | None) -> str:
    """The text that the template writes after the last message, with or without a generation prompt; mostly ``""``.

    With T for the trailer, ``needle`` is X + T and ``followed`` is X + (user message) + T. That allows several cuts,
    as the user message and T may begin or end alike. A marker that follows a message's text at once ends a turn. So T
    begins at the first other marker.
    """
    if answered is None or continued is None or continued.text.startswith(answered.text):
        return ""
    needle, followed = answered.text, continued.text
    latest = common(needle, followed)
    earliest = len(needle) - common(needle[::-1], followed[::-1])
    starts = [found for found in MARKER.finditer(needle, earliest) if found.start() <= latest]
    ends = {_marker_after(needle, NEEDLE), _marker_after(followed, FOLLOW_UP)}
    begin = next((found for found in starts if found[0] not in ends), starts[0] if starts else None)
    return needle[begin.start() :] if begin else ""


def _marker_after(text: str, content: str) -> str:
    at = text.rfind(content)
    found = re.compile(rf"\s*({MARKER.pattern})").match(text, at + len(content)) if at >= 0 else None
    return found[1] if found else ""


def _without(text: str, end: str) -> str:
    return text[: len(text) - len(end)] if end and text.endswith(end) else text


def _is_open(prefill: str) -> bool:
    """Whether a prefill ends in an opening marker."""
    markers = MARKER.findall(prefill)
    return (
        bool(markers)
        and prefill.rstrip().endswith(markers[-1])
        and not re.match(r"[<\[]/|.*END", markers[-1])
    )


def gap_before(trace: Trace, index: int) -> tuple[str, int]:
    """The text between the words of a message and those before it, and where it ends."""
    places = trace.places.get(index)
    first = trace.spans[places[0]].start if places else len(trace.text)
    before = max((span.end for span in trace.spans if span.message < index and span.end <= first), default=0)
    return trace.text[before:first], first


def aligned(gap: str, header: str, ends: Sequence[int]) -> tuple[int, int] | None:
    """Where a header is in the text between two messages: its end there, and the one of its ``ends`` that it is.

    What was before may have ended otherwise than where the header is from. Then the longest end of it that is there
    counts; None if there is none. White space may differ."""
    starts = sorted({0, *(part.start() for part in _PART.finditer(header))})
    ends = ends[:_MOST_PARTS]
    for start in [*starts[:1], *starts[1:][-_MOST_PARTS:]]:
        for end in ends:
            text = header[start:end]
            if not text.strip():
                continue
            if start == 0 and gap.startswith(text):
                return len(text), end
            at = gap.rfind(text)
            if at >= 0:
                return at + len(text), end
            *_, found = [None, *_with_any_space(text, gap)]
            if found is not None:
                return found.end(), end
    return None


def _with_any_space(text: str, gap: str) -> Iterator[re.Match[str]]:
    """Where a text is with other white space, or none, between its markers and words. What it ends in comes last: other
    white space may be the answer's (`` -> tool/…`` of HyperCLOVA X)."""
    words = [piece for word in text.split() for piece in _MARKERS.split(word) if piece]
    if not all(word in gap for word in words):
        return iter(())
    end = text[len(text.rstrip()) :]
    return re.finditer(r"\s*".join([*map(re.escape, words), *([re.escape(end)] if end else ())]), gap)


def cut(texts: Renderings, index: int, content: str) -> tuple[str, str]:
    """The prompt and the wire text of the answer with this index, by the rules at the top of this module."""
    prompt, plain = texts.prompt.text, texts.plain.text
    tail = trailer(texts.needle, texts.followed)
    asked = prompt[texts.prompt.spans[-1].end if texts.prompt.spans else 0 :]
    header = prompt[len(plain) :] if prompt.startswith(plain) else ""
    if tail and header:
        asked = _without(asked[: len(asked) - len(header)], tail) + header
    base = len(asked) - len(header or tail) if prompt.startswith(plain) else 0
    others = [gap_before(one, index)[0] for one in (texts.needle, texts.followed) if one is not None]
    # No answer shares more of what the prompt writes than the role header.
    role_end = min((_shared(asked, other, base, len(asked))[1] for other in others), default=len(asked))
    gap, first = gap_before(texts.full, index)
    body = _without(texts.full.text, tail)
    gap, rest = gap[: len(gap) - max(first - len(body), 0)], body[first:]

    at, place = _shared(asked, gap, base, role_end, others)
    prefill = asked[role_end:]
    if place == role_end and gap.startswith(prefill, at):
        at += len(prefill)
        follows = at == len(gap) and bool(content.strip()) and rest.startswith(content.strip())
        place = role_end if follows and _is_open(prefill) else len(asked)
    elif place == role_end and at == len(gap) and any(texts.full.of(index)):
        place = len(asked) if next(texts.full.of(index)).field == "reasoning" else place
    elif place == role_end and MARKER.match(gap[at:].lstrip()):  # in the place of the prefill
        spaced = any(map(str.isspace, asked[place - 1 : place + 1]))
        at = at if spaced else len(gap) - len(gap[at:].lstrip())
    wire = gap[at:] + rest
    needle = None if texts.needle is None else _without(texts.needle.text, tail)
    return prompt[: len(prompt) - (len(asked) - place)], _trim_end(wire, needle)


def _shared(asked: str, gap: str, base: int, role_end: int, others: Sequence[str] = ()) -> tuple[int, int]:
    """How far the text before an answer goes the same way as the prompt, and where the prompt is there. ``base``: where
    the generation prompt begins, before which no header ends. ``others``: the text before other answers."""
    found = aligned(gap, asked, _ends(asked, base, role_end))
    if found is None:  # the answer has changed how the history is rendered
        at = outside_marker(gap, outside_marker(asked, common(gap, asked)))
        place = at if at >= base else len(asked)
        return max([at, *(outside_marker(gap, common(gap, other)) for other in others)]), place
    at, place = found
    more = outside_marker(asked, place + common(gap[at:], asked[place:role_end])) - place
    more = outside_marker(gap, at + max(more, 0)) - at
    return at + more, place + more


def _ends(asked: str, base: int, last: int) -> list[int]:
    """Where a header may end, the last first."""
    parts = (place for part in _PART.finditer(asked) for place in part.span())
    return sorted({base, last, *(place for place in parts if base < place < last)}, reverse=True)


def _trim_end(wire: str, needle: str | None) -> str:
    if needle is None or NEEDLE not in needle:
        return wire
    end = needle[needle.rindex(NEEDLE) + len(NEEDLE) :]
    if end.strip() and wire.rstrip().endswith(end.strip()):
        return wire.rstrip()
    space = end[len(end.rstrip()) :]
    return _without(wire, space) if end.strip() else wire
