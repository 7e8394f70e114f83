"""The second reading of a format's tree: the strict grammar of what a model may write for one request.

Strategy: the tree is read for the whole turn, once per tool. Names become literals, arguments become the rules of their
schema, and only the strict half of `Lenient` is read. Then the text that the prompt has already written is taken off
the front (residual.py), so one reading serves reasoning that is open, closed or not begun. With ``tool_choice="auto"``
there are two forms of the same tree. The *lazy* form has only the calls, with the triggers that begin them, for engines
that switch a grammar on. In the *free* form text may come before and after, for dialects that can say so (`Free`).

White space beside the markers of reasoning is left to the model, because the templates of one format differ in it. The
text of reasoning holds no text that would end it. If the format's model calls tools out of reasoning, it does not hold
the beginning of a call either. The text of a value holds none of the stops that the parser knows. So the parser reads
every generated text as it was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.definition.idioms import Options
from ...core.definition.nodes import (
    AnyChar,
    Args,
    Atomic,
    Body,
    Calls,
    Choice,
    EachArg,
    EachTool,
    Header,
    JsonName,
    JsonText,
    JsonValue,
    Lenient,
    Literal,
    Many,
    Name,
    Node,
    Not,
    Peek,
    Rule,
    SameName,
    Sequence,
    Space,
    Span,
    Tag,
    Tagged,
    Think,
    Token,
    Until,
    Value,
    of_every_kind,
)
from ...core.definition.nodes import Chars as CharsNode
from ...core.definition.nodes import Ref as RefNode
from ...core.definition.tree import first, head, through, tokens, walk
from ...core.errors import DefinitionError, RequestError, SchemaError
from ...core.schema.document import Document
from ...core.schema.tools import ANY_ARGUMENT, ANY_TOOL, Argument, Tool, Toolset
from ...core.values import Json, Raw, Syntax
from ..budget import Budget
from ..ir import (
    ANY,
    EMPTY,
    NOTHING,
    SPACES,
    Blank,
    Chars,
    Free,
    Ir,
    Lang,
    Part,
    Ref,
    Rep,
    Seq,
    Shared,
    Text,
    TokenRef,
    alt,
    charset,
    literals,
    never,
    opt,
    seq,
    without,
)
from ..regular.automaton import nullable
from ..regular.regex import read_regex
from ..schemas import Equal, Output, SchemaCompiler, Weakened, Where, content
from ..syntaxes import RawText, syntax_of
from ..target import Target
from .residual import residual
from .triggers import (
    NO_TEXT,
    Trigger,
    beginning,
    distinct,
    holds,
    literal_heads,
    parsed_beginnings,
    split_heads,
    stretches,
    thoughts,
    words,
)

__all__ = ["Reading", "Request", "Trigger", "read"]


@dataclass(frozen=True, slots=True)
class Request:
    """The parts of a turn that the grammar needs."""

    tree: Node
    options: Options
    tools: Toolset
    named: str | None
    prefix: str
    response_format: Mapping[str, Any] | None
    stops: tuple[str, ...]
    marker_ids: Mapping[str, int]
    unread: Callable[[Tool], tuple[str, ...]] = lambda tool: ()
    """The tool's name, or the names of its arguments, if the parser would not read them back."""


@dataclass(slots=True)
class Reading:
    """A request's grammar, the same for all dialects."""

    root: Ir
    rules: dict[str, Ir]
    lazy: bool
    triggers: tuple[Trigger, ...]
    weakened: tuple[Weakened, ...]


_JSON = Json()


