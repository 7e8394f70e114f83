r"""Writes GBNF: the common core of xgrammar's syntax and llama.cpp's since the end of 2024, read alike, byte for byte.

Strategy: rules on one line, names ``[a-z][a-z0-9-]*``, the empty text as ``""``, only the escapes that all read
(``\n``, ``\r``, ``\t``, those of quotes, backslashes and square brackets, ``\uXXXX``, ``\UXXXXXXXX``), no ``.``, no
left recursion, no repeat count past 2,000 even multiplied through nesting. A `Lang` becomes its automaton, written as
right-recursive rules; where many states only count characters of one set, blocks of them repeat. Both engines run
these fast for strings and for text up to a stop, while ``char*`` costs xgrammar 49 ms a mask and ``char{0,500}`` two
seconds (Qwen3's vocabulary). Equal rules are written once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, count

from ...kept import Kept, kept
from .. import ir
from ..ir import ANY, LAST, Encoding, Ir, Ranges, complement
from ..regular.automaton import Dfa, TooLarge, build
from ..regular.listed import listed_texts
from ..target import PLAIN, Target
from .escaped import spellings
from .rules import RuleWriter, suffix

CHAIN = 128
"""Up to so many times, what may be one character is a chain of rules: as a count it costs 40 ms a mask."""
_BLOCK = 64
"""The number of characters in a block of a longer string."""
_One = Callable[[str], list[str]]
"""The spellings of one character, each with what follows it."""
_RESERVED = frozenset({"true", "false", "root", "ws"})
_LINE_ENDS = {r"\r?\n": r'"\r"? "\n"', r"\r\n": r'"\r\n"', r"\n": r'"\n"'}
"""A line's end, by the regular expression of it."""
_COMMON = {
    "hex": "[0-9a-fA-F]",
    "string": '"\\"" string-rest',
    "string-rest": '"\\"" | [^"\\\\\\u0000-\\u001F] string-rest | "\\\\" string-esc',
    "string-esc": '["\\\\/bfnrt] string-rest | "u" string-hex',
    "string-hex": (
        "([0-9a-cA-CefEF] hex hex hex | [dD] ([0-7] hex hex | [89abAB] hex hex "
        '"\\\\u" [dD] [c-fC-F] hex hex)) string-rest'
    ),
    "char-hex": (
        '[0-9a-cA-CefEF] hex hex hex | [dD] ([0-7] hex hex | [89abAB] hex hex "\\\\u" [dD] [c-fC-F] hex hex)'
    ),
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
    "char-hex": ("hex",),
    "char-high": ("hex",),
}


@kept(4096, 256)
def literal(text: str) -> str:
    """``text`` as a literal. NUL is a class, because xgrammar matches NUL only there."""
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
    if char in "\\][":
        return "\\" + char
    if char in "-^":  # not every llama.cpp reads them after a backslash
        return f"\\u{code:04X}"
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    if 32 <= code < 127 or (0xA0 <= code < 0xD800 and char.isalpha()):
        return char
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


@kept(4096, 32)
def char_class(ranges: Ranges) -> str:
    """A class; negated if it is shorter so. xgrammar before 0.2.8 cuts negated classes at U+0080, or refuses them."""
    if ranges == ANY:
        return "[\\u0000-\\U0010FFFF]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and ranges[0][0]:
        return literal(chr(ranges[0][0]))
    negated = ranges[-1][1] == LAST and all(high < 0x80 for _, high in complement(ranges))
    shown = complement(ranges) if negated else ranges
    parts = [_span(low, high) for low, high in shown if (low, high) != _DASH]
    return f"[{'^' if negated else ''}{''.join(parts)}{'-' if _DASH in shown else ''}]"


_DASH = (ord("-"), ord("-"))
"""It comes last in a class, where it is no range."""


def _span(low: int, high: int) -> str:
    if low == high:
        return _point(low)
    return _point(low) + ("-" if high > low + 1 else "") + _point(high)


_AUTOMATA: Kept[Dfa] = Kept(8_000_000)
"""By the languages. The text around calls is the same language for all tools of a format."""


def automaton_of(node: ir.Lang) -> Dfa:
    if node.encoding != "raw" and (known := build(node, 20_000)):  # a schema's
        return known
    key = repr(node)
    found = _AUTOMATA.get(key)
    if found is None:
        found = build(node, 20_000)
        if found is None:  # a stop is in the end, which the parser looks for first
            stops = tuple(stop for stop in node.stops if stop not in node.end_text)
            found = build(replace(node, stops=stops), 20_000)
        if found is None:
            raise TooLarge
        _AUTOMATA.add(key, found, 2 * len(key) + found.bytes)
    return found


