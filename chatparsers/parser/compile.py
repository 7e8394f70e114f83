"""Compiles a format's tree to the machine's program: the parser's reading of the nodes.

Strategy: every node becomes a run of instructions. The place of a node in the tree decides the region of the
characters that it reads (`Place`). A tokenizer may have a marker text as a single token; the program then matches the
one character that stands for the token in the machine's text (core/machine/alphabet.py). So a program belongs to a
format, its options and a set of such tokens, and is compiled once for them. It does not depend on the tools.

This module has the nodes of a call, and rows.py those of rules (core/flow.py): the turn is rules already
(answers/lower.py), and so is what goes on after a broken call (answers/recovery.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import lru_cache, partial
from typing import Any

from ..answers import nodes as n
from ..answers.features import Definition
from ..answers.idioms import Builder, Options, escaped
from ..answers.lower import lower
from ..answers.mends.closing_tag import closing_tag
from ..answers.mends.odd_names import odd_names
from ..answers.mends.whole_object import may_be_whole, whole_object
from ..answers.nodes import Node
from ..answers.recovery import calls
from ..core.machine import instructions as m
from ..core.machine.alphabet import Alphabet, AlphabetKey
from ..core.machine.code import WHITE, BrokenEnds, Code, Label, Place, stop_finder
from ..core.machine.compile import REGIONS, Compiler
from ..core.machine.compile import ROWS as PLAIN
from ..core.machine.instructions import Item, Program
from ..core.machine.names import JSON_INSIDE, Names, Parts
from ..core.machine.white import white_space
from ..core.nodes.first import Beginnings
from ..core.tree import begins, once, tokens
from ..errors import DefinitionError
from ..schema.tools import UNKNOWN
from ..values import Json, NoObject, StringScanner, Syntax
from ..values.arguments import ArgumentValue, declared_arguments
from ..values.bars import other_bars
from .rows import ROWS, Flow


@lru_cache(maxsize=1024)
def program(
    format: Definition,
    options: Options,
    inline: bool = False,
    alphabet: AlphabetKey = ((), False, ()),
) -> Program:
    """The program of a format for these options; compiled once.

    ``inline``: reasoning is content, its markers included. ``alphabet``: an `Alphabet.key`. Raises `DefinitionError`
    for a tree that cannot be compiled.
    """
    tree = format.tree(options)
    loose = _whole_answer_calls(options)
    code = Code(Alphabet(*alphabet), other_bars)
    special = code.alphabet.unspellable
    turn = lower(tree, format.stops, options.schema is not None, inline, format.mends, loose, special)
    fallback = code.here()
    code.text(m.CONTENT, ())
    code.emit(m.AFTER)
    start = code.here()
    compiler = _Compiler(format.name, code, tree, format.stops, inline, loose, format.mends)
    compiler.node(turn, Place(m.MARKUP, m.MARKUP, BrokenEnds()))
    code.emit(m.JUMP, fallback)
    recipe = (program, (format, options, inline, alphabet))
    linked = code.linked()
    return Program(linked, start.at, fallback.at, format.late_ids, options.mode == "none", recipe)


def _whole_answer_calls(options: Options) -> Node | None:
    """The calls that a whole answer may be; None if the request wants none read."""
    wanted = options.lenient and options.mode != "none" and options.schema is None
    return Builder(options).json_calls() if wanted else None


class _Compiler(Compiler):
    """The nodes of calls and of the turn."""

    def __init__(
        self,
        name: str,
        code: Code,
        tree: Node,
        stops: tuple[str, ...],
        inline: bool,
        loose: Node | None,
        mends: Collection[str],
    ) -> None:
        super().__init__(name, code, (tree,) if loose is None else (tree, loose))
        self.mends = mends
        self.inline = inline
        self.stops = code.spellings(stops)
        self.kinds: dict[tuple[Hashable, ...], object] = {}
        """The kinds of names, of which each spells names in one way."""
        sections = [node.calls for node in once(tree) if isinstance(node, n.Body) and node.calls is not None]
        spelt = code.spellings(text for part in sections for text in (*tokens(part), *_headers(part)))
        self.markers = tuple(dict.fromkeys([*code.alphabet.chars.values(), *spelt]))
        """The markers of calls as the machine's text spells them, and every special token."""
        self.flow = Flow(self)
        self.rows = {**_COMPILERS, **ROWS}

    def tagged(self, node: n.Tagged, at: Place) -> None:
        if node.tag is n.Tag.THOUGHT:
            if self.inline:
                at = Place(m.CONTENT, m.CONTENT, at.ends)
            self.node(node.node, at)
        elif node.tag is n.Tag.CALL:
            openers = () if self.flow.turn is None else self.flow.turn.openers
            self.emit(m.MARK, m.CALL_BEGIN, " or ".join(map(repr, openers)) or "the opener of a call")
            self.node(node.node, at)
            self.emit(m.MARK, m.CALL_END, None)
        elif node.tag in _NOTED:
            self.emit(m.NOTED, *_NOTED[node.tag])
            self.node(node.node, at)
        else:
            self.node(node.node, at._replace(region=m.CONTENT if self.inline else REGIONS[node.tag]))

    def implied(self, node: n.Implied, at: Place) -> None:
        self.emit(m.MARK, _ITEMS[node.tag], node.value)

    def declared(self, node: n.Declared, at: Place) -> None:
        self.emit(m.DECLARED, node.lacks)

    def name(self, node: n.Name, at: Place) -> None:
        parts = partial(_alone, _ITEMS[node.tag], dict(node.escapes))
        spell = partial(escaped, escapes=node.escapes)
        self.captured(node.chars, parts, node.tag, spell, at, (node.escapes, node.parted))

    def same_name(self, node: n.SameName, at: Place) -> None:
        self.emit(m.SAME, at.region, "the argument's name", partial(self._written, str, ""))

    def json_name(self, node: n.JsonName, at: Place) -> None:
        self.captured(JSON_INSIDE, partial(_unescaped, _ITEMS[node.tag]), node.tag, _inside, at)

    def header(self, node: n.Header, at: Place) -> None:
        ways = tuple(re.compile(pattern, re.DOTALL).fullmatch for pattern in node.patterns)
        parts = partial(_in_header, ways, frozenset(node.unless), node.id, self.code.alphabet.decode)
        self.captured(node.chars, parts, n.Tag.NAME, str, None)

    def captured(
        self,
        chars: str,
        parts: Parts,
        tag: n.Tag,
        spell: Callable[[str], str],
        at: Place | None,
        spelling: tuple[Hashable, str] = ((), ""),
    ) -> None:
        """Reads a part of a call's header as a run of ``chars``, and a declared name whatever it holds.

        ``spell``: how a name is written; ``spelling`` tells it from others, and has what parts a name. ``at``: where a
        name alone is; None: the run holds more.
        """
        what = "an argument's name" if tag is n.Tag.ARG_NAME else f"the {tag.value} of a call"
        declared = "odd_names" in self.mends and odd_names(tag, chars, bool(self.code.alphabet.chars))
        written = partial(self._written, spell, spelling[1]) if declared else None
        follows = self.code.spellings(begins(*at.after)) if declared and at is not None else []
        key = self.kinds.setdefault((tag, chars, spelling), object())
        plain = at is not None and spelling == ((), "")
        no_token = self.code.alphabet.no_token
        names = Names(tag, _ITEMS[tag], chars, no_token, parts, plain, written, follows, at is None, key)
        self.emit(m.CAPTURE, names, what)
        if names.alone and at and not any(text[0] in WHITE for text in _begun(at.after, blank=True)):
            self.emit(m.SPAN, m.MARKUP, white_space)

    def _written(self, spell: Callable[[str], str], parted: str, name: str) -> tuple[str, ...]:
        """How the machine's text may write a name: by characters, and by special tokens where it holds some."""
        between = (at.span() for at in re.finditer(r"[_.]+" if parted else r"\Z", name))
        written = [spell(name[:end]) + parted + spell(name[begin:]) for end, begin in between]
        return tuple(dict.fromkeys((*written, *map(self.code.alphabet.encode, written))))

    def each_arg(self, node: n.EachArg, at: Place) -> None:
        code = self.code
        separator = n.Sequence(()) if node.separator is None else node.separator
        separated = n.Many(n.Sequence.of(separator, node.any))
        one = partial(self._argument, node, at._replace(after=(separated, *at.after)))

        def next_one() -> None:
            self.node(separator, at)
            one()

        def several() -> None:
            one()
            code.any_number(next_one)

        def one_by_one() -> None:
            if node.separator is not None:
                code.up_to(1, several)
            elif node.most is not None:
                code.up_to(node.most, one)
            else:
                code.any_number(one)

        self.emit(m.CUT)
        self.emit(m.MARK, m.ARGS_BEGIN, None)
        if "whole_object" in self.mends and may_be_whole(node):
            whole_object(code, one_by_one, at)
        else:
            one_by_one()

    def _argument(self, node: n.EachArg, at: Place) -> None:
        """Reads an argument with its name, or one without a name."""
        by_name = partial(self.node, node.any, at)
        self.code.choice_of(
            [by_name] if node.positional is None else [by_name, partial(self._nth, node.positional)]
        )

    def _nth(self, syntax: Syntax) -> None:
        """Reads an argument without a name: its place tells it."""
        self.emit(m.NTH, stop_finder(*_LITERALS))
        self.emit(m.CUT)
        self._value(syntax, False, ())

    def args(self, node: n.Args, at: Place) -> None:
        code = self.code
        absent, over = Label(), Label()
        if node.commit:
            self.emit(m.CUT)
        ends = [text for text in _begun(at.after) if text[0] not in '{"n']
        if ends:
            code.follows(absent, ends)
        self.emit(m.SPAN, at.region, white_space)  # no part of the arguments, whatever is before them
        read = node.syntax.object(code.forms)
        self.emit(
            m.VALUE,
            m.ARGUMENT,
            lambda machine: partial(read, partial(declared_arguments, machine.tools, machine.tool)),
            True,
        )
        if ends:
            self.emit(m.JUMP, over)
            code.place(absent)
            self.emit(m.VALUE, m.ARGUMENT, lambda machine: NoObject, True)
            code.place(over)

    def value(self, node: n.Value, at: Place) -> None:
        self.emit(m.CUT)
        self._value(node.syntax, True, at.after)

    def _value(self, syntax: Syntax, named: bool, after: tuple[Node, ...]) -> None:
        follows = closing_tag("closing_tag" in self.mends, after, self.code.spellings, self.stops)
        read = syntax.value(self.code.forms, self.markers, follows)
        self.emit(m.VALUE, m.ARGUMENT, ArgumentValue(read, named), True)

    def json_value(self, node: n.JsonValue, at: Place) -> None:
        read = Json().value(self.code.forms)
        self.emit(m.VALUE, at.region, lambda machine: partial(read, UNKNOWN, ""), False)

    def json_text(self, node: n.JsonText, at: Place) -> None:
        quoted, done = Label(), Label()
        self.code.attempt(partial(self.emit, m.LIT, m.CONTENT, (('"', "a JSON value"),)), quoted, m.BACK)
        self.json_value(n.JsonValue(), at._replace(region=m.CONTENT))
        self.emit(m.JUMP, done)
        self.code.place(quoted)
        self.emit(m.VALUE, m.CONTENT, lambda machine: StringScanner, True)
        self.code.place(done)

    def calls(self, node: n.Calls, at: Place) -> None:
        self.node(calls(node, at, "next_call" in self.mends), at)

    def lowered(self, node: Node, at: Place) -> None:
        raise DefinitionError(f"{self.format_name}: {type(node).__name__} is lowered before")


