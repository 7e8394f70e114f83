"""Reads as much of a user's Lark, as llguidance defines it, as must be known to embed it: where it ends.

Strategy: llguidance takes a grammar in braces inside another one and gives it names of its own. So the text is written
as it is, and only llguidance judges its rules. But a brace in it that closes more than it opens would end it early, and
what follows would be rules of the format. So it is cut into llguidance's tokens, and braces outside texts, regular
expressions, comments and JSON are counted. What is no token is refused, so that no two readings differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..errors import RequestError
from . import ir
from .misread import wrong

__all__ = ["read_lark"]

_TOKEN = re.compile(
    r"""
      (?P<skip> [ \t]+ | (?:\#|//)[^\n]* )
    | (?P<line> (?:\r?\n)+ )
    | (?P<json> %json[ \t\r\n]* ) | (?P<data> %(?:regex|llguidance)[ \t\r\n]* )
    | (?P<lark> %lark ) | (?P<ignore> %ignore )
    | (?P<open> \{ ) | (?P<close> \} )
    | (?P<start> [!?]*start(?![_a-z0-9-]) )
    | (?P<other> "(?:\\.|[^"\\\x00-\x1F\x7F])*" | /(?:\\.|[^/\\])+/ | <[^<>\s]+>
        | %(?:import|override|declare|if) | @?[\w-]+ | [!?_.,:=|()\[\]~&#*+] )
    """,
    re.VERBOSE,
)
_JSON = json.JSONDecoder()


def read_lark(given: Any) -> ir.Ir:
    """The node of a grammar. Raises `RequestError` for one that cannot be embedded."""
    if not isinstance(given, str):
        raise RequestError(
            f"response_format.grammar: expected the text of a Lark grammar, found {type(given).__name__}"
        )
    found: dict[str | None, int] = {}
    """The kinds of tokens, each with its first place; of names ``start`` those that begin a line."""
    depth, begins = 0, True
    for token in _tokens(given):
        kind = token.lastgroup
        if kind == "close" and not depth:
            raise _no_token(given, token.start())
        depth += (kind == "open") - (kind == "close")
        if kind != "start" or (begins and not depth):
            found.setdefault(kind, token.start())
        begins = kind == "line" or (begins and kind == "skip")
    if depth:
        raise wrong(given, "expected '}', found the end", len(given))
    if "start" not in found:
        raise wrong(given, "expected a rule named 'start', found none", 0)
    if "ignore" in found and not found.keys().isdisjoint({"json", "lark"}):
        why = (
            "beside %json or %lark llguidance loses its place by %ignore: write the white space in the rules"
        )
        raise wrong(given, why, found["ignore"])
    return ir.Nested(given)


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """The tokens; the JSON after a token is left out."""
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _no_token(text, at)
        yield token
        at = token.end()
        if token.lastgroup in ("json", "data"):
            try:
                at = _JSON.raw_decode(text, at)[1]
            except (ValueError, RecursionError):
                raise wrong(text, f"expected JSON after {token[0].strip()}", at) from None


def _no_token(text: str, at: int) -> RequestError:
    found = text[at : at + 12].split("\n")[0]
    return wrong(text, f"expected a token of Lark, found {found!r}", at)
