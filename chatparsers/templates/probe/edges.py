"""The edges of an assistant's turn, found in renderings: the part that the prompt wrote, and the text that ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from ...answers.format import Format
from ...answers.idioms import Options
from ...answers.nodes import Body, Span, Think
from ...answers.thoughts import THOUGHTS
from ...core.tree import first, tokens, walk
from .turns import MARKER, WHOLE


@lru_cache(maxsize=1024)
def opening(fmt: Format, generation_prompt: str) -> str:
    """The part of the generation prompt that belongs to the assistant's turn: from the format's first marker on.

    The header of a turn may hold markers of the format too (``<|open|>message role="assistant"<|sep|>``). So of all
    markers, the one counts from which on the format reads markup or reasoning, with the fewest diagnostics.
    """
    places = sorted({at for text in _openings(fmt) for at in _all(text, generation_prompt)})
    if not places:
        return ""
    return generation_prompt[min(places, key=lambda at: _oddness(fmt, generation_prompt[at:])) :]


def _all(text: str, within: str) -> Iterator[int]:
    at = within.find(text)
    while at >= 0:
        yield at
        at = within.find(text, at + 1)


def _oddness(fmt: Format, prefix: str) -> tuple[bool, int]:
    """Whether the format reads content in ``prefix``, and how many diagnostics it has."""
    stream = fmt.bind(tools=[{"name": "any"}]).stream()
    stream.feed(prefix)
    message = stream.message
    return bool(message.content), len(message.diagnostics)


@lru_cache(maxsize=256)
def _openings(fmt: Format) -> frozenset[str]:
    """The texts with which something of the format begins or ends."""
    tree = fmt.tree(Options(tools=True))
    found = set(tokens(tree))
    for node in walk(tree):
        spans: tuple[Span, ...] = (node.span,) if isinstance(node, Think) else ()
        if isinstance(node, Body):
            spans = node.spans
            if node.calls is not None:
                found.update(first(node.calls))
        for span in spans:
            found.update(first(span.open))
            found.update(first(span.close) if span.close is not None else ())
    if not fmt.features.reasoning:  # then the model may think between any of the usual markers
        found.update(marker for pair in THOUGHTS for marker in pair)
    return frozenset(text.strip() for text in found if len(text.strip()) > 2)


End = Literal["open", "closed", ""]
"""Where a prompt ends: within a thought, after one that it closed or in content, or neither."""
_CLOSER = re.compile(r"</?[^<>\s]*(?:think|thought|reason)[^<>\s]*>", re.I)


@lru_cache(maxsize=1024)
def end_of(fmt: Format, generation_prompt: str) -> End:
    """Where the prompt ends for which the template wrote this generation prompt."""
    prefix = opening(fmt, generation_prompt)
    kind = fmt.bind(prefix=prefix).stream().state.kind
    if kind == "reasoning":
        return "open"
    begun = kind == "content" and fmt.features.reasoning
    closed = begun or _CLOSER.search(prefix) or any(closer in prefix for closer in _closers(fmt))
    return "closed" if closed else ""


@lru_cache(maxsize=256)
def _closers(fmt: Format) -> frozenset[str]:
    """The texts with which the format ends thoughts."""
    spans = [node.span for node in walk(fmt.tree(Options(tools=True))) if isinstance(node, Think)]
    found = {text.strip() for span in spans if span.close is not None for text in first(span.close)}
    return frozenset(found - {""})


def end_marker(fmt: Format, after: str, between: str, before: str = "", asking: str = "") -> tuple[str, ...]:
    """The texts that end a turn; ``()`` if nothing ends it.

    They are a marker and, before it in the tuple, the marker with the white space that the template writes before it.

    ``after``: the text after the content of the last answer. ``between``: the text between an answer and the user's
    next message; if nothing marks the end of a turn, the header of the next one ends it. The format's own markers,
    such as the closer of its content, are skipped. ``before``: the turn's text before its content. A marker that
    occurs there ends no turn; then the end is the text up to the last marker that does not occur there.
    ``asking``: the text after a user's content. If the marker that it begins with comes later in the answer's end, that
    one ends turns, and the first only closes the content (``<|END_RESPONSE|>`` of Cohere).
    """
    marked = bool(after.strip())
    text = after if marked else between
    inner = [token for token in fmt.preserved_tokens if token not in fmt.stops]
    rest = text.lstrip()
    while closer := next((token for token in inner if rest.startswith(token)), ""):
        tag = WHOLE.match(rest)
        closer = tag[0] if tag is not None and tag[0].startswith(closer) else closer
        if closer in fmt.stops:  # a tag of several markers
            return (closer,)
        text = rest[len(closer) :]
        rest = text.lstrip()
    space = text[: len(text) - len(rest)]
    found = MARKER.match(rest)
    if found and marked and found[0] in before:
        last = next((other for other in MARKER.finditer(rest) if other[0] not in before), None)
        if last is not None:
            return rest[: last.end()], last[0]
    turn = MARKER.match(asking.lstrip())
    at = rest.find(turn[0], found.end()) if found and turn is not None and found[0] != turn[0] else -1
    if turn is not None and at >= 0:
        return rest[: at + len(turn[0])], turn[0]
    if found:
        return (space + found[0], found[0]) if space else (found[0],)
    line = rest.partition("\n")[0].rstrip()
    return (line if marked else space + line,) if line else ()