class _Reader:
    def __init__(self, request: Request, target: Target, budget: Budget) -> None:
        self.request = request
        self.output = Output(budget=budget, target=target)
        self.rules = self.output.rules
        self.literals: dict[str, Ir] = {}
        """What each literal text is read as."""
        self.equal = Equal(self.output)
        """The values of arguments that are written one by one."""
        self.equals: dict[Syntax, Equal] = {}
        """The values inside an object of arguments, by its syntax."""
        self.compilers: dict[tuple[int, Syntax], SchemaCompiler] = {}
        self.tools: tuple[Tool, ...] = ()
        if request.options.tools and request.options.mode != "none":
            tools = request.tools
            self.tools = (
                tools.all() if request.named is None else tuple(filter(None, (tools.get(request.named),)))
            )
        self.tool: Tool | None = None
        self.spelt: set[str] = set()
        """The tools whose name can be written in at least one place."""
        self.unreadable: dict[str, tuple[str, ...]] = {}
        """The names that the parser would not read back, of each tool."""
        self.calls_only = request.options.mode == "required"
        given = request.response_format
        self.other_answer = request.options.schema is not None or (
            given is not None and given.get("type") == "grammar"
        )
        """Whether the request says how an answer is written, so that the format's own answers are not generated."""
        self.allow_thought = request.options.thinking is not False
        self.free = False
        self.wheres: list[Where] = []
        """The schemas of the argument that is being written."""
        self.other_name: _OtherName | None = None
        """The name of the argument that is being written, if the schema does not list it."""
        self.defined: dict[str, Node] = {}
        self.names = _names_in_use(request)

    # nodes

    def node(self, node: Node) -> Ir:
        """The grammar of ``node``."""
        read = _READ.get(type(node))
        if read is None:
            raise DefinitionError(
                f"{type(node).__name__} has no grammar: use it in the lenient half of p.reads() alone"
            )
        return read(self, node)

    def literal(self, text: str) -> Ir:
        found = self.literals[text] = seq(*literals(text, self.request.marker_ids))
        return found

    def choice(self, node: Choice) -> Ir:
        options: Iterable[Node] = node.options
        if (self.calls_only or self.other_answer) and any(map(_calls, node.options)):
            options = filter(_calls, node.options)
        return alt(*map(self.node, options))

    def calls(self, node: Calls) -> Ir:
        item = self.node(node.item)
        if not node.parallel or never(item):
            return item
        item = item if isinstance(item, (Ref, Shared)) else Shared("call", item)
        return seq(item, Rep(seq(self.node(node.separator), item), 0, None))

    def rule(self, node: Rule | RefNode) -> Ir:
        name = f"{node.name}-{self.tool.name}" if self.tool else node.name
        if isinstance(node, Rule):
            self.defined[node.name] = node.node
        if name not in self.rules:
            if node.name not in self.defined:
                raise DefinitionError(f"no rule is named {node.name!r}")
            self.rules[name] = EMPTY
            self.rules[name] = self.node(self.defined[node.name])
        return Ref(name)

    # calls

    def each_tool(self, node: EachTool) -> Ir:
        options: list[Ir] = []
        for tool in self.tools:
            unread = self.unread(tool)
            if tool.name in unread or not self.ordinary(node, tool):
                continue
            outer, self.tool = self.tool, tool
            made = self.node(node.make(tool))
            self.tool = outer
            self.spelt.add(tool.name)
            if never(made):
                raise SchemaError(
                    f"no arguments are valid for the tool {tool.name!r}: it could never be called",
                    f"$.tools.{tool.name}.parameters",
                )
            options.append(made)
        return alt(*options)

    def ordinary(self, node: EachTool, tool: Tool) -> bool:
        """Whether the tool's name has only characters of names here, or has others wherever it is written."""
        places = [part for part in walk(self.request.tree, True) if isinstance(part, EachTool)]
        return _ordinary(node, tool) or not any(_ordinary(part, tool) for part in places if part is not node)

    def unread(self, tool: Tool) -> tuple[str, ...]:
        """The names of the tool that the parser would not read back."""
        found = self.unreadable.get(tool.name)
        if found is None:
            found = self.unreadable[tool.name] = self.request.unread(tool)
        return found

    def check_names(self) -> None:
        """Raises SchemaError for a tool that no call can name."""
        for tool in self.tools:
            if tool.name not in self.spelt:
                raise SchemaError(
                    f"the format cannot write the name of the tool {tool.name!r}, as its parser would not read it "
                    "back: use letters, digits, '_' and '-'",
                    f"$.tools.{tool.name}.name",
                )

    def each_arg(self, node: EachArg) -> Ir:
        tool = node.tool
        if tool is ANY_TOOL:
            raise DefinitionError("each_arg: make() must pass on the tool that it was given")
        form = _Arguments(self, node, tool)
        options = self.compiler(tool.document, _JSON).arguments(_wheres(tool), form)
        if not options and form.refused:
            raise SchemaError(
                f"no value is valid for the required argument {form.refused!r} of the tool {tool.name!r}",
                f"$.tools.{tool.name}.parameters.properties.{form.refused}",
            )
        return alt(*options)

    def args(self, node: Args) -> Ir:
        tool = node.tool
        if tool is ANY_TOOL:
            raise DefinitionError("args: make() must pass on the tool that it was given")
        for name in self.unread(tool):
            self.output.tell(
                _wheres(tool)[0][1], "properties", f"the parser would not read the name {name!r} back"
            )
        compiler = self.compiler(tool.document, node.syntax)
        return compiler.value(_wheres(tool))

    def argument_value(self, node: Value) -> Ir:
        argument = node.argument
        if argument is ANY_ARGUMENT or self.tool is None:
            raise DefinitionError("value: make() must pass on the argument that it was given")
        wheres = self.wheres
        if not wheres:
            path = f"$.tools.{self.tool.name}.parameters.properties.{argument.name}"
            wheres = [(argument.schema, path)]
        said = content(wheres[0][0]) if len(wheres) == 1 else None
        key = (node.syntax, argument.types, said)
        if said is not None:
            found = self.equal.get(key)
            if found is not None:
                return found
        made = self.equal.watch(key)
        if isinstance(node.syntax, Raw):
            raw = RawText(node.syntax, argument.types, tuple(self.request.marker_ids))
            value = self.compiler(argument.document, _JSON).raw(wheres, raw)
        else:
            value = self.compiler(argument.document, node.syntax).value(wheres)
        return value if said is None else made(value)

    def token(self, node: Token) -> Ir:
        return TokenRef(node.names[min(self.names, len(node.also))])

    def same_name(self, node: SameName) -> Ir:
        if self.other_name is not None:
            self.other_name.twice = True
            return NOTHING
        return Text(node.argument.name)

    def name(self, node: Name | JsonName | Header) -> Ir:
        if self.other_name is not None and isinstance(node, Name) and node.tag is Tag.ARG_NAME:
            return self.other_name.made(node.chars, "".join(char for char, _ in node.escapes))
        if node.generate is None:
            raise DefinitionError("name: make() must pass on the tool or argument that it was given")
        return self.node(node.generate)

    def whole(self, schema: Any, path: str) -> Ir:
        """A value in JSON whose schema is a document of its own."""
        return self.compiler(Document(schema), _JSON).value([(schema, path)])

    def compiler(self, document: Document, syntax: Syntax) -> SchemaCompiler:
        key = (id(document), syntax)
        found = self.compilers.get(key)
        if found is None:
            equal = self.equals.get(syntax)
            if equal is None:
                equal = self.equals[syntax] = Equal(self.output)
            found = self.compilers[key] = SchemaCompiler(
                document,
                syntax_of(syntax, tuple(self.request.marker_ids)),
                self.output,
                equal,
            )
        return found

    # the turn

    def think(self, node: Think) -> Ir:
        if not self.allow_thought:
            return EMPTY
        if node.span.close is None:
            raise DefinitionError("think: reasoning at the start of the turn needs a closer")
        stops = (
            *first(node.span.close),
            *self.drafts(),
            *self.request.stops,
        )
        opener, closer = self.node(node.span.open), self.node(node.span.close)
        before, after = _trimmed(opener)[0], _trimmed(closer)[1]
        core = _core(opener)
        opener = alt(self.joined(before, core), core) if before else core
        closer = seq(_core(closer), opt(Text(after)) if after else EMPTY)
        thought = seq(_text_until(*stops), closer)
        if node.always:
            return seq(opt(opener), thought)
        begun = any(text.strip() in self.request.prefix for text in first(node.span.open))
        return seq(opener, thought) if begun else opt(seq(opener, thought))  # a written opener is not content

    def joined(self, before: str, marker: Ir) -> Ir:
        """White space and the marker after it, in one piece unless the marker is a token: a lexer that takes the space
        alone for text does not go back."""
        if isinstance(marker, TokenRef) and marker.text not in self.request.marker_ids:
            return Text(before + marker.text)
        return seq(Text(before), marker)

    def drafts(self) -> tuple[str, ...]:
        """What a thought does not hold, because the parser reads calls in open reasoning with which the turn ends."""
        if self.request.options.mode != "auto":
            return ()
        bodies = (node for node in walk(self.request.tree, True) if isinstance(node, Body))
        return tuple(text for body in bodies if body.calls is not None for text in first(body.calls))

    def body(self, node: Body) -> Ir:
        if not self.tools and (self.other_answer or not self.request.options.tools):
            node = replace(node, calls=None, start=None)
        reasoning: Ir = EMPTY
        if node.reasoning is not None and self.allow_thought:
            reasoning = Rep(self.span(node, node.reasoning), 0, None)
        begin = _start(node)
        start = None if begin is None else self.node(begin)
        if (
            self.request.options.mode in ("auto", "none")  # with no tools, text that begins no call
            and self.free
            and self.answer(node) is None
            and (node.calls is not None or start is not None)
        ):
            return self.free_text(node, start)
        calls = [] if node.calls is None else [self.node(node.calls)]
        if calls and node.lead:
            calls = [seq(opt(Text(node.lead)), *calls)]
        if start is not None:
            calls.insert(0, start)
        answer = self.answer(node)
        if answer is not None:
            if not calls or self.calls_only:
                return seq(reasoning, alt(*calls) if calls else answer)
            return seq(reasoning, alt(answer, *calls))
        if not calls:
            return Lang()
        if node.reasoning is not None and node.reasoning.optional and reasoning is not EMPTY:
            open_ = self.stretch(node, node.reasoning, *self.request.stops)
            calls.append(seq(open_, alt(*calls)))
        return seq(reasoning, alt(*calls))

    def span(self, node: Body, span: Span) -> Ir:
        """A run of text with its markers. The text holds nothing that would end it for the parser."""
        if span.close is None:
            return seq(self.node(span.open), Lang())
        return seq(self.stretch(node, span, *self.request.stops), self.node(span.close))

    def stretch(self, node: Body, span: Span, *stops: str) -> Ir:
        """A run of text without its closer. The text holds none of ``stops`` either."""
        closers = () if span.close is None else first(span.close)
        return seq(self.node(span.open), _text_until(*closers, *_exits(node, span), *stops))

    def answer(self, node: Body) -> Ir | None:
        """The content, if the request constrains it."""
        given = self.request.response_format
        schema = self.request.options.schema
        if schema is not None:
            inner = self.whole(schema, "$.response_format")
            if never(inner):
                raise SchemaError("no value is valid", "$.response_format")
        elif given is not None and given.get("type") == "grammar":
            inner = self.user_grammar(given)
        else:
            return None
        if node.content is None:
            return inner
        close = EMPTY if node.content.close is None else opt(self.node(node.content.close))
        marked = seq(self.node(node.content.open), inner, close)
        return alt(inner, marked) if node.content.optional else marked

    def user_grammar(self, given: Mapping[str, Any]) -> Ir:
        from ..user import read_gbnf

        source = given.get("grammar")
        if not isinstance(source, str):
            raise RequestError(
                f"response_format.grammar: expected the text of a GBNF grammar, found {type(source).__name__}"
            )
        return read_gbnf(source).embed(self.rules)

    def free_text(self, node: Body, start: Ir | None) -> Ir:
        """Text and calls together, for dialects that have a form for this."""
        outer = node.calls
        while outer is not None and not isinstance(outer, Calls):
            outer = through(outer, True)
        item = node.calls if outer is None else outer.item  # the text between two calls is free as well
        calls = None if item is None else self.node(item)
        if calls is not None and never(calls):
            calls = None
        triggers = tuple(trigger.value for trigger in words(node, calls, {}, self.names))
        others = thoughts(self.request.tree)
        if node.calls is not None:
            others += first(node.calls)
        marks = None if node.marks is None or not _calls(node.marks) else node.marks
        if marks is not None:
            others += tokens(marks)
        others = tuple(text for text in dict.fromkeys(others) if not text.startswith(triggers))
        content = node.content
        if content is not None and (
            not content.optional
            # Its opener is not free text, because calls or reasoning begin like it.
            or any(
                stop in text
                for text in literal_heads(self.node(content.open))
                for stop in (*triggers, *others)
            )
        ):
            options = [part for part in (start, calls) if part is not None]
            return self.spans(
                node, content, options[:1] if len(options) > 1 and content.close is None else options
            )
        rest: Ir = (
            Lang(stops=others)
            if calls is None
            else Free(calls, triggers, self.request.options.parallel, others)
        )
        heads: list[tuple[Ir, Ir]] = []
        if start is not None and not all(head.startswith(triggers) for head in literal_heads(start)):
            heads = split_heads(start, stretches(node, "", self.names))
        stops = (*triggers, *others)
        written = (head for head in distinct(head for head, _ in heads) if not holds(head, stops))
        taken = [seq(SPACES, head, _ANYTHING) for head in written]
        anywhere = {} if marks is None else _beginnings(marks, stops)
        at_start = {} if node.start is None else _beginnings(node.start, stops)
        for before, ways in ((SPACES, at_start.keys() - anywhere.keys()), (_ANYTHING, anywhere.keys())):
            if ways:
                taken.append(seq(before, alt(*((at_start | anywhere)[way] for way in sorted(ways)))))
        if not taken:
            return rest
        plain = Lang(tuple(Part(part, False) for part in taken), stops=stops)
        begun = [seq(Shared("begin", head, True), after) for head, after in heads]
        return alt(*begun, plain) if calls is None else alt(*begun, plain, seq(plain, calls, rest))

    def spans(self, node: Body, span: Span, calls: list[Ir]) -> Ir:
        """A body in which every run of text has markers. The last run may lack its closer."""
        if span.close is None:
            return self.sections(span, calls)
        spans = [self.span(node, span)]
        if node.reasoning is not None and self.allow_thought:
            spans.insert(0, self.span(node, node.reasoning))
        last = opt(self.stretch(node, span))
        if self.request.options.parallel:
            return seq(Rep(alt(*spans, *calls), 0, None), last)
        text = Rep(alt(*spans), 0, None)
        return seq(text, opt(seq(alt(*calls), text)), last)

    def sections(self, span: Span, calls: list[Ir]) -> Ir:
        """Content and calls that end where the next one begins."""
        content = self.node(span.open)
        common = _common([*literal_heads(content), *(h for call in calls for h in literal_heads(call))])
        if not common:
            raise DefinitionError(
                "a span without a closer must begin like the calls, so that its end is seen"
            )
        rests = [residual(part, common) for part in (content, *calls)]
        text, ref = Lang(stops=(common,)), Ref("section")
        after = opt(seq(Text(common), ref)) if self.request.options.parallel else EMPTY
        self.rules["section"] = alt(
            seq(rests[0] or EMPTY, alt(seq(text, Text(common), ref), text)),
            *(seq(rest, after) for rest in rests[1:] if rest is not None),
        )
        return opt(seq(Text(common), ref))


