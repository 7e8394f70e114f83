"""Python literals, passed on as JSON while they arrive.

Strategy: json.py walks through the brackets, commas and colons, and asks this scanner for what Python spells otherwise:
strings, numbers, words, tuples and sets. Text that is JSON already is passed on byte for byte: ``put`` replaces only
the other parts. Inside a string, two regular expressions work in bulk: one takes text that is the same in JSON, the
other takes text that JSON escapes.

A value in brackets that is whole in one piece, and differs from JSON only in quotes and words, is respelt in one pass
(respell.py).

Sometimes the following text decides the meaning. Then the scanner looks at most ``_WINDOW`` characters ahead, and
leaves them unconsumed until they have arrived:

- ``{`` opens a set if no ``:`` follows its first scalar; else, and if the scalar is longer than the window, an object.
- ``(`` opens a tuple if ``,`` follows its first scalar; else, and if the scalar is longer, a value in parentheses.
- A string goes on if another literal follows its end. (Only inside brackets.)
- At the top, the quote of an argument's string ends it only before the next argument or the end of the call; in
  brackets, before a comma, a colon or a bracket. Elsewhere it is part of the string, which a model wrote without
  escapes.

A number is consumed at once, and goes out when it has ended and is JSON, or is mended. One longer than the window must
be JSON. So each decision depends on a fixed stretch of text, never on the chunking.

A double-quoted string that is JSON keeps JSON's meaning if Python's differs (``\\/``, surrogate pairs). Text that is
Python but not JSON is respelt silently. Text that is neither (a line break in a string, an apostrophe in single quotes,
an unknown escape, ``007``), or that loses its type (keys, bytes, f-strings, numbers that JSON has not), is mended with
a note. Anything else is an error at its place.
"""

from __future__ import annotations

import re

from ..core.machine.value import Search
from .base import WS, Match, Spell, escape, white
from .closers import NO_CLOSERS, Closers
from .json import (
    COLON,
    ITEM_OR_END,
    JOIN,
    KEY_OR_END,
    NUMBER,
    OWN_NUMBER,
    PYTHON,
    PYTHON_WORDS,
    QUOTED,
    STRING,
    VALUE,
    JsonScanner,
)
from .respell import LONGEST_ESCAPE, SINGLE, requoted, single_inside, whole_value

_WINDOW = 256
_BULK = 64
_LONGEST_WORD = 8

_HEX = "[0-9a-fA-F]"
_PREFIX = "(?:[rR][bBfF]?|[bBfF][rR]?|[uU])?"

_word_run = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").match
_prefix = re.compile(_PREFIX).fullmatch
_adjacent = re.compile(rf"{WS}(?={_PREFIX}['\"])").match
_adjacent_begun = re.compile(rf"{WS}{_PREFIX}\Z").match


# The first scalar in brackets, whole, and what follows it.
def _string(q: str) -> str:
    triple = rf"{q * 3}(?:[^{q}\\]|\\[\s\S]|{q}(?!{q}{q}))*{q * 3}"
    return rf"{triple}|{q}(?!{q}{q})[^{q}\\]*(?:\\[\s\S][^{q}\\]*)*{q}"


_STRINGS = _string('"') + "|" + _string("'")
_first = re.compile(rf"(?:(?:{_PREFIX}(?:{_STRINGS}){WS})+|[-+.0-9A-Za-z_]+{WS})([:,}})])").match

# The quote of a single-quoted string, where it ends none: a letter follows, and no other literal or argument.
_ARGUMENT = r"[A-Za-z_]\w{0,63}=(?:['\"\[{(0-9-]|True|False|None)"
_apostrophe = re.compile(rf"'(?=\w)(?!{_PREFIX}['\"]|{_ARGUMENT})").match
_apostrophe_begun = re.compile(rf"'(?:{_PREFIX}|[A-Za-z_]\w{{0,63}}(?:=[A-Za-z]{{0,4}})?)\Z").match

# After the quote of an argument's string: the next argument (no group), the beginning of one at the end of the text
# (group 1), or the end of the call (group 2). In brackets: what is neither.
_SPACE = r"[ \t\r\n]{0,64}"
_NAME = r"[A-Za-z_]\w{0,63}"
_separated = re.compile(
    rf"{_SPACE}(?:,{_SPACE})?(?:{_NAME}{_SPACE}=(?!=|\Z)|(?:{_NAME}{_SPACE}=?)?(\Z)|(\)))"
).match
_adjoining = re.compile(rf"{_ARGUMENT}|{_NAME}{_SPACE}(?:=[A-Za-z]{{0,4}})?(\Z)").match
_goes_on = re.compile(rf"[ \t\r\n]{{0,{_WINDOW - 1}}}[^ \t\r\n,:\])}}]").match

