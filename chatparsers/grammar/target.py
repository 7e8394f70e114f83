"""What a grammar is written for: what its dialect and engine can say, and what the caller wants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ..errors import RequestError, did_you_mean


@dataclass(frozen=True, slots=True)
class Target:
    """The needs of one dialect for one engine.

    ``free``: the dialect has a form for text with calls in it. ``counts_text``: so many characters of text up to a
    marker its engine counts in a terminal (0: the automaton counts them). ``most_counted``: strings up to so long are
    counted, because each character takes the engine time to compile (None: strings of any length). ``ids``,
    ``regexes``: whether the engine reads references to tokens, and regular expressions in rules. ``tokens``: the engine
    counts the tokens of free text. ``most_members``: so many members of one object the engine bears in their orders; of
    more, each may come any number of times (None: it bears any number). ``blank_in_names``: the white space before the
    name of a member is in one terminal with its opening quote, not with the brace or comma before it. Else an engine
    that lexes would begin all the names anew at each character that may end the white space. ``bits``: those of the
    parameter that its rules may have; so many members come in any order. ``coarse``: the engine takes long to tell free
    text from calls. So the text has no word that opens a call with any name after it, none of the keys of calls where
    an answer begins as JSON, and after what might have become a marker no rest of one.
    ``open_objects``: members that a schema does not mention are generated, as JSON Schema says; the caller decides.
    ``whitespace``: the most characters of white space between two tokens of JSON (None: as many as the engine bears);
    the caller decides.
    """

    engine: str = "llama.cpp"
    free: bool = False
    counts_text: int = 0
    most_counted: int | None = None
    ids: bool = True
    regexes: bool = False
    tokens: bool = False
    open_objects: bool = False
    most_members: int | None = None
    blank_in_names: bool = False
    bits: int = 0
    coarse: bool = False
    whitespace: int | None = None

    def line_ends(self, indent: int) -> list[tuple[str, int]]:
        """The ends of lines inside JSON, each as a regular expression with how many of ``indent`` spaces or tabs may
        follow it."""
        most = self.whitespace
        if most is None:
            return [(r"\r?\n", indent)]
        ends = (r"\n", most - 1), (r"\r\n", most - 2)
        return [(end, min(indent, left)) for end, left in ends if left >= 0]

    def blank(self, indent: int) -> str:
        """The white space inside JSON as a regular expression: one space, or a line's end and up to ``indent`` spaces
        or tabs; "" if there is none."""
        if self.whitespace == 0:
            return ""
        ends = [rf"{end}[ \t]{{0,{left}}}" if left else end for end, left in self.line_ends(indent)]
        return "|".join([" ", *ends])

    def indent(self, indent: int, written: int) -> int:
        """How many spaces or tabs may still follow a line's end and the ``written`` ones."""
        most = indent if self.whitespace is None else min(indent, self.whitespace - 1)
        return max(0, most - written)


PLAIN = Target()
"""GBNF for llama.cpp."""

_COUNTED = 64
_COUNTED_TEXT = 24
"""With more (48, or 32 beside a pattern) llguidance gives up in the middle of a marker: too many expressions."""

_TAG_MEMBERS = 1_000
"""xgrammar 0.2.9 overflows a stack of 8 MB with 1,500."""
_LARK_MEMBERS = 480
"""In two orders, more make a row of llguidance's longer than it takes."""

TAGS = Target(
    "xgrammar",
    free=True,
    most_counted=_COUNTED,
    regexes=True,
    tokens=True,
    most_members=_TAG_MEMBERS,
    coarse=True,
)
"""Structural tags for xgrammar."""

TARGETS: Mapping[str, Mapping[str, Target]] = {
    "gbnf": {
        "llama.cpp": PLAIN,
        "xgrammar": Target("xgrammar", most_counted=_COUNTED, regexes=True, most_members=_TAG_MEMBERS),
    },
    "lark": {
        "llguidance": Target(
            "llguidance",
            free=True,
            counts_text=_COUNTED_TEXT,
            tokens=True,
            most_members=_LARK_MEMBERS,
            blank_in_names=True,
            bits=64,
        )
    },
    "structural_tag": {"xgrammar": TAGS},
}
"""The dialects, and the engines that read each; the first is the usual one."""

_ENGINES = tuple(dict.fromkeys(engine for engines in TARGETS.values() for engine in engines))
_NAMED = re.compile(
    r"(?P<name>[a-z.]+?)(?: *(?:==|>=) *(?P<version>[0-9]+(?:\.[0-9]+)*)[.a-z0-9+]*)?"
).fullmatch
_TAGS, _REGEXES = (0, 1, 34), (0, 2, 6)
"""The first xgrammar with all parts of a structural tag and with references to tokens, and the first with regular
expressions in rules and with counted tokens."""


def target_of(dialect: str, engine: str, open_objects: bool = False, whitespace: int | None = None) -> Target:
    """The needs of a dialect for an engine: its name, or the name and the oldest version that must read the grammar, as
    in ``xgrammar>=0.2.4``. An engine that does not read the dialect is left out of account: most have only one. Raises
    `RequestError` for an unknown engine, or a version that does not read the dialect."""
    named = _NAMED(engine) if isinstance(engine, str) else None
    if named is None or named["name"] not in _ENGINES:
        raise RequestError(
            f"engine: expected one of {', '.join(_ENGINES)}, perhaps with a version as in 'xgrammar>=0.2.4', found "
            f"{engine!r}: {did_you_mean(str(engine), _ENGINES)}"
        )
    engines = TARGETS[dialect]
    found = engines.get(named["name"]) or next(iter(engines.values()))
    if named["name"] == found.engine == "xgrammar" and named["version"]:
        version = tuple(map(int, named["version"].split(".")))
        if dialect == "structural_tag" and version < _TAGS:
            raise RequestError(
                f"engine: structural tags need xgrammar {_spelt(_TAGS)} or a later version, found {engine!r}: install "
                'one, or take dialect "gbnf"'
            )
        late = version >= _REGEXES
        found = replace(found, ids=version >= _TAGS, regexes=late, tokens=found.tokens and late)
    return _asked(found, open_objects, whitespace)


@lru_cache(maxsize=64)
def _asked(target: Target, open_objects: bool, whitespace: int | None) -> Target:
    return replace(target, open_objects=open_objects, whitespace=whitespace)


def _spelt(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
