"""Real templates with one feature altered: a marker renamed, a blank added or removed, a value wrapped.

`alter` changes the source, so the template renders something that no known format reads. Nothing here knows how the
analysis works.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from ..test_detect import Tokens, lex, write

_MARKER = re.compile(r"<[^<>\s\"'{}]{2,40}>|\[/?[A-Z_]{3,}\]")


def _texts(tokens: Tokens) -> list[list[str]]:
    """The tokens whose text is written: data, and strings that are joined or printed, not compared."""
    solid = [token for token in tokens if token[0] != "whitespace"]
    found = []
    for before, token in zip([["", ""], *solid], solid, strict=False):
        written = token[0] == "data" and token[1].strip()
        joined = token[0] == "string" and before[1] in ("+", "~", "{{", "{{-", "else") and len(token[1]) > 2
        if written or joined:
            found.append(token)
    return found


def _rename(r: random.Random, tokens: Tokens) -> str:
    """A marker and its closing form are called something else, wherever they stand."""
    source = write(tokens)
    names = sorted({name for text in _MARKER.findall(source) for name in re.findall(r"[A-Za-z]{3,}", text)})
    if not names:
        return source
    name = r.choice(names)
    other = name[:1] + "q" + name[1:] + ("x" if name.islower() else "X")
    return _MARKER.sub(lambda found: re.sub(rf"(?<![A-Za-z]){name}(?![A-Za-z])", other, found[0]), source)


def _blank_added(r: random.Random, tokens: Tokens) -> str:
    """White space is written before or after a text of the template's own."""
    token = r.choice(_texts(tokens))
    blank = r.choice((" ", "\\n" if token[0] == "string" else "\n"))
    if token[0] == "data":
        blank = "{{ " + repr(blank) + " }}"
        token[1] = blank + token[1] if r.random() < 0.5 else token[1] + blank
    elif r.random() < 0.5:
        token[1] = token[1][0] + blank + token[1][1:]
    else:
        token[1] = token[1][:-1] + blank + token[1][-1]
    return write(tokens)


def _blank_removed(r: random.Random, tokens: Tokens) -> str:
    """White space at an edge of a text of the template's own is left out."""
    edges = re.compile(r"^(['\"])(?: |\\n)+(?=.)|(?<=.)(?: |\\n)+(?=['\"]$)")
    chosen = [token for token in _texts(tokens) if token[0] == "string" and edges.search(token[1])]
    if chosen:
        token = r.choice(chosen)
        token[1] = edges.sub(lambda found: found[1] or "", token[1])
    return write(tokens)


def _wrapped(r: random.Random, tokens: Tokens) -> str:
    """The JSON of arguments or of a value stands between two more marks."""
    places = []
    solid = [place for place, token in enumerate(tokens) if token[0] != "whitespace"]
    for number, place in enumerate(solid[:-1]):
        if tokens[place][1] == "|" and tokens[solid[number + 1]][1] == "tojson":
            first = number - 1
            while first >= 0 and (
                tokens[solid[first]][0] in ("name", "string")
                or tokens[solid[first]][1] in (".", "[", "]", "(", ")")
            ):
                first -= 1
            operand = "".join(tokens[at][1] for at in solid[first + 1 : number])
            if operand.count("(") == operand.count(")") and re.search("arg|val|param", operand):
                places.append((solid[first + 1], solid[number + 1]))
    if not places:
        return write(tokens)
    begin, end = r.choice(places)
    before, after = r.choice((("<val>", "</val>"), ("<![CDATA[", "]]>"), ("`", "`"), ("<|v|>", "<|v|>")))
    tokens[begin][1] = f"('{before}' ~ " + tokens[begin][1]
    tokens[end][1] += f" ~ '{after}')"
    return write(tokens)


KINDS: dict[str, Callable[[random.Random, Tokens], str]] = {
    "marker renamed": _rename,
    "blank added": _blank_added,
    "blank removed": _blank_removed,
    "value wrapped": _wrapped,
}


def alter(source: str, seed: int) -> tuple[str, str]:
    """The kind of the change, and the template's source with it."""
    r = random.Random(seed)
    kind = r.choice(list(KINDS))
    return kind, KINDS[kind](r, lex(source))
