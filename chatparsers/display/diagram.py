"""A format as a railroad diagram of what it generates; the package railroad-diagrams draws it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..answers import nodes as n
from ..answers.format import Format
from ..answers.idioms import Options
from ..public import public
from .card import box
from .looks import for_html, for_terminal
from .picture import Picture

_WIDE = 400
"""The width in pixels beyond which parts are drawn one below the other."""
_TOOL = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_SPACES = re.compile(r"^ +| +$")
_GAP = 20
"""The width of the line between two parts, in pixels."""
_STYLE = """
svg.railroad-diagram { background: #fff; color: #000; }
svg.railroad-diagram path { stroke-width: 2; stroke: currentColor; fill: none; }
svg.railroad-diagram text { font: 13px ui-monospace, monospace; text-anchor: middle; }
svg.railroad-diagram text { fill: currentColor; white-space: pre; }
svg.railroad-diagram rect { stroke-width: 2; stroke: #0072b2; fill: #fff; }
svg.railroad-diagram g.terminal rect { stroke: #d55e00; }
@media (prefers-color-scheme: dark) {
  svg.railroad-diagram { background: #111; color: #eee; } svg.railroad-diagram rect { fill: #111; }
}
"""


@public
@dataclass(frozen=True, slots=True)
class Diagram(Picture):
    """The railroad diagram of a format: the SVG, and the same as one line of text. Its HTML also has the grammar."""

    name: str
    svg: str
    line: str
    format: Format = field(repr=False)

    def text(self, *, colour: bool = False) -> str:
        """What the format generates, as one production."""
        return f"{self.name} ← {for_terminal(self.line)}"

    def body(self) -> str:
        line = f"<details><summary>the same in one line</summary><div>{for_html(self.text())}</div></details>"
        drawn = f'<div class="scroll whole" tabindex="0" role="region" aria-label="diagram">{self.svg}</div>'
        return f"{drawn}{line}{self._grammar()}"

    def _grammar(self) -> str:
        """What a sampler gets of a request with one tool; nothing if the format writes no calls."""
        grammar = self.format.bind(tools=[_TOOL]).grammar() if self.format.features.tools else None
        heading = "its grammar (GBNF) for one tool, get_weather(city)"
        return box(heading, grammar.text, open=False) if grammar is not None else ""


def diagram(format: Format) -> Diagram:
    """The diagram of what a model writes in a format, calls and all.

    Raises ModuleNotFoundError without the package ``railroad-diagrams`` (the extra ``display``).
    """
    try:
        import railroad
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "diagrams need railroad-diagrams: pip install 'chatparsers[display]'", name="railroad"
        ) from error
    parts = _parts(format.tree(Options(tools=True)))
    drawn = railroad.Diagram(_one([_drawn(each, railroad) for each in parts], railroad))
    out = io.StringIO()
    drawn.writeStandalone(out.write, _STYLE)
    return Diagram(format.name, out.getvalue(), " ".join(map(_line, parts)), format)


class _Part(NamedTuple):
    """A part of what is generated: a ``text``, a ``token``, a ``word`` for what the model fills in, an ``optional``
    part, a ``choice``, or something that comes ``many`` times, with ``between`` before each further one."""

    kind: str
    text: str = ""
    inner: tuple[tuple[_Part, ...], ...] = ()
    between: tuple[_Part, ...] = ()


def _parts(node: n.Node) -> list[_Part]:
    """What a node generates. Texts that follow one another are one."""
    joined: list[_Part] = []
    for part in _each(node):
        if joined and part.kind == joined[-1].kind == "text":
            joined[-1] = _Part("text", joined[-1].text + part.text)
        elif part.text or part.inner:
            joined.append(part)
    return joined


def _each(node: n.Node) -> Iterator[_Part]:
    if isinstance(node, n.Body):
        if node.reasoning is not None:
            yield _span(node.reasoning, "reasoning")
        content = _span(node.content, "content") if node.content else _optional([_Part("word", "content")])
        start = tuple(_parts(node.start)) if node.start is not None else ()
        yield _Part("choice", "", ((content,), start)) if start else content
        yield _optional(_parts(node.calls) if node.calls is not None else [])
    elif isinstance(node, n.Think):
        yield _span(node.span, "reasoning")
    elif isinstance(node, n.Choice):
        yield _Part("choice", "", tuple(tuple(_parts(each)) for each in node.options))
    elif isinstance(node, n.Calls) and node.parallel:
        between = tuple(_parts(node.separator))
        yield _Part("many", "+", (tuple(_parts(node.item)),), between)
    elif isinstance(node, n.Many) and node.most == 1 and not node.least:
        yield _optional(_parts(node.node))
    elif isinstance(node, n.Many):
        yield _Part("many", "+" if node.least else "*", (tuple(_parts(node.node)),))
    elif isinstance(node, n.EachArg):
        between = () if node.separator is None else tuple(_parts(node.separator))
        yield _Part("many", "*", (tuple(_parts(node.any)),), between)
    elif isinstance(node, (n.Literal, n.Space)):
        yield _Part("text", node.text)
    elif isinstance(node, n.Token):
        yield _Part("token", node.text)
    elif isinstance(node, n.Chars):
        yield _Part("word", f"[{node.ranges}]")
    elif inner := node.parts(True):
        for each in inner:
            yield from _parts(each)
    elif isinstance(node, (n.Name, n.JsonName)):
        yield _Part("word", node.tag.value)
    elif word := _WORDS.get(type(node)):
        yield _Part("word", word)


_WORDS: dict[type[n.Node], str] = {
    n.Args: "arguments",
    n.Value: "value",
    n.SameName: "the same name",
    n.JsonValue: "JSON",
    n.JsonText: "JSON",
}


def _span(span: n.Span, what: str) -> _Part:
    parts = [*_parts(span.open), _Part("word", what)]
    return _optional(parts if span.close is None else [*parts, *_parts(span.close)])


def _optional(parts: list[_Part]) -> _Part:
    return _Part("optional", "", (tuple(parts),) if parts else ())


def _drawn(part: _Part, draw: Any) -> Any:
    """A part as an item of a railroad diagram."""
    inner = [_one([_drawn(each, draw) for each in some], draw) for some in part.inner]
    if part.kind == "word":
        return draw.NonTerminal(for_terminal(part.text))
    if part.kind == "optional":
        return _deep(draw.Optional(inner[0]), draw)
    if part.kind == "choice":
        return _deep(draw.Choice(0, *inner), draw)
    if part.kind == "many":
        between = _one([_drawn(each, draw) for each in part.between], draw) if part.between else None
        many = draw.OneOrMore(inner[0], between)
        return many if part.text == "+" else _deep(draw.Optional(many), draw)
    ends = _SPACES.sub(lambda found: "␣" * len(found[0]), part.text)  # they would not be seen there
    return draw.Terminal(for_terminal(ends))


def _deep(choice: Any, draw: Any) -> Any:
    """The choice with the room below it that its items take: the package forgets the rows of the last one."""
    usual, *below = choice.items[choice.default :]
    last, down = usual, 0
    for item in below:
        down += max(draw.AR * (2 if last is usual else 1), last.height + last.down + draw.VS + item.up)
        last = item
    choice.down = down + last.height + last.down - usual.height
    return choice


def _one(items: list[Any], draw: Any) -> Any:
    """The items as one: in a row, or in several rows that are not too long."""
    rows: list[list[Any]] = [[]]
    for item in items:
        if rows[-1] and sum(each.width + _GAP for each in [*rows[-1], item]) > _WIDE:
            rows.append([])
        rows[-1].append(item)
    made = [draw.Sequence(*row) for row in rows if row]
    return draw.Stack(*made) if len(made) > 1 else made[0] if made else draw.Skip()


def _line(part: _Part) -> str:
    """A part in the manner of a grammar: ``"text"``, ``word``, ``[optional]``, ``(one | another)``, ``(many)+``."""
    inner = " | ".join(" ".join(map(_line, some)) for some in part.inner)
    if part.kind == "optional":
        return f"[{inner}]"
    if part.kind == "choice":
        return f"({inner})"
    if part.kind == "many":
        between = " ".join(map(_line, part.between))
        return f"({inner}){part.text}" + (f" with {between} between" if between else "")
    if part.kind == "word":
        return part.text
    return f"'{part.text}'" if '"' in part.text else f'"{part.text}"'
