"""Grammars for constrained decoding, from the same tree that the parser reads.

``write(turn, dialect)`` makes a `Grammar`. Dialects: ``gbnf`` (llama.cpp, xgrammar), ``lark`` (llguidance),
``structural_tag`` (xgrammar, vLLM, SGLang).

A turn with a tokenizer is read by token ids, so a marker that is one special token matches only by its id. The grammar
writes such a marker by its id too. Otherwise the sampler could spell the marker in ordinary tokens, and the stream
would rightly read it as text.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from sys import getsizeof
from typing import Any

from ..errors import RequestError, SchemaError, check_limit, did_you_mean, warn_user
from ..kept import Kept
from ..lazy import load_reference
from ..public import public
from ..shown import Shown
from .budget import MAX_SIZE, MAX_WORK, Budget
from .cost import MOST_FUEL, MOST_ROWS, MOST_SYMBOLS, Cost, cost_of
from .reading.read import Request, Trigger, read
from .reading.request import check_call_within
from .regular.automaton import TooLarge
from .schemas import Output, Weakened
from .target import TARGETS, Target, target_of

__all__ = ["DIALECTS", "ENGINES", "Cost", "Grammar", "Trigger", "Weakened", "write"]

DIALECTS = tuple(TARGETS)
ENGINES = tuple(TARGETS["gbnf"])
"""The engines that read GBNF."""


@public
@dataclass(frozen=True, slots=True, repr=False)
class Grammar(Shown):
    """A grammar's text (``str()``) and how to use it.

    ``lazy``: the grammar begins at a call, and ``triggers`` switch it on; until then the output is free. ``weakened``:
    the schema keywords that the grammar does not enforce. ``root``: the name of the first rule. ``by_id``: the markers
    that it writes by token id; feed the stream ids, because the model cannot write these markers as text.
    ``reasoning``: whether a thought may come before the answer: as ``thinking`` says, else if the prompt opened one,
    else as the model's template shows.
    """

    text: str
    dialect: str
    lazy: bool = False
    triggers: tuple[Trigger, ...] = ()
    weakened: tuple[Weakened, ...] = ()
    root: str = "root"
    by_id: tuple[str, ...] = ()
    reasoning: bool = False

    @property
    def cost(self) -> Cost:
        """What it asks of an engine, estimated from its text; no engine is asked."""
        text = self.text
        return cost_of(json.loads(text)["format"]["grammar"] if self.dialect == "structural_tag" else text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        lazy = ", lazy" if self.lazy else ""
        return (
            f"<Grammar: {self.dialect}, {len(self.text):,} characters{lazy}, {len(self.weakened)} weakened>"
        )


_CACHE: Kept[tuple[Any, Grammar | None]] = Kept(32_000_000)


def write(
    turn: Any,
    dialect: str = "gbnf",
    *,
    engine: str = "llama.cpp",
    additional_properties: bool = False,
    token_references: bool | None = None,
    max_calls: int | None = None,
    call_within: int | None = None,
    thinking_tokens: int | None = None,
    answer_tokens: int | None = None,
    whitespace: int | None = None,
    max_size: int = MAX_SIZE,
    max_work: int = MAX_WORK,
    spent: bool = False,
    call_next: bool = False,
    anew: bool = True,
) -> Grammar | None:
    """The grammar of a turn; None if the request constrains nothing.

    ``engine``: who reads GBNF, ``llama.cpp`` or ``xgrammar``; the two spell a token reference differently. For xgrammar
    it may name the oldest version that must read the grammar, a structural tag too: ``xgrammar>=0.2.4``; without one it
    is written for 0.2.6 and later. ``additional_properties``: also generate members that an object's schema does not
    mention, as JSON Schema says (by default they are not generated). ``token_references``: write each marker that is
    one token of the turn's tokenizer by its id. None: yes if the turn has a tokenizer. With False, feed the stream
    text, or ids with ``token_text_fallback=True``. ``max_calls``: the most calls; None: as the turn says, else 16 where
    calls are required, and any number in other turns. ``call_within``: how many tokens of text may come before the
    first call; after so many, only a call or the end of the turn may come. The engine counts them, from the end of the
    turn's prefix on. None: as the turn says. ``thinking_tokens``, ``answer_tokens``: how many tokens a thought and the
    text of the answer may take, each without its markers and from the end of the prefix on; after so many, the thought
    must be closed, or only calls or the end of the turn may come. The engine counts each run by itself, so with a limit
    only one thought or one text is generated, the text before the calls. Calls are not counted. ``whitespace``: how
    many characters of white space may stand between two tokens of JSON. None: one space, or a line's end and up to 64
    spaces (20 for xgrammar). ``max_size``: how many characters the grammar may have; ``max_work``: how many steps the
    schemas may take. Past either, the rest of the schemas is written as any value, and ``weakened`` says so.

    Three options are for guides: with ``spent``, no thought may begin after the turn's prefix; the result is None if
    none may anyway. With ``call_next``, a call comes next, in a turn in which text may. Without ``anew``, a prefix that
    the format would not write is an error, though the parser reads on after it.

    Raises `RequestError` for an unknown dialect or engine, for ``max_calls`` under 1, where dialect or format cannot
    count tokens, for ``answer_tokens`` of a shaped answer, for ``token_references=True`` without a tokenizer, or for a
    user's grammar that cannot be read; `SchemaError` for an invalid schema, or if the grammar is larger than
    ``max_size`` even so. Warns (`UserWarning`) of Lark that has a marker as text though it is one token of the turn's
    tokenizer.
    """
    if dialect not in DIALECTS:
        raise RequestError(
            f"dialect: expected one of {', '.join(DIALECTS)}, found {dialect!r}: {did_you_mean(str(dialect), DIALECTS)}"
        )
    check_limit("whitespace", whitespace, least=0)
    target = target_of(dialect, engine, additional_properties, whitespace)
    ids: Mapping[str, int] = getattr(turn, "marker_ids", None) or {}
    by_text: Collection[str] = ()
    if token_references is False:
        by_text, ids = ids, {}
    elif token_references and not ids:
        raise RequestError(
            "token_references: expected a turn whose tokenizer has markers as single tokens, found none: "
            "bind(tokenizer=…), or leave token_references out"
        )
    if ids and not target.ids:
        raise RequestError(
            f"engine: expected an xgrammar that reads references to tokens (0.1.34 or later), found {engine!r}: give "
            "token_references=False, and feed the stream text"
        )
    check_limit("max_calls", max_calls)
    request = Request(
        turn, ids, max_calls, call_within, spent, call_next, anew, thinking_tokens, answer_tokens
    )
    check_call_within(turn, request.call_within)
    check_limit("thinking_tokens", thinking_tokens, least=0)
    check_limit("answer_tokens", answer_tokens, least=0)
    limits = {
        "call_within": request.call_within,
        "thinking_tokens": thinking_tokens,
        "answer_tokens": answer_tokens,
    }
    counted = next((name for name, limit in limits.items() if limit is not None), "")
    if counted and not target.tokens:
        raise RequestError(
            f"{counted}: expected a dialect whose engine counts tokens, found {dialect} for {engine!r}: give "
            f'"lark", "structural_tag" for xgrammar 0.2.6 or later, or {_COUNTS[counted]}'
        )
    if answer_tokens is not None and request.shaped:
        raise RequestError(
            "answer_tokens: expected an answer of free text, found response_format: the tokens of a shaped answer "
            "cannot be counted, so limit it by its schema"
        )
    key = _key(request, turn, (dialect, target, max_size, max_work, anew))
    if key is not None:
        known = _CACHE.get(key)
        if known is not None:
            return _warned(known[1], by_text)
    found = _fitted(request, dialect, target, ids, Budget(max_size, max_work))
    if key is not None:
        # The tree is kept for as long as its identity is in the key.
        size = (
            _KEY
            + sum(map(getsizeof, key))
            + (0 if found is None else getsizeof(found.text) + 200 * len(found.weakened))
        )
        _CACHE.add(key, (request.tree, found), size)
    return _warned(found, by_text)


def _fitted(
    request: Request, dialect: str, target: Target, ids: Mapping[str, int], most: Budget
) -> Grammar | None:
    """The grammar of a request, or the first of weaker ones that is within ``most`` and that the engine bears; it says
    in ``weakened`` what it leaves out. Raises `SchemaError` if none is."""
    writes = load_reference(f"{__name__}.dialects.{dialect}:write_{dialect}")  # one dialect is seldom all
    found, too_large = None, False
    sizes = [most.size, most.size // 2, most.size // 8, -1]  # the size of a grammar is only estimated
    fewer = list(_FEWER_MEMBERS if dialect == "lark" else ())
    cost, limit, before = _LITTLE, "max_size", ""
    while sizes:
        reading = read(request, Output(budget=Budget(sizes[0], most.work, limit), target=target))
        if reading is None:
            break
        try:
            text = writes(reading.root, reading.rules, ids, target)
        except TooLarge:  # an automaton of a text that the schemas only made part of
            too_large = True
            sizes.pop(0)
            continue
        root = "start" if dialect == "lark" else "root"
        by_id = tuple(marker for marker, id in ids.items() if _written(id, text))
        found = Grammar(
            text, dialect, reading.lazy, reading.triggers, reading.weakened, root, by_id, reading.reasoning
        )
        if text != before:
            weighed = dialect == "lark" and len(text) > _LIGHT
            cost = cost_of(text, MOST_ROWS) if weighed else _LITTLE
        before, fewer = text, fewer if text != before else []
        if cost.rows > MOST_ROWS and fewer:
            target = replace(target, most_members=fewer.pop(0))
        elif cost.rows > MOST_ROWS and sizes[0] >= 0:
            sizes, limit = [-1], "the longest row that llguidance takes"
        elif len(text) > most.size:
            sizes.pop(0)
        elif (cost.fuel > MOST_FUEL or cost.symbols > MOST_SYMBOLS) and sizes[0] >= 0:
            sizes = [min(size, len(text) // 2) for size in sizes[1:]]
            fuel = cost.fuel > MOST_FUEL
            limit = (
                "the work that llguidance gives its lexer" if fuel else "the symbols that llguidance takes"
            )
        else:
            break
    if found is not None and cost.rows > MOST_ROWS:
        raise SchemaError(
            f"the grammar takes about {cost.rows:,} items in one row, and llguidance takes {MOST_ROWS:,}: give fewer "
            'tools, or dialect "structural_tag" for xgrammar',
            "$",
        )
    if found is None and too_large:
        raise SchemaError(
            "the automata of the schemas' texts take too many states: give simpler patterns", "$"
        )
    if found is not None and len(found.text) > most.size:
        raise SchemaError(
            f"the grammar has {len(found.text):,} characters, more than max_size={most.size:,}: give fewer tools or "
            "smaller schemas, or allow more",
            "$",
        )
    return found


def _warned(grammar: Grammar | None, by_text: Collection[str]) -> Grammar | None:
    """The grammar; warns if it is Lark and has one of the markers ``by_text``."""
    if by_text and grammar is not None and grammar.dialect == "lark":
        text = grammar.text.replace("\\", "")  # in a regular expression it is escaped
        found = [marker for marker in by_text if marker in text]
        if found:
            warn_user(
                f"the grammar has {', '.join(map(repr, found))} as text, and the tokenizer has it as one token: "
                "llguidance may not take a special token for its text, so a call may never begin. Leave "
                "token_references out, and feed the stream ids"
            )
    return grammar


def _written(id: int, text: str) -> bool:
    """Whether a grammar has a reference to a token, in any engine's form."""
    return f"<[{id}]>" in text or f"Token({id})" in text