_LITERALS = [*"\"'[({+-.0123456789", "True", "False", "None", "true", "false", "null"]
"""How a value without a name begins."""

_lone = re.compile("[\ud800-\udfff]")
_NOTED = {
    n.Tag.STRAY: ("stray-marker", 0, ""),
    n.Tag.UNREAD: ("unread-member", 0, "no other member of the call"),
}
_ITEMS = {n.Tag.NAME: m.NAME, n.Tag.ARG_NAME: m.ARG_NAME, n.Tag.ID: m.ID}


def _headers(calls: Node) -> list[str]:
    """The tags that hold the name of a tool, as far as they begin with text."""
    named = (
        node
        for node in once(calls)
        if isinstance(node, n.Sequence)
        and any(
            isinstance(item, n.Header) or (isinstance(item, n.Name) and item.tag is n.Tag.NAME)
            for item in node.items
        )
    )
    return [text for node in named for text in begins(node) if text.startswith("<")]


def _inside(name: str) -> str:
    """A name as the inside of a JSON string."""
    return json.dumps(name, ensure_ascii=False)[1:-1]


def _begun(nodes: tuple[Node, ...], blank: bool = False) -> tuple[str, ...]:
    """The texts that may come after a node, as far as the nodes after it tell; `Space` in front is left out.
    ``blank``: also those of which only white space is known."""
    found = Beginnings()
    short = {*found.after(n.Sequence(nodes), [""]), *found.unknown} - {""}
    return tuple(sorted(found.done | short if blank else found.done))


