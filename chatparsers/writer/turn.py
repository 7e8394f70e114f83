"""The third reading of a tree: writes an assistant's message as the model would have written it.

The parser asks a tree what a text says. The grammar asks it for all texts. This module asks it for one text. The walk
follows the *generated* half of `Lenient` nodes. Where the grammar has the tools' names, ids and values, the walk writes
the message's. The format's parser reads the same message from the text: this is tested for every format, and it is
all that is promised. A message that the format has no place for raises `RequestError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..answers import nodes as n
from ..answers.features import Definition
from ..answers.nodes import Node, Span, Tag, of_every_kind
from ..core.tree import walk
from ..core.wrong import described
from ..errors import DefinitionError, RequestError
from ..schema.document import is_of
from ..schema.tools import Argument, Tool, Toolset
from ..values import Elements, Gemma, Json, Python, Raw, Syntax, of_every_syntax
from ..values.gemma import gemma_key

_SPACE = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()
_PYTHON = {"true": "True", "false": "False", "null": "None"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call to write. ``arguments`` is the text of a JSON object."""

    index: int
    id: str
    name: str
    arguments: str

    @property
    def members(self) -> list[tuple[str, str]]:
        """Names and values of the arguments, each value as the message spells it."""
        return list(_inside(self.arguments))


def write(format: Definition, tree: Node, message: Mapping[str, Any], tools: Toolset) -> str:
    """The turn that says ``message`` (OpenAI-shaped) in this format, without the text that ends a turn.

    ``tools`` type the arguments of formats that write them one by one. Raises `RequestError` if the format has no place
    for a part of the message, or if a call's arguments are not a JSON object.
    """
    calls = calls_of(message)
    content = message.get("content")
    reasoning = next(
        (message[k] for k in ("reasoning_content", "reasoning", "thinking") if message.get(k)), ""
    )
    writer = _Writer(format.name, str(content or ""), str(reasoning), calls, tools)
    text = writer.node(tree)
    for part, left in (("reasoning", writer.reasoning), ("content", writer.content), ("calls", writer.left)):
        if left:
            raise writer.refusal(part)
    return text


def fixed_text(node: Node) -> str | None:
    """The text that a part of the turn is written as, such as a closer; None if nothing says."""
    try:
        return _Writer("", "", "", (), Toolset()).node(node)
    except DefinitionError:
        return None


def calls_of(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """The calls of the message. Raises `RequestError` for one without a name, or whose arguments are no JSON object."""
    return tuple(
        _call(index, f"tool_calls[{index}]", call)
        for index, call in enumerate(message.get("tool_calls") or ())
    )


def _call(index: int, at: str, call: Any) -> Call:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise RequestError(f"{at}: expected an object with function.name, found {call!r:.60}")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False)
    arguments = arguments.strip() or "{}"
    try:
        found, why = json.loads(arguments), ""
    except (ValueError, RecursionError) as error:  # Python refuses long numbers too
        found, why = None, f": {error}"
    if not isinstance(found, dict):
        what = f"expected a JSON object, found {arguments!r:.60}{why}"
        raise RequestError(f"{at}.function.arguments: {what}")
    id = call.get("id")
    return Call(index, id if isinstance(id, str) else "", function["name"], arguments)


