"""The check of the grammar: it takes the template's own calls, what it generates is read back, and what it leaves open.

Both are proved on the tree from which all dialects are written, by text and, with a tokenizer, by ids. With samples, an
installed engine (xgrammar, llguidance) also reads its dialect over the model's own vocabulary: it must take those calls
id by id, and random walks under its masks must be read back.
"""

from __future__ import annotations

import json
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Literal

from ..answers.format import Turn
from ..detection.analysis.accepted import accepts, accepts_ids, marked, reading_of, without_ends
from ..errors import ChatParsersError, RequestError, SchemaError, TemplateError
from ..grammar.ir import Text, TokenRef
from ..grammar.regular.automaton import TooLarge
from ..guide import Guide
from ..guide.engines import EngineName
from ..streams.message import Message
from ..templates.probe.edges import edges_of
from .draw import drawn
from .report import Fact, Finding
from .subject import CLOCK, Subject, call, quoted, user

_DIALECTS: tuple[Literal["gbnf", "lark", "structural_tag"], ...] = ("gbnf", "lark", "structural_tag")
_ENGINES: Mapping[EngineName, str] = {"xgrammar": "structural tags", "llguidance": "Lark"}
_DRAWS = 8
_MOST_IDS = 400


def grammar(model: Subject) -> Iterator[Finding | Fact]:
    """Whether the grammar can be written in each dialect, takes the template's own calls, and generates only what is
    read back; what it weakens."""
    if not model.format.features.tools:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            turn = model.chat.prepare([user("Q")], tools=model.tools, tool_choice="required")
        except ChatParsersError as error:
            yield Finding(
                "grammar-refused",
                "warning",
                f"a call cannot be required: {error}",
                str(error),
                "see the error",
            )
            return
        yield from _written(turn)
        yield from _generated(model, turn)
        if model.can.tool_calls and not model.given:
            yield from _own_calls(model)
        if model.samples and model.tokenizer is not None:
            yield from _engines(model, turn)


def _written(turn: Turn) -> Iterator[Finding | Fact]:
    weakened: dict[str, str] = {}
    written = []
    for dialect in _DIALECTS:
        try:
            found = turn.grammar(dialect)
        except SchemaError as error:
            yield Finding(
                "grammar-refused",
                "error",
                f"the {dialect} grammar cannot be written: {error}",
                str(error),
                "give smaller schemas",
            )
            continue
        written.append(dialect)
        if found is not None:
            weakened.update({f"{each.path} {each.keyword}": each.why for each in found.weakened})
    if weakened:
        first = next(iter(weakened))
        yield Finding(
            "grammar-weakened",
            "note",
            f"the grammar does not enforce {first}"
            + (f" and {len(weakened) - 1} more" if len(weakened) > 1 else ""),
            "\n".join(f"{where}: {why}" for where, why in weakened.items()),
            "check the arguments after parsing",
        )
    yield Fact(f"written as {', '.join(written)}; {len(weakened)} keywords of the schemas weakened")


def _generated(model: Subject, turn: Turn) -> Iterator[Finding | Fact]:
    """Random texts of the grammar must be read back as whole calls, by text and by ids."""
    ids = model.tokenizer is not None
    plain = model.format.bind(tools=model.tools, tool_choice="required", prefix=turn.prefix)
    reading, by_ids = reading_of(plain), reading_of(turn, turn.marker_ids)
    if reading is None or by_ids is None:
        return
    random, ends = Random(26), set(turn.stop_ids)
    for number in range(2 * _DRAWS):
        spelt = ids and number % 2
        try:
            parts = drawn(by_ids if spelt else reading, random)
        except TooLarge:
            return
        text = "".join(part.text for part in parts)
        drawn_ids = _ids_of(model, turn, parts) if spelt else []
        if not ends.isdisjoint(drawn_ids):
            continue  # a file names a marker as an end, which the check of ends says
        message = turn.parse(drawn_ids) if spelt else plain.parse(text)
        wrong = _wrong(message, model)
        if wrong:
            yield Finding(
                "grammar-not-read",
                "error",
                f"a text of the grammar is not read back{' by ids' if spelt else ''}: {wrong}",
                quoted(text),
                "that is a fault of ours: chatparsers report",
            )
            return
    yield Fact(f"{2 * _DRAWS} drawn calls are read back, by text{' and by ids' * ids}")


def _ids_of(model: Subject, turn: Turn, parts: Sequence[Text | TokenRef]) -> list[int]:
    """The ids of a text in parts, in which only the special tokens are special."""
    found: list[int] = []
    text = ""
    for part in parts:
        if isinstance(part, TokenRef) and part.text in turn.marker_ids:
            found += [*model.ids(text), turn.marker_ids[part.text]]
            text = ""
        else:
            text += part.text
    return [*found, *model.ids(text)]


def _wrong(message: Message, model: Subject) -> str:
    """What is wrong with a message that must be whole calls; empty if nothing is."""
    names = {tool.get("function", tool).get("name") for tool in model.tools}
    if not message.tool_calls:
        return "no call is read"
    for each in message.tool_calls:
        if not each.complete or each.name not in names:
            return (
                f"the call of {each.name} is incomplete" if not each.complete else f"{each.name} is no tool"
            )
        if not isinstance(json.loads(each.arguments), dict):
            return f"the arguments of {each.name} are no object"
    return ""