def _unescaped(item: int, run: str) -> list[Item] | None:
    """The inside of a JSON string as a trail item; None if ``run`` is not the inside of a JSON string."""
    try:
        return [(item, run, _lone.sub("\ufffd", json.loads(f'"{run}"')) if "\\" in run else run)]
    except ValueError:
        return None


def _alone(item: int, escapes: dict[str, str], run: str) -> list[Item] | None:
    """A name as a trail item, with its characters in place of their spellings; None if white space is around it."""
    if run[0] in WHITE or run[-1] in WHITE:
        return None
    if not escapes:
        return [(item, run, run)]
    chars = {spelling: char for char, spelling in escapes.items()}
    name = re.sub("|".join(map(re.escape, chars)), lambda found: chars[found[0]], run)
    return [(item, run, name)]


def _in_header(
    ways: tuple[Callable[[str], re.Match[str] | None], ...],
    unless: frozenset[str],
    id: bool,
    decode: Callable[[str], str],
    run: str,
) -> list[Item] | None:
    """What a header says, as trail items; None if it is no header."""
    match = None if run in unless else next(filter(None, (way(run) for way in ways)), None)
    if match is None:
        return None
    named = [(m.ID, "", decode(run))] if id else []
    return [(m.CALL, run, None), *named, (m.NAME, "", decode(match["name"]))]


_COMPILERS: Mapping[type[Node], Callable[[Any, Any, Place], None]] = n.of_every_kind(
    "parser/compile.py",
    {
        **PLAIN,
        n.Inner: Compiler.inner,
        n.Tagged: _Compiler.tagged,
        n.Name: _Compiler.name,
        n.SameName: _Compiler.same_name,
        n.JsonName: _Compiler.json_name,
        n.Header: _Compiler.header,
        n.Implied: _Compiler.implied,
        n.Declared: _Compiler.declared,
        n.EachArg: _Compiler.each_arg,
        n.Args: _Compiler.args,
        n.Value: _Compiler.value,
        n.JsonValue: _Compiler.json_value,
        n.JsonText: _Compiler.json_text,
        n.Calls: _Compiler.calls,
        n.Think: _Compiler.lowered,
        n.Body: _Compiler.lowered,
    },
)
"""How each kind of node is compiled."""