def _names_in_use(request: Request) -> int:
    """Which of a token's names are in use: those that the prompt or the tokenizer has, else the first ones."""
    tokens = [node for node in walk(request.tree, True) if isinstance(node, Token) and node.also]
    for known in (request.prefix, request.marker_ids):
        for place in range(max((len(token.names) for token in tokens), default=0)):
            if any(token.names[place] in known for token in tokens if place < len(token.names)):
                return place
    return 0


def _start(body: Body) -> Node | None:
    """The calls that begin the turn, if they are generated in another way than the later ones."""
    start, calls = body.start, body.calls
    while isinstance(start, Lenient):
        start = start.strict
    while isinstance(calls, Lenient):
        calls = calls.strict
    return None if start is calls else body.start


def _text_until(*stops: str) -> Lang:
    """Text that holds none of these."""
    return Lang(stops=tuple(dict.fromkeys(stops)))


def _space(node: Space) -> Ir:
    return Blank() if node.free and not node.text.strip(" ") else Text(node.text)


_READ: Mapping[type[Node], Callable[[_Reader, Any], Ir]] = of_every_kind(
    "grammar/reading/read.py",
    {
        Literal: lambda reader, node: reader.literals.get(node.text) or reader.literal(node.text),
        Token: _Reader.token,
        Space: lambda reader, node: _space(node),
        AnyChar: lambda reader, node: Chars(ANY),
        CharsNode: lambda reader, node: Rep(Chars(_ranges(node.ranges)), node.least, node.most),
        Until: lambda reader, node: Lang(stops=node.stops),
        **dict.fromkeys(NO_TEXT, lambda reader, node: EMPTY),
        Sequence: lambda reader, node: seq(*map(reader.node, node.items)),
        Choice: _Reader.choice,
        Many: lambda reader, node: Rep(reader.node(node.node), node.least, node.most),
        Lenient: lambda reader, node: reader.node(node.strict),
        **dict.fromkeys((Tagged, Atomic), lambda reader, node: reader.node(node.node)),
        **dict.fromkeys((Name, JsonName, Header), _Reader.name),
        SameName: _Reader.same_name,
        Rule: _Reader.rule,
        RefNode: _Reader.rule,
        Calls: _Reader.calls,
        EachTool: _Reader.each_tool,
        EachArg: _Reader.each_arg,
        Args: _Reader.args,
        Value: _Reader.argument_value,
        JsonValue: lambda reader, node: reader.whole(True, "$"),
        JsonText: lambda reader, node: reader.whole(_STRING, "$"),
        Think: _Reader.think,
        Body: _Reader.body,
    },
    Peek,
    Not,
)
"""How each kind of node is read. What looks ahead has no grammar."""

