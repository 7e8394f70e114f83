"""Nodes that read a whole turn: reasoning at its start, and its body."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...core.nodes.first import first, head, opens
from ...core.nodes.node import SOMETIMES, Leaf, Node, Reader
from ...core.wrong import described, wrong
from ...errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Span:
    """Text between two markers. If ``close`` is None, the text goes up to the next section or the end of the turn. If
    ``close`` is missing at the end of the turn, the text was cut off, unless it is ``optional``. Generates the text
    with both markers."""

    open: Node
    close: Node | None
    optional: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        """Its markers."""
        return (self.open,) if self.close is None else (self.open, self.close)


@dataclass(frozen=True, slots=True)
class Think(Leaf, tokens=(), empty=SOMETIMES, commits=True, shown="p.think(…)"):
    """Reasoning at the start of the turn: parses an optional ``span.open`` (or several), text, ``span.close``.

    ``always``: reasoning begins without its opener. Generates an optional thought, or nothing if the request wants no
    reasoning.
    """

    span: Span
    always: bool = False

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return self.span.parts

    def check(self, reader: Reader) -> None:
        if self.span.close is None:
            wrong(self, "reasoning at the start of the turn needs a closer", "give the text that ends it")
        if not reader.generated:
            _check_found("p.think", (("…", end) for end in self.span.parts))


@dataclass(frozen=True, slots=True)
class Body(Leaf, tokens=(), empty=SOMETIMES, commits=True, shown="p.body(…)"):
    """What follows the reasoning: content, calls and further thoughts in any order, until the end of the turn.

    Parses ``start`` once at the beginning, then a loop of ``calls``, ``reasoning`` and ``content`` (text inside the
    span). Any other text is content, up to the next of them. ``lead`` is the white space that the template writes
    between text and a call, or between text and any section where a span has no closer. ``marks`` is other markup in
    running text; ``closers`` is too, unless an opener was read as text. A special token of the format that begins none
    of these is markup as well, with a diagnostic. The request's options decide what is generated: content and calls (in
    a lazy grammar, only the calls), only calls (after reasoning), only content, or content of a JSON Schema.
    """

    calls: Node | None
    start: Node | None = None
    reasoning: Span | None = None
    content: Span | None = None
    lead: str = ""
    marks: Node | None = None
    closers: Node | None = None

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its reasoning and its content, as far as they have markers."""
        return tuple(span for span in (self.reasoning, self.content) if span is not None)

    @property
    def unclosed(self) -> bool:
        """Whether the next section ends a run of reasoning or content."""
        return any(span.close is None for span in self.spans)

    def parts(self, generated: bool) -> tuple[Node, ...]:
        named = (part for part in (self.start, self.calls, self.marks, self.closers) if part is not None)
        return (*named, *(end for span in self.spans for end in span.parts))

    def check(self, reader: Reader) -> None:
        if self.lead.strip():
            wrong(
                "p.body", f"expected white space as lead=, found {self.lead!r}", "write text into the calls"
            )
        if reader.generated:
            if self.unclosed:
                self._check_sections()
            return
        spans = (("reasoning", self.reasoning), ("content", self.content))
        ends = ((option, end) for option, span in spans if span is not None for end in span.parts)
        named = (("calls", self.calls), ("marks", self.marks), ("closers", self.closers))
        _check_found("p.body", (*named, *ends))

    def _check_sections(self) -> None:
        """Checks that text which ends where the next section begins sees it."""
        parts = [
            part for part in (*(span.open for span in self.spans), self.calls, self.start) if part is not None
        ]
        if not all("".join(item.text for item in begin) for part in parts for begin, _ in opens(part)):
            what = (
                "text without a closer goes up to the next section, and nothing tells where that one begins"
            )
            wrong("p.body", what, "give p.span() a closer, or begin the sections and the calls with a text")


def _check_found(where: str, parts: Iterable[tuple[str, Node | None]]) -> None:
    """Checks that each node in running text begins with a text, so that the parser can find it."""
    for option, part in parts:
        if part is not None:
            try:
                first(head(part))
            except DefinitionError as error:
                raise DefinitionError(f"{where}({option}={described(part)}): {error}") from None
