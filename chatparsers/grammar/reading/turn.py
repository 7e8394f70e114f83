"""The turn of a grammar: reasoning, text and calls in the order that the format has them, and a shaped answer.

White space beside the markers of reasoning is left to the model, because the templates of one format differ in it. The
text of reasoning holds no text that would end it. If the format's model calls tools out of reasoning, it does not hold
the beginning of a call either. The text of a value holds none of the stops that the parser knows. So the parser reads
every generated text as it was meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ...answers import nodes as n
from ...answers.nodes import Node, Span
from ...core.tree import first, head, once, through, tokens, walk
from ...errors import DefinitionError, RequestError, SchemaError
from .. import ir
from ..ir import ANYTHING, EMPTY, GAP, SPACES, Ir, alt, literals, never, opt, seq
from .place import At
from .prose import KEYS_OF_CALLS, LIKE_CALLS, RESTS, ProseReader, Taken, none_of, taken_for_calls
from .residual import residual
from .triggers import (
    literal_heads,
    split_heads,
    stretches,
    thoughts,
    words,
)

THOUGHT = "thought"
"""The mark of thoughts that are to be left out."""


class TurnReader(ProseReader):
    """Reads the nodes of the turn."""

    @property
    def spelling(self) -> int:
        """Which of a token's names are in use."""
        return self.request.spelling

    def think(self, node: n.Think, at: At) -> Ir:
        """Reasoning at the start of the turn."""
        if not at.thoughts:
            return EMPTY
        if node.span.close is None:
            raise DefinitionError("think: reasoning at the start of the turn needs a closer")
        stops = (*first(node.span.close), *self._drafts(), *self.request.stops)
        opener, closer = self.read(node.span.open, at), self.read(node.span.close, at)
        after = _space_after(closer)
        opener, closer, spaces = _core(opener), _core(closer), self.request.call_spaces
        text = _text_until(*stops, within=self.request.thinking_tokens)
        if spaces is not None:
            thought = seq(text, closer, _spelt(spaces[2], after))
            opener, unthought = seq(_spelt(spaces[1]), opener), _spelt(spaces[0])
        else:
            thought, unthought = seq(text, closer, opt(ir.Text(after)) if after else EMPTY), EMPTY
            opener = self._spaced(opener, self._text_is_free and not self._content_begins_like(node.span))
        if node.always:
            return seq(opt(opener), thought)
        thought = self._thought(seq(opener, thought))
        return opt(thought) if unthought is EMPTY else alt(thought, unthought)

    def _thought(self, node: Ir) -> Ir:
        """A thought that is not begun. Where none may begin any more, it is marked, to be left out at the end."""
        return ir.Shared(THOUGHT, node) if self.request.spent else node

    def _spaced(self, opener: Ir, free: bool) -> Ir:
        """An opener, perhaps after white space. Where free text may be in its place, both are one piece as far as no
        marker is written by its id: a lexer that takes a beginning of it for text does not go back."""
        if not free:
            return seq(GAP, opener)
        if isinstance(opener, ir.Alt):
            return alt(*(self._spaced(option, free) for option in opener.options))
        items = opener.items if isinstance(opener, ir.Seq) else (opener,)
        plain = [
            item.text for item in takewhile(self._plain, items) if isinstance(item, (ir.Text, ir.TokenRef))
        ]
        rest = items[len(plain) :]
        return alt(*(seq(ir.Text(space + "".join(plain)), *rest) for space in ("", "\n", "\n\n", " ")))

    def _plain(self, item: Ir) -> bool:
        """Whether a node is a literal that is written as text."""
        return isinstance(item, (ir.Text, ir.TokenRef)) and item.text not in self.request.marker_ids

    @property
    def _text_is_free(self) -> bool:
        """Whether text and calls are generated together. With no tools, it is text that begins no call."""
        return (
            self.output.target.free
            and self.request.options.mode in ("auto", "none")
            and not self.request.shaped
        )

    def _content_begins_like(self, span: Span) -> bool:
        """Whether content begins with a token of a span's opener: then it is no free text."""
        bodies = (node for node in walk(self.request.tree, True) if isinstance(node, n.Body))
        spans = (body.content for body in bodies if body.content is not None)
        return any(set(tokens(content.open)) & set(tokens(span.open)) for content in spans)

    def _drafts(self) -> tuple[str, ...]:
        """What a thought does not hold, because the parser reads calls in open reasoning with which the turn ends."""
        auto = self.request.options.mode == "auto"
        bodies = (node for node in walk(self.request.tree, True) if isinstance(node, n.Body))
        ending = (body.calls for body in bodies if auto or _left_by_calls(body) is not None)
        return tuple(text for calls in ending if calls is not None for text in first(calls))

    def body(self, node: n.Body, at: At) -> Ir:
        """What the turn holds besides reasoning at its start."""
        if not self.tools and (self.request.shaped or not self.request.options.tools):
            node = replace(node, calls=None, start=None)
        begin = start_of(node)
        start = None if begin is None else self.read(begin, at)
        free = (node.calls, start, self.request.thinking_tokens, self.request.answer_tokens)
        if self._text_is_free and (any(part is not None for part in free) or self.request.spent):
            return self._within(self._free_text(node, start, at))
        calls = [] if node.calls is None else [self.read(node.calls, at)]
        lead: Ir = GAP if self.request.call_spaces is None else EMPTY
        if start is not None:
            if node.start is not None and not _after_space(node.start):
                calls = [seq(lead, call) for call in calls]
                lead = EMPTY
            calls.insert(0, start)
        answer = self._answer(node, at)
        if answer is not None and not calls:
            return self._reasoned(node, answer, at)
        if answer is not None and not self.request.calls_only:
            ways = alt(*calls)  # side by side with the answer, whose first literal they may share
            ended = (seq(way, GAP) for way in (ways.options if isinstance(ways, ir.Alt) else (ways,)))
            return self._reasoned(node, seq(lead, alt(answer, *ended)), at)
        if not calls:
            return ir.Lang(within=self.request.answer_tokens)
        left = _left_by_calls(node)
        if left is not None and at.thoughts:
            gap = GAP if lead is EMPTY and self.request.call_spaces is None else EMPTY
            called = seq(gap, self._stretch(node, left, at, *self.request.stops), alt(*calls))
            calls.append(self._thought(called))
        return self._reasoned(node, seq(lead, alt(*calls), GAP), at)

    def _reasoned(self, node: n.Body, rest: Ir, at: At) -> Ir:
        """``rest``, perhaps after reasoning of the body. Reasoning without a closer goes up to the marker with which
        ``rest`` begins; if it begins with none, nothing would end the reasoning, and there is none."""
        span, spaces = node.reasoning, self.request.call_spaces
        before_thought: Ir = GAP
        before_call: Ir = EMPTY
        if spaces is not None:
            begun = at.thoughts and any(isinstance(node, n.Think) for node in once(self.request.tree))
            before_thought, before_call = (EMPTY, EMPTY) if begun else (_spelt(spaces[1]), _spelt(spaces[0]))
        if span is None or not at.thoughts:
            return seq(before_call, rest)
        if span.close is not None:
            text, close = self._stretch(node, span, at, *self.request.stops), self.read(span.close, at)
            if spaces is not None:
                close = seq(_core(close), _spelt(spaces[2], _space_after(close)))
            thought = self._thought(seq(before_thought, text, close))
            most = None if self.request.thinking_tokens is None else 1  # an engine counts each by itself
            if before_call is EMPTY:
                return seq(ir.Rep(thought, 0, most), rest)
            return seq(alt(ir.Rep(thought, 1, most), before_call), rest)
        ids, stops = self.request.marker_ids, _exits(node)
        ways = [seq(*literals(stop, ids), left) for stop in stops for left in self._after([rest], stop)]
        thought = seq(self._stretch(node, span, at, *self.request.stops), alt(*ways))
        if not ways:
            return seq(before_call, rest)
        if spaces is None:
            return seq(before_thought, alt(self._thought(thought), rest))
        return alt(seq(before_thought, self._thought(thought)), seq(before_call, rest))

    def _span(self, node: n.Body, span: Span, at: At) -> Ir:
        """A run of text with its markers. The text holds nothing that would end it for the parser."""
        assert span.close is not None
        return seq(self._stretch(node, span, at, *self.request.stops), self.read(span.close, at))

    def _stretch(self, node: n.Body, span: Span, at: At, *stops: str) -> Ir:
        """A run of text without its closer. The text holds none of ``stops`` either."""
        closers = () if span.close is None else first(span.close)
        text = _text_until(*closers, *_exits(node, span), *stops, within=self._within_span(node, span))
        return seq(self.read(span.open, at), text)

    def _within_span(self, node: n.Body, span: Span) -> int | None:
        """How many tokens a run of text may take; None: any number."""
        return self.request.thinking_tokens if span is node.reasoning else self.request.answer_tokens

    def _answer(self, node: n.Body, at: At) -> Ir | None:
        """The content, if the request constrains it."""
        schema = self.request.options.schema
        if schema is not None:
            inner = self.whole(schema, "$.response_format")
            if never(inner):
                raise SchemaError("no value is valid", "$.response_format")
        elif self.request.grammar is not None:
            inner = self._user_grammar(self.request.grammar)
        else:
            return None
        if node.content is None:
            return inner
        close = EMPTY if node.content.close is None else opt(self.read(node.content.close, at))
        marked = seq(self.read(node.content.open, at), inner, close)
        return alt(inner, marked) if node.content.optional else marked

    def _user_grammar(self, given: Mapping[str, Any]) -> Ir:
        from ..user import read_choice, read_gbnf, read_pattern  # few requests need it

        if given["type"] == "choice":
            return read_choice(given.get("choices"))
        if given["type"] == "regex":
            return read_pattern(given.get("pattern"))
        if given["type"] == "lark":
            return self._user_lark(given.get("grammar"))
        source = given.get("grammar")
        if not isinstance(source, str):
            raise RequestError(
                f"response_format.grammar: expected the text of a GBNF grammar, found {type(source).__name__}"
            )
        return read_gbnf(source).embed(self.rules)

    def _user_lark(self, source: object) -> Ir:
        from ..lark_text import read_lark  # few requests need it

        engine = self.output.target.engine
        if engine != "llguidance":
            raise RequestError(
                f"response_format.type: expected a form that {engine} reads, found 'lark': give dialect=\"lark\" "
                "(llguidance), or the grammar in GBNF ({'type': 'grammar'})"
            )
        return read_lark(source)

    def _within(self, node: Ir) -> Ir:
        """Free text with a limit of its tokens, if the request has one."""
        within = self.request.call_within
        if within is None or (isinstance(node, ir.Free) and node.counted):
            return node
        if not isinstance(node, ir.Free):
            raise RequestError(
                "call_within: a grammar cannot count the text that this format writes before a call: use "
                "turn.guide(call_within=…), which counts ids"
            )
        return replace(node, within=within)

    def _free_text(self, node: n.Body, start: Ir | None, at: At) -> Ir:
        """Text and calls together, for dialects that have a form for this."""
        if node.calls is None and start is None:
            return self._without_calls(node, at)
        outer = node.calls
        while outer is not None and not isinstance(outer, n.Calls):
            outer = through(outer, True)
        item = node.calls if outer is None else outer.item  # the text between two calls is free as well
        calls = None if item is None else self.read(item, at)
        if calls is not None and never(calls):
            calls = None
        most = self._most(item)
        triggers, others, prose = self._ends(node, calls)
        if node.content is not None and self._is_marked(node.content, at, (*triggers, *others)):
            return self._marked_text(node, node.content, start, calls, most, at)
        around = self._around(node.content, at, (*triggers, *others))
        counted = self._text_left is not None
        if counted:  # else some engines would take the tokens for text
            others = (*others, *around)
        stops = (*triggers, *others)
        text = ir.Free(EMPTY, triggers, most, others, within=self._text_left, counted=counted)
        text = replace(text, words=self.in_prose(node, prose, stops))
        if self.request.call_next and calls is not None:
            return seq(GAP, calls, GAP, replace(text, calls=calls).after)
        if calls is not None and most == 1:
            calls = seq(calls, GAP)
        rest: ir.Free | ir.Lang = ir.Lang(stops=others, within=text.within)
        after: Ir = EMPTY
        """What follows text, where no more text may come."""
        if calls is not None:
            rest = replace(text, calls=calls, marks=() if counted else around)
            after = seq(ir.Rep(seq(GAP, calls), 0, most), GAP)
        heads: list[tuple[Ir, Ir]] = []
        if start is not None and not all(head.startswith(triggers) for head in literal_heads(start)):
            heads = split_heads(start, stretches(node, "", self.spelling), further=True)
        taken = taken_for_calls(node, _marks(node), heads, stops, self.names, self.output.target.coarse)
        if self.output.target.coarse and (text.words or any(taken)):
            self.output.tell("$.tools", "name", RESTS)
        if not any(taken) and not (around and counted):
            return rest
        lead = GAP if node.start is not None and _after_space(node.start) else EMPTY
        begun = [seq(ir.Shared("begin", seq(lead, head), True), then, GAP) for head, then in heads]
        last, plain, more = self._not_taken(text, taken)
        begun += more
        if around:
            begun += self._marked(around, stops, after if counted else rest)
        if isinstance(rest, ir.Lang):
            return alt(*begun, last)
        return alt(*begun, last, seq(plain, *self._first_call(node, rest)))

    def _ends(
        self, node: n.Body, calls: Ir | None
    ) -> tuple[tuple[str, ...], tuple[str, ...], Collection[str]]:
        """What ends free text: the triggers of calls and the other texts; and the openers of calls that are ordinary
        words, which end none."""
        triggers = tuple(
            trigger.value for trigger in words(self.request.tree, node, calls, {}, self.spelling)
        )
        others = thoughts(self.request.tree)
        if node.calls is not None:
            others += first(node.calls)
        marks = _marks(node)
        if marks is not None:
            others += tokens(marks)
        others = (*others, *self.request.stops)  # after a stop the parser reads no more
        prose, triggers = self.told_from_prose(node, calls, triggers)
        others = tuple(
            text for text in dict.fromkeys(others) if text not in prose and not text.startswith(triggers)
        )
        return triggers, others, prose

    def _is_marked(self, content: Span, at: At, stops: tuple[str, ...]) -> bool:
        """Whether content has its markers always, or an opener that calls or reasoning begin like: then it is no free
        text."""
        return not content.optional or any(
            stop in text for text in literal_heads(self.read(content.open, at)) for stop in stops
        )

    def _marked_text(
        self, node: n.Body, content: Span, start: Ir | None, calls: Ir | None, most: int | None, at: At
    ) -> Ir:
        """Content between its markers, and calls."""
        if self.request.call_next and calls is not None:
            more = None if most is None else most - 1
            return seq(GAP, calls, GAP if more == 0 else self._spans(node, content, [calls], more, at))
        options = [part for part in (start, calls) if part is not None]
        if len(options) > 1 and content.close is None:
            options = options[:1]
        return self._spans(node, content, options, most, at)

    def _not_taken(self, text: ir.Free, taken: Taken) -> tuple[ir.Lang, ir.Lang, list[Ir]]:
        """Text at the start of the turn that the parser takes for no call: as the end of the turn, and before a call.
        Then what else may end the turn: a text that begins like a call, and turns out to be none."""
        openers = [seq(SPACES, alt(*taken.openers), ANYTHING)] if taken.openers else []
        coarse = self.output.target.coarse
        if openers:
            self.output.tell("$.tools", "name", KEYS_OF_CALLS if coarse else LIKE_CALLS)
        but = none_of([*taken.always, *(taken.then if coarse else openers)])
        last, plain = (replace(one, parts=(*one.parts, *but)) for one in (text.last, text.text))
        if coarse or not openers:
            return last, plain, []
        but = none_of([*taken.always, *taken.then])
        parts = (ir.Part(openers[0]), *text.last.parts, *but)
        return last, plain, [replace(text.last, parts=parts)]

    def _first_call(self, node: n.Body, text: ir.Free) -> tuple[Ir, ...]:
        """The first call after text, and what follows it."""
        ids, most = self.request.marker_ids, text.most
        ways = ((trigger, residual(text.calls, trigger, self.rules)) for trigger in text.triggers)
        calls = alt(*(seq(*literals(trigger, ids), way) for trigger, way in ways if way is not None))
        if most == 1:
            return (calls,)
        assert node.calls is not None
        if not any(isinstance(below, n.Calls) for below in walk(node.calls, True)):
            return calls, GAP  # the format writes one call, as the end of the turn
        if text.counted:
            return calls, ir.Rep(seq(GAP, calls), 0, None if most is None else most - 1), GAP
        return calls, text if most is None else replace(text, calls=calls, most=most - 1)

    @property
    def _text_left(self) -> int | None:
        """How many tokens the text of the answer may take; None: any number."""
        answer, within = self.request.answer_tokens, self.request.call_within
        return answer if answer is None or within is None else min(answer, within)

    def _around(self, content: Span | None, at: At, stops: tuple[str, ...]) -> tuple[str, ...]:
        """The two tokens around content that may stand without them; none if content has no such tokens."""
        if content is None or not content.optional or content.close is None:
            return ()
        marks = [_core(self.read(part, at)) for part in (content.open, content.close)]
        found = tuple(mark.text for mark in marks if isinstance(mark, ir.TokenRef))
        known = len(found) == len(marks) and self.request.marker_ids.keys() >= set(found)
        return found if known and not any(stop in text for text in found for stop in stops) else ()

    def _marked(self, around: tuple[str, ...], stops: tuple[str, ...], after: Ir) -> list[Ir]:
        """Content with the tokens ``around`` it, and ``after``; or content that ends the turn. If text is counted,
        white space before it is one piece, because a lexer that takes it for text does not go back."""
        opener, closer = map(ir.TokenRef, around)
        if not self.request.counted:
            text = ir.Lang(stops=stops)
            return [seq(opener, text), seq(opener, text, closer, after)]
        space = opt(ir.Shared("space", ir.Rep(SPACES.node, 1, None), True))
        text = ir.Lang(stops=tuple(dict.fromkeys((*stops, closer.text))), within=self._text_left)
        return [seq(space, opener, text, opt(seq(closer, after)))]

    def _without_calls(self, node: n.Body, at: At) -> Ir:
        """Text in which no thought begins."""
        spans = [end for span in node.spans for end in first(span.open)]
        plain = _text_until(
            *thoughts(self.request.tree), *spans, *self.request.stops, within=self.request.answer_tokens
        )
        if node.content is None:
            return plain
        others = (*thoughts(self.request.tree), *self.request.stops)
        around = self._around(node.content, at, others) if self.request.counted else ()
        if around:
            plain = replace(plain, stops=tuple(dict.fromkeys((*plain.stops, *around))))
            return alt(plain, *self._marked(around, plain.stops, GAP))
        marked = self._spans(node, node.content, [], None, at)
        return alt(plain, marked) if node.content.optional else marked

    def _most(self, item: Node | None) -> int | None:
        """How often ``item`` may be in free text; None: any number of times. Where it holds a list of calls, the
        list is counted, so the item is written once."""
        if not self.request.options.parallel:
            return 1
        most = self.request.max_calls
        several = item is not None and any(isinstance(below, n.Calls) for below in walk(item, True))
        return 1 if most is not None and several else most

    def _spans(self, node: n.Body, span: Span, calls: list[Ir], most: int | None, at: At) -> Ir:
        """A body in which every run of text has markers. The last run may lack its closer."""
        if node.unclosed:
            return self._sections(node, calls, most, at)
        if self.request.counted:
            return self._counted_spans(node, span, calls, most, at)
        spans = [self._span(node, span, at)]
        if node.reasoning is not None and at.thoughts:
            spans.insert(0, self._thought(self._span(node, node.reasoning, at)))
        last = opt(self._stretch(node, span, at, *self.request.stops))
        if most is None:
            return seq(ir.Rep(seq(GAP, alt(*spans, *calls)), 0, None), GAP, last)
        text = ir.Rep(seq(GAP, alt(*spans)), 0, None)
        if most == 1:
            return seq(text, GAP, alt(last, seq(alt(*calls), GAP)))
        return seq(text, ir.Rep(seq(GAP, alt(*calls), text), 0, most), GAP, last)

    def _counted_spans(self, node: n.Body, span: Span, calls: list[Ir], most: int | None, at: At) -> Ir:
        """As `_spans`, where an engine counts text: each run by itself, so one thought that is counted may come, at the
        beginning, and one counted text, before the calls."""
        begin: Ir = EMPTY
        call = alt(*calls)
        if node.reasoning is not None and at.thoughts:
            thought = seq(GAP, self._thought(self._span(node, node.reasoning, at)))
            begin = ir.Rep(thought, 0, None if self.request.thinking_tokens is None else 1)
            if self.request.thinking_tokens is None:
                call = seq(begin, GAP, call)
        text = self._stretch(node, span, at, *self.request.stops)
        assert span.close is not None
        close = self.read(span.close, at)
        if self.request.answer_tokens is None:
            spans = ir.Rep(seq(GAP, seq(text, close)), 0, None)
            many = ir.Rep(seq(GAP, call, spans), 0, most) if calls else EMPTY
            return seq(begin, spans, many, GAP, opt(text))
        called = ir.Rep(seq(GAP, call), 0, most) if calls else EMPTY
        return seq(begin, alt(seq(GAP, text, opt(seq(close, called, GAP))), seq(called, GAP)))

    def _after(self, parts: list[Ir], begin: str) -> list[Ir]:
        """What follows ``begin`` in each of ``parts`` that begins so."""
        return [rest for part in parts if (rest := residual(part, begin, self.rules)) is not None]

    def _sections(self, node: n.Body, calls: list[Ir], most: int | None, at: At) -> Ir:
        """Text and calls that end where the next section begins, or with the turn."""
        opens = [
            (span, self.read(span.open, at))
            for span in node.spans
            if at.thoughts or span is not node.reasoning
        ]
        stops = _exits(node)
        self.tell_words(stops)
        texts = {
            stop: [(span, rest) for span, open in opens for rest in self._after([open], stop)]
            for stop in stops
        }
        called = {stop: self._after(calls, stop) for stop in stops}
        counted = [
            span
            for span, limit in (
                (node.reasoning, self.request.thinking_tokens),
                (node.content, self.request.answer_tokens),
            )
            if span is not None and limit is not None
        ]
        """The sections that an engine counts, each by itself: so each comes once, and content before the calls."""
        states: list[tuple[int | None, int]] = [(most, 0)]
        """How many calls are left, and which counted sections may come no more (a bit for each)."""

        def sections(left: int | None, gone: int) -> Ir:
            """Any section, with so many calls from it on."""
            if (left, gone) not in states:
                states.append((left, gone))
            ids = self.request.marker_ids
            begun = (stop for stop in stops if [*allowed(texts[stop], gone)] or (called[stop] and left != 0))
            return alt(*(seq(*literals(stop, ids), ir.Ref(named(stop, left, gone))) for stop in begun))

        def named(stop: str, left: int | None, gone: int) -> str:
            """The rule of what follows a section's marker, with so many calls from there on."""
            name = f"section {stop}" if left in (None, most) else f"section {stop} {left}"
            return f"{name} without {gone}" if gone else name

        def allowed(found: list[tuple[Span, Ir]], gone: int) -> Iterator[tuple[Span, Ir, int]]:
            """The texts that may come, each with what is gone after it."""
            for span, begun in found:
                bit = 1 << counted.index(span) if span in counted else 0
                if not gone & bit:
                    yield span, begun, gone | bit

        def text(span: Span, more: Ir) -> Ir:
            """The text of a span, and perhaps ``more`` after it."""
            within = self._within_span(node, span)
            if span.close is None:
                plain = ir.Lang(stops=(*stops, *self.request.stops), within=within)
                return plain if never(more) else alt(seq(plain, more), plain)
            closed = _text_until(*first(span.close), *stops, within=within)
            return seq(closed, self.read(span.close, at), GAP, EMPTY if never(more) else opt(more))

        said = sum(1 << index for index, span in enumerate(counted) if span is node.content)
        """The content, which comes before the calls if it is counted."""
        for left, gone in states:  # grows
            for stop in stops:
                options = [
                    self._thought(option) if span is node.reasoning else option
                    for span, begun, then in allowed(texts[stop], gone)
                    for option in [seq(begun, text(span, sections(left, then)))]
                ]
                if left != 0:
                    after: Ir = GAP
                    if most != 1:
                        more = sections(None if left is None else left - 1, gone | said)
                        after = seq(GAP, EMPTY if never(more) else opt(more))
                    options += [seq(call, after) for call in called[stop]]
                self.rules[named(stop, left, gone)] = alt(*options)
        return seq(GAP, opt(sections(most, 0)))


