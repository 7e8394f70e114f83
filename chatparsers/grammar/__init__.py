"""Grammars for constrained decoding, from the same tree that the parser reads.

``write(turn, dialect)`` is the entry; `Grammar` is what it makes. Dialects: ``gbnf`` (llama.cpp, xgrammar), ``lark``
(llguidance), ``structural_tag`` (xgrammar, vLLM, SGLang).
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from ..core.errors import RequestError, SchemaError, did_you_mean
from .budget import MAX_SIZE, MAX_WORK, Budget
from .read import Reading, Request, Trigger, read
from .schemas import Weakened

__all__ = ["DIALECTS", "Grammar", "Trigger", "Weakened", "write"]

DIALECTS = ("gbnf", "lark", "structural_tag")


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar's text (``str()``) and how to use it.

    ``lazy``: it begins at a call, and ``triggers`` switch it on; until then the output is free. ``weakened``:
    the schema keywords that it does not hold the model to. ``root``: the name of its first rule.
    """

    text: str
    dialect: str
    lazy: bool = False
    triggers: tuple[Trigger, ...] = ()
    weakened: tuple[Weakened, ...] = ()
    root: str = "root"

    def __str__(self) -> str:
        return self.text


_CACHE: OrderedDict[Hashable, tuple[Any, Grammar | None]] = OrderedDict()
_CACHE_SIZE = 64
_LOCK = Lock()


def write(
    turn: Any,
    dialect: str = "gbnf",
    *,
    additional_properties: bool = False,
    token_references: bool = False,
    max_size: int = MAX_SIZE,
    max_work: int = MAX_WORK,
) -> Grammar | None:
    """The grammar of a turn; None where nothing is constrained.

    ``additional_properties``: members that an object's schema does not mention are generated, as JSON Schema
    has it (by default they are not). ``token_references``: GBNF with ``<[id]>`` for the markers that the
    turn's tokenizer has as one token (llama.cpp alone). ``max_size``: how many characters the grammar may have;
    ``max_work``: how many steps the schemas may take. Past either, what is left of the schemas is written as any
    value, which ``weakened`` says. Raises `RequestError` for an unknown dialect or a
    user's grammar that cannot be read, `SchemaError` for an invalid schema, or where the grammar is larger than
    ``max_size`` even so.
    """
    if dialect not in DIALECTS:
        raise RequestError(
            f"dialect: expected one of {', '.join(DIALECTS)}, found {dialect!r}: {did_you_mean(dialect, DIALECTS)}"
        )
    request = Request(
        turn.tree,
        turn.options,
        turn.tools,
        turn.named,
        turn.prefix,
        turn.response_format,
        tuple(turn.stops),
        getattr(turn, "marker_ids", None) or {},
    )
    key = _key(request, turn, (dialect, additional_properties, token_references, max_size, max_work))
    if key is not None:
        with _LOCK:
            if key in _CACHE:
                _CACHE.move_to_end(key)
                return _CACHE[key][1]
    reading = read(
        request,
        free=dialect != "gbnf",
        open_objects=additional_properties,
        counted=dialect == "lark",
        budget=Budget(max_size, max_work),
    )
    found = None
    if reading is not None:
        text = _WRITERS[dialect](reading, request, token_references)
        if len(text) > max_size:
            raise SchemaError(
                f"the grammar has {len(text):,} characters, more than max_size={max_size:,}: give fewer tools or "
                "smaller schemas, or allow more",
                "$",
            )
        root = "start" if dialect == "lark" else "root"
        found = Grammar(text, dialect, reading.lazy, reading.triggers, reading.weakened, root)
    if key is not None:
        with _LOCK:
            _CACHE[key] = (request.tree, found)
            if len(_CACHE) > _CACHE_SIZE:
                _CACHE.popitem(last=False)
    return found


def _key(request: Request, turn: Any, options: Hashable) -> Hashable | None:
    """By content, as every request brings its tools anew; None where the tools are not plain JSON."""
    if request.options.schema is not None:
        return None
    try:
        tools = marshal.dumps(list(request.tools.raw), 2)
        given = marshal.dumps(dict(request.response_format or {}), 2)
    except ValueError:
        return None
    ids = tuple(request.marker_ids.items())
    return (id(request.tree), request.options, tools, request.named, request.prefix, given, ids, options)


def _gbnf(reading: Reading, request: Request, token_references: bool) -> str:
    from .gbnf import write_gbnf

    return write_gbnf(reading.root, reading.rules, request.marker_ids if token_references else None)


def _lark(reading: Reading, request: Request, token_references: bool) -> str:
    from .lark import write_lark

    return write_lark(reading.root, reading.rules, request.marker_ids)


def _structural_tag(reading: Reading, request: Request, token_references: bool) -> str:
    from .structural_tag import write_structural_tag

    return write_structural_tag(reading.root, reading.rules)


_WRITERS: Mapping[str, Callable[[Reading, Request, bool], str]] = {
    "gbnf": _gbnf,
    "lark": _lark,
    "structural_tag": _structural_tag,
}