_ANYTHING = Rep(Chars(ANY), 0, None)
_STRING: Mapping[str, Any] = {"type": "string"}
_OBJECT: Mapping[str, Any] = {"type": "object"}


def _wheres(tool: Tool) -> list[Where]:
    """The schemas of a tool's arguments, and that the arguments are an object."""
    path = f"$.tools.{tool.name}.parameters"
    parameters = tool.parameters
    if isinstance(parameters, Mapping) and parameters.get("type") == "object":
        return [(parameters, path)]
    return [(parameters, path), (_OBJECT, path)]


@dataclass(slots=True)
class _OtherName:
    """The name of an argument that the schema does not list: its constraints, and the node made of it."""

    parts: tuple[Part, ...]
    least: int
    most: int | None
    node: Lang | None = None
    twice: bool = False
    """Whether the name is written twice, which no grammar can say of any name."""

    def made(self, chars: str, escaped: str) -> Ir:
        ranges = read_regex(f"^{chars}$")
        assert isinstance(ranges, Chars)
        plain = Part(Rep(Chars(without(ranges.ranges, charset(escaped))), max(1, self.least), self.most))
        self.node = Lang((*self.parts, plain))
        return self.node

    def beside(self, whole: Ir) -> Ir:
        """The argument, with its name and the texts beside it joined to one piece, because some engines read the
        longest piece and do not go back."""
        items = list(whole.items) if isinstance(whole, Seq) else [whole]
        if self.node not in items:
            return whole
        at = items.index(self.node)
        before = items[at - 1] if at and isinstance(items[at - 1], Text) else EMPTY
        after = items[at + 1] if at + 1 < len(items) and isinstance(items[at + 1], Text) else EMPTY
        parts = tuple(Part(seq(before, part.node, after), part.positive) for part in self.node.parts)
        begin = at - (before is not EMPTY)
        behind = at + 1 + (after is not EMPTY)
        return Seq((*items[:begin], Lang(parts), *items[behind:]))


