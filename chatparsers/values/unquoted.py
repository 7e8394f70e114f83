"""Where a value of Gemma's syntax ends whose quotes the model forgot.

A string that is not closed ends before the marker that ends the call, or before closing brackets and that marker, or
before the next call's opener. As text, the marker counts only where another marker or the end of the turn follows, or
prose and the next call, and never where the string's own quote follows: such a marker is part of the string. A value
without quotes ends there too, and before a comma and the next key, or before the end of its list or inner object. A
string ends before a comma, the name of another argument and the quote of that one's value.

The patterns find these places in a window of the text. What may yet become such a place is at most `HELD` characters
long, at the end of the window.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from ..core.machine.stops import StopFinder, is_token
from .json import BRACKETS, NUMBER

HELD = 128
MOST = 8
"""The most brackets, and the most white space, before the marker."""
NEAR = 1024
"""How many characters after such a marker its string's own quote may come, so that the marker is text."""
_WS = rf"[ \t\r\n]{{0,{MOST}}}"
_KEYS = {":": r",[A-Za-z_]\w{0,63}:", "=": rf",{_WS}[A-Za-z_]\w{{0,63}}[:=]"}
"""The next key, by the sign after the value's own."""
_SPACED_KEY = rf",{_WS}[A-Za-z_]\w{{0,63}}{_WS}[:=]"
_LONGEST_NAME = 100
_WIDE = 64
"""The most white space after a string, before what may follow it."""
_word = re.compile(rf"([-+.\w]{{1,64}}){_WS}").match
_scalar = re.compile(rf"{NUMBER}|[Tt]rue|[Ff]alse|null|None").fullmatch


class _Patterns:
    """Patterns, each compiled when it is first asked for: a call that is whole needs two or three of them."""

    _kind = "search"

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def __getattr__(self, name: str) -> Callable[..., re.Match[str] | None]:
        text = self.__dict__.get("_texts", {}).get(name)
        if text is None:
            raise AttributeError(name)
        found: Callable[..., re.Match[str] | None] = getattr(re.compile(text), self._kind)
        setattr(self, name, found)
        return found


class StringPatterns(_Patterns):
    """The patterns for one pair of markers: ``quote`` is around strings, each of ``closers`` is a form of the
    marker that ends a call, ``openers`` begin one, ``sign`` follows the value's key, ``names`` are those of the
    tool's arguments. ``stops`` finds any marker, ``opens`` the next call. A match of the others has the groups
    ``close``, closing brackets before the marker or opener, ``sure`` and ``likely``, the marker, and ``prose``, a
    marker before other text, which only ``string`` finds. ``next`` finds a comma and the key of an argument, its name
    as group 1, at the end of the text; ``next_begun`` a beginning of these. ``goes_on`` matches text of an argument's
    string up to where it may end, ``plain`` finds a character with which it may, or what a JSON string must escape."""

    def __init__(
        self,
        quote: str,
        closers: tuple[str, ...],
        openers: tuple[str, ...] = (),
        sign: str = ":",
        names: tuple[str, ...] = (),
    ) -> None:
        sure = "|".join(re.escape(one) for one in closers if is_token(one)) or "(?!)"
        likely = "|".join(re.escape(one) for one in closers if not is_token(one)) or "(?!)"
        shut = r"}\]" if sign == ":" else r"}\])"
        key, opener = _KEYS[sign], f"(?:{_either(openers)})"
        named = "|".join(re.escape(name) for name in names if len(name) <= _LONGEST_NAME)
        first = rf"{key}|,{_WS}(?:{named}){_WS}[:=]" if named else key
        over = rf"(?P<sure>{sure})|(?P<likely>{likely})(?={_WS}(?:<|\Z))|(?={opener})"
        over = rf"(?P<close>(?:[{shut}]{{1,{MOST}}}{_WS})?)(?:{over})"
        self.stops = StopFinder((quote, *closers, *openers))
        self.given = quote, closers, openers, sign, names
        self.known: dict[str, Following] = {}
        named = named or "(?!)"
        other = rf"{_WS}(?:{named}){_WS}{sign}"
        begun = "|".join(_begun(name) for name in names if len(name) <= _LONGEST_NAME) or "(?!)"
        begun = rf"{_WS}(?:{begun}|(?:{named}){_WS}(?:{sign}{_WS})?)?\Z"
        markers = (quote, *closers, *openers)
        firsts = {marker[0] for marker in markers} | set("}]" if closers or openers else "")
        special = re.escape("".join(sorted(firsts)))
        comma, is_key = (",", f"(?:(?<!,)|{other}|{begun})") if names else ("", "")
        begins = _either(sorted({marker[:2] for marker in markers}))
        shuts = rf"[}}\]][}}\] \t\r\n]{{0,{2 * MOST}}}(?:[{special}]|\Z)"
        ends = rf"{begins}|[{special}]\Z|{shuts}|,(?:{other}|{begun})"
        quote = re.escape(quote)
        texts = {
            "next": rf",{_WS}({named}){_WS}{sign}{_WS}\Z",
            "next_begun": "," + begun if names else "(?!)",
            "plain": rf'[{special}{comma}"\\\x00-\x1f]{is_key}',
            "goes_on": rf"[^{special}{comma}]*(?:(?!{ends})[{special}{comma}][^{special}{comma}]*)*",
            "opens": opener,
            "string": rf"{over[:-1]}|(?P<prose>{likely}))",
            "member": rf"(?={quote}|{first})|{over}",
            "inner": rf"(?={quote}|{key}|\}})|{over}",
            "item": rf"(?={quote}|[,\]])|{over}",
            "quoted": rf"'(?={_WS}(?:{quote}|{_SPACED_KEY}|[{shut}]))|{over}",
            "quoted_item": rf"'(?={_WS}(?:{quote}|[,\]]))|{over}",
        }
        super().__init__(texts)

    def __reduce__(self) -> tuple[object, ...]:
        return string_patterns, self.given

    def after(self, open: str) -> Following:
        """What may follow a string in the bracket ``open``; compiled when it is first asked for."""
        found = self.known.get(open)
        if found is None:
            quote, closers, *_ = self.given
            found = self.known[open] = Following(quote, closers, open)
        return found


