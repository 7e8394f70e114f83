"""Why a grammar refuses a text that the parser reads without a diagnostic: the kinds in which it is narrower.

Strategy: the parser reads leniently by named means, so each is taken away (`AsWritten`), one after the other: mends,
lenient halves, other names of tokens, white space. If the text is then read in another way, that is why. What remains
are rules of the grammar itself, told from the text, its message, and where the grammar left it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from engines import FULL, PREFIX, Llguidance

import chatparsers
from chatparsers.answers import nodes as n
from chatparsers.answers.format import Format, Turn
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Node, Span
from chatparsers.core.nodes.control import Look
from chatparsers.core.nodes.first import begins, head
from chatparsers.core.tree import once, tokens
from chatparsers.grammar.reading.turn import start_of
from chatparsers.kept import cached
from chatparsers.streams.message import Message
from chatparsers.values import Raw

_SILENT: tuple[Node | None, ...] = (n.Literal(""), n.Sequence(()))


def without_beside(part: Any) -> Any:
    """Without the markup and the closers of running text that are read and not written."""
    beside = isinstance(part, n.Body) and not (part.marks is None and part.closers is None)
    return replace(part, marks=None, closers=None) if beside else part


def strict(part: Any) -> Any:
    """The half that is written of what is read in two ways, where the other half reads more than what follows. The
    parser cannot compare a name with one that comes after it: any name will do."""
    if isinstance(part, n.SameName):
        return n.Chars(r"\w-")
    return part.strict if isinstance(part, n.Lenient) and not _looks(part.lenient) else part


def one_name(part: Any) -> Any:
    """A token by the name with which it is written."""
    return replace(part, also=()) if isinstance(part, n.Token) and part.also else part


def exact(part: Any) -> Any:
    """White space as it is written."""
    return n.Literal(part.text) if isinstance(part, n.Space) else part


STEPS: Mapping[str, Callable[[Any], Any]] = {
    "a mend": lambda part: part,
    "markup beside what is written": without_beside,
    "a lenient half": strict,
    "another name of a token": one_name,
    "white space of a marker": exact,
}
"""What is taken away, each beside those before it."""


def _looks(node: Node) -> bool:
    """Whether a node reads nothing."""
    parts = node.options if isinstance(node, n.Choice) else node.items if isinstance(node, n.Sequence) else ()
    return isinstance(node, Look) or (isinstance(node, (n.Choice, n.Sequence)) and all(map(_looks, parts)))


def changed(tree: Node, change: Callable[[Any], Any]) -> Node:
    """The tree with every part changed."""
    made: dict[int, tuple[Any, Any]] = {}

    def after(part: Any) -> Any:
        if isinstance(part, tuple):
            found = tuple(map(after, part))
            return part if all(map(_is, part, found)) else found
        if not isinstance(part, (Node, Span)):
            return part
        if id(part) not in made:
            new = change(part)
            if new is part:
                below = {field.name: after(getattr(part, field.name)) for field in fields(part)}
                below = {name: value for name, value in below.items() if value is not getattr(part, name)}
                if isinstance(part, n.Body):
                    below |= {name: None for name in ("marks", "closers") if below.get(name, part) in _SILENT}
                new = replace(part, **below) if below else part
            else:
                new = after(new)
            made[id(part)] = part, new
        return made[id(part)][1]

    found: Node = after(tree)
    return found


def _is(one: object, other: object) -> bool:
    return one is other


@dataclass(frozen=True, repr=False)
class AsWritten(Format):
    """A format that reads without what the steps up to ``step`` take away."""

    step: str = ""

    __hash__ = Format.__hash__

    @staticmethod
    def of(format: Format, step: str) -> AsWritten:
        given = {field.name: getattr(format, field.name) for field in fields(format)}
        return AsWritten(**{**given, "mends": ()}, step=step)

    def tree(self, options: Options) -> Node:
        return _strict_tree(super().tree(options), self.step)


@lru_cache(maxsize=1024)
def _strict_tree(tree: Node, last: str) -> Node:
    for step, change in STEPS.items():
        tree = changed(tree, change)
        if step == last:
            break
    return tree


@lru_cache(maxsize=256)
def as_written(format: Format) -> tuple[tuple[str, AsWritten], ...]:
    return tuple((step, AsWritten.of(format, step)) for step in STEPS)


def is_clean(message: Message) -> bool:
    """Whether a text is a whole turn, in which nothing was amiss."""
    return message.complete and not message.diagnostics and all(call.complete for call in message.tool_calls)


def meaning(message: Message) -> Any:
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.content.strip(), message.reasoning.strip(), calls


class Judge:
    """The grammar of a request in its engine; ``weakened``: what the grammar says that it leaves out."""

    def __init__(self, format: Format, asked: Mapping[str, Any]) -> None:
        grammar = format.bind(**asked).grammar("lark")
        self.engine = None if grammar is None else Llguidance(str(grammar))
        self.weakened = () if grammar is None else tuple(weak.why for weak in grammar.weakened)

    def left(self, text: str) -> int:
        """Where a text leaves the grammar: its length if it ends too soon, -1 if it is in the grammar."""
        status = FULL if self.engine is None else self.engine.status(text)
        return -1 if status == FULL else len(text) if status == PREFIX else status.at


@dataclass(frozen=True)
class Refused:
    """A text that the parser reads and the grammar of ``judge`` refuses from character ``at`` on. ``asked``: the
    request."""

    format: Format
    asked: Mapping[str, Any]
    text: str
    judge: Judge
    at: int

    @cached
    def turn(self) -> Turn:
        return self.format.bind(**self.asked)

    @cached
    def message(self) -> Message:
        return self.turn.parse(self.text)

    @cached
    def body(self) -> n.Body:
        return next(node for node in once(self.turn.tree) if isinstance(node, n.Body))

    def says(self, text: str) -> bool:
        """Whether a text says the same."""
        message = self.turn.parse(text)
        return is_clean(message) and bool(meaning(message) == meaning(self.message))

    @property
    def thinks(self) -> list[Span]:
        return [node.span for node in once(self.turn.tree) if isinstance(node, n.Think)]

    def stretches(self, *kinds: str) -> Iterator[tuple[int, str]]:
        """The stretches of the text of these kinds: where each begins, and its text."""
        for region in self.message.regions:
            if region.kind in kinds:
                yield region.start, self.text[region.start : region.end]

    @property
    def order(self) -> list[str]:
        """The kinds of the text's parts, as they come."""
        parts = self.message.regions
        return [
            part.kind for part in parts if part.kind != "markup" and self.text[part.start : part.end].strip()
        ]