class _Writer:
    """Writes one message. Each written part is taken off ``reasoning``, ``content`` or ``left`` (the calls)."""

    def __init__(
        self, name: str, content: str, reasoning: str, calls: tuple[Call, ...], tools: Toolset
    ) -> None:
        self.name = name
        self.content = content
        self.reasoning = reasoning
        self.left = calls
        self.tools = tools
        self.call: Call | None = None
        self.value = ""  # of the argument that is being written; JSON

    def refusal(self, part: str) -> RequestError:
        return RequestError(
            f"the format {self.name!r} has no place for the {part} of this message: leave it out, "
            "or write it as content"
        )

    def node(self, node: Node) -> str:
        """The part of the message that ``node`` writes."""
        write = _WRITTEN.get(type(node))
        if write is None:
            raise DefinitionError(f"{type(node).__name__} is no kind of node: use what the builder makes")
        return write(self, node)

    def unwritable(self, node: Node) -> str:
        raise DefinitionError(
            f"the format {self.name!r} cannot write a message: nothing says what stands for {described(node)}; give it "
            "a text with p.reads(text, …)"
        )

    def json_text(self, node: n.JsonText) -> str:
        text, self.content = json.dumps(self.content, ensure_ascii=False), ""
        return text

    def arguments(self, node: n.Args) -> str:
        return value_text(node.syntax, self.call.arguments) if self.call else "{}"

    # the turn

    def thought(self, node: n.Think) -> str:
        if not (self.reasoning or node.always):
            return ""
        text, self.reasoning = self.reasoning, ""
        return self._span(node.span, text)

    def _span(self, span: Span, text: str) -> str:
        return self.node(span.open) + text + (self.node(span.close) if span.close is not None else "")

    def body(self, node: n.Body) -> str:
        out = ""
        if self.reasoning and node.reasoning is not None:
            text, self.reasoning = self.reasoning, ""
            out += self._span(node.reasoning, text)
        open = node.unclosed and bool(out)
        if self.content and node.content is not None:
            text, self.content = self.content, ""
            out += (node.lead if open else "") + self._span(node.content, text)
            open = node.unclosed
        elif self.content and not open:  # after text that nothing ends there is no place for it
            out, self.content = out + self.content, ""
            open = True
        section = node.start if node.start is not None and not out else node.calls
        if not self.left or section is None:
            return out
        return out + (node.lead if open and node.calls is not None else "") + self.node(section)

    # calls

    def several(self, node: n.Calls) -> str:
        most = len(self.left) if node.parallel else 1
        items = [self.node(node.item) for _ in range(most) if self.left]  # an item may take several
        return self.node(node.separator).join(items)

    def one(self, node: n.EachTool) -> str:
        if not self.left:
            return ""
        self.call, self.left = self.left[0], self.left[1:]
        tool = self.tools.get(self.call.name) or Tool(self.call.name)
        return self.node(node.call(tool))

    def each_argument(self, node: n.EachArg) -> str:
        if self.call is None:
            return ""
        known = node.tool.arguments
        items = []
        for key, value in self.call.members:
            self.value = value
            items.append(self.node(node.make(known.get(key) or Argument(key, _typed(value), False))))
        return (self.node(node.separator) if node.separator is not None else "").join(items)

    def captured(self, node: n.Name | n.JsonName | n.Header) -> str:
        is_id = not isinstance(node, n.Header) and node.tag is Tag.ID
        if is_id and self.call is not None and isinstance(node.generate, n.Chars):
            inside = re.compile(_class(node.generate)).fullmatch
            if self.call.id and inside(self.call.id):
                return self.call.id
        return self.node(node.generate) if node.generate is not None else ""

    def characters(self, node: n.Chars) -> str:
        """The fewest characters of the class that it allows. Digits give the number of the call, which counts from the
        first digit of the class."""
        index = self.call.index if self.call is not None else 0
        if node.ranges in ("0-9", "1-9"):
            return str(index + int(node.ranges[0])).rjust(node.least, "0")
        text = f"call{index:0{max(node.least - 4, 1)}d}"
        if re.fullmatch(_class(node), text):
            return text
        allowed = next((c for c in "a0 _-" + node.ranges if re.fullmatch(f"[{node.ranges}]", c)), "")
        return allowed * node.least

    # which of several is written

    def _chosen(self, node: n.Choice) -> Node:
        """The option that has a place for the next part of the message."""
        fitting = [option for option in node.options if self._fits(option)]
        return fitting[0] if fitting else node.options[0]

    def _fits(self, option: Node) -> bool:
        nodes = list(walk(option, generated=True))
        calls = any(isinstance(part, n.EachTool) for part in nodes)
        several = any(isinstance(part, n.Calls) for part in nodes)
        if calls and (not self.left or (len(self.left) > 1 and not several)):
            return False
        if any(isinstance(part, n.JsonText) for part in nodes) and not self.content:
            return False
        raws = [part.syntax for part in nodes if isinstance(part, n.Value) and isinstance(part.syntax, Raw)]
        return all(_may_be(raw, self.value) for raw in raws)

    def _times(self, node: n.Many) -> int:
        """How often a repetition is written: calls as often as any are left, all else as rarely as allowed."""
        if any(isinstance(part, n.EachTool) for part in walk(node.node, generated=True)):
            return min(len(self.left), len(self.left) if node.most is None else node.most)
        return node.least


