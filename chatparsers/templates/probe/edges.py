"""The edges of an assistant's turn, found in renderings: the part that the prompt wrote, and the text that ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from ...answers.format import Format, Turn
from ...answers.idioms import Options
from ...answers.nodes import Body, Span, Think
from ...answers.thoughts import THOUGHTS
from ...core.tree import first, tokens, walk
from ...kept import Kept, cached
from .turns import MARKER, WHOLE

End = Literal["open", "closed", ""]
"""Where a prompt ends: within a thought, after one that it closed or in content, or neither."""
_CLOSER = re.compile(r"</?[^<>\s]*(?:think|thought|reason)[^<>\s]*>", re.I)
_KEPT = 1 << 17
"""Bytes of what was found for generation prompts, for a format."""


class Edges:
    """The edges of a format's turns. Made by `edges_of`, so that what they need of the format is found once."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self._known: Kept[str] = Kept(_KEPT)
        self._ends: Kept[End] = Kept(_KEPT)

    def opening(self, generation_prompt: str) -> str:
        """The part of the generation prompt that belongs to the assistant's turn: from the format's first marker on.

        The header of a turn may hold markers of the format too (``<|open|>message role="assistant"<|sep|>``). So of all
        markers, the one counts from which on the format reads markup or reasoning, with the fewest diagnostics.
        """
        known = self._known.get(generation_prompt)
        if known is None:
            places = sorted({at for text in self._openings for at in _all(text, generation_prompt)})
            rests = [generation_prompt[at:] for at in places]
            known = min(rests, key=self._oddness) if rests else ""
            self._known.add(generation_prompt, known, len(generation_prompt) + len(known))
        return known

    def end_of(self, generation_prompt: str) -> End:
        """Where the prompt ends for which the template wrote this generation prompt."""
        known = self._ends.get(generation_prompt)
        if known is None:
            known = self._end_of(self.opening(generation_prompt))
            self._ends.add(generation_prompt, known, len(generation_prompt))
        return known

    def _end_of(self, prefix: str) -> End:
        kind = self.format.bind(prefix=prefix).stream().state.kind
        if kind == "reasoning":
            return "open"
        begun = kind == "content" and self.format.features.reasoning
        closed = begun or _CLOSER.search(prefix) or any(closer in prefix for closer in self._closers)
        return "closed" if closed else ""

    def _oddness(self, prefix: str) -> tuple[bool, int]:
        """Whether the format reads content in ``prefix``, and how many diagnostics it has."""
        stream = self._reader.stream()
        stream.feed(prefix)
        message = stream.message
        return bool(message.content), len(message.diagnostics)

    @cached
    def _reader(self) -> Turn:
        return self.format.bind(tools=[{"name": "any"}])

    @cached
    def _openings(self) -> frozenset[str]:
        """The texts with which something of the format begins or ends."""
        tree = self.format.tree(Options(tools=True))
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
        if not self.format.features.reasoning:  # then the model may think between any of the usual markers
            found.update(marker for pair in THOUGHTS for marker in pair)
        return frozenset(text.strip() for text in found if len(text.strip()) > 2)

    @cached
    def _closers(self) -> frozenset[str]:
        """The texts with which the format ends thoughts."""
        nodes = walk(self.format.tree(Options(tools=True)))
        spans = [node.span for node in nodes if isinstance(node, Think)]
        found = {text.strip() for span in spans if span.close is not None for text in first(span.close)}
        return frozenset(found - {""})


@lru_cache(maxsize=256)
def edges_of(format: Format) -> Edges:
    """The edges of a format's turns."""
    return Edges(format)


def _all(text: str, within: str) -> Iterator[int]:
    at = within.find(text)
    while at >= 0:
        yield at
        at = within.find(text, at + 1)


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
