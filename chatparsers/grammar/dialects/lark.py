"""Writes Lark for llguidance.

Strategy: llguidance lexes greedily before it parses, so every regular piece (a string, a number, text up to a marker)
is one terminal. A terminal that ends at a marker is prefix-free: no text of its language begins another one, so the
greedy lexer cannot run past the end. Constraints are joined with llguidance's ``&`` and ``~``. A single character is
never a terminal: with a real vocabulary, llguidance would reach its limit of items. Free text with calls in it is
``(text-up-to-a-trigger call)* text``. Text before a token is greedy: what the trigger has before its token may also be
the beginning of more text.

A marker that the stream takes by its id is written ``<[id]>``. Its text is not allowed in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain, count, repeat, takewhile

from ...errors import RequestError
from ...kept import kept
from ...values import Json
from .. import ir
from ..ir import ANYTHING, Ir, children, closed, literals, seq, unshared
from ..reading.residual import BEYOND_ASCII, CHARACTER, residual
from ..schemas.compiler import any_value
from ..syntaxes import COLON, quoted, syntax_of
from ..target import PLAIN, Target
from .lark_lexer import (
    MARK,
    NAME,
    OTHER,
    QUOTE,
    SPACE,
    TAKE_BEFORE,
    TAKES_AFTER,
    after_quote,
    closed_number,
    cut_after_repeats,
    kinds_of,
    one_character,
    told_apart,
)
from .lark_orders import any_order, declared
from .lark_regex import ANY_CHARACTER, EXACT, char_class, escape, regex
from .lark_text import before_token, begun, excluded, one_of, open_text, until
from .rules import RuleWriter, suffix

_INDENT = 64


def _literal(text: str) -> str:
    return quoted(text).replace("\x7f", "\\u007f")


@kept(1024, 128)
def _rule_name(hint: str) -> str:
    base = re.sub(r"[^A-Za-z0-9]+", "_", hint).strip("_") or "r"
    return base if base[0].isalpha() else "r_" + base


class _Writer(RuleWriter):
    first, defines, either = "start", ":", "|"

    def __init__(self, rules: Mapping[str, Ir], token_ids: Mapping[str, int], target: Target) -> None:
        super().__init__(rules, token_ids)
        self.target = target
        self.white = f"/{target.blank(_INDENT)}/"
        self.sources: dict[str, Ir] = dict(rules)  # `closed` adds to them
        self.orders: dict[tuple[object, ...], tuple[str, str]] = {}
        """The two rules of members in their orders, by what they are made of."""
        self.members: dict[int, tuple[str, ...]] = {}
        """The elements of members, by their identity."""
        self.spaces: dict[tuple[str | bool, bool, bool], str] = {}
        """The literals that take in white space, before and after them."""
        self.tails: dict[str, str] = {}
        """Those that take it in after them, without it."""
        self.quote = self.colon = ""
        """The literals of a member of JSON, once they are known."""

    def go_on_from(self, other: _Writer) -> None:
        """Has all rules that the other one wrote."""
        self.out, self.bodies, self.names = other.out.copy(), other.bodies.copy(), other.names.copy()
        self.refs, self.spaces, self.tails = other.refs.copy(), other.spaces.copy(), other.tails.copy()
        self.alive = [other]

    def names_of(self, hint: str) -> Iterator[str]:
        base = _rule_name(hint)
        return chain([base], map(f"{base}_%d".__mod__, count(1)))

    def terminal(self, hint: str, body: str) -> str:
        return self.rule(hint.upper(), body)

    # nodes

    def body(self, node: Ir) -> str:
        if (
            isinstance(node, ir.Alt)
            and len(node.options) > 1
            and type(node.options[0]) is ir.Text
            and all(isinstance(option, ir.Text) and option.text for option in node.options)
        ):
            return self.terminal("ONE", f"/{regex(node, 'raw')}/")
        if isinstance(node, ir.Alt):
            node = ir.Alt(self.closed_numbers(told_apart(node.options)))
            if len(node.options) > _MANY:
                return self.many(node.options)
        return self.order(node) if isinstance(node, ir.AnyOrder) else super().body(node)

    def many(self, options: tuple[Ir, ...]) -> str:
        """Many options. If they part after white space, what is before it is written once, and it is at most one
        space. llguidance goes on with all options for each token that ends the white space, and many tokens end
        longer white space."""
        ways = [self.atoms(option.items if isinstance(option, ir.Seq) else (option,)) for option in options]
        alike = [atoms[0] for atoms in takewhile(lambda atoms: len({*atoms}) == 1, zip(*ways, strict=False))]
        last = self.tails.get(alike[-1]) if alike else None
        if last is None:
            return "|".join([" ".join(way) or '""' for way in ways])
        alike[-1] = self.terminal("LIT", f'{last} " "?')
        return f"{' '.join(alike)} ({'|'.join([' '.join(way[len(alike) :]) for way in ways])})"

    def atoms(self, items: tuple[Ir, ...]) -> list[str]:
        """The elements of a sequence. White space is in one terminal with the literal beside it, because fewer
        terminals are faster: with a punctuation mark or the quote of a name after it, else with a literal before it.

        This holds everywhere: if two terminals match, the lexer keeps the one that takes the space.
        """
        types = {*map(type, items)}
        if ir.Rep in types:
            items = cut_after_repeats(items)
        if ir.Ref in types:
            items = self.closed(items)
        if self.target.whitespace == 0 and ir.Blank in types:
            items = tuple(item for item in items if type(item) is not ir.Blank)
            types.discard(ir.Blank)
        known = self.names
        if ir.Blank not in types:
            return [known.get(id(item)) or self.atom(item) for item in items]
        out: list[str] = []
        kinds = [OTHER, *kinds_of(items), OTHER, OTHER]
        for index, item in enumerate(items, 1):
            kind, before, after = kinds[index], kinds[index - 1], kinds[index + 1]
            if kind == SPACE:
                if after not in TAKE_BEFORE and before < TAKES_AFTER:
                    out.append(f"{self.blank()}?")
                continue
            if kind == NAME and before == SPACE:
                out += [self.spaced(QUOTE, True, False), self.atom(after_quote(item))]
                continue
            lead = kind == MARK and before == SPACE
            tail = kind >= TAKES_AFTER and after == SPACE and kinds[index + 2] not in TAKE_BEFORE
            out.append(
                self.spaced(item, lead, tail) if lead or tail else known.get(id(item)) or self.atom(item)
            )
        return out

    def spaced(self, item: Ir, lead: bool, tail: bool) -> str:
        """The name of a terminal with the white space before it, after it or both."""
        key = isinstance(item, ir.Text) and item.text, lead, tail
        found = self.spaces.get(key) if key[0] else None
        if found is None:
            blank = self.blank()
            body = f"{f'{blank}? ' if lead else ''}{self.atom(item)}"
            found = self.spaces[key] = self.terminal("LIT", f"{body} {blank}?" if tail else body)
            if tail:
                self.tails[found] = body
        return found

    def blank(self) -> str:
        """The name of white space."""
        return self.terminal("WS", self.white)

    def closed(self, items: tuple[Ir, ...]) -> tuple[Ir, ...]:
        """The items, where a rule that may end in text takes in the marker after it. Without the marker, the lexer
        would take its beginning for text and not go back."""
        found: list[Ir] = []
        for item in items:
            before = found[-1] if found else None
            if isinstance(before, ir.Ref) and isinstance(item, (ir.Text, ir.TokenRef)):
                name = f"{before.name} {item.text}"
                node = self.sources.get(name) or closed(self.sources[before.name], item)
                if node is not None:
                    self.sources[name] = node
                    found[-1] = ir.Ref(name)
                    continue
            found.append(item)
        return tuple(found)

    def closed_numbers(self, options: tuple[Ir, ...]) -> tuple[Ir, ...]:
        """The options of a choice. Beside text up to a marker, a number or word and that marker are one terminal: the
        lexer would take the marker's beginning for more of the text, and not go back to the number."""
        texts = [option for option in options if isinstance(option, ir.Lang) and option.encoding == "raw"]
        ends = {text.end_text for text in texts if text.end and text.end[-1].text not in self.token_ids}
        return tuple([closed_number(option, ends) for option in options]) if ends else options

    def atom(self, node: Ir) -> str:
        if isinstance(node, ir.Text):
            return _literal(node.text)
        if isinstance(node, ir.Shared):
            return self.shared(node)
        if isinstance(node, ir.Lang):
            self.alive.append(node)
            found = self.names[id(node)] = self.lang(node)
            return found
        if isinstance(node, ir.Ref):
            return self.ref(node.name)
        if isinstance(node, ir.Alt) and len(node.options) != 1:
            inner = self.body(node)
            return inner if inner.isidentifier() else f"({inner})"
        if isinstance(node, ir.Seq) and len(node.items) > 1:
            return f"({self.body(node)})"
        if isinstance(node, (ir.Alt, ir.Seq)):
            return self.body(node)
        if isinstance(node, (ir.Order, ir.AnyOrder)):
            order = self.order(node)
            return order if order.isidentifier() else f"({order})"
        if isinstance(node, ir.Rep):
            return self.repeat(node)
        if isinstance(node, ir.Chars):
            return self.terminal("CHAR", f"/{char_class(node.ranges)}/")
        if isinstance(node, ir.Blank):
            if node.written < 0:
                return '""' if self.target.whitespace == 0 else f"{self.blank()}?"
            left = self.target.indent(_INDENT, node.written)
            return self.terminal("WS", f"/[ \\t]{{1,{left}}}/") + "?" if left > 0 else '""'
        if isinstance(node, ir.TokenRef):
            number = self.token_ids.get(node.text)
            return _literal(node.text) if number is None else f"<[{number}]>"
        if isinstance(node, ir.Nested):
            return self.rule("user", f"%lark {{\n{node.text}\n}}")
        if isinstance(node, ir.Free):
            return self.free(node)
        raise TypeError(f"Lark has no form for {type(node).__name__}")

    def new_shared(self, node: ir.Shared) -> str:
        if node.lexeme:
            if isinstance(node.node, ir.Lang):
                return self.lang(node.node)
            return self.terminal(node.hint, f"/{regex(node.node, 'raw')}/")
        return super().new_shared(node)

    def repeat(self, node: ir.Rep) -> str:
        if node.most == 0:
            return '""'
        if one_character(node.node) and not isinstance(node.node, ir.Text):
            some = ir.Rep(node.node, max(1, node.least), node.most)
            return self.terminal("RUN", f"/{regex(some, 'raw')}/") + ("" if node.least else "?")
        atom = self.atom(node.node)
        if atom.endswith(("?", "*", "+", "}")):
            atom = f"({atom})"
        return atom + suffix(node.least, node.most)

    # orders

    def order(self, node: ir.Order | ir.AnyOrder) -> str:
        """The right side that begins an order. Its states are two rules, one before a member and one after it. Their
        parameter says which members were written: a line a member, where a rule for each state would be one for each
        set of members. What all members begin with stands before the first rule, and what follows several names is a
        rule."""
        if isinstance(node, ir.AnyOrder):
            steps, none = any_order(len(node.required), sum(node.required)), not node.some
        elif node.declared and len(children(node)) > 1:
            steps, none = declared(node.required), node.states[-1].may_end
        else:
            return self.in_states(node)
        extras = self.extras(node.extra)
        options = [*map(self.elements, node.members), *extras]
        leads = {option[0] for option in options}
        lead = leads.pop() if len(leads) == 1 and min(map(len, options)) > 1 else ""
        between = self.choice(node.separator)
        key = (type(node), node.required, between, *options)
        names = self.orders.get(key)
        if names is None:
            name, rest = names = self.orders[key] = self.parametric(), self.parametric()
            texts = self.texts([option[bool(lead) :] for option in options], len(extras))
            ways = zip(texts, chain(steps.members, repeat("_")), strict=False)
            self.out[f"{name}::_"] = "|".join([f"{text} {rest}::{step}" for text, step in ways])
            again = " ".join([one for one in (between, lead, f"{name}::_") if one not in ("", '""')])
            more = f"%if {steps.more}" if node.extra is None else ""
            self.out[f"{rest}::_"] = f'""{steps.end and f"%if {steps.end}"}|{again}{more}'
        name, rest = names
        # One rule names the first state: llguidance panics if a rule gives itself a parameter that is a number.
        if isinstance(node, ir.AnyOrder) and node.begun:
            return self.rule("o", f"{rest}::0")
        begin = f"{lead} {name}::0".lstrip()
        return self.rule("o", f"({begin})?" if none and not steps.end else begin)

    def texts(self, options: list[tuple[str, ...]], extras: int) -> list[str]:
        """Members as text. What follows the names of several is a rule; that of extra members, which come last, is in
        most objects."""
        ends = [" ".join(option[1:]) for option in options]
        once, often = set(ends[len(ends) - extras :]), set[str]()
        for end in ends:
            (often if end in once else once).add(end)
        return [
            f"{option[0]} {self.rule('t', end) if end in often or end in self.bodies else end}"
            if len(option) > 2
            else " ".join(option)
            for option, end in zip(options, ends, strict=True)
        ]

    def elements(self, node: Ir) -> tuple[str, ...]:
        """The elements of a member, which several orders may have."""
        found = self.members.get(id(node))
        if found is None:
            self.alive.append(node)
            inner = unshared(node)
            if isinstance(inner, ir.Seq) and inner.items:
                atoms = self.named(inner.items) or self.atoms(inner.items)
            else:
                atoms = [self.atom(inner)]
            found = self.members[id(node)] = tuple(filter(None, atoms)) or ('""',)
        return found

    def named(self, items: tuple[Ir, ...]) -> list[str]:
        """The same as `atoms` of a whole member of JSON, with white space around its name and after its colon; nothing
        of any other."""
        first = items[0]
        if len(items) < 6 or items[3] is not COLON or self.target.whitespace == 0:
            return []
        if not isinstance(first, ir.Blank) or first.written >= 0:
            return []
        name, quote = items[1], self.quote or self.spaced(QUOTE, True, False)
        key = _literal(name.text[1:]) if isinstance(name, ir.Text) else self.atom(after_quote(name))
        colon = self.colon or self.spaced(COLON, True, True)
        self.quote, self.colon = quote, colon
        if len(items) > 6:
            return [quote, key, colon, *self.atoms(items[5:])]
        return [quote, key, colon, self.names.get(id(items[5])) or self.atom(items[5])]

    def extras(self, node: Ir | None) -> list[tuple[str, ...]]:
        """The elements of extra members, one for each choice."""
        if node is None:
            return []
        inner = unshared(node)
        return [*map(self.elements, inner.options)] if isinstance(inner, ir.Alt) else [self.elements(inner)]

    def in_states(self, node: ir.Order) -> str:
        """The right side that begins an order, with a rule for each state.

        llguidance reads a rule inside the rule that names it first, so a long chain of states would overflow its stack.
        Therefore an option that never applies names them all before, the last ones first.
        """
        names = [*map(self.shared, node.members)]
        body = self.in_order(node, names, node.states)
        states = names[len(node.members) + 1 :]
        if len(states) < _DEEPEST:
            return body
        never = self.parametric()
        self.out[f"{never}::_"] = "|".join([f"{state}%if bit_set(0)" for state in states])
        return f"{never}::0|{body}"

    def parametric(self) -> str:
        """The name of a rule with a parameter, which is defined by another one."""
        name = self.fresh("s")
        del self.out[name]
        return name

    # strings and texts

    def lang(self, node: ir.Lang) -> str:
        if node.encoding != "raw":
            return self.terminal("STRING", self.string(node))
        if any(part.divisor for part in node.parts):
            return self.divisible(node)
        if node.within is not None:
            return self.counted(node, node.within)
        if node.end and isinstance(node.end[-1], ir.TokenRef) and node.end[-1].text in self.token_ids:
            lead = "".join(item.text for item in node.end[:-1])
            text = replace(node, end=())
            before = self.terminal("TEXT", before_token(node, lead)) if lead else self.lang(text)
            return self.rule("text", f"{before} {self.atom(node.end[-1])}")
        if node.end:
            return self.text_until(node, node.end_text)
        body, nullable = open_text(node)
        return self.terminal("TEXT", body) + ("?" if nullable else "")

    def counted(self, node: ir.Lang, most: int) -> str:
        """Text of so many tokens, and its end."""
        if node.end and not self.by_id(node.end[0]):
            # The lexer would take its beginning for text, and not go back.
            raise RequestError(
                f"thinking_tokens, answer_tokens: Lark cannot count text up to {node.end_text!r}, which begins with "
                'no single token here: bind a tokenizer that has it, give dialect="structural_tag", or use '
                "turn.guide(…), which counts ids"
            )
        name = '""'
        if most:
            text = self.lang(replace(node, end=(), within=None))
            key = f"[max_tokens={most}] {text}"
            if key not in self.bodies:
                self.bodies[key] = self.fresh("text")
                del self.out[self.bodies[key]]
                self.out[f"{self.bodies[key]}[max_tokens={most}]"] = text
            name = self.bodies[key]
        return self.rule("text", " ".join([name, *map(self.atom, node.end)])) if node.end else name

    def by_id(self, item: Ir) -> bool:
        """Whether it is a marker that is written by its id."""
        return isinstance(item, ir.TokenRef) and item.text in self.token_ids

    def string(self, node: ir.Lang) -> str:
        """A string. The quotes are in each of its constraints: llguidance makes most masks inside a string
        ahead, but only for a lexeme that is one as a whole. An exclusion has every spelling only where the others are
        generated."""
        quote = "" if node.opened else '"'
        count = suffix(node.least, node.most)
        if not node.parts:
            return f'/{quote}{CHARACTER}{count}"/'
        terms = []
        if count != "*" or not any(part.positive for part in node.parts):
            terms.append(self.terminal("STRING", f'/{quote}{EXACT}{count}"/'))
        allowed = [regex(part.node, "json") for part in node.parts if part.positive]
        every = all(BEYOND_ASCII in inner for inner in allowed)
        terms += [f'/{quote}{inner}"/' for inner in allowed]  # first, because a terminal begins with no `~`
        others = [regex(part.node, "json", every) for part in node.parts if not part.positive]
        if others:
            terms.append(f'~/{quote}{one_of(others)}"/')
        return "&".join(terms)

    def text_until(self, node: ir.Lang, end: str) -> str:
        """The name of text that ends with the first stop in it. It is a lazy terminal if that says the same: lazy ones
        make masks in half the time."""
        others = excluded(node, end)
        if others is None or node.parts or node.least or node.most is not None:
            return self.terminal("TEXT", until(node, end))
        body = "&".join([f"/{ANY_CHARACTER}*{escape(end)}/", *others])
        if body in self.bodies:
            return self.bodies[body]
        terminal = self.terminal("TEXT_END", body)
        name = self.bodies[body] = self.fresh("text")
        del self.out[name]
        self.out[name + "[lazy]"] = terminal
        return name

    def divisible(self, node: ir.Lang) -> str:
        part = next(part for part in node.parts if part.divisor)
        if part.begun:
            raise RequestError(
                f"prefix: it ends in the number {part.begun!r}, which {part.divisor} must divide, and Lark cannot "
                'write the rest: expected a prefix that ends before or after the number, or dialect="gbnf"'
            )
        schema: dict[str, object] = {"type": "integer", "multipleOf": part.divisor}
        low, high = part.bounds
        if low is not None:
            schema["minimum"] = low
        if high is not None:
            schema["maximum"] = high
        return self.rule("int", "%json " + json.dumps(schema))

    def free(self, node: ir.Free) -> str:
        """Text, and calls wherever a trigger begins."""
        if node.within is not None:
            return self.free_within(node)
        word = _before_names(node)
        if word is not None:
            return self.free_with_names(node, word)
        options: list[str] = []
        text = node.text
        for trigger, after in self.called(node):
            first, *others = literals(trigger, self.token_ids)
            if isinstance(first, ir.TokenRef):
                head = f"{self.lang(text)} {self.atom(first)}"
            elif others and isinstance(others[0], ir.TokenRef):
                # A lazy terminal would end at the first such text, and force the token after it.
                head = self.terminal("TEXT", before_token(text, first.text))
            else:
                end = (
                    len(first.text) if first.text.startswith(begun(node.excludes)) else node.ends(first.text)
                )
                head = self.text_until(text, first.text[:end])
                if end < len(first.text):
                    others.insert(0, ir.Text(first.text[end:]))
            options.append(" ".join([head, *map(self.atom, others), after]))
        tail = self.lang(node.last)
        if node.marks:
            opener, closer = (self.atom(ir.TokenRef(mark)) for mark in node.marks)
            marked = self.rule("marked", f"{tail} {opener} {tail} {closer}")
            options = [f"{marked}* {option}" for option in options]
            tail = f"{marked}* {tail} ({opener} {tail})?"
        return self.calls_and_text(node, self.rule("calls", "|".join(options)), tail)

    def free_with_names(self, node: ir.Free, word: ir.Word) -> str:
        """Text, and calls that begin with a word and a tool's name. Text up to the word is one terminal for all tools,
        and so is text that goes on after it. (With a terminal for each tool, each would have the names of all.)"""
        stops = (word.text, *node.excludes)
        plain = ir.Lang(stops=stops)
        after = ir.Lang((ir.Part(seq(word.begins, ANYTHING), False),), stops=stops)
        last = replace(after, parts=(*after.parts, ir.Part(word.halves, False)))
        said = f"{self.text_until(plain, word.text)} {self.text_until(after, word.text)}*"
        named = [
            " ".join([*map(self.atom, literals(trigger[len(word.text) :], self.token_ids)), rest])
            for trigger, rest in self.called(node)
        ]
        calls = self.rule("calls", f"{said} ({'|'.join(named)})")
        return self.calls_and_text(node, calls, f"({self.lang(plain)}|{said} {self.lang(last)})")

    def calls_and_text(self, node: ir.Free, calls: str, text: str) -> str:
        """So many calls, each with its text before it, and the text at the end."""
        if node.most == 1 and not node.left:
            return f"({calls}|{text})"
        return f"({calls}{suffix(0, node.most)} {text})"

    def called(self, node: ir.Free) -> Iterator[tuple[str, str]]:
        """The calls in free text: the trigger of each, and what follows it."""
        for trigger in node.triggers:
            rest = residual(node.calls, trigger)
            if rest is not None:
                after = f"({self.body(rest)})" if isinstance(rest, ir.Alt) else self.choice(rest)
                yield trigger, after

    def free_within(self, node: ir.Free) -> str:
        """Text of so many tokens, and perhaps a call after it."""
        calls = []
        limit = "answer_tokens" if node.counted else "call_within"
        for trigger, after in self.called(node):
            marker = literals(trigger, self.token_ids)
            if isinstance(marker[0], ir.Text):  # the lexer would take its beginning for text, and not go back
                raise RequestError(
                    f"{limit}: Lark cannot count text up to {trigger!r}, which begins with no "
                    'single token here: bind a tokenizer that has it, give dialect="structural_tag", or use '
                    "turn.guide(call_within=…)"
                )
            calls.append(" ".join([*map(self.atom, marker), after]))
        return f"({self.lang(node.last)} ({self.rule('calls', '|'.join(calls))} {self.atom(node.after)})?)"