_escape = re.compile(rf"\\(?:'|a|v|\r\n|\r|\n|[0-7]{{1,3}}|x{_HEX}{{2}}|U{_HEX}{{8}})").match
_escape_begun = re.compile(rf"\\(?:\r|[0-7]{{1,2}}|x{_HEX}?|u{_HEX}{{0,3}}|U{_HEX}{{0,7}})?\Z").match
_ESCAPED = {"'": "'", "a": "\\u0007", "v": "\\u000b", "\n": "", "\r": ""}

# A whole string of one literal that differs from JSON only in its quotes. Group 1: the inside of one in single quotes.
_whole_string = re.compile(rf"""(?:'(?!'')({SINGLE})'|"(?!"){STRING}")(?=[,:\]}})])""").match
_number_run = re.compile(r"[-+.0-9A-Za-z_]*").match
_json_number = re.compile(NUMBER).fullmatch
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_decimal = re.compile(rf"([-+]?)({_DIGITS})?(?:\.({_DIGITS})?)?(?:[eE]([-+]?{_DIGITS}))?").fullmatch
_based = re.compile(rf"([-+]?)0(?:[xX]((?:_?{_HEX})+)|[oO]((?:_?[0-7])+)|[bB]((?:_?[01])+))").fullmatch

_WORDS = PYTHON_WORDS | {word: word for word in PYTHON_WORDS.values()}
_NUMBERS = frozenset({"NaN", "Infinity", "nan", "inf"})
"""Words for numbers that JSON has not. They become strings."""
_signed = re.compile(r"-(?:Infinity|inf)").fullmatch
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")


def _mode(quote: str, raw: bool) -> tuple[tuple[Match, Spell | None], Match, Search, str, bool]:
    """How to read a string: what goes on with it (`JsonScanner.goes_on`), text to escape, ``plain``; quote; raw."""
    q = quote[0]
    ordinary = rf'[^{q}"\\\x00-\x1f]*'
    if raw:
        same = ordinary
    else:
        escapes = '["\\\\/bfnrt]' if quote == '"' else '["\\\\bfnrt]'
        same = rf"{ordinary}(?:\\(?:{escapes}|u{_HEX}{{4}}){ordinary})*"
    pair = r"|\\[\s\S]" if raw else ""
    if len(quote) == 1:
        other = rf"(?:[^{q}\\\r\n]+{pair})+" if raw else rf"[^{q}\\\r\n]+"
    else:
        other = rf"(?:{q}{{0,2}}(?:[^{q}\\]+{pair}))+"
    odd = re.compile(rf'[{q}"\\\x00-\x1f]').search
    usual = (single_inside, requoted) if quote == "'" and not raw else (re.compile(same).match, None)
    return usual, re.compile(other).match, odd, quote, raw


_MODES = {
    ("r" if raw else "") + quote: _mode(quote, raw)
    for raw in (False, True)
    for quote in ('"', "'", '"""', "'''")
}


