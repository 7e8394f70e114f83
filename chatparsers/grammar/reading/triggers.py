"""How calls begin: the triggers of a lazy grammar, and the texts that tell a call from prose.

Strategy: a call begins with literals and special tokens. `opens` (core/nodes/first.py) tells them of the
tree, `literal_heads` of the grammar made of it. A trigger is the shortest beginning that no reasoning and no content of
the format shares. Calls that begin the turn with ordinary text, such as a bare JSON object, get a regular expression
instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product, takewhile
from typing import Any, NamedTuple

from ...answers import nodes as n
from ...answers.nodes import Node
from ...core.nodes.control import Look, Not
from ...core.nodes.first import Paths
from ...core.tree import nullable, once, opens, through, tokens, walk
from ...public import public
from .. import ir
from ..ir import ANY, ANYTHING, BLANKS, EMPTY, SPACES, Ir, alt, seq
from ..regular.regex import read_regex
from .residual import residual

NO_TEXT = (n.Cut, n.Implied, n.End, n.Declared, n.LineStart)
"""The nodes that generate nothing."""


@public
@dataclass(frozen=True, slots=True)
class Trigger:
    """A beginning that switches a lazy grammar on.

    ``kind``: ``word`` (the grammar begins with this text), ``pattern`` (a regular expression over the whole
    output; the grammar begins at its first group), or ``token`` (``value`` is the marker's text, ``id`` its
    token).
    """

    kind: str
    value: str
    id: int | None = None


def _ways(node: Ir, whole: bool = True) -> list[tuple[Ir, ...]]:
    """The ways to begin ``node``, each with the items of which it is made from there on; not ``whole``: as far as the
    part of ``node`` goes that begins it."""
    if isinstance(node, ir.Shared):
        return _ways(node.node, whole)
    if isinstance(node, ir.Alt):
        return [way for option in node.options for way in _ways(option, whole)]
    if not isinstance(node, ir.Seq):
        return [(node,)]
    if not node.items:
        return [()]
    rest = node.items[1:] if whole or _literal(node.items[0]) else ()
    return [(*way, *rest) for way in _ways(node.items[0], whole)]


def literal_heads(node: Ir) -> list[str]:
    """The texts that ``node`` begins with, as far as they are literal."""
    return [ir.literal_text(takewhile(_literal, way)) for way in _ways(node, whole=False)]


def _literal(node: Ir) -> bool:
    return isinstance(node, (ir.Text, ir.TokenRef))


def words(
    tree: Node, body: n.Body, calls: Ir | None, ids: Mapping[str, int], names: int
) -> tuple[Trigger, ...]:
    """The texts that begin the calls in running text: their marker, and more if a thought of ``tree`` or the body's
    other parts begin with the same. ``names``: which of a token's names are in use."""
    if body.calls is None or calls is None:
        return ()
    reasoning = thoughts(tree)
    others = (*stretches(body, "", names), *reasoning)
    found: dict[Trigger, None] = {}
    for begin in _in_use(body.calls, names):
        while begin and not begin[0].text.strip():
            begin = begin[1:]
        text = "".join(item.text for item in begin)
        if (
            begin
            and isinstance(begin[0], n.Token)
            and not any(other.startswith(begin[0].text) for other in others)
        ):
            number = ids.get(begin[0].text)
            found[Trigger("word" if number is None else "token", begin[0].text, number)] = None
        elif text.strip() and not any(other.startswith(text) for other in others):
            alike = begin[0].text in reasoning
            found[Trigger("word", _shortest(begin, others) if alike else text)] = None
        else:
            heads = [head for head in literal_heads(calls) if head.startswith(text)]
            found.update((Trigger("word", head), None) for head in heads if head.strip())
    covered = tuple(trigger.value for trigger in found)
    markers = [way[0].text for way in _ways(calls) if way and isinstance(way[0], ir.TokenRef)]
    for marker in markers:  # the calls of one tool may begin in their own way
        if not marker.startswith(covered) and not any(other.startswith(marker) for other in others):
            number = ids.get(marker)
            found[Trigger("word" if number is None else "token", marker, number)] = None
    return tuple(found)


