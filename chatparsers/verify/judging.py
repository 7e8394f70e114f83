"""Judges exchanges: every check on every exchange where it can say something. Sends nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .asking import Asked
from .checks import CHECKS, pairs, prompt
from .exchange import Exchange
from .mends import with_mend
from .raw import Raw
from .rows import Row
from .verdict import ranked


def judge(asked: Sequence[Asked], engine: str) -> tuple[tuple[Row, ...], Counter[str]]:
    """The rows of all exchanges, and how many answers each code was judged in."""
    rows: list[Row] = []
    judged: Counter[str] = Counter()
    exchanges = [each for one in asked for each in one.exchanges]
    _mark_sane(exchanges)
    _pair(asked)
    for exchange in exchanges:
        for check in CHECKS:
            if check.where(exchange):
                judged.update(check.codes)
                rows += check.judge(exchange)
    counted = [each for each in exchanges if prompt.by_count(each)]
    judged["prompt-count"] += len(counted)
    rows += prompt.counts(counted)
    for one in asked:
        if one.stream is not None and one.whole.said is not None and one.stream.said is not None:
            judged["stream-differs"] += 1
            rows += pairs.stream_differs(one.whole, one.stream, one.again)
    return ranked([with_mend(row, engine, exchanges[0].subject) for row in rows]), judged


def _mark_sane(exchanges: Iterable[Exchange]) -> None:
    """A model that says what it is asked to say writes words, whose tokens can be counted again."""
    exchanges = list(exchanges)
    told = [each for each in exchanges if each.probe.says and each.said is not None]
    if any(_names_its_words(each) for each in told):
        for each in exchanges:
            each.sane = True


def _names_its_words(exchange: Exchange) -> bool:
    said = exchange.answer
    return exchange.probe.says.lower() in f"{said.content}{said.reasoning}".lower()


def _pair(asked: Sequence[Asked]) -> None:
    """Gives a raw text to answers without one. A stream that says what the whole answer says has that one's. An API
    without raw texts is read by that of the same request to another one, where the counts of tokens are equal."""
    for one in asked:
        for each in one.exchanges[1:]:
            if each.said is None or one.whole.said is None or each.raw.known:
                continue
            if each.answer.plain() == one.whole.answer.plain():
                told = one.whole.raw
                each.raw.ids, each.raw.text, each.raw.source = told.ids, told.text, told.source
                each.turn = one.whole.turn
    known = {one.whole.probe.name: one.whole for one in asked if one.whole.api.name == "chat"}
    for one in asked:
        other = known.get(one.whole.probe.name)
        if one.whole.api.name == "chat" or other is None or not other.raw.known:
            continue
        for each in one.exchanges:
            if each.said is not None and _same_request(each, other):
                each.raw, each.turn = Raw(other.raw.ids, other.raw.text, source="paired"), other.turn


def _same_request(exchange: Exchange, other: Exchange) -> bool:
    """Whether two answers are likely the same text: greedy ones, or of one seed, with as many tokens."""
    if other.said is None or exchange.answer.prompt is None:
        return False
    mine, theirs = exchange.body, other.body
    greedy = mine.get("temperature") == theirs.get("temperature") == 0
    seeded = mine.get("seed") is not None and mine.get("seed") == theirs.get("seed")
    same_prompt = exchange.answer.prompt == other.answer.prompt
    return (greedy or seeded) and same_prompt and exchange.answer.completion == other.answer.completion


def model_facts(asked: Sequence[Asked]) -> dict[str, Any]:
    """What the model did, right or wrong, and of how many prompts the server had some in its cache: no faults of the
    server's."""
    facts: dict[str, Any] = {}
    wholes = [one.whole for one in asked if one.whole.said is not None and not one.whole.probe.prompt]
    asked_to = [each for each in wholes if each.probe.calls and each.probe.choice == "auto"]
    if asked_to:
        facts["model called"] = [sum(bool(each.answer.calls) for each in asked_to), len(asked_to)]
    diagnostics: Counter[str] = Counter()
    for each in wholes:
        if each.reading is not None:
            diagnostics.update(item.code for item in each.reading.diagnostics)
    if diagnostics:
        facts["model's mistakes"] = dict(diagnostics)
    # A streamed answer is to the prompt of the whole one, which the server has just read.
    again = [one.stream.answer for one in asked if one.stream is not None and one.stream.said is not None]
    if again:
        facts["prompts cached"] = [sum(bool(said.cached) for said in again), len(again)]
    return facts