class _Arguments:
    """The members of a tool's arguments, as a format writes them one by one."""

    def __init__(self, reader: _Reader, node: EachArg, tool: Tool) -> None:
        self.reader = reader
        self.node = node
        self.tool = tool
        self.refused = ""
        """A required argument for which no value is valid."""
        self.separator = EMPTY if node.separator is None else reader.node(node.separator)

    def member(self, name: str, wheres: list[Where], required: bool, depth: int) -> Ir:
        if name in self.reader.unread(self.tool):
            why = f"the parser would not read the name {name!r} back: it is not generated"
            self.reader.output.tell(f"{wheres[0][1] if wheres else '$'}", "properties", why)
            self.refused = name if required else self.refused
            return NOTHING
        argument = self.tool.arguments.get(name)
        made = self.made(replace(self.tool.other, name=name) if argument is None else argument, wheres)
        if required and never(made):
            self.refused = name
        return made

    def other(
        self, parts: tuple[Part, ...], least: int, most: int | None, wheres: list[Where], depth: int
    ) -> Ir:
        name = self.reader.other_name = _OtherName(parts, least, most)
        made = self.made(self.tool.other, wheres)
        self.reader.other_name = None
        if name.node is not None and parts:
            named = self.reader.output.names(name.node, wheres[0][1])
            if never(named):
                return NOTHING
            if named is not name.node:
                return self.other((), least, most, wheres, depth)
        if name.twice and wheres:
            why = (
                "a name that the schema does not list cannot be written twice: such members are not generated"
            )
            self.reader.output.tell(wheres[0][1], "additionalProperties", why)
        return made if never(made) else name.beside(made)

    def made(self, argument: Argument, wheres: list[Where]) -> Ir:
        self.reader.wheres = wheres
        found = self.reader.node(self.node.make(argument))
        self.reader.wheres = []
        return found

    def whole(self, body: Ir) -> Ir:
        return body


