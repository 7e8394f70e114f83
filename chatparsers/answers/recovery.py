"""The calls of a list as rules (core/flow.py), and the rules that read over a call that went wrong.

    first  <- call more
    more   <- separator call more / end
    call   <- item end                           with a recovery point, which a cut arms
    broken <- over                               the text is part of the call; of one that is not closed, content
    over   <- run (next / what ends it lost / character over)
    next   <- what comes between call            a call that names a declared tool and begins as the format writes it
    lost   <- the loop of the turn

A turn reads over its calls in the same way (lower.py); its rules go on with the loop of the turn.
"""

from __future__ import annotations

from ..core import flow as f
from ..core.machine import instructions as m
from ..core.machine.code import BrokenEnds, Place
from ..core.tree import begins
from .mends.next_call import Next, next_call
from .nodes import Calls, Choice, Many, Node, Peek, Sequence, Space


def calls(node: Calls, at: Place, recovers: bool) -> Node:
    """The rules of one call or several. White space that separates calls may also come before what closes them.
    ``recovers``: after a broken call, the next one is still read (`next_call`)."""
    following = next_call(node.item, node.separator) if recovers else None
    item = node.item if following is None else _recovered(node.item, following, at.ends)
    call = f.Shared(item, (Many(Sequence.of(node.separator, node.item)), *at.after))
    texts = begins(node.separator, node.item)
    here = [f.Here(texts, texts)] if texts else []
    space = [node.separator] if at.after and isinstance(node.separator, Space) else []
    again = Sequence((*here, node.separator, call, f.Go("more")))
    more = Choice((again, Sequence((*space, f.Go("end")))))
    return f.Rules((("first", Sequence((call, f.Go("more")))), ("more", more)))


def _recovered(item: Node, following: Next, ends: BrokenEnds) -> Node:
    """One call, and after it, if it went wrong, the next one."""
    ahead = f.Markup(f.Shared(following.ahead))
    rules: dict[str, Node] = {"call": Sequence((f.Guarded(item, "broken", "unclosed"), f.Go("end")))}
    for name, region in (("broken", m.CALL), ("unclosed", m.CONTENT)):
        begin, end = ([f.Mark(mark)] if region == m.CALL else [] for mark in (m.BROKEN_BEGIN, m.BROKEN_END))
        found = Sequence((Peek(ahead), f.Go(f"next {name}")))
        over = read_over(region, ends, f"over {name}", f"lost {name}", following.texts, found)
        rules[name] = Sequence((*begin, f.Go(f"over {name}")))
        rules[f"over {name}"] = over
        rules[f"next {name}"] = Sequence((*end, ahead, f.Go("call")))
        rules[f"lost {name}"] = Sequence((*end, f.Emit(m.ABANDON)))
    return f.Rules(tuple(rules.items()))


def read_over(
    region: int, ends: BrokenEnds, over: str, lost: str, texts: tuple[str, ...] = (), *found: Node
) -> Node:
    """The rule ``over``: the text after a call that went wrong, until a text of ``ends`` comes, something begins, or
    the text ends; then ``lost`` goes on. ``found``: what is looked for besides, at ``texts``."""
    broken = ends.broken if region == m.CALL else ends.unclosed
    options = (
        *found,
        Sequence((f.Follows(broken), f.Go(lost))),
        Sequence((Peek(f.Markup(f.Shared(ends.begun))), f.Go(lost))),
        Sequence((f.One(region), f.Go(over))),
    )
    return Sequence((f.Run(region, (*texts, *ends.unclosed)), Choice(options)))