def _shortest(begin: list[n.Literal | n.Token], others: Collection[str]) -> str:
    """The text of a beginning, as far as it takes to tell it from ``others``."""
    text = ""
    for item in begin:
        text += item.text
        if not any(other.startswith(text) for other in others):
            break
    return text


def _in_use(node: Node, names: int) -> list[list[n.Literal | n.Token]]:
    """The literals that ``node`` can begin with, by the names of its tokens that are in use."""

    def named(item: n.Literal | n.Token) -> n.Literal | n.Token:
        return n.Token(item.names[min(names, len(item.also))]) if isinstance(item, n.Token) else item

    return [[named(item) for item in begin] for begin, _ in opens(node)]


def stretches(body: n.Body, prefix: str, names: int) -> list[str]:
    """The beginnings of reasoning and content in a body, after the text that the prompt has written."""
    opens = (span.open for span in body.spans)
    texts = ("".join(item.text for item in begin) for open in opens for begin in _in_use(open, names))
    return [text.removeprefix(prefix) for text in texts]


def thoughts(tree: Node) -> tuple[str, ...]:
    """The texts that open reasoning: in free text the parser may take one for its beginning."""
    found: dict[str, None] = {}
    for node in walk(tree):
        if isinstance(node, n.Think):
            opener = node.span.open
            found.update(dict.fromkeys(tokens(opener)))
            found.update(("".join(item.text for item in begin).strip(), None) for begin, _ in opens(opener))
            found.update(dict.fromkeys(_fixed_texts(opener)))
    return tuple(text for text in found if text)


def _fixed_texts(node: Node) -> list[str]:
    """The texts that the parser takes for ``node``, without what may be missing; none if it takes other texts."""
    if isinstance(node, (n.Literal, n.Token)):
        return [node.text]
    if nullable(node):
        return [""]
    if isinstance(node, n.Sequence):
        return ["".join(texts) for texts in product(*map(_fixed_texts, node.items))]
    stands = through(node)
    options = node.options if isinstance(node, n.Choice) else () if stands is None else (stands,)
    return [text for option in options for text in _fixed_texts(option)]


def ordinary(openers: Iterable[str], markers: Iterable[str]) -> tuple[str, ...]:
    """The openers that are words, as prose has them too: none of ``markers``, and without a bracket or a bar."""
    known = tuple(markers)
    return tuple(text for text in openers if not _MARKUP(text) and not text.startswith(known))


def begins_words(openers: Iterable[str]) -> tuple[str, ...]:
    """The openers with which other words may begin: `>>>`, or `<function` with its last letter."""
    return tuple(text for text in openers if not _MARKUP(text) or (text[-1:].isalnum() and "|" not in text))


def told_apart(calls: Ir, trigger: str, opener: str) -> tuple[str, ...]:
    """The beginnings of calls with ``trigger``, long enough to tell them from prose that has the word ``opener``: where
    only white space follows it, with the name of each tool. None if no names follow, or too many."""
    if trigger[len(opener) :].strip():
        return (trigger,)
    rest = residual(calls, trigger)
    heads = literal_heads(EMPTY if rest is None else rest)
    return tuple(trigger + head for head in heads) if all(heads) and len(heads) <= _MOST_TRIGGERS else ()


def unfinished_of(node: Ir) -> Ir:
    """The beginnings of the texts of a regular node, the empty text and the texts themselves among them."""
    found: Ir = EMPTY
    if isinstance(node, ir.Text):
        for char in reversed(node.text):
            found = ir.opt(seq(ir.Text(char), found))
        return found
    if isinstance(node, ir.Seq):
        for item in reversed(node.items):
            found = alt(unfinished_of(item), seq(item, found))
        return found
    if isinstance(node, ir.Alt):
        return alt(*map(unfinished_of, node.options))
    if isinstance(node, ir.Rep) and not isinstance(node.node, ir.Chars):
        return seq(ir.Rep(node.node, 0, node.most), unfinished_of(node.node))
    return ir.Rep(node.node, 0, node.most) if isinstance(node, ir.Rep) else ir.opt(node)


