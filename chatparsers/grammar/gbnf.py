"""Writes GBNF: the common core that llama.cpp and xgrammar read alike, byte for byte.

Strategy: rules on one line, names ``[a-z][a-z0-9-]*``, the empty text as ``""``, only the escapes that both
read, no ``.``, no left recursion, no repeat count past 2,000 even multiplied through nesting. A `Lang`
becomes its automaton, written as right-recursive rules: that is how both engines run text up to a stop and
strings fast, while ``char*`` costs xgrammar 49 ms a mask and ``char{0,500}`` two seconds (Qwen3's
vocabulary). Equal rules are written once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from .automaton import Dfa, TooLarge, build
from .ir import (
    ANY,
    LAST,
    Alt,
    Blank,
    Chars,
    Encoding,
    Ir,
    Lang,
    Ranges,
    Ref,
    Rep,
    Seq,
    Shared,
    Text,
    TokenRef,
    charset,
    complement,
    overlap,
    without,
)

__all__ = ["GbnfWriter", "write_gbnf"]

CONTROLS = charset([(0, 31)])
ESCAPED = charset(['"', "\\", (0, 31)])
HIGH = charset([(0x80, LAST)])
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CHAIN = 128
"""Up to this many, a bounded repeat is a chain of rules; beyond, blocks of this many are."""
_RESERVED = frozenset({"true", "false", "root"})
_COMMON = {
    "ws": '"" | " " | "\\n" [ \\t]{0,20}',
    "hex": "[0-9a-fA-F]",
    "string": '"\\"" string-rest',
    "string-rest": '"\\"" | [^"\\\\\\u0000-\\u001F] string-rest | "\\\\" string-esc',
    "string-esc": '["\\\\/bfnrt] string-rest | "u" string-hex',
    "string-hex": (
        "([0-9a-cA-CefEF] hex hex hex | [dD] ([0-7] hex hex | [89abAB] hex hex "
        '"\\\\u" [dD] [c-fC-F] hex hex)) string-rest'
    ),
    "char": '[^"\\\\\\u0000-\\u001F] | "\\\\" (["\\\\/bfnrt] | "u" char-hex)',
    "char-hex": (
        '[0-9a-cA-CefEF] hex hex hex | [dD] ([0-7] hex hex | [89abAB] hex hex "\\\\u" [dD] [c-fC-F] hex hex)'
    ),
    "char-exact": '[^"\\\\\\u0000-\\u001F] | "\\\\" (["\\\\bfnrt] | "u00" [01] hex | char-high)',
    "char-high": (
        '"u" ("00" [89a-fA-F] hex | "0" [1-9a-fA-F] hex hex | [1-9a-cA-CefEF] hex hex hex '
        '| [dD] ([0-7] hex hex | [89abAB] hex hex "\\\\u" [dD] [c-fC-F] hex hex))'
    ),
}
_NEEDS = {
    "string": ("string-rest",),
    "string-rest": ("string-esc",),
    "string-esc": ("string-hex",),
    "string-hex": ("hex",),
    "char": ("char-hex",),
    "char-hex": ("hex",),
    "char-exact": ("char-high",),
    "char-high": ("hex",),
}


@lru_cache(maxsize=4096)
def literal(text: str) -> str:
    """``text`` as a literal; NUL as a class, as xgrammar matches it there alone."""
    if "\0" in text:
        pieces = [literal(piece) for piece in text.split("\0")]
        return "(" + " [\\u0000] ".join(pieces).replace('"" ', "").replace(' ""', "") + ")"
    out = ['"']
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        elif ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u2028\u2029\ufeff":
            out.append(f"\\u{ord(char):04X}")
        else:
            out.append(char)
    out.append('"')
    return "".join(out)


def _point(code: int) -> str:
    char = chr(code)
    if char in "\\]-[^":
        return f"\\u{code:04X}" if char == "^" else "\\" + char
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    if 32 <= code < 127 or (0xA0 <= code < 0xD800 and char.isalpha()):
        return char
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


@lru_cache(maxsize=4096)
def char_class(ranges: Ranges) -> str:
    """A class; the shorter of its two spellings."""
    if ranges == ANY:
        return "[\\u0000-\\U0010FFFF]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and ranges[0][0]:
        return literal(chr(ranges[0][0]))
    negated = ranges[-1][1] == LAST
    parts = []
    for low, high in complement(ranges) if negated else ranges:
        parts.append(
            _point(low) if low == high else _point(low) + ("-" if high > low + 1 else "") + _point(high)
        )
    return f"[{'^' if negated else ''}{''.join(parts)}]"


@lru_cache(maxsize=256)
def _text_automaton(stops: tuple[str, ...], end: str) -> Dfa:
    found = build(Lang(stops=stops, end=(Text(end),) if end else ()))
    assert found is not None
    return found


def alphabet(node: Ir) -> Ranges:
    """The characters that a regular node may have."""
    if isinstance(node, Text):
        return charset(node.text)
    if isinstance(node, Chars):
        return node.ranges
    if isinstance(node, (Rep, Shared)):
        return alphabet(node.node)
    items = node.items if isinstance(node, Seq) else node.options if isinstance(node, Alt) else ()
    return charset(span for item in items for span in alphabet(item))


@lru_cache(maxsize=1024)
def _rule_name(hint: str) -> str:
    base = re.sub(r"[^a-z0-9-]+", "-", hint.lower()).strip("-") or "r"
    return base if base[0].isalpha() else "r-" + base


class GbnfWriter:
    """Writes one grammar; ``token_ids`` has the ids of the markers to be written as token references."""

    def __init__(self, rules: Mapping[str, Ir], token_ids: Mapping[str, int] | None = None) -> None:
        self.sources = rules
        self.token_ids = token_ids or {}
        self.out: dict[str, str] = {}
        self.bodies: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.langs: dict[tuple[object, ...], str] = {}
        self.refs: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.alive: list[Ir] = []

    def write(self, root: Ir) -> str:
        """The grammar's text."""
        self.out["root"] = ""
        self.out["root"] = self.body(root)
        return "".join(f"{name} ::= {body}\n" for name, body in self.out.items())

    # rules

    def fresh(self, hint: str) -> str:
        base = _rule_name(hint)
        while True:
            count = self.counts.get(base, 0)
            self.counts[base] = count + 1
            name = f"{base}-{count}" if count or base in _RESERVED or base in _COMMON else base
            if name not in self.out and name not in _COMMON and name not in _RESERVED:
                self.out[name] = ""
                return name

    def rule(self, hint: str, body: str) -> str:
        """The name of a rule with that body."""
        name = self.bodies.get(body)
        if name is None:
            name = self.bodies[body] = self.fresh(hint)
            self.out[name] = body
        return name

    def common(self, name: str) -> str:
        if name not in self.out:
            self.out[name] = _COMMON[name]
            for other in _NEEDS.get(name, ()):
                self.common(other)
        return name

    # nodes

    def body(self, node: Ir) -> str:
        """The right side of a rule."""
        if isinstance(node, Alt):
            return " | ".join(map(self.item_of_choice, node.options))
        return self.item_of_choice(node)

    def item_of_choice(self, node: Ir) -> str:
        if type(node) is Seq:
            names = self.names
            return " ".join([names.get(id(item)) or self.atom(item) for item in node.items]) or '""'
        return self.atom(node)

    def atom(self, node: Ir) -> str:
        """One element of a sequence."""
        if isinstance(node, Shared):
            return self.shared(node)
        if isinstance(node, Text):
            return literal(node.text)
        if isinstance(node, Lang):
            return self.lang(node)
        if isinstance(node, Chars):
            return char_class(node.ranges)
        if isinstance(node, Blank):
            return self.common("ws")
        if isinstance(node, Ref):
            return self.ref(node.name)
        if isinstance(node, TokenRef):
            number = self.token_ids.get(node.text)
            return literal(node.text) if number is None else f"<[{number}]>"
        if isinstance(node, Rep):
            return self.repeat(node)
        if isinstance(node, Alt) and len(node.options) != 1:
            return f"({self.body(node)})"
        if isinstance(node, Seq) and len(node.items) > 1:
            return f"({self.body(node)})"
        if isinstance(node, Alt):
            return self.atom(node.options[0])
        if isinstance(node, Seq):
            return self.atom(node.items[0]) if node.items else '""'
        raise TypeError(f"GBNF has no form for {type(node).__name__}")

    def shared(self, node: Shared) -> str:
        name = self.names.get(id(node))
        if name is None:
            self.alive.append(node)
            inner = node.node
            if isinstance(inner, Lang):
                name = self.lang(inner)
            else:
                body = self.body(inner)
                name = body if body in self.out else self.rule(node.hint, body)
            self.names[id(node)] = name
        return name

    def ref(self, source: str) -> str:
        name = self.refs.get(source)
        if name is None:
            name = self.refs[source] = self.fresh(source)
            self.out[name] = self.body(self.sources[source])
        return name

    def repeat(self, node: Rep) -> str:
        least, most = node.least, node.most
        if most == 0:
            return '""'
        if (least, most) == (1, 1):
            return self.atom(node.node)
        inner = node.node
        plain = isinstance(inner, Chars) or (isinstance(inner, Text) and len(inner.text) == 1)
        small = (most if most is not None else least) <= (64 if plain else 1)
        if small or (most is None and least <= 1):
            atom = self.atom(inner)
            if not plain and (
                atom[-1] in "*+?}" or (most is not None and most > 1 and re.search(r"[{*+?]", atom))
            ):
                atom = self.rule("rep", self.body(inner))
            return atom + _suffix(least, most)
        return self.count(self.atom(inner), least, most)

    def count(self, atom: str, least: int, most: int | None, close: str = "") -> str:
        """``atom`` between ``least`` and ``most`` times, then ``close``, as a chain of rules."""
        if len(atom) > 12 and (" " in atom or not atom.isalnum()):
            atom = self.rule("rep", atom)
        total = most if most is not None else least
        if total > _CHAIN:
            return self.blocks(atom, least, most, close)
        if most is None:
            last = self.fresh("rep")
            self.out[last] = f"{close or chr(34) * 2} | {atom} {last}"
        else:
            last = close
        for index in range(total - 1, -1, -1):
            after = f"{atom} {last}".rstrip()
            left = total - index
            body = after if total - left < least else f"{close or chr(34) * 2} | {after}"
            last = self.rule("rep", body)
        return last

    def blocks(self, atom: str, least: int, most: int | None, close: str) -> str:
        """A long repeat: whole blocks of `_CHAIN`, each a rule, and what is left."""
        block = self.rule("block", " ".join([atom] * _CHAIN))

        def exactly(count: int) -> list[str]:
            whole, rest = divmod(count, _CHAIN)
            found = [block + _suffix(whole, whole)] if whole > 1 else [block] * whole
            return [*found, *([self.rule("part", " ".join([atom] * rest))] if rest else [])]

        parts = exactly(least)
        if most is None:
            parts.append(f"{atom}*")
        elif most > least:
            whole, rest = divmod(most - least, _CHAIN)
            tail = self.count(atom, 0, rest) if rest else ""
            if whole:
                short = self.count(atom, 0, _CHAIN - 1)
                options = [
                    f"{block}{_suffix(0, whole - 1)} {short}",
                    f"{block}{_suffix(whole, whole)} {tail}".rstrip(),
                ]
                parts.append(self.rule("upto", " | ".join(options)))
            elif tail:
                parts.append(tail)
        return self.rule("count", " ".join([*parts, *([close] if close else [])]))

    # strings and texts

    def lang(self, node: Lang) -> str:
        key = (
            node.encoding,
            node.stops,
            tuple((type(item), item.text) for item in node.end),
            node.least,
            node.most,
            tuple((id(part.node), part.positive, part.divisor) for part in node.parts),
        )
        name = self.langs.get(key)
        if name is None:
            self.alive.append(node)
            name = self.langs[key] = self.new_lang(node)
        return name

    def new_lang(self, node: Lang) -> str:
        if node.end and isinstance(node.end[-1], TokenRef) and node.end[-1].text in self.token_ids:
            before = Lang(node.parts, node.least, node.most, node.encoding, node.stops)
            return self.rule("text", " ".join([self.lang(before), *map(self.atom, node.end)]))
        quoted = node.encoding != "raw"
        if quoted and node.end:
            inner = Lang(node.parts, node.least, node.most, node.encoding)
            return self.rule("key", " ".join([self.lang(inner), *map(self.atom, node.end)]))
        if not node.parts and not node.stops and not node.end:
            if quoted and not node.least and node.most is None:
                return self.common("string")
            if quoted:
                counted = self.count(self.common("char"), node.least, node.most, '"\\""')
                return self.rule("string", f'"\\"" {counted}')
            if not quoted and not node.least and node.most is None:
                return self.rule("text", f"{char_class(ANY)}*")
        direct = self.direct(node)
        if direct is not None:
            return direct
        if not node.parts and not node.least and node.most is None:
            automaton = _text_automaton(node.stops, node.end_text)
        else:
            found = build(node, 20_000)
            if found is None:
                raise TooLarge
            automaton = found
        start = self.automaton(automaton, node.encoding, bool(node.parts))
        return self.rule("string", f'"\\"" {start}') if quoted else start

    def direct(self, node: Lang) -> str | None:
        """One expression, where none of its characters needs an escape or begins a stop."""
        if (
            len(node.parts) != 1
            or not node.parts[0].positive
            or node.parts[0].divisor
            or node.least
            or node.most is not None
        ):
            return None
        inner = node.parts[0].node
        used = alphabet(inner)
        if node.encoding != "raw":
            if overlap(used, ESCAPED) or (HIGH[0] in overlap(used, HIGH)):
                return None
            return self.rule("string", f'"\\"" {self.atom(inner)} "\\""')
        if overlap(used, charset(stop[0] for stop in node.stops)):
            return None
        return self.rule("text", " ".join([self.atom(inner), *map(self.atom, node.end)]))

    def automaton(self, dfa: Dfa, encoding: Encoding, exact: bool) -> str:
        """The rules of an automaton; for a string its closing quote is part of them. ``exact``: a character
        that can stand as it is has no other spelling."""
        quoted = encoding != "raw"
        incoming = [0] * len(dfa.edges)
        incoming[0] = 2
        for edges in dfa.edges:
            for _, then in edges:
                incoming[then] += 1
        names: dict[int, str] = {}
        hint = "str" if quoted else "text"

        def name(state: int) -> str:
            if state not in names:
                names[state] = self.fresh(hint)
                todo.append(state)
            return names[state]

        def follow(state: int) -> str:
            """What comes after an edge into ``state``."""
            edges = dfa.edges[state]
            if not edges and state in dfa.accepting:
                return '"\\""' if quoted else ""
            if incoming[state] == 1 and len(edges) == 1 and state not in dfa.accepting:
                parts = self.edge(edges[0][0], encoding, exact)
                if len(parts) == 1:
                    return f"{parts[0]} {follow(edges[0][1])}".rstrip()
            return name(state)

        todo: list[int] = []
        first = name(0)
        for state in todo:
            options = ['"\\""' if quoted else '""'] if state in dfa.accepting else []
            for ranges, then in dfa.edges[state]:
                after = follow(then)
                options += (f"{part} {after}".rstrip() for part in self.edge(ranges, encoding, exact))
            self.out[names[state]] = " | ".join(options)
        return first

    def edge(self, ranges: Ranges, encoding: Encoding, exact: bool) -> list[str]:
        """The spellings of one character of a set."""
        if encoding == "raw":
            return [char_class(ranges)]
        if ranges == ANY:
            return [self.common("char-exact" if exact else "char")]
        found: list[str] = []
        plain = without(ranges, ESCAPED)
        if plain:
            found.append(char_class(plain))
        letters = "".join(
            letter for letter, char in _SHORT.items() if char != "/" and overlap(ranges, charset(char))
        )
        if letters:
            found.append('"\\\\" ' + char_class(charset(letters)))
        controls = overlap(ranges, CONTROLS)
        if controls:
            found += [f'"\\\\u00{high}" {_hex(low)}' for high, low in _nibbles(controls)]
        if HIGH[0] in overlap(ranges, HIGH):
            found.append(f'"\\\\" {self.common("char-high")}')
        return found


def _nibbles(ranges: Ranges) -> list[tuple[str, str]]:
    rows: dict[str, str] = {}
    for low, high in ranges:
        for code in range(low, high + 1):
            rows[f"{code >> 4:x}"] = rows.get(f"{code >> 4:x}", "") + f"{code & 15:x}"
    return list(rows.items())


def _hex(digits: str) -> str:
    return char_class(charset(digits + digits.upper()))


def _suffix(least: int, most: int | None) -> str:
    if most is None:
        return "*" if least == 0 else "+" if least == 1 else f"{{{least},}}"
    if (least, most) == (0, 1):
        return "?"
    if (least, most) == (1, 1):
        return ""
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def write_gbnf(root: Ir, rules: Mapping[str, Ir], token_ids: Mapping[str, int] | None = None) -> str:
    """The GBNF of a grammar, its rule ``root`` first; ``token_ids``: markers to be written as token references."""
    return GbnfWriter(rules, token_ids).write(root)
