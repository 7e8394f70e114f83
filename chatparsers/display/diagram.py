"""A format as a railroad diagram of what it generates; the package railroad-diagrams draws it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from ..core.definition import nodes as n
from ..core.definition.idioms import Options
from ..core.format import Format
from ..core.public import public
from .looks import for_html, for_terminal
from .picture import Picture

__all__ = ["Diagram", "diagram"]

_WIDE = 900
"""The width in pixels beyond which a row is broken into lines."""
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
    """The railroad diagram of a format: the SVG, and the same as one line of text."""

    name: str
    svg: str
    line: str

    def text(self, *, colour: bool = False) -> str:
        """What the format generates, as one production."""
        return f"{self.name} ← {for_terminal(self.line)}"

    def body(self) -> str:
        line = f"<details><summary>the same in one line</summary><div>{for_html(self.text())}</div></details>"
        return f'<div tabindex="0" role="region" aria-label="diagram" style="overflow-x:auto">{self.svg}</div>{line}'


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
    tree = format.tree(Options(tools=True))
    drawn = railroad.Diagram(_drawn(tree, railroad), css=_STYLE)
    out = io.StringIO()
    drawn.writeStandalone(out.write)
    return Diagram(format.name, out.getvalue(), tree.shown())


def _drawn(node: n.Node, draw: Any) -> Any:
    """The drawing of a node as it is generated."""
    if isinstance(node, n.Body):
        return _body(node, draw)
    if isinstance(node, n.Think):
        return _span(node.span, "reasoning", draw)
    if isinstance(node, n.Sequence):
        items = [each for item in node.items if (each := _drawn(item, draw)) is not None]
        return _row(items, draw)
    if isinstance(node, n.Choice):
        return draw.Choice(0, *(_drawn(each, draw) or draw.Skip() for each in node.options))
    if isinstance(node, n.Calls):
        item = _drawn(node.item, draw) or draw.Skip()
        return draw.OneOrMore(item, _drawn(node.separator, draw)) if node.parallel else item
    if isinstance(node, n.Many):
        item = _drawn(node.node, draw) or draw.Skip()
        return draw.OneOrMore(item) if node.least else draw.ZeroOrMore(item)
    if isinstance(node, n.EachArg):
        item = _drawn(node.any, draw) or draw.Skip()
        between = None if node.separator is None else _drawn(node.separator, draw)
        return draw.ZeroOrMore(item, between)
    if isinstance(node, (n.Token, n.Literal, n.Space)):
        return draw.Terminal(for_terminal(node.text)) if node.text else None
    inner = [each for part in node.parts(True) if (each := _drawn(part, draw)) is not None]
    if inner:
        return _row(inner, draw)
    shown = node.shown()
    return draw.NonTerminal(for_terminal(shown)) if shown and shown != '""' else None


def _row(items: list[Any], draw: Any) -> Any:
    """Items in a row; a long row is broken into lines."""
    if not items:
        return None
    if len(items) == 1:
        return items[0]
    lines: list[list[Any]] = [[]]
    for item in items:
        if lines[-1] and sum(each.width for each in (*lines[-1], item)) > _WIDE:
            lines.append([])
        lines[-1].append(item)
    if len(lines) == 1:
        return draw.Sequence(*items)
    return draw.Stack(*(draw.Sequence(*line) for line in lines))


def _span(span: n.Span, what: str, draw: Any) -> Any:
    parts = [_drawn(span.open, draw), draw.NonTerminal(what)]
    parts += [_drawn(span.close, draw)] if span.close is not None else []
    return draw.Optional(_row([part for part in parts if part is not None], draw))


def _body(body: n.Body, draw: Any) -> Any:
    parts = [_span(body.reasoning, "reasoning", draw)] if body.reasoning is not None else []
    parts.append(draw.Optional(draw.NonTerminal("content")))
    calls = getattr(body, "calls", None)
    if calls is not None:
        drawn = _drawn(calls, draw)
        parts += [draw.Optional(drawn)] if drawn is not None else []
    return _row(parts, draw)
