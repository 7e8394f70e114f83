"""What a grammar's text asks of an engine, estimated without one.

Strategy: the text's rules are read as alternatives of symbols. An engine that parses by Earley's method keeps at each
place all alternatives that may go on there, its row: after a brace, two for each member of the object, in each of the
orders that are written. Rows are followed from each rule with alternatives, and on through the terminals that several
of them share: the brace with which all objects of a choice begin. What comes after a rule's end is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..public import public


@public
class Cost(NamedTuple):
    """What a grammar asks of an engine.

    ``rows``: about how many items the longest row has (llguidance takes 2,000). ``symbols``: how many symbols the rules
    are made of. ``terminals``: how many different literals and regular expressions there are. ``repeats``: the highest
    count of a repetition. ``fuel``: about how much work the first state of a lexer takes, in llguidance's unit
    (llguidance gives it 1,000,000).
    """

    rows: int
    symbols: int
    terminals: int
    repeats: int
    fuel: int


MOST_ROWS = 2_000
"""The items that llguidance 1.9 takes in one row."""
MOST_SYMBOLS = 60_000
"""The symbols that llguidance 1.9 takes in a grammar: it has 65,525, and its count is about ours."""
MOST_FUEL = 1_000_000
"""The fuel that llguidance 1.9 gives the first state of its lexer."""
_PER_OPTION, _PER_LITERAL, _PER_TERMINAL = 12, 6, 65
"""The fuel of an option in a regular expression, of a literal and of a named terminal: fitted to 56 public schemas, of
which each takes 0.7 to 2.4 times as much. Long lists take 10 an option."""
_PER_FREE = 40
"""The fuel of a terminal with constraints, times the third power of its runs of any characters of a string: it
takes 0.1 to 4 times as much. With large ones llguidance walks its whole vocabulary."""
_FREE = r"[\]}][)]+\*"

_Rules = dict[str, list[list[str]]]
"""The alternatives of each rule: names of rules, and terminals after a blank."""
_Item = tuple[str, int, int]
"""A place in an alternative: the rule, which alternative, and how many of its symbols are before the place."""
# Patterns that are compiled at their first use: few grammars are so long that they are weighed.
_PARTS = r"""
    "(?:[^"\\]|\\.)*"i? | /(?:[^/\\\[]|\\.|\[(?:[^\]\\]|\\.)*\])+/ | \[(?:[^\]\\]|\\.)*\] | <\[[0-9]+\]>
    | (?:Regex|TagDispatch|Token)\((?:"(?:[^"\\]|\\.)*"|[^"()]|\((?:"(?:[^"\\]|\\.)*"|[^"()])*\))*\) | %json\ .*
    | [A-Za-z_][\w-]* | ::[a-z_0-9]+(?:\([^)]*\))?
    | %if\ [a-z_]+(?:\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\))?
    | [?*+]|\{[0-9]*,?[0-9]*\} | [()|]"""
"""The parts of a rule: terminals and an engine's forms, names and their parameters, conditions, counts and marks."""
_RULE = r"([A-Za-z_][\w-]*)(?:::_)?(?:\[[^\]]*\])?(?: ::= |:)(.*)"
_HIGHEST = r"\{([0-9]*),?([0-9]*)\}"


def cost_of(text: str, borne: int = 0) -> Cost:
    """The cost of a grammar in GBNF, Lark or the grammar of a structural tag. If no row can be longer than ``borne``,
    ``rows`` is only a number that none is longer than."""
    rules: _Rules = {}
    terminals: set[str] = set()
    symbols = options = named = joined = 0
    rule, parts = re.compile(_RULE).fullmatch, re.compile(_PARTS, re.VERBOSE).findall
    for line in text.splitlines():
        found = rule(line)
        if found is None:
            continue
        name, body = found[1], found[2]
        if name.isupper():  # Lark's terminals are read by a lexer
            terminals.add(body)
            named += 1
            options += body.count("|")
            if "&~" in body or "&/" in body:
                joined += len(re.findall(_FREE, body)) ** 3
            continue
        symbols += _read(name, parts(body), rules, terminals)
    counts = (int(number) for pair in re.findall(_HIGHEST, text) for number in pair if number)
    fuel = _PER_OPTION * options + _PER_LITERAL * (len(terminals) - named) + _PER_TERMINAL * named
    fuel += _PER_FREE * joined
    return Cost(_longest(rules, borne), symbols, len(terminals), max(counts, default=0), fuel)