@kept(1024, 128)
def _rule_name(hint: str) -> str:
    base = re.sub(r"[^a-z0-9-]+", "-", hint.lower()).strip("-") or "r"
    return base if base[0].isalpha() else "r-" + base


class GbnfWriter(RuleWriter):
    """Writes one grammar; ``token_ids`` has the ids of the markers that are written as token references."""

    first, defines = "root", " ::= "
    reference, indent = "<[%d]>", 64
    """How a token is written; this is llama.cpp's form."""

    def __init__(
        self, rules: Mapping[str, Ir], token_ids: Mapping[str, int] | None = None, target: Target = PLAIN
    ) -> None:
        super().__init__(rules, token_ids)
        self.langs: dict[tuple[object, ...], str] = {}
        self.target = target
        blanks = [] if target.whitespace == 0 else ['" "']
        for end, left in target.line_ends(self.indent):
            blanks.append(_LINE_ENDS[end] + (f" [ \\t]{{0,{left}}}" if left else ""))
        self.commons = {**_COMMON, "ws": " | ".join(['""', *blanks])}
        """The rules that every grammar may need."""

    # rules

    def names_of(self, hint: str) -> Iterator[str]:
        base = _rule_name(hint)
        taken = base in _RESERVED or base in _COMMON
        return chain([] if taken else [base], map(f"{base}-%d".__mod__, count(not taken)))

    def common(self, name: str) -> str:
        if name not in self.out:
            self.out[name] = self.commons[name]
            for other in _NEEDS.get(name, ()):
                self.common(other)
        return name

    # nodes

    def atom(self, node: Ir) -> str:
        """One element of a sequence."""
        if isinstance(node, ir.Shared):
            return self.shared(node)
        if isinstance(node, ir.Text):
            return literal(node.text)
        if isinstance(node, ir.Lang):
            return self.lang(node)
        if isinstance(node, ir.Chars):
            return char_class(node.ranges)
        if isinstance(node, ir.Blank):
            if node.written < 0:
                return self.common("ws")
            left = self.target.indent(self.indent, node.written)
            return f"[ \\t]{{0,{left}}}" if left else '""'
        if isinstance(node, ir.Ref):
            return self.ref(node.name)
        if isinstance(node, ir.TokenRef):
            number = self.token_ids.get(node.text)
            return literal(node.text) if number is None else self.reference % number
        if isinstance(node, ir.Rep):
            return self.repeat(node)
        if isinstance(node, ir.Order):
            return f"({self.order(node)})"
        if isinstance(node, ir.Alt) and len(node.options) != 1:
            return f"({self.body(node)})"
        if isinstance(node, ir.Seq) and len(node.items) > 1:
            return f"({self.body(node)})"
        if isinstance(node, ir.Alt):
            return self.atom(node.options[0])
        if isinstance(node, ir.Seq):
            return self.atom(node.items[0]) if node.items else '""'
        if isinstance(node, ir.Free):
            return self.free(node)
        raise TypeError(f"GBNF has no form for {type(node).__name__}")

    def free(self, node: ir.Free) -> str:
        """Text with calls in it."""
        raise TypeError("GBNF has no form for text with calls")

    def new_shared(self, node: ir.Shared) -> str:
        return self.lang(node.node) if isinstance(node.node, ir.Lang) else super().new_shared(node)

    def repeat(self, node: ir.Rep) -> str:
        least, most, inner = node.least, node.most, node.node
        if most == 0:
            return '""'
        atom = self.atom(inner)
        if (least, most) == (1, 1):
            return atom
        total = least if most is None else most
        single = isinstance(inner, ir.Chars) or (isinstance(inner, ir.Text) and len(inner.text) == 1)
        if total <= (64 if single else 1000 if isinstance(inner, ir.Seq) else 1):
            # llama.cpp takes no count that is past 2,000 when multiplied by the groups and counts in what is counted.
            if not single and (atom[-1] in "*+?}" or (total > 1 and re.search(r"[{*+?]|.\(", atom))):
                atom = self.rule("rep", self.body(inner))
            return atom + suffix(least, most)
        if len(atom) > 12 and (" " in atom or not atom.isalnum()):
            atom = self.rule("rep", atom)
        last = "" if most is not None else f"{atom}*"
        return self.chain(lambda then: [f"{atom} {then}".rstrip()], least, total, last, "", "rep")

    def times(self, atom: str, count: int) -> str:
        """``atom`` exactly so many times. Thousands become a rule, because engines limit the count of one repeat."""
        whole, rest = divmod(count, 1000) if count > 1000 else (0, count)
        found = [self.rule("block", f"{atom}{{1000}}") + suffix(whole, whole)] if whole else []
        return " ".join(found + ([atom + suffix(rest, rest)] if rest else []))

    def up_to(self, atom: str, most: int) -> str:
        """``atom`` at most that many times."""
        if most <= 1000:
            return atom + suffix(0, most) if most else ""
        whole, rest = divmod(most, 1000)
        block = self.rule("block", f"{atom}{{1000}}")
        return self.blocks(block, whole, f"{atom}{{0,999}}", self.up_to(atom, rest))

    def blocks(self, block: str, whole: int, short: str, tail: str) -> str:
        """Fewer than ``whole`` blocks, then ``short``; or ``whole`` blocks, then ``tail``."""
        fewer = f"{self.up_to(block, whole - 1)} {short}".lstrip()
        return self.rule("upto", f"{fewer} | {self.times(block, whole)} {tail}".rstrip())

    # strings and texts

    def lang(self, node: ir.Lang) -> str:
        key = (
            node.encoding,
            node.stops,
            tuple((type(item), item.text) for item in node.end),
            node.least,
            node.most,
            node.nested,
            node.opened,
            node.within,
            tuple((id(part.node), part.positive, part.divisor, part.begun) for part in node.parts),
        )
        name = self.langs.get(key)
        if name is None:
            self.alive.append(node)
            name = self.langs[key] = self.new_lang(node)
        return name

    def new_lang(self, node: ir.Lang) -> str:
        if node.within is not None:
            text = self.counted(node)
            return self.rule("text", " ".join([text, *map(self.atom, node.end)])) if node.end else text
        if node.end and isinstance(node.end[-1], ir.TokenRef) and node.end[-1].text in self.token_ids:
            before = replace(node, end=())
            return self.rule("text", " ".join([self.lang(before), *map(self.atom, node.end)]))
        quoted = node.encoding != "raw"
        if not node.parts and not node.stops and not node.end:
            if quoted and not node.least and node.most is None:
                return self.common("string-rest" if node.opened else "string")
            if quoted:
                most, last = node.most, '"\\""'
                if most is None:
                    most, last = node.least, self.common("string-rest")
                chars = self.chain(self.any_character, node.least, most, last, '"\\""')
                return self.rule("string", _quoted(node) + chars)
            if not node.least and node.most is None:
                return self.rule("text", f"{char_class(ANY)}*")
        listed = self.listed(node)
        if listed is not None:
            return listed
        start = self.automaton(automaton_of(node), node.encoding)
        return self.rule("string", _quoted(node) + start) if quoted else start

    def counted(self, node: ir.Lang) -> str:
        """The name of text without its end, of so many tokens as its engine counts."""
        raise TypeError("this GBNF counts no tokens")

    def chain(self, one: _One, least: int, most: int, last: str, end: str, hint: str = "str") -> str:
        """From ``least`` to ``most`` characters, then ``last``: a rule for each. ``one`` spells one. ``end``: what ends
        the text before there are ``most``.

        A rule of one character, repeated, would say it in one line. But at each of its ends xgrammar would try every
        token at run time: 20 to 50 ms a mask, against 20 µs. Past `CHAIN`, blocks are repeated, so xgrammar tries
        the tokens only near the end of a block.
        """
        if most <= CHAIN:
            for left in range(1, most + 1):
                ends = [end or '""'] if most - left >= least else []
                last = self.rule(hint, " | ".join([*ends, *one(last)]))
            return last
        part = partial(self.chain, one, end=end, hint=hint)
        block = part(_BLOCK, _BLOCK, "")
        blocks, rest = divmod(least, _BLOCK)
        begin = [self.times(block, blocks)] if blocks else []
        begin += [part(rest, rest, "")] if rest else []
        blocks, rest = divmod(most - least, _BLOCK)
        then = part(0, rest, last)
        if blocks:
            then = self.blocks(block, blocks, part(0, _BLOCK - 1, end), then)
        return self.rule("counted", " ".join([*begin, then]).rstrip())

    def any_character(self, then: str) -> list[str]:
        """The spellings of any character of a JSON string, and what follows it."""
        then = f" {then}" if then else ""
        escape = self.rule("esc", f'["\\\\/bfnrt]{then} | "u" {self.common("char-hex")}{then}')
        return [f'[^"\\\\\\u0000-\\u001F]{then}', f'"\\\\" {escape}']

    def listed(self, node: ir.Lang) -> str | None:
        """One of the texts that raw text lists, as one expression; None if it lists none."""
        if node.encoding != "raw" or len(node.parts) != 1 or node.least or node.most is not None:
            return None
        texts = listed_texts(node.parts[0]) if node.parts[0].positive else None
        if texts is None:
            return None
        end = node.end_text
        find = re.compile("|".join(map(re.escape, node.stops))).search if node.stops else None
        whole = [
            literal(text)
            for text in texts  # in which no stop ends before the end
            if find is None or (found := find(text + end)) is None or found.end() == len(text + end)
        ]
        body = " | ".join(whole)
        if not node.end:
            return self.rule("text", body)
        one = f"({body})" if len(whole) > 1 else body
        return self.rule("text", " ".join([one, *map(self.atom, node.end)]))

    def automaton(self, dfa: Dfa, encoding: Encoding) -> str:
        """The first of the rules of an automaton, one for each state. For a string, they include the closing quote."""
        end, hint = ("", "text") if encoding == "raw" else ('"\\""', "str")
        runs = dfa.runs(CHAIN)
        inner = {state for _, run in runs.values() for state in run[1:]}
        states = [state for state, edges in enumerate(dfa.edges) if edges or not state]
        names = {state: self.fresh(hint) for state in states if state not in inner}
        for state, name in names.items():
            place, run = runs.get(state, (0, [state]))
            edges = [*dfa.edges[run[-1]]]
            counted = edges.pop(place) if len(run) > 1 else None
            options = [end or '""'] if state in dfa.accepting else []
            for ranges, then in edges:
                options += self.edge(ranges, encoding, names.get(then, end))
            body = " | ".join(options)
            if counted is not None:
                stop = self.rule(hint, body) if len(options) > 1 else end if body == '""' else body
                one = partial(self.edge, counted[0], encoding)
                least = 0 if options else len(run)
                body = self.chain(one, least, len(run), names.get(counted[1], end), stop, hint)
            self.out[name] = body
        return names[0]

    def edge(self, ranges: Ranges, encoding: Encoding, then: str) -> list[str]:
        """The spellings of one character of a set, each with what follows it. In a string, a character that needs no
        escape has only itself."""
        if encoding == "raw":
            return [f"{char_class(ranges)} {then}".rstrip()]
        found, high = _in_string(ranges)
        if high:
            found = [*found, f'"\\\\" {self.common("char-high")}']
        return [f"{spelling} {then}".rstrip() for spelling in found]