@lru_cache(maxsize=64)
def string_patterns(
    quote: str,
    closers: tuple[str, ...],
    openers: tuple[str, ...] = (),
    sign: str = ":",
    names: tuple[str, ...] = (),
) -> StringPatterns:
    """The patterns for these markers; compiled once."""
    return StringPatterns(quote, closers, openers, sign, names)


class Following(_Patterns):
    """What may follow a string in the bracket ``open``: ``whole`` matches it, ``begun`` its beginning at the end
    of the text."""

    _kind = "match"

    def __init__(self, quote: str, closers: tuple[str, ...], open: str) -> None:
        begins = [quote, '"']
        shut = BRACKETS[open]
        name = r"[^\s:,{}\[\]()=<>\"']{1,64}"
        if open == "[":
            begins += ["[", "{", "true", "false", "null", "True", "False", "None"]
            item = rf"(?:{_either(begins)}|-?[0-9])"
            key, key_begun = "(?!)", "(?!)"
        else:
            item = rf"(?:{_either(begins)}|{name}{_WS}[:=])"
            key, key_begun = r"[A-Za-z_]\w{0,63}[:=]", r"[A-Za-z_]\w{0,63}"  # its comma is missing
        item_begun = (
            rf"(?:{_beginnings(begins)}|{name}{_WS}|-)?" if open != "[" else rf"(?:{_beginnings(begins)}|-)?"
        )
        wide = rf"[ \t\r\n]{{0,{_WIDE}}}"
        whole = rf"{wide}(?:{re.escape(shut)}|,{wide}(?:{item}|{re.escape(shut)})|{_either(closers)})|{key}"
        begun = rf"(?:{wide}(?:,{wide}{item_begun}|{_beginnings(closers)})?|{key_begun})\Z"
        super().__init__({"whole": whole, "begun": begun})


def _begun(name: str) -> str:
    """A pattern for the beginnings of a name."""
    return "".join(re.escape(char) + "(?:" for char in name) + ")?" * len(name)


def _either(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, texts)) or "(?!)"


def _beginnings(texts: Iterable[str]) -> str:
    return _either(
        sorted({text[:end] for text in texts for end in range(1, len(text))}, key=len, reverse=True)
    )


def is_scalar(text: str, i: int, final: bool) -> bool | None:
    """Whether a JSON scalar is at ``i``, before a comma, a bracket or the end. None: more text must come."""
    match = _word(text, i)
    end = match.end() if match else i
    if end == len(text) and end - i < 72 and not final:
        return None
    return bool(match and _scalar(match[1]) and (end == len(text) or text[end] in ",}])"))
