"""The second reading of a format's tree: the strict grammar of what a model may write for one request.

Strategy: the tree is read for the whole turn, once per tool. Names become literals, arguments become the rules of their
schema, and only the strict half of `Lenient` is read. Then the text that the prompt has already written is taken off
the front (residual.py), so one reading serves reasoning that is open, closed or not begun. With ``tool_choice="auto"``
there are two forms of the same tree. The *lazy* form has only the calls, with the triggers that begin them, for engines
that switch a grammar on. In the *free* form text may come before and after, for dialects that can say so (`Free`).

Each node is read at a place (`At`), which says what is known on the way down to it. This module has the table of all
kinds. turn.py reads the turn, calls.py the calls, values.py the values.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...answers import nodes as n
from ...answers.features import reasoning_spans
from ...answers.nodes import Node, of_every_kind
from ...core.tree import children, first, nullable, once, walk
from ...errors import DefinitionError, RequestError
from .. import ir
from ..ir import ANY, EMPTY, GAP, Ir, alt, literals, never, opt, seq
from ..regular.regex import read_regex
from ..schemas import Output
from .calls import CallReader
from .narrow import without
from .place import At
from .request import Reading, Request
from .residual import residual, rest_of_call
from .triggers import NO_TEXT, Trigger, beginning, stretches, words
from .turn import THOUGHT, TurnReader, has_calls, start_of

__all__ = ["Reading", "Request", "Trigger", "read"]

_STRING: Mapping[str, Any] = {"type": "string"}


class Reader(CallReader, TurnReader):
    """Reads a tree for one request: each node by its row in the table, at its place."""

    def __init__(self, request: Request, output: Output) -> None:
        super().__init__(request, output)
        self.literals: dict[str, Ir] = {}
        """What each literal text is read as."""

    def read(self, node: Node, at: At) -> Ir:
        read = _READ.get(type(node))
        if read is None:
            raise DefinitionError(
                f"{type(node).__name__} has no grammar: use it in the lenient half of p.reads() alone"
            )
        return read(self, node, at)

    def literal(self, text: str) -> Ir:
        """A text, its markers as tokens."""
        found = self.literals[text] = seq(*literals(text, self.request.marker_ids))
        return found

    def choice(self, node: n.Choice, at: At) -> Ir:
        """One of several. If no free text is asked for, the calls among them."""
        options: Iterable[Node] = node.options
        if (self.request.calls_only or self.request.shaped) and any(map(has_calls, node.options)):
            options = filter(has_calls, node.options)
        return alt(*(self.read(option, at) for option in options))

    def list_of_calls(self, node: n.Calls, at: At) -> Ir:
        """One call, or several with what is between them."""
        item = self.read(node.item, at)
        if never(item):
            return item
        item = item if isinstance(item, (ir.Ref, ir.Shared)) else ir.Shared("call", item)
        most = self.request.max_calls
        if not node.parallel or most == 1:
            return item
        separator = self.read(node.separator, at)
        # A model that has written white space between calls must not be forced to write another call.
        end = opt(separator) if isinstance(separator, ir.Text) and separator.text.isspace() else EMPTY
        another = seq(separator, item)
        if another is item:
            another = ir.Seq((item,))  # GBNF counts sequences
        more = ir.Rep(another, 0, None if most is None else most - 1)
        return seq(item, more, end)

    def rule(self, node: n.Rule | n.Ref, at: At) -> Ir:
        """A rule of the format, which is another one in the call of each tool. No rule of a schema begins with a blank,
        which no dialect writes."""
        name = f" {node.name}-{at.tool.name}" if at.tool else f" {node.name}"
        if name not in self.rules:
            self.rules[name] = EMPTY
            self.rules[name] = self.read(node.node if isinstance(node, n.Rule) else self._named(node, at), at)
        return ir.Ref(name)

    def _named(self, node: n.Ref, at: At) -> Node:
        """The node of a rule, which may follow ``node``: in the same call, or outside of all."""
        trees = [tree for tree in (at.call, self.request.tree) if tree is not None]
        below = (below for tree in trees for below in once(tree, partial(children, generated=True)))
        return next(rule.node for rule in below if isinstance(rule, n.Rule) and rule.name == node.name)


def _space(node: n.Space) -> Ir:
    return ir.Blank() if node.free and not node.text.strip(" ") else ir.Text(node.text)


def _ranges(text: str) -> Any:
    node = read_regex(f"^[{text}]$")
    assert isinstance(node, ir.Chars)
    return node.ranges


_READ: Mapping[type[Node], Callable[[Reader, Any, At], Ir]] = of_every_kind(
    "grammar/reading/read.py",
    {
        n.Literal: lambda reader, node, at: reader.literals.get(node.text) or reader.literal(node.text),
        n.Token: lambda reader, node, at: ir.TokenRef(node.names[min(reader.spelling, len(node.also))]),
        n.Space: lambda reader, node, at: _space(node),
        n.AnyChar: lambda reader, node, at: ir.Chars(ANY),
        n.Chars: lambda reader, node, at: ir.Rep(ir.Chars(_ranges(node.ranges)), node.least, node.most),
        n.Until: lambda reader, node, at: ir.Lang(stops=node.stops),
        **dict.fromkeys(NO_TEXT, lambda reader, node, at: EMPTY),
        n.Sequence: lambda reader, node, at: seq(*(reader.read(item, at) for item in node.items)),
        n.Choice: Reader.choice,
        n.Many: lambda reader, node, at: ir.Rep(reader.read(node.node, at), node.least, node.most),
        n.Inner: lambda reader, node, at: reader.read(node.inner(True), at),
        **dict.fromkeys((n.Tagged, n.Atomic), lambda reader, node, at: reader.read(node.node, at)),
        **dict.fromkeys((n.Name, n.JsonName, n.Header), Reader.name),
        n.SameName: Reader.same_name,
        n.Rule: Reader.rule,
        n.Ref: Reader.rule,
        n.Calls: Reader.list_of_calls,
        n.EachTool: Reader.each_tool,
        n.EachArg: Reader.each_arg,
        n.Args: Reader.args,
        n.Value: Reader.value,
        n.JsonValue: lambda reader, node, at: reader.whole(True, "$"),
        n.JsonText: lambda reader, node, at: reader.whole(_STRING, "$"),
        n.Think: Reader.think,
        n.Body: Reader.body,
    },
    n.Peek,
    n.Not,
)
"""How each kind of node is read. What looks ahead has no grammar."""


def read(request: Request, output: Output | None = None) -> Reading | None:
    """The grammar of a request, None if nothing is constrained.

    With mode auto, a dialect that has a form for it gets text and calls together (`Free`) instead of only the calls.
    The budget of ``output`` is spent on the schemas. Raises `SchemaError`, `RequestError`, `DefinitionError`.
    """
    output = output or Output()
    calls = request.options.tools and (request.options.mode != "none" or output.target.free)
    body = next(node for node in walk(request.tree, True) if isinstance(node, n.Body))
    called = calls and (body.calls is not None or body.start is not None)
    if not called and not request.shaped and not request.spent and not request.counted:
        return None
    return _read(Reader(request, output), body)


def _read(reader: Reader, body: n.Body) -> Reading | None:
    request = reader.request
    at = At(thoughts=request.reasoning)
    if request.call_next:  # after text, so nothing comes that begins a turn
        after = replace(at, thoughts=at.thoughts and not request.spent)
        return _reading(reader, reader.body(replace(body, start=None), after), after)
    if not request.shaped and request.options.mode == "auto" and not reader.output.target.free:
        return _lazy(reader, body, at)
    root = residual(_turn(reader, at), request.prefix, reader.rules, request.marker_ids)
    if root is None:
        at = At(thoughts=True)
        root = residual(_turn(reader, at), request.prefix, reader.rules, request.marker_ids)
    asked = request.shaped or (request.options.tools and (body.calls is not None or body.start is not None))
    # A model that nothing constrained may have written anything; and a prompt, a header that calls go without.
    if root is None and (not asked or request.begins_anew()):
        root = reader.body(body, At(thoughts=False))
    if root is None:
        whole = _turn(reader, at)
        ends = [request.prefix[:end] for end in range(1, len(request.prefix) + 1)]
        raise _unwritten(request, bisect(ends, False, key=lambda t: residual(whole, t, reader.rules) is None))
    if request.spent:
        left = without(root, THOUGHT, reader.rules)
        if left is None and asked:
            return None  # the grammar with thoughts is as narrow
        root = root if left is None else left
    return _reading(reader, root, at)


def _unwritten(request: Request, place: int) -> RequestError:
    """The error of a prefix that the grammar of the turn cannot begin with: at ``place`` they part."""
    text = request.prefix
    found = repr(text[place : place + 40]) if place < len(text) else "a call that it does not write so"
    return RequestError(
        f"prefix: expected what the grammar may begin with, found {found} at character {place}, after "
        f"{text[max(0, place - 40) : place]!r}: let the prompt end before it, or sample without a grammar"
    )


def _reading(reader: Reader, root: Ir, at: At) -> Reading:
    reader.check_names()
    weakened = tuple(reader.output.weakened)
    return Reading(root, reader.rules, False, (), _reasons(at, reader.request), weakened)


def _reasons(at: At, request: Request) -> bool:
    """Whether a thought may come, or goes on: thoughts are generated, and the prompt has not closed one."""
    return at.thoughts and bool(reasoning_spans(request.tree)) and not _closed(request)


def _closed(request: Request) -> list[int]:
    """Where the closers of thoughts end in what the prompt has written."""
    spans = reasoning_spans(request.tree)
    closers = [text.strip() for span in spans if span.close is not None for text in first(span.close)]
    return [request.prefix.find(text) + len(text) for text in closers if text and text in request.prefix]


def _after_thought(request: Request) -> str:
    """What the prompt has written after its first thought."""
    return request.prefix[min(_closed(request), default=0) :]


def _turn(reader: Reader, at: At) -> Ir:
    """The grammar of the whole turn. White space with which a format begins each turn is left to the model, as the
    parser leaves it."""
    tree = reader.request.tree
    first, *rest = tree.items if isinstance(tree, n.Sequence) and tree.items else (tree,)
    begin = reader.read(first, at)
    if isinstance(begin, ir.Text) and begin.text.isspace() and nullable(first):
        begin = opt(begin) if reader.request.call_spaces is None else EMPTY
    return seq(begin, *(reader.read(item, at) for item in rest))


def _lazy(reader: Reader, body: n.Body, at: At) -> Reading | None:
    """The calls without text, and their triggers. If the prompt already wrote the beginning of a call, the rest of
    that call too."""
    request = reader.request
    calls = None if body.calls is None else reader.read(body.calls, at)
    begin = start_of(body)
    start = None if begin is None else reader.read(begin, at)
    reader.check_names()
    if calls is not None and never(calls):
        calls = None
    options = [part for part in (start, calls) if part is not None]
    triggers: dict[Trigger, None] = {}

    others = stretches(body, request.prefix, reader.spelling)

    def at_start(node: Ir, space: str = r"\s*") -> None:
        triggers[Trigger("pattern", rf"^{space}({beginning(node, others)}[\s\S]*)")] = None

    begins = words(request.tree, body, calls, request.marker_ids, reader.spelling)
    if request.prefix:
        begun = residual(alt(*options), request.prefix, reader.rules, request.marker_ids)
        if begun is None and calls is not None:  # the call begins after text
            texts = tuple(trigger.value for trigger in begins)
            begun = rest_of_call(ir.Free(calls, texts, None), _after_thought(request), reader.rules)
        if begun is None and request.in_call():
            raise _unwritten(request, len(request.prefix))
        if begun is not None and begun is not EMPTY:
            options.insert(0, begun)
            at_start(begun, "")  # white space may belong to an open value
    if start is not None:
        at_start(start)
    weakened = tuple(reader.output.weakened)
    triggers.update(dict.fromkeys(begins))
    return Reading(
        seq(alt(*options), GAP), reader.rules, True, tuple(triggers), _reasons(at, request), weakened
    )