def _ordinary(node: EachTool, tool: Tool) -> bool:
    names = (part for part in walk(node.any, True) if isinstance(part, Name) and part.tag is Tag.NAME)
    return all(re.fullmatch(f"(?:{name.chars})+", tool.name) is not None for name in names)


def _calls(node: Node) -> bool:
    """Whether a call is in ``node``'s strict reading."""
    return any(isinstance(found, EachTool) for found in walk(node, True))


def _ranges(text: str) -> Any:
    node = read_regex(f"^[{text}]$")
    assert isinstance(node, Chars)
    return node.ranges


# triggers


def _common(texts: list[str]) -> str:
    """The beginning that all texts share."""
    found = min(texts, default="")
    while not all(text.startswith(found) for text in texts):
        found = found[:-1]
    return found


def _beginnings(node: Node, stops: tuple[str, ...]) -> dict[str, Ir]:
    """The texts that the parser takes for the beginning of calls, without the white space before them. Those that hold
    one of ``stops`` are left out, because free text has none of these anyway."""
    while isinstance(node, Sequence) and node.items and isinstance(node.items[0], Space):
        node = Sequence.of(*node.items[1:])
    found = parsed_beginnings(head(node))
    return {way: begun for way, begun in found.items() if not nullable(begun) and not holds(begun, stops)}


