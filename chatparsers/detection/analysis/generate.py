"""Makes a format from an analysis, with only the builder's primitives.

`Definition` is a format's ``build`` as data: equal definitions share their compiled programs, and their streams can be
pickled. White space between markers is read leniently and generated as the template writes it. A marker that a
tokenizer may have as one token becomes a token.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...answers import Builder, Format, Node
from ...answers.nodes import Nodelike, Span
from ...templates.probe.differences import is_marker, units
from .found import Analysis, CallMarkers, ContentMarkers, ReasoningMarkers
from .generate_calls import section_of, unaddressed
from .markup import Markup


@dataclass(frozen=True, slots=True)
class Definition:
    """Builds the tree of a format that was found."""

    reasoning: ReasoningMarkers | None
    content: ContentMarkers
    calls: CallMarkers | None
    block: str = ""
    sep: str = ""

    def __call__(self, p: Builder) -> Node:
        m = Markup(p, () if self.calls is None else self.calls.arguments.syntax.tokens)
        section = None if self.calls is None else section_of(m, self.calls, self.block)
        if self.block:
            return self._blocks(m, section)
        calls, reasoning = self.calls, self.reasoning
        alone = calls is not None and calls.alone
        content = _span(m, self.content.open, self.content.close) if self.content.open.strip() else None
        again = None
        if reasoning is not None and reasoning.left_open:
            again = p.span(*_markers(m, reasoning), optional=True)
        start = section if alone else None
        if calls is not None and calls.empty and section is not None:
            start = m.literal(calls.empty) + section
        body = p.body(
            None if alone else section,
            start=start,
            content=content,
            lead="" if calls is None or alone else calls.lead,
            reasoning=again,
            marks=m.literal(self.sep) + p.space() if self.sep else None,
        )
        if self.content.lead:
            lead = p.trim(self.content.lead)
            body = (lead if calls is not None and calls.led else p.reads("", lead)) + body
        if reasoning is None:
            return body
        if reasoning.left_open and reasoning.bare_close and content is None:
            return self._sections(m, reasoning, section)
        opener, closer = _markers(m, reasoning)
        answer = self.content.open.strip()
        if any(map(is_marker, units(answer))):  # a thought that is left open ends where an answer begins
            close = m.marker(reasoning.close)
            closer = p.reads(close, close, p.peek(m.literal(answer)))
        think = p.think(opener, closer, always=reasoning.always, optional=reasoning.left_open) + body
        return p.reads("", p.optional(m.marker(reasoning.close))) + think if reasoning.bare_close else think

    def _sections(self, m: Markup, reasoning: ReasoningMarkers, section: Node | None) -> Node:
        """A turn of sections without closers: what seems to close reasoning opens the answers that have none."""
        thought, answer = (_span(m, text.lstrip(), "") for text in (reasoning.open, reasoning.close))
        lead = "" if self.calls is None else self.calls.lead
        return m.p.body(section, reasoning=thought, content=answer, lead=lead)

    def _blocks(self, m: Markup, section: Node | None) -> Node:
        """A turn of blocks, each with its own header; the prompt has written the beginning of the first."""
        p = m.p
        assert self.reasoning is not None
        begin = p.expected(m.literal(self.block))  # it may be missing before the first block
        before, _, after = self.reasoning.close.partition(self.reasoning.close.strip())
        closer = p.trim(before) + m.literal(self.reasoning.close.strip()) + p.trim(after)
        thought = p.span(begin + _opener(m, self.reasoning.open), closer)
        close = self.content.close or self.reasoning.close.strip()
        opener = _opener(m, self.content.open)
        answer = self.content.open.strip()
        first, *more = units(answer) or [""]
        others = {self.content.also, unaddressed(self.calls, first)} - {"", answer}
        if others:
            opener = p.reads(opener, opener, *map(m.lenient, sorted(others)))
        marks = None
        if is_marker(first) and any(map(is_marker, more)):  # models end a header where another one begins
            mark = m.literal(first)
            marks = p.reads("", begin + mark + p.chars("^<", 1, 64) + p.peek(mark))
        bare = not answer
        role = m.literal(self.block) if bare else begin  # white space alone opens no block
        ended = m.literal(close) + p.space() if bare else m.literal(close)
        content = p.span(role + opener, ended, optional=not self.content.close)
        body = p.body(section, reasoning=thought, content=content, marks=marks)
        return p.reads("", p.trim(self.content.open)) + body if bare else body


def _opener(m: Markup, text: str) -> Node:
    """The markup between a block's opener and its text, and the white space before the text."""
    core = text.rstrip()
    return m.lenient(core) + m.p.trim(text[len(core) :])


def to_format(analysis: Analysis) -> Format:
    """The format of an analysis."""
    definition = Definition(
        analysis.reasoning, analysis.content, analysis.calls, analysis.block, analysis.sep
    )
    return Format(
        name=f"auto:{analysis.variant}",
        title=f"Found: {analysis.variant}",
        url="https://huggingface.co/docs/transformers/chat_templating",
        build=definition,
        stops=analysis.stops,
    )


def _markers(m: Markup, reasoning: ReasoningMarkers) -> tuple[Nodelike, Nodelike]:
    """The markers of reasoning, as texts if they are one token each."""
    texts = (reasoning.open, reasoning.close)
    if all(is_marker(text.strip()) for text in texts):
        return texts
    return m.marker(reasoning.open), m.marker(reasoning.close)


def _span(m: Markup, open: str, close: str) -> Span:
    return m.p.span(m.marker(open), m.marker(close) if close else None)