@kept(4096, 64)
def _in_string(ranges: Ranges) -> tuple[list[str], bool]:
    """The spellings of one character of a set in a string. If the second is True, those by the number of a character
    beyond ASCII belong to them too."""
    spelt = spellings(ranges)
    found = [[literal(text), *map(char_class, sets)][not text :] for text, sets in spelt.ways]
    return [" ".join(parts) for parts in found], spelt.high


def _quoted(node: ir.Lang) -> str:
    """The opening quote of a string, if it was not written before."""
    return "" if node.opened else '"\\"" '


_AFTER_BLANK = ' (= [":{\\[0-9tfnTFN}\\]-])'
"""What follows white space in JSON: a name, a colon, a value or a closing bracket. With this look-ahead, xgrammar
decides about most tokens that begin with a space when it compiles. Without it, it tries them all at each mask.
If another text follows in a format, the mask has no token of the space and that text. It has the space alone."""


_INDENT = 20
"""xgrammar takes 0.7 ms to compile each character of an indent."""


def regex(expression: str) -> str:
    """A regular expression as xgrammar has them in its rules since 0.2.6. They make masks in half of the time."""
    return 'Regex("' + expression.replace("\\", "\\\\").replace('"', '\\"') + '")'


class XgrammarWriter(GbnfWriter):
    """GBNF with the forms of xgrammar. ``regexes``: whether regular expressions are one of them."""

    reference, indent = "Token(%d)", _INDENT

    def __init__(
        self, rules: Mapping[str, Ir], token_ids: Mapping[str, int] | None = None, target: Target = PLAIN
    ) -> None:
        super().__init__(rules, token_ids, target)
        self.regexes = target.regexes
        found = target.blank(self.indent)
        self.white = f"({found})?" if found else ""
        """White space in JSON, as a regular expression."""
        if found:
            self.commons["ws"] = (regex(self.white) if self.regexes else self.commons["ws"]) + _AFTER_BLANK


def write_gbnf(
    root: Ir, rules: Mapping[str, Ir], token_ids: Mapping[str, int] | None = None, target: Target = PLAIN
) -> str:
    """The GBNF of a grammar, its rule ``root`` first, in the form of ``target``'s engine.

    ``token_ids``: the markers that are written as token references.
    """
    if target.engine == "xgrammar":
        return XgrammarWriter(rules, token_ids, target).write(root)
    return GbnfWriter(rules, token_ids, target).write(root)
