"""Texts of a format, drawn from its tree as the parser reads it: one way of each choice, some repetitions, some calls.

The grammar's texts are what a model should write. These are all that is read: every way of a `Lenient` node. What a
look-ahead asks is not obeyed. A text may miss the format at one node: a literal lacks its last character there, or a
repetition has one too few or too many.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Sequence
from functools import lru_cache

from ..answers import nodes as n
from ..answers.nodes import Node, Span, Tag
from ..core.tree import children, once
from ..writer.turn import value_text

Call = tuple[str, str]
"""The name of a tool, and its arguments as JSON."""

_TEXTS = ("It is sunny.", "Hm. Oslo", "One.\n\nTwo.", "a < b")
_CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " \n\té"


def can_be_missed(node: Node, more: bool) -> bool:
    """Whether a text can miss ``node``, by too many or by too few."""
    if isinstance(node, (n.Many, n.Chars)):
        return node.most is not None if more else node.least > 0
    return isinstance(node, (n.Literal, n.Token)) and not more


class Drawn:
    """Draws texts of ``tree``, with calls like ``calls``."""

    def __init__(self, tree: Node, calls: Sequence[Call], draw: random.Random) -> None:
        self.tree = tree
        self.calls = calls
        self.draw = draw
        self.rules = {node.name: node.node for node in once(tree) if isinstance(node, n.Rule)}
        self.call = calls[0]
        self.argument = ("", "null")
        self.missed: Node | None = None
        self.more = False
        self.misses = False
        """Whether the text misses the format."""

    def text(self, missed: Node | None = None, more: bool = False) -> str:
        """The next text. ``missed``: the node that it misses, if it comes to it; ``more``: by too many."""
        self.missed, self.more, self.misses = missed, more, False
        return self.node(self.tree)

    def node(self, node: Node | None) -> str:
        draw = self.draw
        if node is None:
            return ""
        if isinstance(node, (n.Literal, n.Token)):
            text = node.text if isinstance(node, n.Literal) else draw.choice(node.names)
            return text[:-1] if self.is_missed(node) else text
        if isinstance(node, n.Space):
            return draw.choice((node.text, node.text, "", " ", "\n"))
        if isinstance(node, n.Choice):
            return self.node(draw.choice(node.options))
        if isinstance(node, n.Many):
            return "".join(self.node(node.node) for _ in range(self.times(node, 2)))
        if isinstance(node, n.Chars):
            return "".join(draw.choices(_of_class(node.ranges), k=self.times(node, 3)))
        if isinstance(node, n.AnyChar):
            return draw.choice(_CHARACTERS)
        if isinstance(node, n.Until):
            return draw.choice(_TEXTS)
        if isinstance(node, (n.Peek, n.Not)):
            return ""
        if isinstance(node, n.Ref):
            return self.node(self.rules[node.name])
        if isinstance(node, n.Think):
            return self.span(node.span) if draw.random() < 0.7 else ""
        if isinstance(node, n.Body):
            return self.body(node)
        return self.of_call(node)

    def of_call(self, node: Node) -> str:
        """The text of a node that stands in calls, or of all below any other."""
        draw = self.draw
        if isinstance(node, n.Calls):
            count = draw.choice((1, 1, 2, 3))
            return self.node(node.separator).join(self.node(node.item) for _ in range(count))
        if isinstance(node, n.EachTool):
            self.call = draw.choice(self.calls)
            return self.node(node.any)
        if isinstance(node, n.Args):
            return value_text(node.syntax, self.call[1])
        if isinstance(node, n.EachArg):
            return self.arguments(node)
        if isinstance(node, n.Value):
            return value_text(node.syntax, self.argument[1])
        if isinstance(node, n.JsonValue):
            return draw.choice(('"x"', "1", "null", '{"a": [1]}'))
        if isinstance(node, n.JsonText):
            return json.dumps(draw.choice(_TEXTS))
        if isinstance(node, n.Header):
            if node.unless and draw.random() < 0.1:
                return draw.choice(node.unless)
            return self.node(draw.choice((node.parsed, node.generate)))
        if isinstance(node, n.SameName):
            return self.argument[0]
        if isinstance(node, (n.Name, n.JsonName)):
            if node.tag is Tag.ID:
                return self.node(node.generate) if draw.random() < 0.7 else "call_1"
            return self.call[0] if node.tag is Tag.NAME else self.argument[0]
        return "".join(map(self.node, children(node)))

    def arguments(self, node: n.EachArg) -> str:
        members = [(key, json.dumps(value)) for key, value in json.loads(self.call[1]).items()]
        found = []
        for self.argument in members:
            by_place = node.positional is not None and self.draw.random() < 0.3
            found.append(
                value_text(node.positional, self.argument[1])
                if by_place and node.positional is not None
                else self.node(node.any)
            )
        return self.node(node.separator).join(found)

    def is_missed(self, node: Node) -> bool:
        """Whether the text misses the format here: once."""
        missed = node is self.missed and not self.misses
        self.misses = self.misses or missed
        return missed

    def times(self, node: n.Many | n.Chars, more: int) -> int:
        """How often what ``node`` repeats comes: at most ``more`` often more than it must."""
        if self.is_missed(node):
            return (node.most or 0) + 1 if self.more else max(node.least - 1, 0)
        most = node.least + more if node.most is None else min(node.most, node.least + more)
        return self.draw.randint(node.least, most)

    def span(self, span: Span) -> str:
        close = self.node(span.close) if self.draw.random() < 0.9 else ""
        return self.node(span.open) + self.draw.choice(_TEXTS) + close

    def body(self, node: n.Body) -> str:
        found = [self.node(node.start)] if self.draw.random() < 0.3 else []
        for _ in range(self.draw.choice((1, 1, 2, 3))):
            spans = [self.span(span) for span in (node.reasoning, node.content) if span is not None]
            calls = [node.lead + self.node(node.calls)] if node.calls is not None else []
            others = [self.node(part) for part in (node.marks, node.closers) if part is not None]
            found.append(self.draw.choice([*spans, *calls, *calls, *others, self.draw.choice(_TEXTS)]))
        return "".join(found)


@lru_cache(maxsize=256)
def _of_class(ranges: str) -> str:
    """Characters of the class."""
    one = re.compile(f"[{ranges}]").match
    return "".join(filter(one, _CHARACTERS)) or "x"
