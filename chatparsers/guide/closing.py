"""How an open thought is ended by force: the message, and the shortest closer that fits here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from ..answers.features import Definition, reasoning_spans
from ..answers.idioms import Options
from ..answers.nodes import Body, Node, Span
from ..core.tree import begins, once
from ..errors import RequestError
from ..grammar.ir import literals
from ..streams.message import Message
from ..tokens import Vocabulary
from ..writer.turn import fixed_text
from .turn import Guided


def closers(turn: Guided, kind: str) -> tuple[str, ...]:
    """The texts that end a thought, or content that has markers (``kind``), without white space around them, the
    shortest first."""
    return _closers(turn.format, turn.options._replace(schema=None), kind)


@lru_cache(maxsize=256)
def _closers(format: Definition, options: Options, kind: str) -> tuple[str, ...]:
    tree = format.tree(options)
    body = next(node for node in once(tree) if isinstance(node, Body))
    spans = (
        reasoning_spans(tree) if kind == "reasoning" else [body.content] if body.content is not None else []
    )
    texts = dict.fromkeys(text.strip() for span in spans for text in _ends(span, body))
    return tuple(sorted(filter(None, texts), key=len))


def content_is_open(turn: Guided, text: str) -> bool:
    """Whether ``text`` ends in content that a marker has opened and none has closed."""
    opens = [
        node.content.open for node in once(_tree(turn)) if isinstance(node, Body) and node.content is not None
    ]
    opened = max((text.rfind(begin) for node in opens for begin in begins(node)), default=-1)
    return opened > max((text.rfind(closer) for closer in closers(turn, "content")), default=-1)


def _tree(turn: Guided) -> Node:
    return turn.format.tree(turn.options._replace(schema=None))


def sections(turn: Guided) -> frozenset[int]:
    """The ids that begin a section, if thoughts have no closer, so that these end them."""
    spans = reasoning_spans(_tree(turn))
    if all(span.close is not None for span in spans):
        return frozenset()
    return frozenset(turn.marker_ids[text] for text in closers(turn, "reasoning") if text in turn.marker_ids)


def _ends(span: Span, body: Body) -> Iterator[str]:
    """What ends a span: its closer, or what begins after it."""
    after = (None if body.content in (None, span) else body.content.open, body.calls)
    for node in (span.close,) if span.close is not None else after:
        if node is None:
            continue
        yield from begins(node)
        text = fixed_text(node)
        if text is not None:
            yield text


def message_ids(turn: Guided, text: str) -> tuple[int, ...]:
    """The ids of the message that ends a thought. Raises `RequestError` if it is no text, or holds what the thought
    cannot hold."""
    if not isinstance(text, str):
        raise RequestError(f"thinking_message: expected text, found {type(text).__name__}")
    marked = next((mark for mark in (*closers(turn, "reasoning"), *turn.marker_ids) if mark in text), None)
    if marked is not None:
        raise RequestError(f"thinking_message: expected text without markers, found {marked!r} in it")
    return Vocabulary.of(turn.tokenizer).ids_of(text) if text else ()


def endings(turn: Guided, kind: str, text: str, message: tuple[int, ...] = ()) -> Iterator[list[int]]:
    """The ways to end a thought or content, which ends with ``text`` so far: the rests of closers that it has begun,
    then the whole ones after ``message``, the fewest ids first."""
    vocabulary, marks = Vocabulary.of(turn.tokenizer), turn.marker_ids
    found = closers(turn, kind)
    begun = {
        closer[size:]
        for closer in found
        if closer not in marks
        for size in range(1, len(closer))
        if text.endswith(closer[:size])
    }
    for begin, rests in (((), begun), (message, found)):
        ways = [_ids(vocabulary, rest, marks) for rest in rests]
        yield from ([*begin, *ids] for ids in sorted(ways, key=len))


def without_texts(message: Message) -> str:
    """The text of an answer without the texts of its thoughts and its content, whose words do not matter for what may
    follow: so answers that only differ in these have one grammar."""
    text = message.text
    return "".join(
        text[region.start : region.end]
        for region in message.regions
        if region.kind not in ("reasoning", "content")
    )


def _ids(vocabulary: Vocabulary, text: str, marks: Mapping[str, int]) -> list[int]:
    """The ids of a text, its markers as single tokens."""
    ids: list[int] = []
    for item in literals(text, marks):
        ids += (marks[item.text],) if item.text in marks else _ordinary(vocabulary, item.text)
    return ids


def _ordinary(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    """The ids of a text that is no marker: none is an added token, which is not read as its text."""
    ids = vocabulary.ids_of(text)
    if len(text) == 1 or vocabulary.added.keys().isdisjoint(ids):
        return ids
    return (*vocabulary.ids_of(text[0]), *_ordinary(vocabulary, text[1:]))
