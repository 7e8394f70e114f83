"""Calls that are the whole answer, as JSON that the format does not write (``lenient_calls``).

Small models write ```` ```json {"name": …} ``` ```` although their template shows them tags. This tells such a call
from an example: the answer is nothing else, it names a tool of the request, and its arguments fit the tool's schema.
So a look-ahead reads the answer to its end first, and all of it is held until then.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from ..core.machine import instructions as m
from ..core.machine.alphabet import HIDDEN
from ..core.machine.code import WHITE, Code, Label, Place
from ..lazy import load_reference
from ..schema.tools import UNKNOWN, Toolset
from ..values import Json, Transcoder
from .idioms import Builder, Options
from .nodes import Chars, Choice, Node, Not, Peek, Sequence, Space, as_node

_FITS = "chatparsers.grammar.schemas.judge:fits"
_GAP = Sequence.of(Space(""), Choice.of(",", ""), Space(""))
"""What models write between calls that stand together."""
_unseen = re.compile(f"[{WHITE}{HIDDEN}]*").match
"""What may be around the calls: white space, and special tokens that mean nothing here. Qwen2.5-Coder writes
``<|im_start|>`` before a bare call, where its template has ``<tool_call>``."""


def whole_answer_calls(options: Options) -> Node | None:
    """The calls that a whole answer may be; None if the request wants none read."""
    if not options.lenient or options.mode == "none" or options.schema is not None:
        return None
    return Builder(options).json_calls()


def whole_answer(code: Code, calls: Node, own: Node, end: Node, at: Place) -> None:
    """Reads an answer which is one fence, one pair of tags or bare JSON, and nothing else; fails before any of its
    ``calls`` is certain. ``own``: how the format's own sections begin; what begins so is left to them. ``end``: what
    ends the turn."""
    fence = Sequence.of("```", Chars(r"\w-", 0), Space(""))
    tag = Sequence.of(Not(own), "<", Chars(r"\w:|-"), ">", Space(""))
    wrappers = (
        (fence, Sequence.of(Space(""), "```")),
        (tag, Sequence.of(Space(""), "</", Chars(r"\w:|-"), ">")),
        (Sequence(()), Sequence(())),
    )
    code.choice_of([partial(_wrapped, code, calls, end, at, *wrapper) for wrapper in wrappers])


def _wrapped(code: Code, calls: Node, end: Node, at: Place, open: Node, close: Node) -> None:
    whole = Label()
    code.emit(m.SPAN, at.markup, _unseen)
    code.node(open, at.markers)
    code.attempt(partial(_ahead, code, end, at, close), whole, m.BACK)
    code.emit(m.FAIL)
    code.place(whole)
    code.node(calls, at)
    code.node(close, at.markers)
    code.emit(m.SPAN, at.markup, _unseen)


def _ahead(code: Code, end: Node, at: Place, close: Node) -> None:
    read = Json().value(code.forms)

    def value(*before: Node) -> None:
        code.node(Sequence.of(*before), at.markers)
        code.emit(
            m.VALUE, m.MARKUP, lambda machine: lambda: _DeclaredCalls(machine.tools, read(UNKNOWN, "")), False
        )

    def objects() -> None:
        value(Peek(as_node("{")))
        code.any_number(partial(value, _GAP, Peek(as_node("{"))))

    code.choice_of([partial(value, Peek(as_node("["))), objects])
    code.node(close, at.markers)
    code.emit(m.SPAN, at.markup, _unseen)
    code.node(end, at.markers)


class _DeclaredCalls(Transcoder):
    """Reads a JSON value that is a call of a declared tool with arguments that fit, or a list of such calls. Any other
    value is an error."""

    __slots__ = ("read", "tools", "value")

    def __init__(self, tools: Toolset, value: Transcoder) -> None:
        super().__init__()
        self.tools = tools
        self.value = value
        self.read: list[str] = []

    def scan(self, text: str, start: int, final: bool) -> int:
        end = self.value.scan(text, start, final)
        self.read.append(self.value.out)
        self.error = self.value.error
        if self.value.done and not self.error:
            if _are_calls("".join(self.read), self.tools):
                self.done = True
            else:
                self.error = "a call of a declared tool, with arguments that fit its schema"
        return end


def _are_calls(text: str, tools: Toolset) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    calls = found if isinstance(found, list) else [found]
    return bool(calls) and all(_is_call(call, tools) for call in calls)


def _is_call(call: Any, tools: Toolset) -> bool:
    """Whether a value is ``{"name": …, "arguments": {…}}``, or OpenAI's wrapper around it, and fits."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return False
    tool = tools.get(call["name"])
    arguments = call.get("arguments", call.get("parameters"))
    return tool is not None and isinstance(arguments, dict) and bool(load_reference(_FITS)(tool, arguments))
