"""`Body` and `Think`, what authors write of a turn, as rules (core/flow.py).

    begin    <- opener thinking / entry                 a rule for each part before the body
    entry    <- opener thinking / first
    first    <- calls that only begin a turn again / top
    top      <- over / end over / opener thinking / section again / what mends add / plain / text
    text     <- a part without its opener top / inner
    inner    <- a marker within calls top / any
    any      <- character plain
    plain    <- run top
    fenced   <- line end top / text                     after a fence that was text
    broken   <- scan                                    the text of a broken call
    scan     <- run (what ends it lost / character scan)
    lost     <- again
    again    <- gap resume                              after a call
    closed   <- gap resume                              after a marker that a mend reads
    resume   <- opener thinking / top
    thinking <- run (closer entry / end top / character thinking)

`strict` gathers what the format writes; each mend adds its options (`mends/`); `written` makes the rules.

An opener of reasoning counts at the start and after a thought or a call. Elsewhere it is text, unless it is a special
token that no text can spell.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..core import flow as f
from ..core.machine import instructions as m
from ..core.tree import children, first, head, once, tokens
from . import nodes as n
from .mends import REWRITES
from .nodes import Node, Span
from .openers import counted, counts_in, openers
from .outline import Answer, Turn, marker, parted, section, unmistakable, up_to
from .recovery import read_over
from .roles import roles


def lower(
    tree: Node,
    stops: tuple[str, ...],
    answers: bool,
    inline: bool,
    mends: Collection[str],
    loose: Node | None = None,
    special: frozenset[str] = frozenset(),
) -> Node:
    """The rules of the parser's reading. ``answers``: the content is JSON; ``inline``: reasoning is content;
    ``mends``: the names of the leniencies; ``loose``: calls that may be the whole answer; ``special``: the tokens that
    no text can spell. A tree that does not end in a body is read as it is."""
    body = tree.items[-1] if isinstance(tree, n.Sequence) and tree.items else tree
    if not isinstance(body, n.Body):
        return tree
    turn = strict(tree, body, stops, answers, inline, loose)
    for name, rewrite in REWRITES.items():
        if name in mends:
            rewrite(turn)
    return written(turn, special)


def strict(
    tree: Node, body: n.Body, stops: tuple[str, ...], answers: bool, inline: bool, loose: Node | None
) -> Turn:
    """The turn as the format writes it."""
    items = tree.items if isinstance(tree, n.Sequence) else (tree,)
    thought = next((node for node in once(tree) if isinstance(node, n.Think)), None)
    table = roles(tree, stops)
    closing = tuple(text for text, role in table.items() if role == "closer")
    inner = tuple(text for text, role in table.items() if role == "inner")
    declared, bare = thought is not None, isinstance(tree, n.Body)
    turn = Turn(body, bare, stops, inner, closing, thought, declared, inline, answers, loose)
    turn.before = list(items[:-1])
    if body.unclosed:
        reasoning, content = (span and _led(body.lead, span) for span in (body.reasoning, body.content))
        turn.body = body = replace(body, reasoning=reasoning, content=content)
    lead = part_of(body.lead)
    turn.exits = [parted(head(span.open))[0] for span in body.spans]
    inside = turn.exits
    if body.calls is not None:
        turn.calls = counted(body.calls)
        inside = [head(n.Sequence.of(lead, counted(body.calls, answer=True))), *turn.exits]
        turn.exits = [head(n.Sequence.of(lead, turn.calls)), *turn.exits]
    written = body.start if body.calls is None else body.calls
    turn.openers = (openers(written) if written is not None else None) or ()
    turn.starts = tuple(
        dict.fromkeys([*(t for part in turn.exits for t in first(part)), *turn.opens_thought])
    )
    turn.ends = [n.Literal(stop) for stop in stops]
    turn.found = dict.fromkeys((*turn.starts, *stops))
    if body.start is not None:
        turn.begin.append(section(counted(body.start)))
    if turn.calls is not None:
        turn.sections.append(n.Sequence((lead, f.Shared(turn.calls))))
    exits = [*turn.exits, *turn.ends]
    if body.reasoning is not None:
        region = m.CONTENT if inline else m.REASONING
        turn.sections.append(marked(turn, body.reasoning, region, exits, inline))
    if body.content is not None:
        turn.sections.append(marked(turn, body.content, m.CONTENT, [*inside, *turn.ends], False))
    if body.marks is not None:
        turn.marks.append(counted(body.marks, generated=False))
        turn.markup.append(body.marks)
        turn.looks_for(body.marks)
    turn.forms = [calls for calls in (turn.calls, *turn.marks) if calls is not None and [*counts_in(calls)]]
    return turn


def written(turn: Turn, special: frozenset[str] = frozenset()) -> Node:
    """The turn as rules."""
    body, texts = turn.body, turn.texts
    every = (*texts, *turn.answer_begins)
    blank = f.Blank()
    thought = turn.thought
    rules: dict[str, list[Node]] = {}
    around: list[Node] = []
    if thought is not None:
        around = [_opener(turn, thought)]
    rules["entry"] = [*around, n.Sequence((*turn.lead, f.Go("first")))]
    opened = n.Sequence((f.Unset(m.WITHOUT_OPENER), f.Go("top")))
    rules["first"] = [*turn.begin, opened]
    rules["top"] = [n.Sequence((f.Over(), f.Go("over"))), n.Sequence((f.Absent(every), f.Go("plain")))]
    rules["top"] += [n.Sequence((f.Markup(end), f.Go("over"))) for end in turn.ends]
    if thought is not None and turn.declared and unmistakable(tokens(thought.span.open), special):
        rules["top"] += around
    sections = [*turn.sections, *(f.Markup(mark) for mark in turn.marks)]
    if sections:
        rules["top"].append(section(n.Sequence((blank, n.Choice.of(*sections)))))
    rules["top"] += turn.strays
    if turn.closers or turn.inner:
        rules["top"] += [
            n.Sequence((f.If(m.OPENER_IN_PROSE), f.Go("text"))),
            n.Sequence((f.If(m.OPENER_IS_TEXT), f.Go("fenced"))),
            *turn.closers,
        ]
        over = n.Sequence((f.Emit(m.LINE, (1,)), f.Unset(m.OPENER_IS_TEXT), f.Go("top")))
        rules["fenced"] = [over, f.Go("text")]  # after a fence, its openers are forgotten
    rules["top"].append(f.Go("text"))
    marked = tuple(t for mark in turn.marks for t in first(mark) if t in tokens(mark))
    rules["text"] = [n.Sequence((f.Unopened((*turn.starts, *marked), "top"), f.Go("inner")))]
    rules["inner"] = [
        n.Sequence((f.If(m.OPENER_IS_TEXT), f.Go("any"))),
        n.Sequence((f.Unopened(turn.inner, "top"), f.Go("any"))),
    ]
    rules["any"] = _json(m.CONTENT, turn.answer_begins, "top")
    rules["any"].append(n.Sequence((f.One(m.CONTENT), f.Go("plain"))))
    rules["plain"] = [n.Sequence((f.Run(m.CONTENT, every), f.Go("top")))]
    ends = turn.broken_ends(_tokens_of_arguments(body))
    rules["broken"] = [n.Sequence((f.Mark(m.BROKEN_BEGIN), f.Go("scan")))]
    rules["scan"] = [read_over(m.CALL, ends, "scan", "lost")]
    rules["lost"] = [n.Sequence((f.Mark(m.BROKEN_END), f.Go("again")))]
    rules["again"] = [
        n.Sequence((f.Unset(m.OPENER_IS_TEXT | m.OPENER_IN_PROSE), f.Gap(True), f.Go("resume")))
    ]
    rules["closed"] = [n.Sequence((f.Gap(False), f.Go("resume")))]
    rules["resume"] = [*turn.after, *(around if turn.declared else []), opened]
    if thought is not None:
        rules["thinking"] = [_thinking(turn, thought)]
    rules["over"] = [f.Emit(m.AFTER)]
    begin = _before(turn)
    linked = tuple((name, n.Choice.of(*options)) for name, options in (begin | rules).items())
    return f.Turn(f.Rules(linked), texts, turn.stops, ends, turn.openers)


def _before(turn: Turn) -> dict[str, list[Node]]:
    """What stands before the body: other parts, and the reasoning at the start."""
    found: dict[str, list[Node]] = {}
    items = list(turn.before)
    for index, item in enumerate([*items, None]):
        name, next = f"begin{index}", f"begin{index + 1}"
        if item is None:
            found[name] = [n.Sequence((f.Gap(False), f.Go("entry")))]
        elif (think := _think(item)) is not None:
            found[name] = [f.Go("thinking")] if think.always else [_opener(turn, think), f.Go(next)]
        else:
            found[name] = [n.Sequence((item, f.Go(next)))]
    return found


def _think(node: Node) -> n.Think | None:
    while isinstance(node, n.Inner):
        if isinstance(node, n.Lenient):
            return None
        node = node.inner(False)
    return node if isinstance(node, n.Think) else None


def _opener(turn: Turn, think: n.Think) -> Node:
    texts = first(think.span.open)
    opener: Node = n.Sequence.of(n.Space(""), think.span.open)
    opener = marker(opener, turn.inline)
    here = f.Here(texts, texts if turn.declared else ())
    return n.Sequence((here, opener, f.Unset(m.WITHOUT_OPENER), f.Go("thinking")))


def _thinking(turn: Turn, think: n.Think) -> Node:
    span, inline = think.span, turn.inline
    region = m.CONTENT if inline else m.REASONING
    begins = first(turn.body.calls) if turn.body.calls is not None else ()
    opens = n.Many(span.open)
    after: tuple[Node, ...] = () if inline else (f.Gap(False),)
    scan = up_to(span, region, begins, turn.ends, turn.thinking, inline, "top", (*after, f.Go("entry")))
    lead = marker(opens, inline)
    return n.Sequence((f.Emit(m.CUT), f.Region(region), lead, scan))


def marked(turn: Turn, span: Span, region: int, exits: list[Node], inline: bool) -> Node:
    """Reasoning or content between markers."""
    opened, rest = parted(span.open)
    begins = turn.answer_begins if region == m.CONTENT else ()
    other = _json(region, begins, "text")
    scan = up_to(span, region, begins, exits, other, inline, "done", (f.Go("done"),))
    markers = (marker(opened, inline), f.Emit(m.CUT), f.Region(region), marker(rest, inline))
    return n.Sequence((*markers, scan))


def _json(region: int, begins: tuple[str, ...], loop: str) -> list[Node]:
    return [n.Sequence((f.Follows(begins), Answer(region), f.Go(loop)))] if begins else []


def part_of(lead: str) -> Node:
    return n.Choice.of(*(n.Literal(lead[start:]) for start in range(len(lead) + 1)))


def _led(lead: str, span: Span) -> Span:
    return replace(span, open=n.Sequence.of(part_of(lead), span.open))


def _tokens_of_arguments(tree: Node) -> set[str]:
    arguments = (n.EachArg, n.Args, n.Value)

    def below(node: Node) -> tuple[Node, ...]:
        return () if isinstance(node, (*arguments, n.Peek, n.Not)) else children(node)

    nodes = list(once(tree, below))
    inside = {text for node in nodes if isinstance(node, arguments) for text in tokens(node)}
    return inside.difference(*(node.names for node in nodes if isinstance(node, n.Token)))