class PythonScanner(JsonScanner):
    """Reads one Python or JSON literal: strings, numbers, ``None``, ``True``, ``False``, lists, tuples, sets, dicts.

    A container ends at its closing bracket, a string at its quote, any other value before the first character that
    cannot belong to it. ``named``: it is the value of an argument of a call in parentheses,
    ``name=value``. ``closers`` knows what may follow the parenthesis that ends the call.
    """

    __slots__ = ("closers", "mode", "named")

    def __init__(self, named: bool = False, closers: Closers = NO_CLOSERS) -> None:
        self._set_up("", PYTHON)
        self.named = named
        self.closers = closers
        self.mode = ""
        """The prefix and quote of the last string."""

    def begin(self, text: str, i: int, final: bool) -> int:
        char = text[i]
        if char in "\"'":
            match = _whole_string(text, i) if self.state != JOIN else None
            if match:
                end = match.end()
                if self.stack or self._string_over(text, end) > 0:
                    inside = match[1]
                    if inside is not None:
                        if '"' in inside or "\\'" in inside:
                            inside = requoted(inside)
                        self.put(text, i, end, f'"{inside}"')
                    if not self.key:
                        self.over()
                    elif text.startswith(": ", end):
                        self.state = VALUE
                        end += 2
                    else:
                        self.state = COLON
                    return end
            return self._opened_string(text, i, i, final)
        if char in _LETTERS:
            return self._word(text, i, final)
        if char in "-+.0123456789":
            if self.key:
                self.notes.append((i, "a string as key", char))
                self.put(text, i, i, '"')
            self.state = OWN_NUMBER
            return self._number(text, i, final)
        if char in "[{(" and not self.key:
            if not self.stack and char != "(" and len(text) - i > _BULK:
                end, out = whole_value(text, i)
                if end:
                    self.put(text, i, end, out)
                    self.done = self.stopped = True
                    return end
            if char != "[":
                return self._opened(text, i, final)
        return -1

    def holds(self, text: str) -> bool:
        if self.stack or text[0] != self.mode or text[1:2] not in ",) \t\r\n":
            return False
        return self._string_over(text, 1) < 0

    def _opened(self, text: str, i: int, final: bool) -> int:
        """Reads an opening brace or parenthesis."""
        kind = self._kind(text, i, final)
        if not kind:
            self.stopped = True
            return i
        self.stack.append(kind)
        self.state = KEY_OR_END if kind == "{" else VALUE if kind == "p" else ITEM_OR_END
        if kind != "{":
            self.put(text, i, i + 1, "" if kind == "p" else "[")
        return i + 1

    def _kind(self, text: str, i: int, final: bool) -> str:
        """The kind that a brace or parenthesis opens; "" while more text is needed."""
        n = len(text)
        limit = i + _WINDOW
        brace = text[i] == "{"
        match = white(text, i + 1, limit)
        after = match.end() if match else i + 1
        if after < n and after < limit:
            char = text[after]
            if char == "(":
                return "s" if brace else "q"
            if char in "[{":
                return "{" if brace else "q"
            if char == ("}" if brace else ")"):
                return "{" if brace else "("
            first = _first(text, after, limit)
            if first and brace:
                return "{" if first[1] == ":" else "s"
            if first:
                return "(" if first[1] == "," else "p"
        return "" if n < limit and not final else "{" if brace else "p"

    def _word(self, text: str, i: int, final: bool) -> int:
        match = _word_run(text, i)
        end = match.end() if match else i
        if end == len(text) and not final and end - i <= _LONGEST_WORD:
            self.stopped = True
            return i
        word = text[i:end]
        if text[end : end + 1] in ("'", '"') and _prefix(word):
            return self._opened_string(text, i, end, final)
        out = f'"{word}"' if word in _NUMBERS else _WORDS.get(word)
        if out is None or self.state == JOIN:
            self.fail(self.state)
            return i
        if self.key:
            self.notes.append((i, "a string as key", word))
            out = f'"{out}"' if out[0] != '"' else out
        elif out[0] == '"':
            self.notes.append((i, "a number", word))
        if out != word:
            self.put(text, i, end, out)
        self.over()
        return end

    def _number(self, text: str, i: int, final: bool) -> int:
        match = _number_run(text, i)
        end = match.end() if match else i
        over = end < len(text) or final
        if self.number or not over or not _json_number(text, i, end):
            self.put(text, i, end, "")
            self.number.append(text[i:end])
            if not over:
                return end
            number = "".join(self.number)
            self.number = []
            mended = _mend(number)
            if self.key:
                mended = mended.strip('"')
            self.put(text, end, end, mended or number)
            if mended and mended != number:
                self.notes.append((end, mended, number))
            if not mended:
                self.fail(OWN_NUMBER)
                return end
        if self.key:
            self.put(text, end, end, '"')
        self.over()
        return end

    def _opened_string(self, text: str, i: int, at: int, final: bool) -> int:
        """Reads a string's prefix (at ``i``) and quote (at ``at``)."""
        char = text[at]
        quote = text[at : at + 3]
        if quote != char * 3:
            if len(quote) < 3 and quote == char * len(quote) and not final:
                self.stopped = True
                return i
            quote = char
        prefix = text[i:at].lower()
        if "b" in prefix or "f" in prefix:
            self.notes.append((i, "a plain string", text[i : at + 1]))
        out = "" if self.state == JOIN else '"'
        if out != text[i : at + len(quote)]:
            self.put(text, i, at + len(quote), out)
        self._open(("r" if "r" in prefix else "") + quote)
        return at + len(quote)

    def _open(self, mode: str) -> None:
        """Begins a string, its quote included."""
        self.mode = mode
        self.state = QUOTED
        self.goes_on, _, self.odd, _, _ = _MODES[mode]

    def inside(self, text: str, i: int, final: bool) -> int:
        if self.state != QUOTED:
            return self._number(text, i, final) if self.state == OWN_NUMBER else self.begin(text, i, final)
        n = len(text)
        (same, spelt), other, _, quote, raw = _MODES[self.mode]
        while True:
            match = same(text, i)
            end = match.end() if match else i
            if spelt is not None:
                run = text[i:end]
                if '"' in run or "\\'" in run:
                    self.put(text, i, end, spelt(run))
            i = end
            if i == n:
                return i
            char = text[i]
            if char == quote[0]:
                if spelt and _apostrophe_begun(text, i):
                    self.stopped = True
                    return i
                if spelt and _apostrophe(text, i):
                    self.notes.append((i, "an escaped quote", text[i : i + 2]))
                    i += 1
                    continue
                if text.startswith(quote, i):
                    return self._closed_string(text, i, len(quote), final)
                if not final and n - i < len(quote) and quote.startswith(text[i:]):
                    self.stopped = True
                    return i
            elif char == "\\" and not raw:
                at = self._escaped(text, i, final)
                if at == i:
                    self.stopped = True
                    return i
                i = at
                continue
            elif char == '"' and not raw and len(quote) == 1:
                self.put(text, i, i + 1, '\\"')
                i += 1
                continue
            match = other(text, i)
            if match:
                end = match.end()
            elif char == "\\" and not final:
                self.stopped = True
                return i
            else:
                end = i + 1
                if char in "\r\n":
                    self.notes.append((i, "an escaped line break", char))
            self.put(text, i, end, escape(text[i:end]))
            i = end

    def _escaped(self, text: str, i: int, final: bool) -> int:
        """Reads a backslash that begins no JSON escape; returns ``i`` if more text is needed."""
        if not final and len(text) - i < LONGEST_ESCAPE and _escape_begun(text, i):
            return i
        match = _escape(text, i)
        if match:
            body = match[0][1:]
            out = _ESCAPED.get(body[0])
            if out is None:
                code = int(body, 8) if body[0] in "01234567" else int(body[1:], 16)
                if code <= 0x10FFFF:
                    out = f"\\u{code:04x}" if 0xD800 <= code < 0xE000 else escape(chr(code))
            if out is not None:
                self.put(text, i, match.end(), out)
                return match.end()
        self.notes.append((i, "an escape", text[i : i + 2]))
        self.put(text, i, i + 1, "\\\\")
        return i + 1

    def _string_over(self, text: str, after: int) -> int:
        """1 if the quote before ``after`` ends a string at the top, 0 if it is part of it; -1 if more text must
        tell."""
        if not self.named:
            return 1
        end = after + 1
        if not text.startswith(")", after):
            match = (_separated if text[after:end] in " \t\r\n," else _adjoining)(text, after)
            if match is None or match.lastindex != 2:
                return 0 if match is None else -1 if match.lastindex else 1
            end = match.end()
        follow = self.closers.get(")")
        return 1 if follow is None else follow.stands(text, end)

    def _closed_string(self, text: str, i: int, width: int, final: bool) -> int:
        """Reads the closing quote."""
        after, over = i + width, 1
        if not self.stack:
            over = self._string_over(text, after)
        elif after == len(text) or text[after] not in ",:]})":
            match = _adjacent(text, after, after + _WINDOW)
            if match:
                self.put(text, i, match.end(), "")
                self.odd = None
                self.state = JOIN
                return match.end()
            if len(text) - after < _WINDOW and _adjacent_begun(text, after):
                over = -1
            elif width == 1 and not self.key and _goes_on(text, after):
                over = 0
        if over < 0:
            self.stopped = True
            return len(text) if final else i
        if not over:
            self.notes.append((i, "an escaped quote", text[i : after + 1]))
            self.put(text, i, after, escape(text[i:after]))
            return after
        if width == 3 or text[i] != '"':
            self.put(text, i, after, '"')
        self.over()
        return after


def _mend(number: str) -> str:
    """Respells a Python number, or something close to one, as JSON; "" if it is not a number."""
    if _json_number(number):
        return number
    if len(number) > _WINDOW:  # nobody means it, and Python converts no number of many digits
        return ""
    match = _based(number)
    if match:
        sign, hexadecimal, octal, binary = match.groups()
        value = int(hexadecimal or octal or binary, 16 if hexadecimal else 8 if octal else 2)
        return ("-" if sign == "-" else "") + str(value)
    match = _decimal(number)
    if not match or not (match[2] or match[3]):
        return f'"{number}"' if _signed(number) else ""
    sign, whole, fraction, exponent = ((group or "").replace("_", "") for group in match.groups())
    mended = ("-" if sign == "-" else "") + (whole.lstrip("0") or "0")
    return mended + (fraction and f".{fraction}") + (exponent and f"e{exponent}")