def declared(items: list[Ir], names: Collection[str]) -> list[Ir]:
    """The items of a way, with the declared ``names``, perhaps after a namespace, in place of any name; if they are
    given and not too many."""
    if not 0 < len(names) <= _MOST_TRIGGERS:
        return items
    return [seq(ir.opt(item), ir.texts(names)) if _any_name(item) else item for item in items]


def unnamed(items: list[Ir]) -> list[Ir]:
    """The items of a way, with or without the name in it: the word that opens a call may end another call's name."""
    return [ir.opt(item) if _any_name(item) else item for item in items]


def _any_name(item: Ir) -> bool:
    return isinstance(item, ir.Shared) and item.hint == "name"


def split_heads(node: Ir, others: list[str], further: bool = False) -> list[tuple[Ir, Ir]]:
    """The beginnings of ``node``, long enough to tell it from prose and from ``others``; each with the rest of
    ``node`` after it. ``further``: where the literals do not tell it, the name of each tool after them does."""
    ways = [way for way in _ways(node) if way]
    return [head for way in ways for head in (further and _further(way)) or [_split(way, others)]]


def _further(way: tuple[Ir, ...]) -> list[tuple[Ir, Ir]]:
    """The beginnings of a way whose literals are too few, with the name of each tool after them. None if there are
    enough, no names follow, or too many."""
    begin = tuple(takewhile(lambda item: isinstance(item, _FIXED), way))
    if not begin or begin == way or _ENOUGH(ir.literal_text(begin)):
        return []
    after, *rest = way[len(begin) :]
    ways = _ways(after)
    if len(ways) > _MOST_TRIGGERS or not all(more and _named(more[0]) for more in ways):
        return []
    return [(_regular((*begin, more[0])), seq(*more[1:], *rest)) for more in ways]


def _named(node: Ir) -> bool:
    return isinstance(node, ir.Text) and re.search(r"\w", node.text) is not None


def _split(items: tuple[Ir, ...], others: list[str]) -> tuple[Ir, Ir]:
    text = ""
    for index, item in enumerate(items):
        if not isinstance(item, _FIXED):
            begin, rest = _alike(item)
            return _regular((*items[:index], *begin)), seq(rest, *items[index + 1 :])
        if isinstance(item, (ir.Text, ir.TokenRef)):
            text += item.text
            if _ENOUGH(item.text) and not any(other.startswith(text) for other in others):
                return _regular(items[: index + 1]), seq(*items[index + 1 :])
    return _regular(items), EMPTY


def parsed_heads(node: Node, names: Collection[str]) -> list[Ir]:
    """What the parser takes for the beginning of ``node``, up to the first value in it: a regular superset of each way.
    ``names``: the declared tools."""
    found = {repr(way[0]): way[0] for way in _Pieces(names).after(node, _BEGUN)}
    return [*found.values()]


def _alike(node: Ir) -> tuple[tuple[Ir, ...], Ir]:
    """What all ways of ``node`` begin with, up to the first word, and the rest; nothing if they share no word."""
    ways = _ways(node)
    alike: list[Ir] = []
    for items in zip(*ways, strict=False):
        if not isinstance(items[0], _FIXED) or len({(type(item), _expression(item)) for item in items}) > 1:
            break
        alike.append(items[0])
        if isinstance(items[0], ir.Text) and _ENOUGH(items[0].text):
            return tuple(alike), alt(*(seq(*way[len(alike) :]) for way in ways))
    return (), node


_FIXED = (ir.Text, ir.TokenRef, ir.Blank)
"""The nodes that are the same in every text."""


