"""The shapes that several formats share, made of primitives. Only what three formats have in common lives here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .builder import Primitives
from .nodes import (
    Args,
    Body,
    Calls,
    Capture,
    Choice,
    Cut,
    Declared,
    EachArg,
    EachTool,
    Json,
    Known,
    Lenient,
    Literal,
    Node,
    Nodelike,
    Not,
    Sequence,
    Space,
    Span,
    Tag,
    Tagged,
    Think,
    Token,
    Value,
    as_node,
)
from .schema import Argument, Tool

__all__ = ["JSON_INSIDE", "NAME_CHARS", "Builder", "Options"]

NAME_CHARS = r"""[^\s"'<>\[\](){}=,|｜]"""
"""What a name in a header is made of: anything but white space, quotes, brackets and the bars of special tokens."""

JSON_INSIDE = r'(?:[^"\\\x00-\x1f]|\\.|\\\Z)'
"""One character of the inside of a JSON string, or an escape of which only the backslash is there yet."""


@dataclass(frozen=True, slots=True)
class Options:
    """What of a request shapes the tree: whether there are tools (never which), and the caller's choices.

    ``mode``: ``auto``, ``required`` or ``none``. ``schema``: the JSON Schema of the answer (`None`: free text).
    ``thinking`` False: no thought is generated.
    """

    tools: bool = False
    mode: str = "auto"
    parallel: bool = True
    thinking: bool | None = None
    schema: Any = None


class Builder(Primitives):
    """Makes the tree of one format for one set of options."""

    def __init__(self, options: Options, stops: tuple[str, ...] = ()) -> None:
        self.options = options
        self.stops = stops

    # the turn

    def marker(self, text: Nodelike) -> Node:
        """A marker with the white space that the template writes around it: ``"\\n</think>\\n\\n"`` is the token
        ``</think>``, stripping at most that white space on either side."""
        if isinstance(text, Node):
            return text
        core = text.strip()
        before, _, after = text.partition(core)
        lead = (
            self.lenient(before, *(before[start:] for start in range(1, len(before) + 1))) if before else ""
        )
        return Sequence.of(lead, Token(core), self.trim(after))

    def span(self, open: Nodelike, close: Nodelike | None, *, optional: bool = False) -> Span:
        """Text between two markers. ``open text close``

        ``close`` None: up to the next section or the end of the turn. ``optional``: nothing is wrong where the
        turn ends without ``close``.
        """
        return Span(self.marker(open), None if close is None else self.marker(close), optional)

    def think(
        self,
        open: Nodelike,
        close: Nodelike,
        *,
        always: bool = False,
        until: Node | None = None,
        optional: bool = False,
    ) -> Node:
        """Reasoning at the start of the turn, between markers. ``(open+ reasoning (close / &until))?``

        ``always``: the model starts inside it without writing the opener. ``until``: the call that ends it, for models
        known to call tools out of open reasoning. ``optional``: nothing is wrong where the turn ends without ``close``.
        """
        allowed = self.options.thinking is not False
        span = self.span(open, close, optional=optional)
        return Tagged(Tag.THOUGHT, Think(span, allowed, always, until if self.options.tools else None))

    def body(
        self,
        calls: Node | None = None,
        *,
        start: Node | None = None,
        reasoning: Span | None = None,
        content: Span | None = None,
        lead: str = "",
        marks: Node | None = None,
    ) -> Node:
        """Content and calls until the end of the turn. ``start? (calls / reasoning / content / marks / text)*``

        ``start``: calls that begin the turn or not at all (bare JSON). ``reasoning``, ``content``: the spans of
        formats that mark them in the body. ``lead``: the white space that the template writes between content
        and calls. ``marks``: what else in running text is markup, such as the end of a final answer; parsed
        alone.
        """
        tools = self.options.tools and self.options.mode != "none"
        return Body(
            calls if tools else None,
            start if tools else None,
            reasoning,
            content,
            lead,
            self.options.mode if tools else "none",
            self.options.schema,
            self.stops,
            marks,
        )

    # calls

    def calls(self, item: Node, separator: Nodelike = "") -> Node:
        """One call, or several where parallel calls are allowed. ``item (separator item)*``"""
        return Calls(item, as_node(separator), self.options.parallel)

    def array(self, item: Node, indent: str = "") -> Node:
        """Calls as a JSON array; ``indent`` is what the template writes before each. ``[item (, item)*]``"""
        space = self.space()
        items = self.calls(item, space + "," + self.space(indent or " "))
        return "[" + self.space(indent) + items + self.space("\n" if indent else "") + "]"

    def each_tool(self, make: Callable[[Tool | None], Nodelike]) -> Node:
        """One call of any tool. ``make(tool₁) / make(tool₂) / …``"""

        def call(tool: Tool | None) -> Node:
            return Tagged(Tag.CALL, as_node(make(tool)))

        return EachTool(call, call(None))

    def each_arg(
        self,
        tool: Tool | None,
        make: Callable[[Argument | None], Nodelike],
        separator: Nodelike | None = None,
    ) -> Node:
        """A call's arguments, each written by ``make``. ``(make(arg₁) / make(arg₂) / …)*``"""

        def argument(arg: Argument | None) -> Node:
            return as_node(make(arg))

        return EachArg(tool, argument, argument(None), None if separator is None else as_node(separator))

    def name(self, tool: Tool | None, chars: str = NAME_CHARS) -> Node:
        """The tool's name. ``name``"""
        return Capture(Tag.NAME, chars, Literal(tool.name if tool else ""))

    def json_name(self, tool: Tool | None) -> Node:
        """The tool's name as the inside of a JSON string. ``name``"""
        inside = json.dumps(tool.name, ensure_ascii=False)[1:-1] if tool else ""
        return Capture(Tag.NAME, JSON_INSIDE, Literal(inside), json=True)

    def arg_name(self, arg: Argument | None, chars: str = NAME_CHARS) -> Node:
        """The argument's name. ``name``"""
        return Capture(Tag.ARG_NAME, chars, Literal(arg.name if arg else ""))

    def id(self, generate: Node, chars: str = NAME_CHARS) -> Node:
        """The call's id, kept as the model writes it. ``id``"""
        return Capture(Tag.ID, chars, generate)

    def header(self, pattern: str, generate: Nodelike, chars: str = NAME_CHARS) -> Node:
        """A header of which a regular expression with the groups ``name`` and ``id`` takes the parts. ``header``"""
        return Capture(Tag.NAME, chars, as_node(generate), pattern)

    def args(self, tool: Tool | None, syntax: str = "json", *, quote: str = "") -> Node:
        """All arguments as one object, streamed; ends the call's header. ``quote``: the marker around strings
        in syntaxes that have one. ``object``"""
        return Args(tool, syntax, quote=quote)

    def declared(self) -> Node:
        """Nothing, where the name just read is a tool of the request; in the lenient half. ``&{declared}``"""
        return Declared()

    def value(
        self,
        arg: Argument | None,
        syntax: str = "raw",
        *,
        until: str | tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        string: bool | None = None,
        python: bool = False,
    ) -> Node:
        """An argument's value in a value syntax, up to ``until`` where it is raw text. ``value``

        White space at the start of ``until`` is stripped as far as it is there; ``also`` are stops of careless models.
        ``python``: the template writes what is no string as Python's ``str`` does (``True``, ``None``, ``{'a': 1}``).
        """
        stops = (until,) if isinstance(until, str) else until
        return Value(arg, syntax, stops, also, string, python=python)

    def code_call(self, name: str, arg: str) -> Node:
        """A call whose text is code up to the end of the turn, for interpreters that are called without a
        header; in the lenient half. ``code``"""

        def code(argument: Argument | None) -> Node:
            value = Value(argument, "raw", self.stops, string=True, ends=True)
            return Sequence.of(Known(Tag.ARG_NAME, arg), value)

        return Tagged(Tag.CALL, Sequence.of(Known(Tag.NAME, name), EachArg(None, code, code(None), most=1)))

    # calls as JSON

    def json_text(self) -> Node:
        """A JSON string whose text is content. ``"…"``"""
        return Json(content=True)

    def member(self, *keys: str) -> Node:
        """A JSON object's key and colon; the parser takes any of ``keys``, the first is generated. ``"key" :``"""
        strict, *also = (Literal(json.dumps(key, ensure_ascii=False)) for key in keys)
        key = self.lenient(strict, *also) if also else strict
        return Sequence.of(key, Space("", True), ":", Space(" ", True))

    def json_call(self, *, wrapped: bool = True, id_pattern: Node | None = None, **keys: str) -> Node:
        """A call as a JSON object; ``keys`` name its members in the order of the wire: ``name="name",
        args="arguments", id="id"``. ``{"name": …, "arguments": …}``

        The parser takes the members in any order, with others beside them, ``parameters`` for ``arguments`` and
        the reverse, and OpenAI's ``{"type": "function", "function": {…}}`` around it (``wrapped``). Arguments
        stream once the name is known. ``id_pattern``: what an id is made of.
        """
        id_chars = id_pattern if id_pattern is not None else self.chars("a-zA-Z0-9", 9, 9)

        def call(tool: Tool | None) -> Node:
            name = Sequence.of('"', self.json_name(tool), '"')
            ids = Sequence.of('"', Capture(Tag.ID, JSON_INSIDE, id_chars, json=True), '"')
            written = {"name": name, "args": Args(tool), "id": ids}
            comma = Sequence.of(",", Space(" ", True))
            members: list[Nodelike] = ["{", Space("", True)]
            for part, key in keys.items():
                members += [comma] if len(members) > 2 else []
                members += [self.member(key), written[part]]
            strict = Sequence.of(*members, Space("", True), "}")
            # The grammar, which asks for each tool, reads the strict half alone.
            return strict if tool is not None else Lenient(strict, self._any_order(keys, name, ids, wrapped))

        return self.each_tool(call)

    def _any_order(self, keys: dict[str, str], name: Node, ids: Node, wrapped: bool) -> Node:
        """The lenient reading of a JSON call: its members in any order, with others beside them."""
        named = self.member(*dict.fromkeys((keys["name"], "name"))) + name
        args_key = self.member(*dict.fromkeys((keys["args"], "arguments", "parameters")))
        known = Choice.of(named, args_key, self.member("function") + "{")
        other = Not(known) + ('"' + self.chars(r'^"\\') + '"' << ":" << Json())
        if "id" in keys:
            other = self.member(keys["id"]) + ids | other
        comma: Node = Space("") + "," + Space("")
        opening, closing = "{" + Space(""), Space("") + "}"
        before, after = self.many(other + comma), self.many(comma + other)
        named_first = named + comma + before + args_key + Args(None)
        args_first = args_key + Args(None, commit=False) + comma + before + named + Cut()
        bare = (
            opening + before + (named_first | args_first) + after + closing
            | opening + named + Declared() + closing
        )
        if not wrapped:
            return bare
        return bare | opening + before + self.member("function") + bare + after + closing