def words(case: Refused) -> bool:
    """A marker in text or a thought, or in a raw value what opens another one."""
    spans = [*case.thinks, *case.body.spans]
    parts = [*(part for span in spans for part in span.parts), case.body.calls, case.body.start]
    texts = {text.strip() for part in parts if part is not None for text in _begun(part)}
    markers = [text for text in (*tokens(case.turn.tree), *texts) if len(text) > 1]
    if any(marker in text for _, text in case.stretches("content", "reasoning") for marker in markers):
        return True
    syntaxes = [node.syntax for node in once(case.turn.tree) if isinstance(node, n.Value)]
    raw = [syntax for syntax in syntaxes if isinstance(syntax, Raw)]
    openers = [before.strip() for syntax in raw for before, _ in (*syntax.named, *syntax.seams)]
    values = [value for _, given in meaning(case.message)[2] for value in given.values()]
    return any(opener in value for value in values if isinstance(value, str) for opener in openers)


def _begun(part: Node) -> tuple[str, ...]:
    try:
        return begins(head(part))
    except chatparsers.DefinitionError:
        return ()


def after_the_last(case: Refused) -> bool:
    """Text after calls with which the turn ends: the one call of a request or a format for one, or calls that begin the
    turn in a form of their own."""
    one = not (case.turn.options.parallel and case.format.features.parallel)
    began = case.order[:1] == ["call"] and start_of(case.body) is not None
    return (one or began) and case.order[-2:] == ["call", "content"]


def like_a_call(case: Refused) -> bool:
    """Text that begins as a call of a declared tool does, or as the JSON of one."""
    json_told = any("begins as JSON" in why for why in case.judge.weakened)
    texts = [text for _, text in case.stretches("content")]
    named = "|".join(map(re.escape, case.turn.tools.names())) or "(?!)"
    return any(
        (json_told and text.lstrip()[:1] in ("{", "[")) or re.search(rf"(?:^|[\[\n])\s*(?:{named})\(", text)
        for text in texts
    )