_WRITTEN: Mapping[type[Node], Callable[[_Writer, Any], str]] = of_every_kind(
    "writer/turn.py",
    {
        **dict.fromkeys((n.Literal, n.Token, n.Space), lambda writer, node: node.text),
        # what no text stands for, and text that may be empty
        **dict.fromkeys(
            (n.Cut, n.Declared, n.End, n.Implied, n.LineStart, n.Not, n.Peek, n.Until),
            lambda writer, node: "",
        ),
        **dict.fromkeys((n.AnyChar, n.JsonValue, n.Ref), _Writer.unwritable),
        **dict.fromkeys((n.Rule, n.Tagged, n.Atomic), lambda writer, node: writer.node(node.node)),
        **dict.fromkeys((n.Name, n.JsonName, n.Header), _Writer.captured),
        n.Sequence: lambda writer, node: "".join(map(writer.node, node.items)),
        n.Inner: lambda writer, node: writer.node(node.inner(True)),
        n.Choice: lambda writer, node: writer.node(writer._chosen(node)),
        n.Many: lambda writer, node: "".join(writer.node(node.node) for _ in range(writer._times(node))),
        n.Chars: _Writer.characters,
        n.SameName: lambda writer, node: node.of.name,
        n.Think: _Writer.thought,
        n.Body: _Writer.body,
        n.Calls: _Writer.several,
        n.EachTool: _Writer.one,
        n.EachArg: _Writer.each_argument,
        n.Args: _Writer.arguments,
        n.Value: lambda writer, node: value_text(node.syntax, writer.value),
        n.JsonText: _Writer.json_text,
    },
)
"""How each kind of node is written."""


# values


def _class(node: n.Chars) -> str:
    most = "" if node.most is None else node.most
    return f"[{node.ranges}]{{{node.least},{most}}}"


def _inside(text: str) -> Iterator[tuple[str, str]]:
    """The members of a JSON object, or the items of an array with ``""`` for keys, each value as ``text`` spells it."""
    at, key = _after(text, 1), ""
    while text[at] not in "}]":
        if text[0] == "{":
            key, end = _decoder.raw_decode(text, at)
            at = _after(text, _after(text, end) + 1)
        _, end = _decoder.raw_decode(text, at)
        yield key, text[at:end]
        at = _after(text, end)
        at = _after(text, at + 1) if text[at] == "," else at


def _after(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _typed(value: str) -> Any:
    """A schema for an argument that its tool does not name. With it, the value keeps its own type."""
    return {"type": "string"} if value.startswith('"') else True


def _may_be(syntax: Raw, value: str) -> bool:
    """Whether the syntax may write this value, as far as its type and its characters decide it."""
    if not value:
        return True
    found = json.loads(value)
    if syntax.types is not None and not is_of(found, syntax.types):
        return False
    whole = re.compile(f"(?:{syntax.chars})*", re.DOTALL) if syntax.chars and isinstance(found, str) else None
    return whole is None or whole.fullmatch(found) is not None


def value_text(syntax: Syntax, value: str) -> str:
    """A value, given as JSON, as it is written in that syntax."""
    return _VALUES[type(syntax)](syntax, value)


def _raw(syntax: Raw, value: str) -> str:
    if value.startswith('"') and (syntax.types is None or "string" in syntax.types):
        escapes = dict(syntax.escapes)
        return "".join([escapes.get(char, char) for char in json.loads(value)])
    return _PYTHON.get(value, value) if syntax.python else value


def _elements(syntax: Elements, value: str) -> str:
    if not value.startswith(("{", "[")):
        return str(json.loads(value)) if value.startswith('"') else value
    prefix, is_object = syntax.prefix, value[0] == "{"
    named = [(key if is_object else syntax.item, item) for key, item in _inside(value)]
    return "".join(
        f"{prefix}<{key}>{_elements(syntax, item)}{prefix}</{key}>"
        for key, item in named
        if not (is_object and item == "null")
    )


def _nested(value: str, gap: str, key: Callable[[str], str], plain: Callable[[str], str]) -> str:
    """An object or a list in brackets: ``key`` spells a key, ``plain`` what is neither, ``gap`` comes after signs."""
    if not value.startswith(("{", "[")):
        return plain(value)
    inside = [(name, _nested(item, gap, key, plain)) for name, item in _inside(value)]
    if value[0] == "[":
        return "[" + f",{gap}".join(item for _, item in inside) + "]"
    return "{" + f",{gap}".join(f"{key(name)}:{gap}{item}" for name, item in inside) + "}"


def _python(syntax: Python, value: str) -> str:
    def plain(value: str) -> str:
        return _quoted(json.loads(value)) if value.startswith('"') else _PYTHON.get(value, value)

    return _nested(value, " ", _quoted, plain)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _gemma(syntax: Gemma, value: str) -> str:
    def plain(value: str) -> str:
        return syntax.quote + str(json.loads(value)) + syntax.quote if value.startswith('"') else value

    return _nested(value, "", lambda key: gemma_key(key, syntax.quote), plain)


_VALUES: Mapping[type[Syntax], Callable[[Any, str], str]] = of_every_syntax(
    "writer/turn.py",
    {
        Json: lambda syntax, value: value,
        Python: _python,
        Raw: _raw,
        Elements: _elements,
        Gemma: _gemma,
    },
)
"""How a JSON value is written in each value syntax."""
