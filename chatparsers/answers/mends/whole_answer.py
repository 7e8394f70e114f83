"""```` ```json\n{"name": "get_weather", "arguments": {…}}\n``` ````: an answer that is nothing but calls as JSON, where
the format writes them in another way. Only if the request wants them read (``lenient_calls``)."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from ...core import flow as f
from ...core.machine import instructions as m
from ...core.machine.alphabet import HIDDEN
from ...core.machine.code import NEVER, WHITE
from ...lazy import load_reference
from ...schema.tools import Toolset
from .. import nodes as n
from ..nodes import Peek, Sequence, Space, as_node
from ..outline import JsonIf, Turn, section

_FITS = "chatparsers.grammar.schemas.judge:fits"
_UNSEEN = f.Emit(m.SPAN, (m.MARKUP, re.compile(f"[{WHITE}{HIDDEN}]*").match))
"""What may be around the calls: white space, and special tokens that mean nothing here. Qwen2.5-Coder writes
``<|im_start|>`` before a bare call, where its template has ``<tool_call>``."""
_WORD = n.Chars(r"\w:|-")
_GAP = Sequence.of(Space(""), n.Choice.of(",", ""), Space(""))
"""What models write between calls that stand together."""


def whole_answer(turn: Turn) -> None:
    """The answer is one fence, one pair of tags or bare JSON. What begins as the format's own sections is theirs.

    This tells a call from an example: the answer is nothing else, it names a tool of the request, and its arguments fit
    the tool's schema. So a look-ahead reads the answer to its end first, and all of it is held until then.
    """
    if turn.loose is None:
        return
    own = n.Choice.of(NEVER, *turn.exits)
    fence = Sequence.of("```", n.Chars(r"\w-", 0), Space("")), Sequence.of(Space(""), "```")
    tag = Sequence.of(n.Not(own), "<", _WORD, ">", Space("")), Sequence.of(Space(""), "</", _WORD, ">")
    bare = Sequence(()), Sequence(())
    end = Sequence.of(_UNSEEN, n.Choice.of(n.End(), *turn.ends))
    expected = "a call of a declared tool, with arguments that fit its schema"
    value = JsonIf(lambda machine: partial(_are_calls, machine.tools), expected)
    objects = Sequence.of(Peek(as_node("{")), value)
    values = Sequence.of(Peek(as_node("[")), value) | objects + n.Many(_GAP + objects)
    calls = f.Shared(turn.loose)
    ways = [
        Sequence.of(_UNSEEN, open, Peek(Sequence.of(values, close, end)), calls, close, _UNSEEN)
        for open, close in (fence, tag, bare)
    ]
    turn.begin.append(section(Sequence((f.Unset(m.WITHOUT_OPENER), n.Choice.of(*ways)))))


def _are_calls(tools: Toolset, found: Any) -> bool:
    calls = found if isinstance(found, list) else [found]
    return bool(calls) and all(_is_call(tools, call) for call in calls)


def _is_call(tools: Toolset, call: Any) -> bool:
    """Whether a value is ``{"name": …, "arguments": {…}}``, or OpenAI's wrapper around it, and fits."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return False
    tool = tools.get(call["name"])
    arguments = call.get("arguments", call.get("parameters"))
    return tool is not None and isinstance(arguments, dict) and bool(load_reference(_FITS)(tool, arguments))