def bare_content(case: Refused) -> bool:
    """Text without the markers that the format writes around it."""
    span = case.body.content
    if span is None or span.optional:
        return False
    openers = [text.strip() for text in begins(span.open)]
    prefix = case.turn.prefix
    return any(
        text.strip() and not (prefix + case.text[:at]).rstrip().endswith(tuple(openers))
        for at, text in case.stretches("content")
    )


def thought_again(case: Refused) -> bool:
    """A thought after the answer began, where the format writes thoughts at the start."""
    order = case.order
    return (
        bool(case.thinks)
        and "reasoning" in order
        and order.index("reasoning") < len(order) - 1
        and any(kind != "reasoning" for kind in order[: len(order) - 1 - order[::-1].index("reasoning")])
    )


def opener_again(case: Refused) -> bool:
    """The opener of a thought, twice. It may be several tokens."""
    openers = [
        re.escape(text.strip()) for span in (*case.thinks, *case.body.spans) for text in begins(span.open)
    ]
    written = case.turn.prefix + case.text
    return any(re.search(rf"({text}.{{0,40}}?)\s*\1", written) for text in openers)


def closer_left_out(case: Refused) -> bool:
    """A thought, or text between markers, that the next section or the end of the turn ends."""
    spans = [span for span in (*case.thinks, *case.body.spans) if span.close is not None]
    closers = [text.strip() for span in spans if span.close is not None for text in begins(span.close)]
    marked = case.body.content is not None and case.body.content.close is not None
    after = {start: text for start, text in case.stretches("markup")}
    return any(
        not any(closer in after.get(at + len(text), "") for closer in closers)
        for at, text in case.stretches("reasoning", *(["content"] if marked else []))
    )


def other_json(case: Refused) -> bool:
    """An answer that is JSON and no string, where the format writes one."""
    answer = case.message.content
    return (
        any(isinstance(node, n.JsonText) for node in once(case.turn.tree))
        and bool(answer)
        and f'"{answer[:1]}' not in case.text
    )


def other_id(case: Refused) -> bool:
    """An id of a call that this format's models do not write."""
    found = [(case.text.find(call.id), call.id) for call in case.message.tool_calls if call.id]
    return any(0 <= at <= case.at <= at + len(id) for at, id in found)


def white_space(case: Refused) -> bool:
    """Other white space than the grammar writes: with its own near each place where it leaves the text, it takes it."""
    text, at = case.text, case.at
    while at >= 0:
        here = len(text[:at].rstrip()), len(text) - len(text[at:].lstrip())
        spots = [*(found.span() for found in re.finditer(r"\s+", text[:at])), here][-_SPOTS:]
        ways = {
            text[:begin] + space + text[end:] for begin, end in spots for space in ("", " ", "\n", "\n\n")
        }
        best = min(filter(case.says, sorted(ways)), key=lambda way: _rest(case.judge, way), default=text)
        if _rest(case.judge, best) >= _rest(case.judge, text):
            return False
        text, at = best, case.judge.left(best)
    return True


_SPOTS = 8
"""How many runs of white space are tried: what is free text to the grammar may go wrong after it."""


def _rest(judge: Judge, text: str) -> int:
    """How much of a text comes after where it leaves the grammar; -1 if it does not."""
    at = judge.left(text)
    return at if at < 0 else len(text) - at


def spelling(case: Refused) -> bool:
    """A value or a name in another spelling than the grammar's."""
    return _inside(case, "call")


def _inside(case: Refused, *kinds: str) -> bool:
    return any(at <= case.at < at + len(text) for at, text in case.stretches(*kinds))


RULES: Mapping[str, Callable[[Refused], bool]] = {
    "a marker among words": words,
    "text after the last call": after_the_last,
    "text like a call": like_a_call,
    "text outside its markers": bare_content,
    "a thought after the answer began": thought_again,
    "an opener twice": opener_again,
    "a closer left out": closer_left_out,
    "an answer that is no string": other_json,
    "another id": other_id,
    "white space": white_space,
    "another spelling": spelling,
}


def kind_of(case: Refused) -> str:
    """The kind; "" if none explains it."""
    said = meaning(case.message)
    for step, format in as_written(case.format):
        found = format.bind(**case.asked).parse(case.text)
        if not is_clean(found) or meaning(found) != said:
            return step
    return next((kind for kind, holds in RULES.items() if holds(case)), "")
