"""The code that goes on after a call that broke: to the next call of its list, or back to the loop of the turn.

Strategy: a recovery point comes before each section of a turn, and before each call of a list. A cut arms it. After a
failure after the cut, the text is read as part of the broken call, or as content after a call that is not closed,
until something ends it (`BrokenEnds`). In a list, the next call counts only if it names a declared tool and begins as
the format writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..core.machine import instructions as m
from ..core.machine.code import BrokenEnds, Code, Label, Place
from ..core.tree import begins
from .mends.next_call import Next, next_call
from .nodes import Calls, Many, Peek, Sequence, Space


def calls(code: Code, node: Calls, at: Place, recovers: bool) -> None:
    """Reads one call or several. White space that separates calls may also come before what closes them. ``recovers``:
    after a broken call, the next one is still read (`next_call`)."""
    closed = at
    at = at._replace(after=(Many(Sequence.of(node.separator, node.item)), *at.after))
    item: Callable[[], None] = partial(code.node, node.item, at)
    following = next_call(node.item, node.separator) if recovers else None
    if following is not None:
        item = partial(_recovered, code, item, following, at)
    # A loop of `item separator`, so that the long code of a call is there once. Before each further call is a
    # choice point, which `COMMIT` drops; in its place stands a return address before the first: no way back.
    again, more, over = Label(), Label(), Label()
    code.emit(m.CALLSUB, again)
    code.place(again)
    item()
    code.emit(m.COMMIT, more)
    code.place(more)
    if texts := begins(node.separator, node.item):
        code.unless(texts, over, texts)
    code.emit(m.CHOICE, over)
    code.node(node.separator, at)
    code.emit(m.JUMP, again)
    code.place(over)
    if closed.after and isinstance(node.separator, Space):
        code.node(node.separator, closed)


def _recovered(code: Code, item: Callable[[], None], following: Next, at: Place) -> None:
    """Reads one call. If it breaks after its header, or is not closed, the parser still reads the next call of its
    kind. That call must name a declared tool and begin as the format writes it."""
    again, done = Label(), Label()
    broken, unclosed = Label(), Label()
    code.place(again)
    code.emit(m.RECOVER, broken, unclosed)
    item()
    code.emit(m.COMMIT, done)
    for entry, region in ((broken, m.CALL), (unclosed, m.CONTENT)):
        _read_over(code, entry, region, at.ends, following, again)
        code.emit(m.ABANDON)
    code.place(done)


def _read_over(
    code: Code, entry: Label, region: int, ends: BrokenEnds, following: Next, again: Label
) -> None:
    """Reads the text after a call that went wrong, until a text of ``ends`` comes, something begins, or the text ends.
    ``following``: what the next call is; ``again``: where to go if it comes."""
    over = Label()
    markers = Place(m.MARKUP, m.MARKUP, ends)

    def mark(item: int) -> None:
        if region == m.CALL:
            code.emit(m.MARK, item, None)

    code.place(entry)
    mark(m.BROKEN_BEGIN)
    scan = code.here()
    code.text(region, (*following.texts, *ends.unclosed))
    ahead = partial(code.subroutine, (id(following), markers), partial(_ahead, code, following, markers))
    found, absent = Label(), Label()
    code.attempt(ahead, found, m.BACK)  # the call is open until that is certain
    code.emit(m.JUMP, absent)
    code.place(found)
    mark(m.BROKEN_END)
    ahead()
    code.emit(m.JUMP, again)
    code.place(absent)
    code.follows(over, ends.broken if region == m.CALL else ends.unclosed, True)
    code.attempt(partial(code.called, ends.begun, markers), over, m.BACK)
    code.any_character(region)
    code.emit(m.JUMP, scan)
    code.place(over)
    mark(m.BROKEN_END)


def _ahead(code: Code, following: Next, at: Place) -> None:
    """Reads what is between a broken call and the next one, if that one comes then."""
    if following.most == 1:
        code.node(following.gap, at)
    else:
        code.up_to(following.most, partial(code.called, following.gap, at))
    code.node(Peek(following.begin), at)