_GAPS = ("", " ", "\n", "\n\n")
"""The texts of `GAP`."""


def _spelt(known: Collection[str], written: str = "") -> Ir:
    """White space as the template spells it; where that is not known, any up to two newlines, or as the format does."""
    return ir.texts(known) if known else GAP if written in _GAPS else alt(GAP, ir.Text(written))


def start_of(body: n.Body) -> Node | None:
    """The calls that begin the turn, if they are generated in another way than the later ones."""
    start, calls = body.start, body.calls
    while isinstance(start, n.Lenient):
        start = start.strict
    while isinstance(calls, n.Lenient):
        calls = calls.strict
    return None if start is calls else body.start


def _after_space(node: Node) -> bool:
    """Whether the parser reads white space before ``node``."""
    below = head(node)
    return isinstance(below.items[0] if isinstance(below, n.Sequence) else below, n.Space)


def _left_by_calls(body: n.Body) -> Span | None:
    """The reasoning out of which the format's model calls tools, without its closer; None if it does not."""
    return body.reasoning if body.reasoning is not None and body.reasoning.optional else None


def _marks(body: n.Body) -> Node | None:
    """What may begin calls anywhere in a body; None if none begins there."""
    return None if body.marks is None or not has_calls(body.marks) else body.marks


def has_calls(node: Node) -> bool:
    """Whether the parser reads a call in ``node``, perhaps in a way that is not generated."""
    return any(isinstance(found, n.EachTool) for found in walk(node))


