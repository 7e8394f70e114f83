"""Cuts one assistant turn out of a rendered conversation.

A conversation rendered with the assistant's answer is not always the prompt followed by the model's text. A prompt may
prefill ``<think>`` that the history does not show again. A template may always write its header, or a fixed text after
the last message. Only renderings are compared here, never the template's source. The rules, in their order:

1. A *trailer*, text that follows the last message in every rendering, is removed from the end. A *command*, text that
   only the prompt has before the role header (LongCat's ``/think_on``), counts as text of all renderings.
2. If the rest starts with the prompt, the text after the prompt is the wire text. Exception: the prompt ends
   in an open marker (``<think>``) and the message's content follows at once. Then the template has put
   content into the prefilled reasoning, and the returned prompt ends before the prefill.
3. Else both are cut at their first difference, but never after the role header (found by rendering a needle) and
   never inside a marker. The returned prompt ends there. The wire text then has the template's text in place of the
   prefill. If that text is only the reasoning, without any marker, it continues the prefill, and the prompt stays
   whole.
4. If they differ before the header, the answer has changed how the history is rendered (reasoning of past
   turns is dropped). Then the wire text starts after the last header.
5. A header that a rendering spells with other white space than the prompt is the same header: the rendering is
   read as if it had the prompt's, because that is what the model sees.
6. White space that the template writes after its end-of-turn marker is not the model's and is removed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NEEDLE = "永needlecontent"
"""Content for comparison; its first character begins no template's prefill."""

FOLLOW_UP = "Needle goes on."
"""Content of the user message after it."""

MARKER = re.compile(r"<+[^<>\s]+>+|\[/?[A-Z_]+\]")
"""A marker, with all of its brackets: ``<<think>>`` is one."""

WHOLE = re.compile(rf"<\|(?:open|close)\|>[^<]*<\|sep\|>|{MARKER.pattern}")
"""What no cut divides: a marker, or a tag that is written with two of them (Kimi K3)."""


@dataclass(frozen=True, slots=True)
class Renderings:
    """One conversation rendered in several states; None if the template refuses that state.

    ``plain``: the history. ``prompt``: with generation prompt. ``full``: with the answer. ``needle``: with an
    answer whose content is ``NEEDLE``. ``followed``: with that answer and a user message after it.
    """

    plain: str
    prompt: str
    full: str
    needle: str | None
    followed: str | None


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


def trailer(needle: str | None, followed: str | None) -> str:
    """The text that the template writes after the last message, with or without a generation prompt; mostly ``""``.

    With T for the trailer, ``needle`` is X + T and ``followed`` is X + (user message) + T. That allows several cuts,
    as the user message and T may begin or end alike. A marker that follows a message's text at once ends a turn. So T
    begins at the first other marker.
    """
    if needle is None or followed is None or followed.startswith(needle):
        return ""
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


def cut(texts: Renderings, content: str, reasoning: str) -> tuple[str, str]:
    """The prompt and the wire text, by the rules at the top of this module."""
    tail = trailer(texts.needle, texts.followed)
    body = _without(texts.full, tail)
    base = _without(texts.plain, tail)
    header = texts.prompt[len(texts.plain) :] if texts.prompt.startswith(texts.plain) else ""
    reference = base + header if tail and header else texts.prompt
    needle = None if texts.needle is None else _without(texts.needle, tail)
    others = [text for text in (needle, texts.followed) if text is not None]
    spoken = command(reference[len(base) :], needle[len(base) : needle.find(NEEDLE)] if needle else "")
    if spoken and all(text.startswith(base) for text in (body, *others)):
        body, *others = (base + spoken + text[len(base) :] for text in (body, *others))
        needle = others[0] if needle is not None else None
    body, *others = (as_prompted(text, reference, len(base)) for text in (body, *others))
    needle = others[0] if needle is not None else None
    role_end = _role_end(reference, len(base), *others)

    if body.startswith(reference):
        at, wire = len(reference), body[len(reference) :]
        if content.strip() and wire.startswith(content.strip()) and _is_open(reference[role_end:]):
            at = role_end
    else:
        at = min(common(reference, body), role_end)
        at = outside_marker(body, outside_marker(reference, at))
        wire = body[at:]
        if at < len(base):
            role, prefill = reference[len(base) : role_end], reference[role_end:]
            wire = _after_last_header(body, needle, role)
            resumes = bool(prefill) and wire.startswith(prefill)
            at, wire = (len(reference), wire[len(prefill) :]) if resumes else (role_end, wire)
        elif at == role_end and reasoning.strip() and wire.startswith(reasoning.strip()):
            at = len(reference)
    prompt = texts.prompt[: len(texts.prompt) - (len(reference) - at)]
    return prompt, _trim_end(wire, needle)


def as_prompted(text: str, reference: str, base: int) -> str:
    """``text`` with the white space that ``reference`` has, as far as they differ only in it after ``base``.

    White space after the last marker or word that both have stays: it may be the answer's.
    """
    if text.startswith(reference) or not text.startswith(reference[:base]):
        return text
    at = here = base
    shared: list[tuple[int, int]] = []
    while at < len(reference) and here < len(text):
        if reference[at] == text[here]:
            at, here = at + 1, here + 1
        elif reference[at].isspace() or text[here].isspace():
            at = _after_space(reference, at)
            here = _after_space(text, here)
            continue
        else:
            break
        if not reference[at - 1].isspace():
            shared.append((at, here))
    whole = (
        pair for pair in reversed(shared) if not _inside(reference, pair[0]) and not _inside(text, pair[1])
    )
    at, here = next(whole, (base, base))
    rest = text[here:]
    if reference[at:].strip() and not reference[at].isspace() and MARKER.match(rest.lstrip()):
        rest = (
            rest.lstrip()
        )  # the prompt has a prefill right after its header, and the text a marker in its place
    return reference[:at] + rest


def _inside(text: str, at: int) -> bool:
    """Whether the place is inside a marker or a word."""
    word = text[at - 1 : at].isalnum() and text[at : at + 1].isalnum()
    return word or outside_marker(text, at) != at


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def command(prompt: str, header: str) -> str:
    """The text of a generation prompt that comes before the ``header`` of the assistant's turn; mostly ``""``.

    A header may end in a thought that the prompt does not have. So the text before its first marker is enough.
    """
    for role in (header, MARKER.split(header, maxsplit=1)[0]):
        at = prompt.find(role) if role.strip() else -1
        if at >= 0:
            return prompt[:at]
    return ""


def _role_end(reference: str, base: int, *others: str) -> int:
    """The end of the role header in ``reference``: no rendering of an answer shares more with it."""
    end = len(reference)
    for other in others:
        at = outside_marker(reference, outside_marker(other, common(reference, other)))
        end = at if base <= at < end else end
    return end


def _after_last_header(body: str, needle: str | None, role: str) -> str:
    """The answer, if the history is not the prompt's: the rendering differs from ``needle`` only in the answer."""
    shared = (
        len(body) if needle is None else min(common(body, needle), needle.rfind(NEEDLE) % (len(needle) + 1))
    )
    found = body.rfind(role, 0, shared + len(role)) if role else -1
    return body[shared:] if found < 0 else body[found + len(role) :]


def _trim_end(wire: str, needle: str | None) -> str:
    if needle is None or NEEDLE not in needle:
        return wire
    end = needle[needle.rindex(NEEDLE) + len(NEEDLE) :]
    if end.strip() and wire.rstrip().endswith(end.strip()):
        return wire.rstrip()
    space = end[len(end.rstrip()) :]
    return _without(wire, space) if end.strip() else wire