def _own_calls(model: Subject) -> Iterator[Finding | Fact]:
    """The calls that the template writes must be read, and be of the grammar."""
    fmt, taken = model.format, 0
    calls = [call({"city": "Oslo"}), call({"city": "São Paulo", "days": 3})]
    if model.can.parallel_calls:
        calls.append(call({"city": "Oslo"}, {"city": "Rome"}))
    for message in calls:
        shown = _exchange(model, message)
        if shown is None:
            continue
        header, wire = shown
        turn = fmt.bind(tools=model.tools, tool_choice="required", prefix=edges_of(fmt).opening(header))
        read = turn.parse(wire)
        expected = [("check_weather", True)] * len(message["tool_calls"])
        if [(each.name, each.complete) for each in read.tool_calls] != expected:
            yield Finding(
                "call-not-read",
                "error",
                "the parser does not read the call that the template writes",
                quoted(wire),
                "name the right format with --format, or send the report: chatparsers report",
            )
            return
        ends = (*fmt.stops, *model.template.end_of_turn(fmt))
        if not accepts(turn, *without_ends(wire, ends)):
            yield _refused(wire, "")
            return
        if model.tokenizer is not None and (found := _refused_ids(model, wire, turn.prefix, ends)):
            yield found
            return
        taken += 1
    yield Fact(f"{taken} calls as the template writes them are read, and of the grammar")


def _exchange(model: Subject, message: dict[str, Any]) -> tuple[str, str] | None:
    try:
        _, header, wire = model.template.exchange(
            message,
            history=[user("Q")],
            tools=model.offered,
            strftime_now=CLOCK,
        )
    except TemplateError:
        return None
    return header, wire


def _refused(wire: str, how: str) -> Finding:
    return Finding(
        "grammar-refuses-own-call",
        "warning",
        f"the grammar does not take the call as the template writes it{how}",
        quoted(wire),
        "the sampler keeps the model from what it learned: send the report: chatparsers report",
    )


def _refused_ids(model: Subject, wire: str, prefix: str, ends: Iterable[str]) -> Finding | None:
    """The finding if the grammar, whose markers are ids, refuses the ids of a call."""
    turn = model.format.bind(
        tools=model.tools, tool_choice="required", prefix=prefix, tokenizer=model.tokenizer
    )
    texts = []
    for text in without_ends(wire, ends):
        encoded = model.tokenizer.encode(text, add_special_tokens=False)
        pieces = _texts_of(text, encoded.offsets)
        texts.append(marked(turn, encoded.ids, pieces))
    return None if accepts_ids(turn, *texts) else _refused(wire, " in this tokenizer's ids")


def _texts_of(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """The text of each id; a letter of several ids is the last one's."""
    ends = [*(start for start, _ in offsets[1:]), len(text)]
    found, at = [], 0
    for end in ends:
        found.append(text[at : max(at, end)])
        at = max(at, end)
    return found


def _engines(model: Subject, turn: Turn) -> Iterator[Finding | Fact]:
    """The same inside engines, over the model's own vocabulary."""
    reading = reading_of(turn, turn.marker_ids)
    if reading is None:
        return
    for engine, dialect in _ENGINES.items():
        try:
            guide = turn.guide(engine)
        except RequestError as error:
            yield Fact(f"not sampled with {engine}: {error}")
            continue
        random, ended = Random(26), 0
        drawings = [_ids_of(model, turn, drawn(reading, random)) for _ in range(_DRAWS)]
        usual = {id for ids in drawings for id in ids} | set(turn.stop_ids)
        for ids in drawings:
            stuck = guide.accepts(ids)
            if stuck < len(ids):
                yield Finding(
                    "engine-refuses-call",
                    "warning",
                    f"{engine} does not take a call of the grammar in {dialect}, at id {stuck}",
                    quoted(_decoded(model, ids)),
                    "the model cannot write it under this engine: chatparsers report",
                )
                break
        for _ in range(model.samples):
            ids = _walk(guide.fork(), usual, random)
            if ids[-1:] and ids[-1] not in turn.stop_ids:
                continue  # it came to no end
            ended += 1
            wrong = _wrong(turn.parse(ids), model)
            if wrong:
                yield Finding(
                    "grammar-not-read",
                    "error",
                    f"what {engine} lets through in {dialect} is not read back: {wrong}",
                    quoted(_decoded(model, ids)),
                    "that is a fault of ours: chatparsers report",
                )
                break
        yield Fact(
            f"{engine} ({dialect}): {len(drawings)} calls taken; {ended} of {model.samples} walks read back"
        )


def _walk(guide: Guide, usual: set[int], random: Random) -> list[int]:
    """Random ids under the engine's mask, mostly those that calls are made of, up to an end."""
    ids: list[int] = []
    mask = array("i", bytes((guide.size + 31) // 32 * 4))
    while len(ids) < _MOST_IDS and not guide.ended:
        guide.fill(mask)
        found = _allowed(mask, sorted(usual))
        if not found or random.random() > 0.95:
            found = _allowed(mask, range(guide.size))
        if not found:
            return ids
        ids.append(random.choice(found))
        guide.feed(ids[-1])
    return ids


def _allowed(mask: array[int], ids: Iterable[int]) -> list[int]:
    return [id for id in ids if mask[id >> 5] >> (id & 31) & 1]


def _decoded(model: Subject, ids: Sequence[int]) -> str:
    return str(model.tokenizer.decode(list(ids), skip_special_tokens=False))
