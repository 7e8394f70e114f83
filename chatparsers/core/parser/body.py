"""The code of a turn's body: reasoning, then a loop of sections with text between them, until the end of the turn.

``(opener reasoning)? start? (end / opener reasoning / section / stray closer / stray opener / text)*``

An opener of reasoning counts at the start and after a thought or a call. Elsewhere it is text, unless it is a special
token that no text can spell.

Strategy: `outline` reads off the whole tree what the loop must know before any code is written. A body then finds its
`_Sections`: what may begin or end in its running text. All of this is passed on as values; the emitting methods share
only the code and the labels of one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ...values import AnswerScanner
from ...values.stops import StopFinder
from ..definition import nodes as n
from ..definition.idioms import Options
from ..definition.nodes import Node, Span
from ..definition.nodes.node import ALWAYS
from ..definition.thoughts import THOUGHTS
from ..definition.tree import children, first, head, once, tokens
from ..definition.without_calls import without_calls
from ..definition.without_opener import ending, without_opener
from . import instructions as m
from .code import NEVER, WHITE, BrokenEnds, Code, Label, Place, stop_finder
from .recovery import broken_call, guarded
from .whole_answer import whole_answer, whole_answer_calls


@dataclass(frozen=True, slots=True)
class Outline:
    """What the loop must know of the whole turn."""

    stops: tuple[str, ...]
    """The texts that end the turn."""
    closers: tuple[str, ...]
    """The special tokens with which something ends and nothing begins. In running text, one of these is markup."""
    inner: tuple[str, ...]
    """The special tokens that are only within something. In running text, one of these is text."""
    thought: n.Think | None
    """The reasoning that is read before the body."""
    declared: bool
    """Whether the format declares that reasoning."""
    answers: bool
    """The content is JSON. Models put a Markdown fence around it."""
    inline: bool
    """Reasoning is content."""
    loose: Node | None = None
    """The calls of an answer that is nothing but JSON, if the request wants them read."""

    @property
    def thoughts(self) -> tuple[str, ...]:
        """The texts that open the reasoning that the format declares."""
        return first(self.thought.span.open) if self.declared and self.thought is not None else ()


def outline(tree: Node, stops: tuple[str, ...], options: Options, inline: bool) -> Outline:
    """The outline of a tree. A tree that is a body alone, without reasoning, gets the thought of a model whose format
    declares none."""
    thought = next((node for node in once(tree) if isinstance(node, n.Think)), None)
    declared = thought is not None
    if isinstance(tree, n.Body) and tree.reasoning is None:
        thought = UNDECLARED
    answers = options.schema is not None
    return Outline(stops, *_closers(tree), thought, declared, answers, inline, whole_answer_calls(options))


class _Sections(NamedTuple):
    """What may begin and end in the running text of a body."""

    exits: list[Node]
    """The beginning of each section."""
    ends: list[Node]
    """The ends of the turn."""
    marks: list[Node]
    """Other markup."""
    empty: list[Node]
    """A section of calls without a call. It is markup, and an opener that was read as text still has its closer."""
    closers: list[Node]
    """Ends of calls. They are markup where no opener was read as text."""
    starts: tuple[str, ...]
    """The texts with which a section or a thought begins."""
    marked: tuple[str, ...]
    """The special tokens with which other markup begins."""
    stops: tuple[str, ...]
    """The texts at which something may begin or end."""


class BodyCompiler:
    """Emits the code of reasoning at the start, of a body, and of its sections."""

    def __init__(self, code: Code, outline: Outline) -> None:
        self.code = code
        self.outline = outline
        self.reasoning = Label()
        """The place after the opener of reasoning, where the reasoning continues."""

    def think(self, node: n.Think, at: Place) -> None:
        """Reads the opener of reasoning at the start of the turn. `_thought` reads the rest."""
        if node.always:
            self.code.emit(m.JUMP, self.reasoning)
        else:
            self._opener(node, at)

    def _opener(self, node: n.Think, at: Place) -> None:
        """Continues with the reasoning if its opener follows, after any white space."""
        absent = Label()
        openers = first(node.span.open)
        self.code.unless(openers, absent, openers if self.outline.declared else ())
        opener = n.Sequence.of(n.Space(""), node.span.open)
        self.code.attempt(partial(self.code.node, opener, at.markers), self.reasoning)
        self.code.place(absent)

    def body(self, node: n.Body, at: Place) -> None:
        """Emits the loop, and the reasoning before it."""
        code, outline = self.code, self.outline
        if node.unclosed:  # text may come before any section
            reasoning, content = (span and _led(node.lead, span) for span in (node.reasoning, node.content))
            node = replace(node, reasoning=reasoning, content=content)
        parts = self._sections(node)
        at = at._replace(ends=_ends(node, parts, outline.thoughts))
        markers = at.markers
        thought = outline.thought
        # The place of the thought's markers, which are content if the reasoning is.
        opener = Place(m.CONTENT, m.CONTENT, at.ends) if outline.inline else markers
        sections = self._section_codes(node, parts, at)

        # ``entry`` is the first round, and the round after a thought, where an opener of reasoning counts.
        entry, top, again, closed, resume, broken, text, plain, over = (Label() for _ in range(9))

        def section(read: Callable[[], None]) -> None:
            guarded(code, read, again, broken, again)

        bare = None if node.calls is None else without_opener(node.calls, outline.inner)
        self._between(parts, False)
        code.place(entry)
        if thought is not None:
            self._opener(thought, opener)
        if outline.answers:
            code.node(_FENCE, markers)
        if node.start is not None:
            section(partial(code.node, node.start, at))
        if bare is not None:
            section(partial(code.called, bare, at))
        if outline.loose is not None:
            own, end = n.Choice.of(NEVER, *parts.exits), n.Choice.of(n.End(), *parts.ends)
            section(partial(whole_answer, code, outline.loose, own, end, at))
        code.place(top)
        code.emit(m.TOP, over)
        code.unless((*parts.stops, *self._begins(m.CONTENT)), plain)
        for end in parts.ends:
            code.attempt(partial(code.node, end, markers), over)
        if thought is not None and outline.declared and self._unmistakable(tokens(thought.span.open)):
            self._opener(thought, opener)
        blank = partial(code.emit, m.BLANK, *self._markers(parts))
        if sections:
            section(partial(code.sequence_of, [blank, partial(code.choice_of, sections)]))
        for empty in parts.empty:
            code.attempt(partial(code.node, empty, markers), closed)
        code.emit(m.IF, m.OPENER_IS_TEXT, text)
        if outline.closers:
            absent = Label()
            code.unless(outline.closers, absent, outline.closers)
            stray = partial(code.node, _strays(outline.closers), markers)
            code.attempt(partial(code.sequence_of, [blank, stray]), closed)
            code.place(absent)
        for closer in parts.closers:
            code.attempt(partial(code.node, closer, markers), closed)
        code.place(text)
        self._stray((*parts.starts, *parts.marked), top)
        inner = Label()
        code.emit(m.IF, m.OPENER_IS_TEXT, inner)
        self._stray(outline.inner, top)
        code.place(inner)
        self._answer(m.CONTENT, top)
        stops = (*parts.stops, *self._begins(m.CONTENT))
        self._running_text(stops, plain, top)
        broken_call(code, broken, again, at.ends)
        code.place(again)
        code.emit(m.UNSET, m.OPENER_IS_TEXT)
        self._between(parts, True)
        code.emit(m.JUMP, resume)
        code.place(closed)
        self._between(parts, False)
        code.place(resume)
        if bare is not None:
            section(partial(code.called, bare, at))
        if thought is not None and outline.declared:
            self._opener(thought, opener)
        code.emit(m.JUMP, top)
        if thought is not None:
            self._thought(thought, node.calls, entry, top, parts, at)
        code.place(over)
        code.emit(m.AFTER)

    def _sections(self, node: n.Body) -> _Sections:
        """What may begin and end in running text."""
        calls = n.Sequence.of(_part_of(node.lead), node.calls) if node.calls is not None else None
        opens = [_parted(head(span.open))[0] for span in node.spans]
        exits = [*([] if calls is None else [head(calls)]), *opens]
        stops, thoughts = self.outline.stops, self.outline.thoughts
        starts = tuple(dict.fromkeys([*(text for opener in exits for text in first(opener)), *thoughts]))
        marks = [node.marks] if node.marks is not None else []
        if self.outline.answers:
            marks.append(_FENCE_END)
        without = without_calls(node.calls) if node.calls is not None else None
        empty = [without] if without is not None else []
        ends: list[Node] = [] if node.closers is None else [n.Tagged(n.Tag.STRAY, node.closers)]
        begun = [text for mark in (*marks, *empty, *ends) for text in first(mark)]
        return _Sections(
            exits,
            [n.Literal(stop) for stop in stops],
            marks,
            empty,
            ends,
            starts,
            tuple(text for mark in marks for text in first(mark) if text in tokens(mark)),
            tuple(dict.fromkeys((*starts, *stops, *self.outline.closers, *self.outline.inner, *begun))),
        )

    def _section_codes(self, node: n.Body, parts: _Sections, at: Place) -> list[Callable[[], None]]:
        """What emits each section, in the order in which the machine tries them."""
        exits = parts.exits + parts.ends
        sections: list[Callable[[], None]] = []
        if node.calls is not None:
            lead = partial(self.code.node, _part_of(node.lead), at)
            called = partial(self.code.called, node.calls, at)
            sections.append(partial(self.code.sequence_of, [lead, called]))
        if node.reasoning is not None:
            place = at._replace(region=m.REASONING)
            if self.outline.inline:
                place = Place(m.CONTENT, m.CONTENT, at.ends)
            sections.append(partial(self._section, place, node.reasoning, exits))
        if node.content is not None:
            sections.append(partial(self._section, at._replace(region=m.CONTENT), node.content, exits))
        sections += [partial(self.code.node, mark, at.markers) for mark in parts.marks]
        return sections

    def _thought(
        self, node: n.Think, calls: Node | None, entry: Label, top: Label, parts: _Sections, body: Place
    ) -> None:
        """Reads reasoning after its opener. At its closer, continues at ``entry``, the first round of the loop. Calls
        in it count if the turn ends with them; else they are reasoning, a draft."""
        code, span = self.code, node.span
        at = Place(m.REASONING, m.MARKUP, body.ends)
        if self.outline.inline:
            at = Place(m.CONTENT, m.CONTENT, body.ends)
        code.place(self.reasoning)
        code.emit(m.CUT)
        code.emit(m.PLACE, at.region)
        code.node(n.Many(span.open), at.markers)

        def last_calls(loop: Label) -> None:
            if calls is not None and span.close is not None:
                self._last_calls(calls, span.close, parts, top, body)

        begins = () if calls is None else first(calls)
        self._up_to_closer(at, span, begins, parts.ends, last_calls, top)
        if not self.outline.inline:
            self._between(parts, False)
        code.emit(m.JUMP, entry)

    def _last_calls(self, calls: Node, closer: Node, parts: _Sections, top: Label, at: Place) -> None:
        """Reads calls in open reasoning, and continues at ``top`` if nothing but white space, further calls, stray
        closers and the closer of the reasoning come between them and the end of the turn. All of it is held until
        then."""
        code = self.code
        called = partial(code.called, calls, at)
        spaced = partial(code.node, n.Space(""), at)
        ended = n.Peek(n.Choice.of(*parts.ends, n.End()))
        over = n.Choice.of(
            ended, n.Sequence.of(n.Space(""), ended)
        )  # an end may itself begin with white space
        closed = n.Many(n.Sequence.of(n.Space(""), closer), 0, 1)
        own = first(closer)
        strays = _strays(text for text in self.outline.closers if text not in own)
        draft, decided = Label(), Label()
        code.emit(m.HOLD, draft)
        called()  # white space that an end begins with is left to it
        code.any_number(partial(code.sequence_of, [spaced, called]))
        code.node(n.Many(n.Sequence.of(n.Space(""), n.Choice.of(strays, *parts.closers))), at.markers)
        code.node(n.Sequence.of(closed, over), at.markers)
        code.emit(m.COMMIT, decided)
        code.place(decided)
        code.emit(m.UNSET, m.HELD)
        code.emit(m.CUT)
        code.emit(m.JUMP, top)
        code.place(draft)
        code.emit(m.DRAFT)

    def _between(self, parts: _Sections, section: bool) -> None:
        """Looks at the start of the turn, and after a part of it (``section``: a whole one): white space before a
        section, or before the end of the turn, is no content."""
        finder, widths = self._markers(parts)
        stops = stop_finder(*self.code.spellings(self.outline.stops))
        longest = max(map(len, finder.stops), default=0)
        self.code.emit(m.BETWEEN, finder, stops, widths, section, longest)

    def _markers(self, parts: _Sections) -> tuple[StopFinder, tuple[int, ...]]:
        """What finds the texts at which something may begin, and with how much white space they begin."""
        texts = self.code.spellings(parts.stops)
        widths = {len(text) - len(text.lstrip(WHITE)) for text in texts} - {0}
        return stop_finder(*texts), tuple(sorted(widths, reverse=True))

    def _unmistakable(self, openers: tuple[str, ...]) -> bool:
        """Whether an opener of reasoning counts anywhere: no text spells it, or it has the bar of a special token."""
        special = self.code.alphabet.unspellable
        return bool(special.intersection(openers)) or any("|" in text for text in openers)

    def _section(self, at: Place, span: Span, exits: list[Node]) -> None:
        """Reads reasoning or content between markers: up to the closer, which it also reads, or until one of ``exits``
        follows."""
        code, region = self.code, at.region
        opened, rest = _parted(span.open)
        code.node(opened, at.markers)
        code.emit(m.CUT)
        code.emit(m.PLACE, region)
        code.node(rest, at.markers)
        self._up_to_closer(at, span, self._begins(region), exits, partial(self._answer, region))

    def _up_to_closer(
        self,
        at: Place,
        span: Span,
        begins: tuple[str, ...],
        exits: list[Node],
        read: Callable[[Label], None],
        over: Label | None = None,
    ) -> None:
        """Reads the text of a span, and its closer. ``read`` emits what else is read in it, where one of ``begins`` is,
        and may go back to the label. Where one of ``exits`` follows and at the end of the text, goes to ``over``, else
        to the place after the closer."""
        code, markers = self.code, at.markers
        closers = first(span.close) if span.close is not None else ()
        loop, done = code.here(), Label()
        stops = [*closers, *begins, *(text for node in exits for text in first(node))]
        code.text(at.region, stops, over or done, "" if span.optional else " or ".join(map(repr, closers)))
        ways = [] if span.close is None else [(*_parted(one), Label()) for one in _options(span.close)]
        for end, _, closed in ways:
            code.attempt(partial(code.node, end, markers), closed)
        for node in exits:
            code.attempt(partial(code.node, node, markers), over or done, m.BACK)
        read(loop)
        code.any_character(at.region)
        code.emit(m.JUMP, loop)
        # The text is over, and the rest of the closer may follow.
        for place, (_, rest, closed) in enumerate(ways, 1):
            code.place(closed)
            code.emit(m.PLACE, m.CONTENT)
            code.node(rest, markers)
            if place < len(ways):
                code.emit(m.JUMP, done)
        code.place(done)

    def _stray(self, starts: Iterable[str], loop: Label) -> None:
        """Notes a marker that opens or continues nothing here. The parser reads it as text; but if the turn ends within
        another call, or within a marker, right after a call, that is markup."""
        spellings = self.code.spellings(text for text in starts if text == text.lstrip())
        if spellings:
            self.code.emit(m.UNOPENED, stop_finder(*spellings), loop)

    def _running_text(self, stops: tuple[str, ...], plain: Label, loop: Label) -> None:
        """Reads content: the character at which nothing begins, and all up to the next place where something may.
        ``plain``: the place to go to if no stop is there."""
        self.code.any_character(m.CONTENT)
        self.code.place(plain)
        self.code.text(m.CONTENT, stops)
        self.code.emit(m.JUMP, loop)

    def _begins(self, region: int) -> tuple[str, ...]:
        """How a JSON answer begins in text of ``region``."""
        return ("{", "[") if self.outline.answers and region == m.CONTENT else ()

    def _answer(self, region: int, loop: Label) -> None:
        """Reads a JSON answer, if the request wants one. Markers inside it are plain text."""
        begins = self._begins(region)
        if begins:
            code = self.code
            begun, absent = Label(), Label()
            code.follows(begun, begins, True)
            code.emit(m.JUMP, absent)
            code.place(begun)
            code.emit(m.VALUE, region, lambda machine: AnswerScanner(), False)
            code.emit(m.JUMP, loop)
            code.place(absent)


def _strays(closers: Iterable[str]) -> Node:
    """Special tokens with which nothing begins, where they end nothing: markup, and a diagnostic."""
    strays = [n.Tagged(n.Tag.STRAY, n.Token(text)) for text in closers]
    return n.Choice.of(*strays) if strays else NEVER


def _part_of(lead: str) -> Node:
    """Any part of the white space that the template writes before a section, the longest first."""
    return n.Choice.of(*(n.Literal(lead[start:]) for start in range(len(lead) + 1)))


def _led(lead: str, span: Span) -> Span:
    """A span whose opener may have that white space before it."""
    return replace(span, open=n.Sequence.of(_part_of(lead), span.open))


def _ends(node: n.Body, parts: _Sections, thoughts: tuple[str, ...]) -> BrokenEnds:
    """What ends the text after a call of this body that went wrong."""
    within = {text for text in parts.stops for one in parts.starts if one != text and one.endswith(text)}
    unclosed = tuple(text for text in parts.stops if text not in thoughts and text not in within)
    marks = parts.marks + parts.empty + parts.closers
    begun = [text for mark in marks for text in first(mark)]
    inside = {*parts.starts, *begun, *_tokens_of_arguments(node)}
    broken = tuple(text for text in unclosed if text not in inside)
    if parts.exits or marks:
        return BrokenEnds(unclosed, broken, n.Choice.of(*parts.exits, *map(head, marks)))
    return BrokenEnds(unclosed, broken)


def _parted(marker: Node) -> tuple[Node, Node]:
    """A closer up to the place where the text is decided to be over, or an opener to where it has begun, and what may
    follow there."""
    items = marker.items if isinstance(marker, n.Sequence) else (marker,)
    last = next((at for at in range(len(items), 0, -1) if items[at - 1].empty(()) < ALWAYS), len(items))
    return n.Sequence.of(*items[:last]), n.Sequence.of(*items[last:])


def _options(closer: Node) -> tuple[Node, ...]:
    """The ways in which the parser reads a closer."""
    if isinstance(closer, n.Lenient):
        closer = closer.inner(False)
    return closer.options if isinstance(closer, n.Choice) else (closer,)


def _closers(tree: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The special tokens of the tree with which nothing begins: those with which something ends, and those that stand
    only within something."""
    nodes = list(once(tree))
    bodies = [node for node in nodes if isinstance(node, n.Body)]
    spans = [node.span for node in nodes if isinstance(node, n.Think)]
    spans += [span for body in bodies for span in body.spans]
    sections = [
        part for body in bodies for part in (body.calls, body.marks, body.closers) if part is not None
    ]
    starts = [body.start for body in bodies if body.start is not None]
    calls = [node for node in nodes if isinstance(node, (n.Calls, n.EachTool))]
    closes = [span.close for span in spans if span.close is not None]
    openers: set[str] = set().union(*map(first, (*sections, *(span.open for span in spans))))
    closers: set[str] = set().union(*map(ending, (*calls, *sections, *starts, *closes)))
    others: set[str] = set().union(*(tokens(part) for span in spans for part in span.parts))
    known = (*openers, *(text for start in starts for text in tokens(start)))
    every = tokens(tree)
    found = [text for text in every if not any(one.endswith(text) for one in known)]
    ends = tuple(text for text in found if text in closers)
    # The end of an opener, and a token of calls at the start, are inner too where they are alone.
    alone = {text for text in every if text not in openers and text not in others}
    inner = tuple(text for text in every if text not in ends and (text in found or text in alone))
    return ends, inner


