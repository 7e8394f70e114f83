"""``<tool_call>{"name": "a", "arg</tool_call><tool_call>{"name": "b", …``: after a call that broke, the next one of the
list is still read, if it names a declared tool and begins as the format writes it."""

from __future__ import annotations

from typing import NamedTuple

from ...core.flow import Shared
from ...core.tree import begins, head, tokens
from ..nodes import Choice, Declared, Many, Node, Not, Peek, Sequence, Space, Token

_MOST_BETWEEN = 8
"""The most markers between a broken call and the next one. If no call follows, a run is read anew from each of them."""


class Next(NamedTuple):
    """How the parser finds the next call after a broken one: what comes before it, and looks at its beginning; and the
    texts at which to look."""

    ahead: Node
    texts: tuple[str, ...]


def next_call(item: Node, separator: Node) -> Next | None:
    """How the next call is found. If no text begins a call, as calls begin with their names, the parser looks at the
    texts that separate two calls; None if there are none either."""
    begin = Sequence.of(head(item, True), Declared())
    texts = begins(begin)
    between: Node = Sequence(())
    if not texts:
        line = ("\n",) if isinstance(separator, Space) and "\n" in separator.text else ()
        texts, between = begins(separator) or line, separator
    elif closers := [Token(text) for text in tokens(item)]:
        closer = Sequence.of(Not(begin), Choice.of(*closers), Space(""))
        between = Many(Shared(closer), 0, _MOST_BETWEEN)
    return Next(Sequence.of(between, Peek(begin)), texts) if texts else None