_COUNTS = {
    "call_within": "use turn.guide(call_within=…)",
    "thinking_tokens": "use turn.guide(thinking_tokens=…)",
    "answer_tokens": "limit the answer in the engine's own settings",
}
"""What counts in a grammar's place."""
_LIGHT, _LITTLE = 12_000, Cost(0, 0, 0, 0, 0)
"""A grammar of so many characters has no long row: what it costs need not be known."""
_FEWER_MEMBERS = (100, 20)
"""The members of one object that keep their orders, where those before make a row too long."""
_KEY = 2_000
"""About the bytes of a key without its texts, and of a grammar without its own."""


def _key(request: Request, turn: Any, options: Hashable) -> tuple[Hashable, ...] | None:
    """A key of the request's content, because every request brings new tool objects; None if the tools are not plain
    JSON."""
    if request.options.schema is not None:
        return None
    try:
        tools = marshal.dumps(list(turn.tools.raw), 2)
        given = marshal.dumps(dict(turn.response_format or {}), 2)
    except ValueError:
        return None
    ids = tuple(request.marker_ids.items())
    limits = (request.max_calls, request.call_within, request.call_spaces)
    counted = (request.thinking_tokens, request.answer_tokens)
    asked = (
        request.options,
        request.reasoning,
        limits,
        turn.named,
        request.spent,
        request.call_next,
        counted,
    )
    return (id(request.tree), asked, request.prefix, tools, given, ids, options)
