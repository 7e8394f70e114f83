"""The shapes that several formats share, made of primitives. A shape is here if three formats use it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ..core.builder import Primitives
from ..core.operands import KINDS, checked
from ..core.wrong import wrong
from ..errors import DefinitionError, author_line, did_you_mean
from ..schema.tools import ANY_ARGUMENT, ANY_TOOL, Argument, Tool
from ..values import Json, Raw, Syntax
from . import nodes as n
from .mends import NAMES
from .mends.any_order import any_order
from .nodes import Node, Nodelike, Span, Tag, as_node

KINDS |= {
    Span: ("a span", "make it with p.span(open, close)"),
    Syntax: ("a value syntax", "import Json, Raw, Python or Gemma from chatparsers.answers"),
    Tool: ("the tool that make() was given, or ANY_TOOL", "pass on what make(tool) was given"),
    Argument: ("the argument that make() was given, or ANY_ARGUMENT", "pass on what make(arg) was given"),
}

NAME_CHARS = r"""[^\s"'<>\[\](){}=,|｜]"""
"""The characters of a name in a header: any but white space, quotes, brackets and the bars of special tokens."""

_JSON = Json()
_Given = TypeVar("_Given", Tool, Argument)


def _made(method: str, make: Callable[[_Given], Nodelike], given: _Given) -> Node:
    """What an author's ``make`` returns for a tool or an argument, or for the placeholder of all."""
    shown = repr(given if given in (ANY_TOOL, ANY_ARGUMENT) else given.name)
    try:
        made = make(given)
    except DefinitionError:
        raise
    except Exception as error:  # an author's code may raise anything
        what = f"make({shown}) failed: {type(error).__name__}: {error}{author_line(error)}"
        raise DefinitionError(f"{method}: {what}; it is called with each tool and argument") from error
    if not isinstance(made, (Node, str)):
        found = f"{type(made).__name__}: {made!r:.60}"
        wrong(
            method, f"expected make({shown}) to return a node or a text, found {found}", "return what it made"
        )
    return as_node(made)


def escaped(name: str, escapes: tuple[tuple[str, str], ...]) -> str:
    """A name with its characters as the format spells them."""
    chars = dict(escapes)
    return "".join([chars.get(char, char) for char in name]) if chars else name


class Options(NamedTuple):
    """The parts of a request that shape the tree: whether it has tools (never which), and the caller's choices.

    ``mode``: ``auto``, ``required`` or ``none``. ``schema``: the JSON Schema of the answer (None: free text).
    ``thinking`` False: no thought is generated. ``lenient`` concerns the parser alone: an answer that is nothing but
    calls as JSON is read as calls.
    """

    tools: bool = False
    mode: str = "auto"
    parallel: bool = True
    thinking: bool | None = None
    schema: Any = None
    lenient: bool = False


def _name(
    tag: Tag, of: Tool | Argument, chars: str, escapes: Mapping[str, str] | None, parted: str = ""
) -> Node:
    pairs = tuple((escapes or {}).items())
    generate = None if of in (ANY_TOOL, ANY_ARGUMENT) else n.Literal(escaped(of.name, pairs))
    return n.Name(tag, chars, generate, pairs, parted)


def _any_id(generate: Node, place: str) -> Node:
    """What an id may be made of. Raises `DefinitionError` for a literal, which would be the id of every call."""
    if isinstance(generate, n.Literal):
        mend = 'give a set of characters, such as p.chars("a-z0-9", 9, 9)'
        raise DefinitionError(f"{place}: every call would have the id {generate.text!r}; {mend}")
    return generate


@checked
class Builder(Primitives):
    """Makes the tree of one format for one set of options.

    >>> def build(p):
    ...     call = p.each_tool(lambda tool: p.token("<call>") + p.name(tool) + " " + p.args(tool))
    ...     return p.body(p.calls(call + "</call>"))
    >>> format = chatparsers.Format("mine", "Mine", "", build)
    >>> message = format.parse('<call>get_weather {"city": "Oslo"}</call>', tools=tools)
    >>> message.tool_calls[0].arguments
    '{"city": "Oslo"}'
    """

    def __init__(self, options: Options, stops: tuple[str, ...] = (), mends: tuple[str, ...] = NAMES) -> None:
        self._options = options
        self.stops = stops
        self.mends = mends

    @property
    def options(self) -> Options:
        """The parts of the request that shape the tree."""
        return self._options

    def tag(self, tag: Tag, node: Nodelike) -> Node:
        """The node's text is of that kind and becomes events. ``tag<a>``

        ``Tag.CONTENT`` and ``Tag.REASONING`` are text; ``Tag.CALL`` is a whole call, as `each_tool` makes it. The parts
        of a call have methods of their own: `name`, `id`, `arg_name`.
        """
        return n.Tagged(tag, as_node(node))

    def implied(self, tag: Tag, value: str) -> Node:
        """Reads nothing and gives a name that the text does not spell. For parsing only, as `peek`. ``tag="value"``"""
        return n.Implied(tag, value)

    def if_tools(self, node: Nodelike, otherwise: Nodelike | None = None) -> Node | None:
        """The node if the request has tools, else ``otherwise``; for a part of `body`. ``node``"""
        chosen = node if self._options.tools else otherwise
        return None if chosen is None else as_node(chosen)

    # the turn

    def _marker(self, text: Nodelike) -> Node:
        """A marker with the white space that the template writes around it. ``"\\n</think>\\n\\n"`` is the token
        ``</think>``; at most that white space is stripped on each side."""
        if isinstance(text, Node):
            return text
        core = text.strip()
        if not core:
            raise DefinitionError(f"expected a marker, found {text!r}: give the text that is written there")
        before, _, after = text.partition(core)
        lead = self.reads(before, *(before[start:] for start in range(len(before) + 1))) if before else ""
        return n.Sequence.of(lead, n.Token(core), self.trim(after))

    def span(self, open: Nodelike, close: Nodelike | None, *, optional: bool = False) -> Span:
        """Text between two markers. ``open text close``

        ``close`` None: up to the opener of the next section or the end of the turn. ``optional``: the turn may end
        without ``close``.
        """
        return Span(self._marker(open), None if close is None else self._marker(close), optional)

    def think(
        self,
        open: Nodelike,
        close: Nodelike,
        *,
        always: bool = False,
        optional: bool = False,
    ) -> Node:
        """Reasoning at the start of the turn, between markers. ``(open+ reasoning close)?``

        ``always``: the model starts inside the reasoning without writing the opener. ``optional``: the turn may end
        without ``close``. Calls in open reasoning count if the turn ends with them.
        """
        span = self.span(open, close, optional=optional)
        return n.Tagged(Tag.THOUGHT, n.Think(span, always))

    def body(
        self,
        calls: Nodelike | None = None,
        *,
        start: Nodelike | None = None,
        reasoning: Span | None = None,
        content: Span | None = None,
        lead: str = "",
        marks: Nodelike | None = None,
        closers: Nodelike | None = None,
    ) -> Node:
        """Content and calls until the end of the turn. ``start? (calls / reasoning / content / marks / …)*``

        ``start``: calls that may be only at the beginning of the turn (bare JSON). ``reasoning``, ``content``: the
        spans of formats that mark them in the body. ``lead``: the white space that the template writes between
        content and calls, or between all sections where a span has no closer. ``marks``: other markup in running text,
        such as the end of a final answer. ``closers``: the ends of calls that are not open; they are markup too, unless
        an opener was read as text. Both are for parsing only.
        """
        if not self._options.tools:
            calls = start = closers = None
        parts = [None if part is None else as_node(part) for part in (calls, start, marks, closers)]
        return n.Body(parts[0], parts[1], reasoning, content, lead, parts[2], parts[3])

    # calls

    def calls(self, item: Nodelike, separator: Nodelike = "") -> Node:
        """One call, or several where parallel calls are allowed. ``item (separator item)*``"""
        return n.Calls(as_node(item), as_node(separator), self._options.parallel)

    def array(self, item: Nodelike, indent: str = "") -> Node:
        """Calls as a JSON array; ``indent`` is the white space that the template writes before each call.
        ``[item (, item)*]``

        The parser takes objects without a comma between them.
        """
        space = self.space()
        comma = space + "," + self.space(indent or " ")
        items = self.calls(item, self.reads(comma, comma, space + n.Peek(n.Literal("{"))))
        return "[" + self.space(indent) + items + self.space("\n" if indent else "") + "]"

    def each_tool(self, make: Callable[[Tool], Nodelike], **own: Callable[[Tool], Nodelike]) -> Node:
        """One call of any tool. ``make(tool₁) / make(tool₂) / …``

        ``own``: what makes the call of a tool of that name, where the family generates it in a way of its own.
        """

        def made(make: Callable[[Tool], Nodelike], tool: Tool) -> Node:
            return n.Tagged(Tag.CALL, _made("p.each_tool", make, tool))

        makers = {name: partial(made, one) for name, one in own.items()}
        return n.EachTool(partial(made, make), made(make, ANY_TOOL), tuple(makers.items()))

    def each_arg(
        self,
        tool: Tool,
        make: Callable[[Argument], Nodelike],
        separator: Nodelike | None = None,
        positional: Syntax | None = None,
    ) -> Node:
        """A call's arguments, each as ``make`` writes it. Commits. ``(make(arg₁) / make(arg₂) / …)*``

        The parser also takes all of them as one JSON object, where no argument begins with a brace. ``positional``: it
        also takes values in this syntax without names, before the others, in the order of the tool's properties.
        """

        def argument(arg: Argument) -> Node:
            return _made("p.each_arg", make, arg)

        between = None if separator is None else as_node(separator)
        return n.EachArg(tool, argument, argument(ANY_ARGUMENT), between, positional=positional)

    def name(
        self, tool: Tool, chars: str = NAME_CHARS, escapes: Mapping[str, str] | None = None, parted: str = ""
    ) -> Node:
        """The tool's name. ``name``

        ``escapes``: how the name spells some characters, such as ``{'"': "&quot;"}``, if the model's template does so.
        ``parted``: what stands in place of a `_` or a dot of a declared name, if models part it there.
        """
        return _name(Tag.NAME, tool, chars, escapes, parted)

    def json_name(self, tool: Tool) -> Node:
        """The tool's name as the inside of a JSON string. ``name``"""
        if tool is ANY_TOOL:
            return n.JsonName(Tag.NAME, None)
        return n.JsonName(Tag.NAME, n.Literal(json.dumps(tool.name, ensure_ascii=False)[1:-1]))

    def arg_name(
        self, arg: Argument, chars: str = NAME_CHARS, escapes: Mapping[str, str] | None = None
    ) -> Node:
        """The argument's name; ``escapes`` as in `name`. ``name``"""
        return _name(Tag.ARG_NAME, arg, chars, escapes)

    def same_name(self, of: Argument | Tool) -> Node:
        """A name once more: the argument's after its value, as in ``</city>``; the tool's where its call names it too.
        That of a tool is parsed only in a `header`: write ``p.reads(p.same_name(tool), …)``. ``name``"""
        return n.SameName(of)

    def id(self, generate: Nodelike, chars: str = NAME_CHARS) -> Node:
        """The call's id, kept as the model writes it. ``generate``: the characters that are generated. ``id``"""
        return n.Name(Tag.ID, chars, _any_id(as_node(generate), "p.id"))

    def header(
        self,
        parsed: Nodelike,
        generate: Nodelike,
        chars: str = NAME_CHARS,
        *,
        id: bool = False,
        unless: tuple[str, ...] = (),
    ) -> Node:
        """A header with more than the name. Parses a run of ``chars``, all of which ``parsed`` must match; generates
        ``generate``. ``header``

        ``parsed`` is a `choice` of ways, each made of texts, `chars`, `optional`, `choice`, `same_name` and one `name`,
        which is as short as it can be. ``id``: the whole header is the call's id. ``unless``: runs that are no header.
        """
        return n.Header(as_node(parsed), chars, as_node(generate), id, unless)

    def args(self, tool: Tool, syntax: Syntax = _JSON) -> Node:
        """All arguments as one object in a value syntax, streamed. Commits. ``object``"""
        return n.Args(tool, syntax)

    def declared(self, *, lacks: str = "") -> Node:
        """Succeeds without reading if the name just read is a tool of the request. For parsing only. ``lacks``: the
        tool must also have no argument of this name. ``&{declared}``"""
        return n.Declared(lacks)

    def value(self, arg: Argument, syntax: Syntax) -> Node:
        """One argument's value in a value syntax, streamed. Commits. ``value``"""
        return n.Value(arg, syntax)

    def code_call(self, name: str, arg: str, *, declared: bool = False) -> Node:
        """A call whose text is code up to the end of the turn, for interpreters that are called without a header. For
        parsing only. ``declared``: only if the request has a tool of that name. Text must follow. ``code``"""

        def code(argument: Argument) -> Node:
            value = n.Value(argument, Raw(until=self.stops, type="string", end=True))
            return n.Sequence.of(n.Implied(Tag.ARG_NAME, arg), value)

        arguments = n.EachArg(ANY_TOOL, code, code(ANY_ARGUMENT), most=1)
        named = n.Sequence.of(n.Implied(Tag.NAME, name), *([n.Declared()] if declared else []))
        begun = n.Peek(n.Sequence.of(n.Space(""), n.AnyChar()))
        return n.Tagged(Tag.CALL, n.Sequence.of(named, begun, arguments))

    # calls as JSON

    def json_text(self) -> Node:
        """A JSON string whose text is content. Parsing also takes any other value, unchanged. ``"…"``"""
        return n.JsonText()

    def member(self, *keys: str) -> Node:
        """A JSON object's key and colon, and the white space around the colon. Generates the first of ``keys``; parses
        any of them. ``"key" :``"""
        if not keys:
            raise DefinitionError('p.member: expected at least one key, found none; write p.member("name")')
        strict, *also = (n.Literal(json.dumps(key, ensure_ascii=False)) for key in keys)
        key = self.reads(strict, strict, *also) if also else strict
        return n.Sequence.of(key, n.Space("", True), ":", n.Space(" ", True))

    def json_call(
        self,
        *beside: str,
        wrapped: bool = True,
        id_pattern: Nodelike | None = None,
        closer: Nodelike | None = None,
        **keys: str,
    ) -> Node:
        """A call as a JSON object; ``keys`` name its members in the order of the wire: ``name="name",
        args="arguments", id="id"``. ``{"name": …, "arguments": …}``

        The parser takes the members in any order, other members beside them, and ``parameters`` for ``arguments`` or
        the reverse. With ``wrapped``, it also takes OpenAI's ``{"type": "function", "function": {…}}`` around the call.
        Arguments stream once the name is known. ``id_pattern``: generates an id. ``closer``: what follows the call; the
        parser also takes a call before it whose last brace is missing. ``beside``: the keys of members that the model
        writes and that say nothing, so that no diagnostic names them.
        """
        known = ("name", "args", "id")
        for part in keys:
            if part not in known:
                raise DefinitionError(f"p.json_call: there is no part {part!r}: {did_you_mean(part, known)}")
        for part in ("name", "args"):
            if part not in keys:
                raise DefinitionError(f'p.json_call: expected {part}="…", the key of its {part}, found none')
        if len({*keys.values()}) < len(keys):
            raise DefinitionError("p.json_call: two of its parts have the same key; give each its own")
        made = self.chars("a-zA-Z0-9", 9, 9) if id_pattern is None else as_node(id_pattern)
        id_chars = _any_id(made, "p.json_call: id_pattern")

        def call(tool: Tool) -> Node:
            name = n.Sequence.of('"', self.json_name(tool), '"')
            ids = n.Sequence.of('"', n.JsonName(Tag.ID, id_chars), '"')
            written = {"name": name, "args": n.Args(tool), "id": ids}
            comma = n.Sequence.of(",", n.Space(" ", True))
            members: list[Nodelike] = ["{", n.Space("", True)]
            for part, key in keys.items():
                members += [comma] if len(members) > 2 else []
                members += [self.member(key), written[part]]
            strict = n.Sequence.of(*members, n.Space("", True), "}")
            return strict if parsed is None else n.Lenient(strict, parsed)

        any_name = n.Sequence.of('"', self.json_name(ANY_TOOL), '"')
        parsed = (
            any_order(self, self.member, keys, any_name, wrapped, closer, beside)
            if "any_order" in self.mends
            else None
        )
        return self.each_tool(call)

    def json_calls(self) -> Node:
        """Calls as JSON, one after the other or in an array, where the format writes its calls in another way. For
        parsing only. ``{…}+ / [{…}, …]``"""
        call = self.json_call(name="name", args="arguments")
        return self.calls(call, self.space() + self.optional(",") + self.space()) | self.array(call)