def _text_until(*stops: str, within: int | None = None) -> ir.Lang:
    """Text that holds none of these, of so many tokens."""
    return ir.Lang(stops=tuple(dict.fromkeys(stops)), within=within)


def _space_after(marker: Ir) -> str:
    """The white space after a marker; templates of one format differ in it, and the parser takes any of it."""
    last = marker.items[-1] if isinstance(marker, ir.Seq) and marker.items else marker
    return last.text[len(last.text.rstrip()) :] if isinstance(last, ir.Text) else ""


def _core(marker: Ir) -> Ir:
    """A marker without the white space around it."""
    items = list(marker.items if isinstance(marker, ir.Seq) else (marker,))
    if items and isinstance(items[0], ir.Text):
        items[0] = ir.Text(items[0].text.lstrip())
    if items and isinstance(items[-1], ir.Text):
        items[-1] = ir.Text(items[-1].text.rstrip())
    return seq(*items)


def _exits(body: n.Body, within: Span | None = None) -> tuple[str, ...]:
    """The markers that end a run of text in a body, because another run or a call begins: special tokens, and texts
    only for a part that begins without a token."""
    found: dict[str, None] = {}
    spans = (span.open for span in body.spans if span is not within)
    for part in (*(() if body.calls is None else (body.calls,)), *spans):
        marked = set(tokens(part))
        texts = first(part)
        found.update(dict.fromkeys([text for text in texts if text in marked] or texts))
    return tuple(text for text in found if not any(text != one and text.startswith(one) for one in found))