def _trimmed(marker: Ir) -> tuple[str, str]:
    """The white space before and after a marker; templates of one format differ in it, and the parser takes
    any of it."""
    items = marker.items if isinstance(marker, Seq) else (marker,)
    first_text = items[0].text if items and isinstance(items[0], Text) else ""
    last_text = items[-1].text if items and isinstance(items[-1], Text) else ""
    return first_text[: len(first_text) - len(first_text.lstrip())], last_text[len(last_text.rstrip()) :]


def _core(marker: Ir) -> Ir:
    """A marker without the white space around it."""
    items = list(marker.items if isinstance(marker, Seq) else (marker,))
    if items and isinstance(items[0], Text):
        items[0] = Text(items[0].text.lstrip())
    if items and isinstance(items[-1], Text):
        items[-1] = Text(items[-1].text.rstrip())
    return seq(*items)


def _exits(body: Body, within: Span) -> tuple[str, ...]:
    """The markers that end a run of text in a body, because another run or a call begins: special tokens, and texts
    only for a part that begins without a token."""
    found: dict[str, None] = {}
    spans = (span.open for span in (body.reasoning, body.content) if span is not None and span is not within)
    for part in (*(() if body.calls is None else (body.calls,)), *spans):
        marked = set(tokens(part))
        texts = first(part)
        found.update(dict.fromkeys([text for text in texts if text in marked] or texts))
    return tuple(found)