class Beginning(NamedTuple):
    """What the parser takes for the beginning of a call: ``head``, and ``rest`` somewhere after it (`EMPTY`: nothing
    more)."""

    head: Ir
    rest: Ir

    @property
    def whole(self) -> Ir:
        """The beginning and any text after it."""
        return seq(self.head, ANYTHING) if self.rest is EMPTY else seq(self.head, ANYTHING, self.rest)

    @property
    def coarse(self) -> Ir:
        """The same, if of ``rest`` only the first text counts."""
        options = self.rest.options if isinstance(self.rest, ir.Alt) else (self.rest,)
        words = [option.items[0] if isinstance(option, ir.Seq) else option for option in options]
        return seq(self.head, ANYTHING, alt(*words), ANYTHING)


def parsed_beginnings(node: Node, names: Collection[str]) -> dict[str, Beginning]:
    """What the parser takes for the beginning of ``node``: a regular superset of each way, by a key that equal ways
    share.

    The parser takes more than is generated, such as other members of a JSON object. So a value is any text. Of what
    follows the first value only one piece counts, the one that most ways share, and of these the longest: the key of
    the arguments. With more pieces the automata would be large. ``names``: the declared tools.
    """
    ways = [
        (first_piece, [piece for piece in others if _letters(piece)])
        for first_piece, *others in _Pieces(names).after(node, _BEGUN)
    ]
    shared = Counter(name for _, others in ways for name in {repr(piece) for piece in others})
    found: dict[str, tuple[Ir, list[Ir]]] = {}
    for first_piece, others in ways:
        others = sorted(others, key=lambda piece: (-shared[repr(piece)], -len(repr(piece))))[:1]
        _, after = found.setdefault(repr(first_piece), (first_piece, []))
        after.append(seq(*others, ANYTHING) if others else EMPTY)
    return {
        key: Beginning(
            first_piece,
            EMPTY if EMPTY in after else alt(*{repr(piece): piece for piece in after}.values()),
        )
        for key, (first_piece, after) in found.items()
    }


_Way = tuple[Ir, ...]
_BEGUN: list[_Way] = [(EMPTY,)]
_ANY_TEXT: _Way = (EMPTY, EMPTY)
_OVER: Ir = ir.Rep(EMPTY, 0, None)
"""The last piece of a way that goes no further: any text."""


class _Pieces(Paths[_Way]):
    """Follows the ways to begin a node as regular pieces, with any text between two of them. What the parser looks
    ahead for belongs to a way and ends it. ``names``: the declared tools; none if they are too many."""

    def __init__(self, names: Collection[str] = ()) -> None:
        self.names = ir.texts(names) if 0 < len(names) <= _MOST_TRIGGERS else None

    def choice(self, node: n.Choice, paths: list[_Way]) -> list[_Way]:
        ways = [way for option in node.options for way in self.after(option, _BEGUN)]
        if any(way[1:] for way in ways) or any(isinstance(below, n.Declared) for below in once(node)):
            return [way for option in node.options for way in self.after(option, paths)]
        return _joined(paths, [(_one_of(ways),)])

    def repeat(self, node: n.Many, paths: list[_Way]) -> list[_Way]:
        ways = self.after(node.node, _BEGUN)
        if any(way[1:] for way in ways):
            return _joined(paths, [_ANY_TEXT])  # between two values any text is one too
        return _joined(paths, [(ir.Rep(_one_of(ways), node.least, node.most),)])

    def look(self, node: Look, paths: list[_Way]) -> list[_Way]:
        if isinstance(node, Not):
            return paths
        return _joined(paths, [(way[0], _OVER) for way in self.after(node.node, _BEGUN)])

    def leaf(self, node: Node, paths: list[_Way]) -> list[_Way]:
        if isinstance(node, n.Declared) and self.names is not None:
            return [_declared(path, self.names) for path in paths]
        read = _PIECES.get(type(node))
        return _joined(paths, [_ANY_TEXT if read is None else (read(node),)])


