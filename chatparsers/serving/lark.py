"""A client's grammar in Lark as one regular expression, if no rule of it recurs.

The call of a freeform tool is one text, and a client may bring a grammar for it. No engine's dialect holds a grammar
inside a value, but each holds a pattern. A grammar without recursion is a regular expression: each name is replaced by
what it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LONGEST = 20_000
"""How many characters the expression may have. Names that stand for names double it with each step."""
_TOKEN = re.compile(
    r"""
      (?P<space> [ \t\f]+ | (?://|\#)[^\n]* | \r?\n\s*(?=\|) )  # a line that begins with | goes on
    | (?P<end> \r?\n (?:[ \t\f]*\r?\n)* )  # all empty lines: each would search for the | again
    | (?P<import> %import [ \t]+ common \. (?P<common>\w+) (?:[ \t]*->[ \t]*(?P<as>\w+))? )
    | (?P<text> "(?:\\.|[^"\\\n])*" )
    | (?P<regex> /(?!/)(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/ )
    | (?P<alias> -> [ \t]* \w+ )
    | (?P<name> [?!]?[A-Za-z_]\w* )
    | (?P<times> ~[ \t]*(?P<least>\d+)(?:[ \t]*\.\.[ \t]*(?P<most>\d+))? )
    | (?P<sign> [:|()\[\]?*+] | \.\. )
    """,
    re.VERBOSE,
)
_COMMON = {
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "WS": r"[ \t\f\r\n]+",
    "WS_INLINE": r"[ \t]+",
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9a-fA-F]",
    "INT": "[0-9]+",
    "SIGNED_INT": "[+-]?[0-9]+",
    "LETTER": "[a-zA-Z]",
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "WORD": "[a-zA-Z]+",
    "CNAME": "[a-zA-Z_][a-zA-Z0-9_]*",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\[^\n])*"',
}
_INSIDE = re.compile(r"\\/|\\.|\[(?:\\.|[^\]\\])*\]|[.^$]", re.DOTALL)
"""What must be looked at in a regular expression of Lark."""
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}/-]")
Token = re.Match[str]


class _Irregular(Exception):
    """The grammar recurs, or has something that is not read here."""


def regular(grammar: str) -> str | None:
    r"""The regular expression of the texts of a grammar, from its rule ``start``; None if it has none.

    >>> from chatparsers.serving.lark import regular
    >>> regular('start: "+" line+\nline: /[a-z]+/ LF\n%import common.LF')
    '\\+(?:(?:[a-z]+)\\n)+'
    """
    from ..grammar.regular.regex import Unsupported, read_regex

    try:
        found = _Rules(grammar).expand("start")
        read_regex(found)
    except (_Irregular, Unsupported, ValueError, RecursionError):
        return None
    return found


class _Rules:
    """The rules of a grammar by their names, each as its tokens."""

    def __init__(self, grammar: str) -> None:
        self._found: dict[str, str] = {}
        self._open: set[str] = set()
        self._rules: dict[str, list[Token]] = {}
        rule: list[Token] = []
        for token in _tokens(grammar + "\n"):
            if token.lastgroup != "end":
                rule.append(token)
            elif rule:
                self._add(rule)
                rule = []

    def _add(self, rule: list[Token]) -> None:
        first = rule[0]
        if first["import"] is not None and len(rule) == 1:
            if first["common"] not in _COMMON:
                raise _Irregular
            self._found[first["as"] or first["common"]] = _COMMON[first["common"]]
        elif len(rule) > 2 and first["name"] is not None and rule[1].group() == ":":
            self._rules[first["name"].lstrip("?!")] = rule[2:]
        else:
            raise _Irregular

    def expand(self, name: str) -> str:
        """The expression that a name stands for."""
        if name not in self._found:
            if name in self._open or name not in self._rules:
                raise _Irregular
            self._open.add(name)
            tokens = list(reversed(self._rules[name]))
            found = self._alternatives(tokens)
            if tokens or len(found) > _LONGEST:
                raise _Irregular
            self._found[name] = found
            self._open.discard(name)
        return self._found[name]

    # The readers take tokens from the end of a reversed list.

    def _alternatives(self, tokens: list[Token]) -> str:
        found = [self._sequence(tokens)]
        while tokens and tokens[-1].group() == "|":
            tokens.pop()
            found.append(self._sequence(tokens))
        return "|".join(found)

    def _sequence(self, tokens: list[Token]) -> str:
        found = []
        while tokens and tokens[-1].group() not in ("|", ")", "]"):
            token = tokens.pop()
            if token["alias"] is None:
                found.append(self._repeated(self._atom(token, tokens), tokens))
        return "".join(found)

    def _repeated(self, atom: str, tokens: list[Token]) -> str:
        if tokens and tokens[-1].group() in ("?", "*", "+"):
            return _one(atom) + tokens.pop().group()
        if tokens and tokens[-1]["times"] is not None:
            times = tokens.pop()
            return f"{_one(atom)}{{{times['least']},{times['most'] or times['least']}}}"
        return atom if "|" not in atom else f"(?:{atom})"

    def _atom(self, token: Token, tokens: list[Token]) -> str:
        if token["name"] is not None:
            found = self.expand(token["name"])
            return f"(?:{found})" if "|" in found else found
        if token["text"] is not None:
            return _SPECIAL.sub(r"\\\g<0>", _decoded(token["text"]))
        if token["regex"] is not None:
            return f"(?:{_INSIDE.sub(_plain, token['regex'][1:-1])})"
        if token.group() in ("(", "["):
            inner = self._alternatives(tokens)
            if not tokens or tokens.pop().group() != {"(": ")", "[": "]"}[token.group()]:
                raise _Irregular
            return f"(?:{inner})" + ("?" if token.group() == "[" else "")
        raise _Irregular


def _tokens(text: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise _Irregular
        place = token.end()
        if token["space"] is None:
            yield token


def _one(atom: str) -> str:
    """An expression that a quantifier may follow."""
    simple = len(atom) == 1 or (len(atom) == 2 and atom[0] == "\\") or re.fullmatch(r"\(\?:[^()]*\)", atom)
    return atom if simple else f"(?:{atom})"


def _decoded(text: str) -> str:
    """A text of Lark, whose escapes are Python's."""
    found = re.sub(
        r"\\(.)", lambda escape: {"n": "\n", "t": "\t", "r": "\r"}.get(escape[1], escape[1]), text[1:-1]
    )
    if re.search(r"\\[xuUN0-9]", text):
        raise _Irregular
    return found


def _plain(found: re.Match[str]) -> str:
    """A part of a regular expression of Lark in that of JSON Schema: a dot is anything but a line feed."""
    text = found.group()
    if text in ("^", "$") or text in (r"\A", r"\Z", r"\b", r"\B", r"\G"):
        raise _Irregular
    return {".": r"[^\n]", r"\/": "/"}.get(text, text)