def _tokens_of_arguments(tree: Node) -> set[str]:
    """The special tokens that are only in the arguments of calls."""
    arguments = (n.EachArg, n.Args, n.Value)

    def below(node: Node) -> tuple[Node, ...]:
        return () if isinstance(node, (*arguments, n.Peek, n.Not)) else children(node)

    nodes = list(once(tree, below))
    inside = {text for node in nodes if isinstance(node, arguments) for text in tokens(node)}
    return inside.difference(*(node.names for node in nodes if isinstance(node, n.Token)))


def _either(markers: Iterable[str], before: Node) -> Node:
    return n.Choice(
        tuple(n.Sequence.of(before, n.Token(text), n.Space("")) for text in dict.fromkeys(markers))
    )


UNDECLARED = n.Think(
    Span(
        _either((open for open, _ in THOUGHTS), n.Sequence(())),
        _either((close for _, close in THOUGHTS), n.Choice.of("\n", "")),
    )
)
"""The thought of a model whose format declares no reasoning: at the start, in any of the usual pairs of markers."""

# The markdown fence that models put around a JSON answer. A JSON string holds no raw line break, so no data is lost.
_FENCE = n.Many(n.Sequence.of(n.Space(""), "```", n.Many(n.Literal("json"), 0, 1), "\n"), 0, 1)
_FENCE_END = n.Literal("\n```")
