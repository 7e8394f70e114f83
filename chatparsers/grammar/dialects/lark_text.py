"""Terminals of text up to a marker, as expressions that llguidance joins with ``&`` and ``~``.

A terminal that ends at a marker is prefix-free: no text of its language begins another one, so the greedy lexer cannot
run past the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .. import ir
from ..ir import charset, complement
from .lark_regex import ANY_CHARACTER, char_class, escape, regex
from .rules import suffix

_EMPTY = "(?:)"


def until(node: ir.Lang, end: str) -> str:
    """Text that ends with the first stop in it."""
    terms = _terms(node)
    tail = escape(end)
    if not terms:
        whole = f"/{ANY_CHARACTER}*{tail}/"
    else:
        if all(term.startswith("~") for term in terms):  # `~` by itself would take all that follows
            terms.insert(0, f"/{ANY_CHARACTER}*/")
        whole = f"(({'&'.join(terms)})/{tail}/)"
    stops = _minimal((*node.stops, end))
    return f"{whole}&~/{ANY_CHARACTER}*{_any_of(stops)}{ANY_CHARACTER}+/"


def before_token(node: ir.Lang, lead: str) -> str:
    """Text that ends with ``lead`` and holds no stop. A token follows, so the lexer knows where the text ends."""
    terms = _terms(node)
    whole = f"({'&'.join(terms)})/{escape(lead)}/" if terms else f"/{ANY_CHARACTER}*{escape(lead)}/"
    return f"({whole})&~/{ANY_CHARACTER}*{_any_of(_minimal(node.stops))}{ANY_CHARACTER}*/"


def open_text(node: ir.Lang) -> tuple[str, bool]:
    """Text without an end of its own, and whether it may be empty (a terminal may not)."""
    terms = _terms(node)
    stops = _minimal(node.stops)
    if stops:
        terms.append(f"~/{ANY_CHARACTER}*{_any_of(stops)}{ANY_CHARACTER}*/")
    nullable = not node.least and all(part.positive is ir.nullable(part.node) for part in node.parts)
    if nullable:
        terms.append(f"/{ANY_CHARACTER}+/")
    if not any(not term.startswith("~") for term in terms):
        terms.append(f"/{ANY_CHARACTER}*/")
    terms.sort(key=lambda term: term.startswith("~"))
    return "&".join(terms), nullable


def excluded(node: ir.Lang, end: str) -> list[str] | None:
    """The texts that may not come before the first ``end``; None if that takes more than the character before a
    stop."""
    anywhere: list[str] = []
    found: list[str] = []
    for stop in _minimal((*node.stops, end)):
        if end.startswith(stop) and end != stop:
            found.append(f"~/{ANY_CHARACTER}*{escape(stop)}{ANY_CHARACTER}*{escape(end)}/")
        elif not end.endswith(stop):
            anywhere.append(stop)
        elif len(end) == len(stop) + 1:
            before = char_class(complement(charset(end[0])))
            found.append(f"~/(?:{ANY_CHARACTER}*{before})?{escape(stop)}{ANY_CHARACTER}*/")
        elif end != stop:
            return None
    if anywhere:
        found.append(f"~/{ANY_CHARACTER}*{_any_of(tuple(anywhere))}{ANY_CHARACTER}*/")
    return found


def _terms(node: ir.Lang) -> list[str]:
    """The constraints of a text's parts and its length, each as a term of an expression."""
    terms = [f"/{regex(part.node, 'raw') or _EMPTY}/" for part in node.parts if part.positive]
    without = [regex(part.node, "raw") or _EMPTY for part in node.parts if not part.positive]
    if without:
        terms.append(f"~/{one_of(without)}/")
    if node.least or node.most is not None:
        terms.append(f"/{ANY_CHARACTER}{suffix(node.least, node.most)}/")
    return terms


def begun(excludes: tuple[str, ...]) -> tuple[str, ...]:
    """The texts with which another one begins: text up to one of them would end where a thought may begin."""
    return tuple(
        text for text in excludes if any(other != text and other.startswith(text) for other in excludes)
    )


def _minimal(stops: Iterable[str]) -> tuple[str, ...]:
    """The stops that contain no other stop."""
    return _minimal_of(tuple(dict.fromkeys(stops)))


@lru_cache(maxsize=64)
def _minimal_of(every: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stop for stop in every if not any(other != stop and other in stop for other in every))


def _any_of(stops: tuple[str, ...]) -> str:
    return one_of([*map(escape, stops)])


def one_of(options: list[str]) -> str:
    """One of several expressions. What is excluded is one expression: of several, llguidance's lexer makes too many."""
    return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"