def _read(name: str, parts: list[str], rules: _Rules, terminals: set[str]) -> int:
    """Puts a rule and those of its groups into ``rules``; returns how many symbols they have."""
    made = rules[name] = [[]]
    open_: list[tuple[str, list[list[str]]]] = []
    symbols = groups = 0
    for part in parts:
        first = part[0]
        if first == "|":
            made.append([])
        elif first == "(":
            open_.append((name, made))
            groups += 1
            inner = f"{name} {groups}" if len(open_) == 1 else f"{open_[0][0]} {groups}"
            made[-1].append(inner)
            made = rules[inner] = [[]]
        elif first == ")":
            name, made = open_.pop()
        elif first == "%" and part[1] == "i":
            if (
                part == "%if bit_set(0)" and made[-1] and made[-1][-1][0] != " "
            ):  # it only names a rule, and never applies
                made.pop()
            else:
                made.append([_CONDITION])  # llguidance makes a rule of each condition
        elif first in "?*+{":
            if made[-1] and (part in "?*" or part.startswith(("{0", "{,"))):
                made[-1][-1] = _optional(made[-1][-1], rules)
        elif first != ":" and part != '""':
            symbols += 1
            if first in '"/[<%' or part[-1] == ")":
                terminals.add(part)
                made[-1].append(f" {part}")
            else:
                made[-1].append(f" {part}" if part.isupper() else part)
    return symbols


def _optional(symbol: str, rules: _Rules) -> str:
    """The rule of a symbol that may be missing."""
    name = symbol + "?"
    rules.setdefault(name, [[symbol], []])
    return name


def _longest(rules: Mapping[str, list[list[str]]], borne: int) -> int:
    """The items of the longest row that begins in a rule. An alternative has one in a row for its beginning, and one
    after each symbol that may be empty there."""
    empty = _empty(rules)
    most = 0
    for options in rules.values():
        for symbols in options:
            most += 1
            for symbol in symbols:
                if symbol not in empty:
                    break
                most += 1
    if most <= borne:
        return most
    todo: list[frozenset[_Item]] = [
        frozenset((name, number, 0) for number in range(len(options)))
        for name, options in rules.items()
        if len(options) > 1
    ]
    alone = {
        name
        for name, options in rules.items()
        if sum(map(bool, options)) == 1 and max(map(len, options)) == 1
    }
    seen: set[frozenset[_Item]] = set()
    longest = 1
    while todo and len(seen) < _MOST_FOLLOWED:
        begun = todo.pop()
        if begun in seen:
            continue
        seen.add(begun)
        row = _row(begun, rules, empty)
        # llguidance has no items for what is begun, for the empty text, and for a rule that is another one alone.
        items = len([1 for name, number, _ in row if name not in alone and rules[name][number]])
        longest = max(longest, items - len([1 for _, _, place in begun if place]))
        after: dict[str, list[_Item]] = {}
        for name, number, place in row:
            symbols = rules[name][number]
            if place < len(symbols) and symbols[place][0] == " ":
                after.setdefault(symbols[place], []).append((name, number, place + 1))
        todo += [frozenset(items) for items in after.values() if len(items) > 1]
    return longest


def _row(begun: frozenset[_Item], rules: Mapping[str, list[list[str]]], empty: set[str]) -> dict[_Item, None]:
    """The items of a row: those that are begun, and all that may begin there."""
    found = dict.fromkeys(begun)
    predicted: set[str] = set()
    for name, number, place in (todo := list(begun)):
        symbols = rules[name][number]
        if place == len(symbols):
            continue
        symbol = symbols[place]
        if symbol in rules and symbol not in predicted:
            predicted.add(symbol)
            new = [(symbol, one, 0) for one in range(len(rules[symbol]))]
        else:
            new = []
        if symbol in empty:
            new.append((name, number, place + 1))
        for item in new:
            if item not in found:
                found[item] = None
                todo.append(item)
    return found


_MOST_FOLLOWED = 20_000
"""So many rows are followed."""
_CONDITION = " %if"


def _empty(rules: Mapping[str, list[list[str]]]) -> set[str]:
    """The rules that may be empty."""
    users: dict[str, list[tuple[str, list[str]]]] = {}
    """The alternatives that have a symbol, each with its rule."""
    for name, options in rules.items():
        for symbols in options:
            for symbol in symbols:
                users.setdefault(symbol, []).append((name, symbols))
    found: set[str] = set()
    todo = [(name, symbols) for name, options in rules.items() for symbols in options if not symbols]
    while todo:
        name, symbols = todo.pop()
        if name not in found and found.issuperset(symbols):
            found.add(name)
            todo += users.get(name, ())
    return found