_MANY = 256
"""From more options on, white space before where they part is short."""
_DEEPEST = 64
"""How many states llguidance reads one inside the other."""


def _before_names(node: ir.Free) -> ir.Word | None:
    """The word with which all calls in free text begin, each with its tool's name after it; None if they begin
    otherwise."""
    if len(node.triggers) < 2 or len(node.words) != 1 or node.marks:
        return None
    word = node.words[0]
    alike = not word.at_line and not any(trigger.rfind(word.text) for trigger in node.triggers)
    return word if alike and not any(text.startswith(word.text) for text in node.excludes) else None


@lru_cache(maxsize=16)
def _with_any_value(target: Target) -> tuple[Mapping[str, Ir], _Writer]:
    """The rules of any value of JSON, which most grammars have, and a writer that has written them."""
    rules = any_value(syntax_of(Json(), (), target))
    writer = _Writer(rules, {}, target)
    writer.out[writer.first] = ""
    for name in rules:
        writer.ref(name)
    return rules, writer


def write_lark(
    root: Ir, rules: Mapping[str, Ir], token_ids: Mapping[str, int] | None = None, target: Target = PLAIN
) -> str:
    """The Lark grammar, its rule ``start`` first. ``token_ids``: the markers that the tokenizer has as one token."""
    writer = _Writer(rules, token_ids or {}, target)
    known, other = _with_any_value(target)
    if all(rules.get(name) is node for name, node in known.items()):
        writer.go_on_from(other)
    return writer.write(root)