def read(request: Request, target: Target | None = None, budget: Budget | None = None) -> Reading | None:
    """The grammar of a request, None if nothing is constrained.

    With mode auto, a dialect that has a form for it gets text and calls together (`Free`) instead of only the calls.
    ``budget`` is spent on the schemas. Raises `SchemaError`, `RequestError`, `DefinitionError`.
    """
    given = request.response_format
    user = given is not None and given.get("type") == "grammar"
    target = target or Target()
    calls = request.options.tools and (request.options.mode != "none" or target.free)
    if not calls and request.options.schema is None and not user:
        return None
    reader = _Reader(request, target, budget or Budget())
    body = next((node for node in walk(request.tree, True) if isinstance(node, Body)), None)
    if body is None:
        raise DefinitionError("a format's tree needs a body()")
    if body.calls is None and body.start is None and request.options.schema is None and not user:
        return None
    if (
        user is False
        and request.options.schema is None
        and request.options.mode == "auto"
        and not target.free
    ):
        return _lazy(reader, body)
    reader.free = target.free
    root = residual(reader.node(request.tree), request.prefix)
    if root is None:
        reader.allow_thought = True
        root = residual(reader.node(request.tree), request.prefix)
    if root is None:
        root = reader.body(body)
    reader.check_names()
    return Reading(root, reader.rules, False, (), tuple(reader.output.weakened))


def _lazy(reader: _Reader, body: Body) -> Reading | None:
    """The calls without text, and their triggers. If the prompt already wrote the beginning of a call, the rest of
    that call too."""
    request = reader.request
    calls = None if body.calls is None else reader.node(body.calls)
    begin = _start(body)
    start = None if begin is None else reader.node(begin)
    reader.check_names()
    if calls is not None and never(calls):
        calls = None
    options = [part for part in (start, calls) if part is not None]
    triggers: dict[Trigger, None] = {}

    others = stretches(body, request.prefix, reader.names)

    def at_start(node: Ir) -> None:
        triggers[Trigger("pattern", rf"^\s*({beginning(node, others)}[\s\S]*)")] = None

    if request.prefix:
        begun = residual(alt(*options), request.prefix)
        if begun is not None and begun is not EMPTY:
            options.insert(0, begun)
            at_start(begun)
    if start is not None:
        at_start(start)
    triggers.update(dict.fromkeys(words(body, calls, request.marker_ids, reader.names)))
    return Reading(alt(*options), reader.rules, True, tuple(triggers), tuple(reader.output.weakened))