def _joined(paths: list[_Way], ways: list[_Way]) -> list[_Way]:
    over = [path for path in paths if path[-1] is _OVER]
    left = (path for path in paths if path[-1] is not _OVER)
    return over + [(*path[:-1], seq(path[-1], begin), *rest) for path in left for begin, *rest in ways]


def _declared(path: _Way, names: Ir) -> _Way:
    """A way in which the name just read is one of ``names``."""
    items = path[-1].items if isinstance(path[-1], ir.Seq) else (path[-1],)
    named = bool(items) and isinstance(items[-1], ir.Shared)
    return (*path[:-1], seq(*items[:-1], names)) if named else path


def _one_of(ways: list[_Way]) -> Ir:
    return alt(*(way[0] for way in ways))


_PIECES: Mapping[type[Node], Callable[[Any], Ir]] = {
    n.Literal: lambda node: ir.Text(node.text),
    n.Token: lambda node: alt(*map(ir.Text, node.names)),
    n.Space: lambda node: SPACES,
    n.AnyChar: lambda node: ir.Chars(ANY),
    n.Chars: lambda node: ir.Rep(read_regex(f"^[{node.ranges}]$"), node.least, node.most),
    n.Name: lambda node: ir.Shared("name", ir.Rep(_wide(read_regex(f"^{node.chars}$")), 1, None)),
    **dict.fromkeys((*NO_TEXT, n.SameName, n.Think, n.Body), lambda node: EMPTY),
}
"""The leaves that are regular; any other is any text."""


def _wide(node: Ir) -> Ir:
    """A set of characters with all those beyond ASCII: most sets of names have nearly all of them, and a lexer of bytes
    takes long to tell those that they lack."""
    return ir.Chars(ir.charset([*node.ranges, (128, ir.LAST)])) if isinstance(node, ir.Chars) else node


def _letters(node: Ir) -> bool:
    if isinstance(node, ir.Text):
        return _ENOUGH(node.text) is not None
    if isinstance(node, (ir.Seq, ir.Alt)):
        return any(map(_letters, node.items if isinstance(node, ir.Seq) else node.options))
    return isinstance(node, ir.Rep) and _letters(node.node)


def holds(node: Ir, texts: tuple[str, ...]) -> bool:
    """Whether every text of a regular node holds one of ``texts`` in one of its literals."""
    if isinstance(node, ir.Text):
        return any(text in node.text for text in texts)
    if isinstance(node, ir.Alt):
        return all(holds(option, texts) for option in node.options)
    if isinstance(node, ir.Seq):
        return any(holds(item, texts) for item in node.items)
    return isinstance(node, ir.Rep) and node.least > 0 and holds(node.node, texts)


def distinct(heads: Iterable[Ir]) -> list[Ir]:
    """The beginnings, each text once."""
    return list({_expression(head): head for head in heads}.values())


def _regular(items: Iterable[Ir]) -> Ir:
    return seq(
        *(
            ir.Text(item.text)
            if isinstance(item, ir.TokenRef)
            else BLANKS
            if isinstance(item, ir.Blank)
            else item
            for item in items
        )
    )


def beginning(node: Ir, others: list[str]) -> str:
    """A regular expression for the beginning of calls that begin the turn, long enough to tell them from prose and
    from ``others``."""
    heads = (_expression(head) for head, _ in split_heads(node, others))
    return "(?:" + "|".join(dict.fromkeys(heads)) + ")"


def _expression(node: Ir) -> str:
    if isinstance(node, ir.Text):
        return re.escape(node.text).replace("\\ ", " ").replace("\\\n", r"\n")
    if isinstance(node, ir.Seq):
        return "".join(map(_expression, node.items))
    return r"\s*"


_MARKUP = re.compile(r"[<{\[|]").search
_MOST_TRIGGERS = 256
"""The most triggers that are written with a name each."""
_ENOUGH = re.compile(r"\w{3}").search
