"""JSON values, passed on byte for byte, and the walk through brackets, commas and colons for the syntaxes near JSON.

Strategy: the scanner keeps a state and a stack of open brackets. Inside a string, one regular expression takes
everything up to the next quote or odd character. Between members, another takes whole flat members at once. So long
texts need no Python loop for each character.

The scanner mends five things, each with a note: it escapes raw control characters in strings, it doubles a backslash
that begins no escape, it respells Python's ``None``, ``True`` and ``False``, it makes strings of ``NaN`` and
``Infinity``, and it leaves out a comma before a closing bracket. So a comma at the end of a piece is kept until the
next character has come. Any other text that is not JSON is an error at its place; the text before it has been passed
on.

What a short text does at a place of JSON follows from the state, the open brackets and the text. So a place (`_Place`)
remembers it, and the next time one look-up takes the scanner to the next place: the tokens of a call's structure are
few, and they come in each call.

Python literals and Gemma's objects are dialects: the same walk, brackets and expectations as data (`BRACKETS`,
`_RESPELT`, `_VALUES`), and a scanner that is asked for their keys, strings and other scalars (python.py, gemma.py).
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from ..compiled import ACCELERATOR
from ..core.machine.value import Search, Transcoder
from .base import WS, Match, Spell, escape, white

# Regular expressions for text that is JSON already.
STRING = r'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*'
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
SCALAR = rf'(?:"{STRING}"|{NUMBER}|true|false|null)'

_run = re.compile(STRING).match
_odd: Search = re.compile(r'["\\\x00-\x1f]').search
AS_JSON: tuple[Match, Spell | None] = _run, None
_number = re.compile(NUMBER).fullmatch
_number_run = re.compile(r"[-+.0-9eE]*").match
_word_run = re.compile(r"-?[A-Za-z_]*").match
_escape_begun = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").fullmatch
_members = re.compile(rf'(?:{WS}"{STRING}"{WS}:{WS}{SCALAR}{WS},)+').match
_items = re.compile(rf"(?:{WS}{SCALAR}{WS},)+").match
_BARE = r'[^"\\\x00-\x1f]*'
_UNQUOTED = r"(?:[1-9][0-9]*(?:\.[0-9]+)?|0(?:\.[0-9]+)?|true|false|null)"
_IN_KEY = rf'": ?(?:("{_BARE})|({_UNQUOTED}(?=[,}}]))|())'
_key_ends = re.compile(_IN_KEY).match
"""The end of a key and the usual colon, and what there is of the value. Groups are as in `_IN_MEMBER`."""
_next_key = re.compile(rf'[{{,]{WS}"{_BARE}(?:{_IN_KEY})?').match
"""The same after a comma or the bracket, with the key."""
_flat = re.compile(rf'\{{(?:"{_BARE}": ?(?:"{_BARE}"|{_UNQUOTED})(?:, ?(?=")|(?=\}})))*\}}').match
"""A whole object of usual scalars, spaced as templates write it: most arguments of a call. What is not quite so is seen
at its first odd character; patterns that take more would go back through a long string in small steps."""

PYTHON_WORDS = {"None": "null", "True": "true", "False": "false"}
_MENDED = PYTHON_WORDS | {word: f'"{word}"' for word in ("NaN", "Infinity", "-Infinity")}
_WORDS = frozenset(PYTHON_WORDS.values())
_LONGEST_WORD = 9
_AFTER_SIGN = (("", "I"), ("I",))
"""What a minus sign before a word is followed by: without and with the end of the text."""
_BULK = 64
_FLAT = 256
"""The longest object that is tried as a flat one: a try that fails costs no more than this."""
_PART = 4096
_SHORT_TEXT = 8 if ACCELERATOR else -1
"""The longest text that a place remembers."""
_MOST_TEXTS, _MOST_PLACES, _DEEPEST = 64, 512, 8
"""How many texts a place remembers, how many places there are, and how many brackets are open in one."""
_digits = re.compile(r"(?<=[.eE+])[0-9]+|(?<=[eE]-)[0-9]+|[1-9][0-9]*").sub
"""With "1" for what it finds, a number becomes the shortest one that goes on as it."""

# The states: what may come next. The first two follow a comma. The last five are those of dialects: in a number, in a
# string, where the next literal of a string begins, in a key and in a value without quotes.
KEY, ITEM, VALUE, ITEM_OR_END, KEY_OR_END, COLON, NEXT, STRING_VALUE, STRING_KEY, NUMBER_OPEN = range(10)
OWN_NUMBER, QUOTED, JOIN, BARE, TEXT = range(10, 15)
_IN_MEMBER = {None: STRING_KEY, 1: STRING_VALUE, 2: NEXT, 3: VALUE}
"""The state by the group in which `_next_key` ends."""
_AFTER_COMMA = {"{": KEY, "c": KEY, "[": ITEM, "(": ITEM, "q": ITEM, "s": ITEM}
_EXPECTED = {
    VALUE: "{value}",
    ITEM: "{value}",
    ITEM_OR_END: "{value} or '{close}'",
    KEY_OR_END: "a key or '}}'",
    KEY: "a key",
    COLON: "':'",
    STRING_VALUE: "the end of a string",
    STRING_KEY: "the end of a key",
    NUMBER_OPEN: "a JSON number",
    OWN_NUMBER: "a number",
    QUOTED: "the end of a string",
    JOIN: "a string",
    BARE: "':'",
    TEXT: "the end of a value",
}

JSON, PYTHON, GEMMA = range(3)
_VALUES = ("a JSON value", "a Python literal", "a value")
_OBJECT = ("a JSON object", "", "an object")
BRACKETS = {"{": "}", "[": "]", "(": ")", "q": ")", "p": ")", "s": "}", "c": ")"}
"""The kinds of brackets, and what closes them. Python's: "(" is a tuple, "q" one that no comma has confirmed yet, "p" a
value in parentheses, "s" a set. Gemma's: "c" is an object in the parentheses of a call."""
_RESPELT = {"(": "]", "q": "]", "p": "", "s": "]", "c": "}"}
"""How JSON closes those that it has not."""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)


def judge(text: str, start: int, more: bool) -> int:
    """The end of the JSON value at ``start``; 0 if it is not well-formed; -1 if it may be so with ``more`` text.

    The interpreter's own scanner finds it faster than a loop here.
    """
    try:
        return _decoder.raw_decode(text, start)[1]
    except json.JSONDecodeError as error:
        reached = error.pos >= len(text) // 2 or error.msg.startswith("Unterminated string")
        return -1 if more and reached else 0
    except (ValueError, RecursionError):
        return 0


def _whole(text: str, start: int) -> int:
    """The end of the JSON value at ``start``, or 0 if the value is not whole and well-formed.

    The judge runs once a value, so the work stays linear. Deep in a text it gets growing parts of the text, because its
    error counts the lines of all the text it got.
    """
    if text[start] not in "{[":
        return 0
    if start <= _PART:
        return judge(text, start, False)
    size = _PART
    while (end := judge(text[start : start + size], 0, start + size < len(text))) < 0:
        size *= 8
    return end and start + end


class _Place:
    """A place within brackets. ``goes``: what a scanner did here with a text: its next place, `odd`, `plain`, whether
    the value is over, what it put out, and how much it took. Of a text that ends within a string, that is kept up to
    the quote. ``stays``: it may learn more. A place that a scanner alone still holds learns nothing, or it would hold
    all that came after it."""

    __slots__ = ("comma", "goes", "number", "stack", "state", "stays")

    def __init__(self, state: int, stack: str, comma: str, number: str) -> None:
        self.state, self.stack, self.comma, self.number = state, stack, comma, number
        self.goes: dict[str, _Gone] = {}
        self.stays = True

    def into(self, text: str) -> _Gone | None:
        """What a scanner does here with a text that ends within a string, if it is known up to the last quote."""
        end = text.rfind('"') + 1
        gone, more = self.goes.get(text[:end]), text[end:]
        if gone is None or gone[1] is None or _odd(more):
            return None
        place, odd, plain, done, out, _ = gone
        return place, odd, plain, done, out + more, len(text)

    def __reduce__(self) -> Any:
        return _place, (self.state, self.stack, self.comma, self.number)


_Gone: TypeAlias = "tuple[_Place | None, Search | None, Search | None, bool, str, int]"
_places: dict[tuple[int, str, str, str], _Place] = {}


def _place(state: int, stack: str, comma: str, number: str) -> _Place:
    """The place. Places know one another, so none would go alone: once there are too many, all forget all and go."""
    key = state, stack, comma, number
    found = _places.get(key)
    if found is None:
        if len(_places) >= _MOST_PLACES:
            for gone in _places.values():
                gone.stays = False
                gone.goes.clear()
            _places.clear()
        found = _places[key] = _Place(*key)
    return found


class JsonScanner(Transcoder):
    """Reads one JSON value. ``kinds``: the characters that it may begin with, such as ``"{"``; "" allows any.

    ``comma``: the comma at the end of the text so far, and the white space after it, which are not passed on yet.
    ``stack``: the open brackets. ``parts``: the output of this scan before ``text[kept]``, where it is not the text.
    ``place``: where the scanner is, if that is known: then it stands for state, brackets, number and comma.

    The scanner of another syntax (``dialect``) is derived from this one. It is asked at each key and value (`begin`),
    where neither a comma nor the bracket comes after a value (`after`), and inside what it has begun, in states of its
    own (`inside`); what it passes on in place of the text it gives to `put`. What it leaves is read as JSON.
    """

    __slots__ = (
        "comma", "dialect", "goes_on", "kept", "key", "kinds", "number", "odd", "parts", "place", "stack", "state",
        "stopped",
    )  # fmt: skip

    def __init__(self, kinds: str = "", dialect: int = JSON) -> None:
        self._set_up(kinds, dialect)

    def _set_up(self, kinds: str, dialect: int) -> None:
        """Sets what every scanner has. Compiled, it is called at less cost than ``__init__``."""
        self._reset()
        self.kinds = kinds
        self.dialect = dialect
        self.state = VALUE
        self.key = False
        """Whether what a dialect reads is a key."""
        self.stack: list[str] = []
        self.number: list[str] = []
        self.comma: list[str] = []
        self.parts: list[str] = []
        self.kept = 0
        self.place: _Place | None = None
        self.stopped = False
        """Whether a dialect must see more text, has ended the value or has failed."""
        self.odd: Search | None = None
        """``plain`` inside the open string."""
        self.goes_on = AS_JSON
        """What matches text that only goes on with the open string, and what spells that in JSON; None: it is JSON."""

    def scan(self, text: str, start: int, final: bool) -> int:
        if self.notes:
            self.notes = []
        i = start
        if self.odd is not None and not final and text[start : start + 1] != '"':
            goes_on, spelt = self.goes_on
            match = goes_on(text, start)
            end, n = match.end() if match else start, len(text)
            if end == n or (end == n - 1 and text[end] == "\\"):
                self.out = text[start:end]
                if spelt is not None:
                    self.out = spelt(self.out)
                self.plain = self.odd if end == n else None
                self.marked = -1
                return end
            if spelt is None:
                i = end
        place = self.place
        if place is not None:
            gone = None if final else place.goes.get(text[i:]) or place.into(text[i:])
            if gone is not None:
                self.place, self.odd, self.plain, self.done, self.out, end = gone
                if i > start:
                    self.out = text[start:i] + self.out
                return i + end
        return self.read(text, start, i, final)

    def read(self, text: str, start: int, i: int, final: bool) -> int:
        """As `scan`, which began at ``start`` and has nothing left to do before ``i``, by no shortcut."""
        n = len(text)
        place = self.place
        if place is not None:
            self.leave(place)
        self.kept = start
        first = i
        comma = -1
        parts = self.parts
        state = self.state
        stack = self.stack
        own = self.dialect
        if own:
            self.stopped = False
            self.marked = -1
        elif not stack and state == VALUE and "}" in text and (match := _flat(text, i, i + _FLAT)):
            self.done = True
            self.out = match[0]
            return match.end()
        while i < n or (final and NUMBER_OPEN <= state <= OWN_NUMBER):
            if state >= STRING_VALUE:
                if state > NUMBER_OPEN:
                    self.state = state
                    i = self.inside(text, i, final)
                    state = self.state
                    if self.stopped:
                        break
                elif state == NUMBER_OPEN:
                    match = _number_run(text, i)
                    end = match.end() if match else i
                    self.number.append(text[i:end])
                    i = end
                    if i == n and not final:
                        break
                    if not _number("".join(self.number)):
                        self.fail(state)
                        break
                    self.number = []
                    if not stack:
                        self.done = True
                        break
                    state = NEXT
                else:
                    char = text[i]
                    if char != '"':
                        match = _run(text, i)
                        i = match.end() if match else i
                        if i == n:
                            break
                        char = text[i]
                    if char == '"':
                        if state == STRING_KEY and not own and (match := _key_ends(text, i)):
                            i = match.end()
                            state = _IN_MEMBER[match.lastindex]
                            self.odd = _odd if state == STRING_VALUE else None
                            continue
                        i += 1
                        self.odd = None
                        if state == STRING_KEY:
                            state = COLON
                        elif stack:
                            state = NEXT
                        else:
                            self.done = True
                            break
                    elif char == "\\" and not final and n - i < 6 and _escape_begun(text[i:]):
                        break
                    else:
                        if char == "\\":
                            self.notes.append((i, "an escape", text[i : i + 2]))
                        else:
                            self.notes.append((i, "an escaped control character", char))
                        self.put(text, i, i + 1, escape(char))
                        i += 1
                continue
            char = text[i]
            if char in " \t\r\n":
                i += 1
                if i == n:
                    break
                char = text[i]
                if char in " \t\r\n":
                    match = white(text, i)
                    i = match.end() if match else i
                    continue
            if state == NEXT:
                kind = stack[-1]
                if char == "," and kind == "{" and not own and (match := _next_key(text, i)):
                    i = match.end()
                    state = _IN_MEMBER[match.lastindex]
                    self.odd = _odd if state >= STRING_VALUE else None
                    continue
                if char == "," and kind != "p":
                    i += 1
                    state = _AFTER_COMMA[kind]
                    if kind == "q":
                        stack[-1] = "("
                    if n - i > _BULK and own != GEMMA:
                        match = (_members if state == KEY else _items)(text, i)
                        i = match.end() if match else i
                    comma = i - 1
                elif char == BRACKETS[kind]:
                    if own and kind in _RESPELT:
                        if kind == "q":
                            self.notes.append((i, "','", char))
                        self.put(text, i, i + 1, _RESPELT[kind])
                    i += 1
                    stack.pop()
                    if not stack:
                        self.done = True
                        break
                else:
                    self.state = state
                    i = self.after(text, i, final)
                    state = self.state
                    if self.stopped:
                        break
            elif state == COLON:
                if char == ":":
                    i += 1
                    state = VALUE
                else:
                    self.fail(state)
                    break
            elif char in "}])" and state != VALUE and char == BRACKETS[stack[-1]]:
                if state <= ITEM:
                    self._without_comma(text, comma, i, state)
                state = NEXT  # closes
            else:
                key = state == KEY or state == KEY_OR_END
                if own:
                    self.key = key
                    self.state = state
                    end = self.begin(text, i, final)
                    if end >= 0:
                        i = end
                        state = self.state
                        if self.stopped:
                            break
                        continue
                if key:
                    if char != '"':
                        self.fail(state)
                        break
                    i += 1
                    state = STRING_KEY
                    self.odd = _odd
                elif self.kinds and not stack and char not in self.kinds:
                    self.error = _OBJECT[own] if self.kinds == "{" else self.missing(VALUE)
                    break
                elif not stack and not own and n - i > _BULK and (end := _whole(text, i)):
                    i = end
                    self.done = True
                    break
                elif char == '"':
                    i += 1
                    state = STRING_VALUE
                    self.odd = _odd
                elif char == "{" or char == "[":
                    stack.append(char)
                    if char == "{" and not own and (match := _next_key(text, i)):
                        i = match.end()
                        state = _IN_MEMBER[match.lastindex]
                        self.odd = _odd if state >= STRING_VALUE else None
                        continue
                    i += 1
                    state = KEY_OR_END if char == "{" else ITEM_OR_END
                    if n - i > _BULK and own != GEMMA:
                        match = (_members if char == "{" else _items)(text, i)
                        if match:
                            i = match.end()
                            comma = i - 1
                            state = KEY if char == "{" else ITEM
                elif char in "0123456789" or (char == "-" and text[i + 1 : i + 2] not in _AFTER_SIGN[final]):
                    state = NUMBER_OPEN
                else:
                    match = _word_run(text, i)
                    end = match.end() if match else i
                    if end == n and not final and end - i <= _LONGEST_WORD:
                        break
                    word = text[i:end]
                    if word in _MENDED:
                        self.notes.append((i, f"'{_MENDED[word]}'", word))
                        self.put(text, i, end, _MENDED[word])
                    elif word not in _WORDS:
                        self.fail(state)
                        break
                    i = end
                    if not stack:
                        self.done = True
                        break
                    state = NEXT
        self.state = state
        if final and not self.done and not self.error:
            self.error = self.missing(state)
        kept = self.kept
        end = i
        if self.comma and (comma >= 0 or state > ITEM or final or self.error):
            parts[:0] = self.comma
            self.comma.clear()
        if state <= ITEM and not (final or self.error):
            end = max(kept, comma)
            self.comma.append(text[end:i])
        if parts:
            if kept < end:
                parts.append(text[kept:end])
            self.out = "".join(parts)
            self.parts = []
        else:
            self.out = text if kept == 0 and end == n else text[kept:end]
        self.plain = self.odd if i == n else None
        if n - start <= _SHORT_TEXT and not (own or final or self.error or self.notes):
            self.remember(place, text[first:], first - start, i - first)
        return i

    def leave(self, place: _Place) -> None:
        """Takes the state from the place."""
        self.place = None
        self.state, self.stack = place.state, [*place.stack]
        self.comma = [place.comma] if place.comma else []
        self.number = [place.number] if place.number else []

    def remember(self, before: _Place | None, text: str, begin: int, end: int) -> None:
        """Finds the place after ``text``, of which the scan took ``end`` characters: what it put out of them begins at
        ``begin``. The place ``before`` it gets to know."""
        if not self.done:
            if not 0 < len(self.stack) <= _DEEPEST or len(self.comma) > _SHORT_TEXT:
                return
            comma = "".join(self.comma) if self.comma else ""
            if len(comma) > _SHORT_TEXT:
                return
            number = _digits("1", "".join(self.number)) if self.number else ""
            self.place = _place(self.state, "".join(self.stack), comma, number)
        if before is not None and len(before.goes) < _MOST_TEXTS and before.stays:
            out = self.out[begin:]
            if self.plain is not None and (quote := text.rfind('"')) >= 0:
                out, end = out[: len(out) + quote + 1 - end], quote + 1
                text = text[:end]
            before.goes[text] = self.place, self.odd, self.plain, self.done, out, end

    def put(self, text: str, i: int, end: int, out: str) -> None:
        """Passes on ``out`` in place of text[i:end]."""
        if self.kept < i:
            self.parts.append(text[self.kept : i])
        self.parts.append(out)
        self.kept = end

    def begin(self, text: str, i: int, final: bool) -> int:
        """Reads a key or a value, or begins it; -1 leaves it to be read as JSON."""
        return -1

    def inside(self, text: str, i: int, final: bool) -> int:
        """Reads more of what the dialect has begun."""
        return i

    def after(self, text: str, i: int, final: bool) -> int:
        """Reads what comes after a value in place of a comma or a bracket."""
        self.fail(self.state)
        return i

    def over(self) -> None:
        """Ends a key or a value of the dialect."""
        self.odd = None
        if self.key:
            self.state = COLON
        elif self.stack:
            self.state = NEXT
        else:
            self.done = self.stopped = True

    def fail(self, state: int) -> None:
        """Ends the scan, as the text lacks what must come in this state."""
        self.error = self.missing(state)
        self.stopped = True

    def missing(self, state: int) -> str:
        """What the text lacks in this state."""
        close = BRACKETS[self.stack[-1]] if self.stack else ""
        if state == NEXT:
            return f"'{close}'" if self.stack[-1] == "p" else f"',' or '{close}'"
        if state == QUOTED and self.key and self.dialect == GEMMA:
            state = STRING_KEY
        return _EXPECTED[state].format(value=_VALUES[self.dialect], close=close)

    def _without_comma(self, text: str, comma: int, end: int, state: int) -> None:
        """Leaves out the comma before a closing bracket at ``end``. ``comma``: where it is, -1 if it came before
        this text."""
        if self.dialect != PYTHON:
            self.notes.append((end, self.missing(state), text[end]))
        if comma < 0:
            self.parts.append("".join(self.comma)[1:])
            self.comma.clear()
        else:
            self.put(text, comma, comma + 1, "")


class ObjectScanner(JsonScanner):
    """Reads a call's arguments: a JSON object.

    Some models write a string that holds the object's JSON text, or null or an empty string for no arguments. All are
    mended, a string once it is whole. Another value ends where it ends, and is an error (``kinds`` is empty then). A
    string that holds no object is passed on unchanged. One that begins as an object, or that goes on after its quote,
    has quotes that are not escaped: it is broken.
    """

    __slots__ = ("decoded", "raw", "string")

    def __init__(self) -> None:
        self._set_up("{", JSON)
        self.string: StringScanner | None = None
        self.decoded: list[str] = []
        self.raw: list[str] = []

    def read(self, text: str, start: int, i: int, final: bool) -> int:
        if self.stack and self.kinds:
            return JsonScanner.read(self, text, start, i, final)
        if not self.kinds:
            return self._other(text, start, final)
        if self.string is None:
            match = white(text, start)
            at = match.end() if match else start
            if text.startswith("null", at):
                self.out, self.notes, self.done = text[start:at] + "{}", [(at, "an object", "null")], True
                return at + 4
            if not final and 0 < len(text) - at < 4 and "null".startswith(text[at:]):
                self.out = ""
                return start
            if at == len(text) or text[at] == "{":
                return JsonScanner.read(self, text, start, i, final)
            self.length = start - at
            if text[at] != '"':
                self.kinds = ""
                return self._other(text, start, final)
            self.string = StringScanner()
            self.notes = [(at, "an object", "a string")]
            self.out = text[start:at]
            start = at
        else:
            self.out = ""
        end = self.string.scan(text, start, final)
        self.length += end - start
        self.decoded.append(self.string.out)
        self.raw.append(text[start:end])
        if self.string.done:
            before, notes, self.notes = self.out, self.notes, []
            decoded = "".join(self.decoded).strip(" \t\r\n") or "{}"
            whole = JsonScanner.read(self, decoded, 0, 0, True)
            self.notes, self.plain = notes, None
            if not self.error and decoded[whole:].strip(" \t\r\n"):
                self.done, self.error = False, "the end of the object's JSON text"
            self.out = before + ("".join(self.raw) if self.error else self.out)
        elif self.string.error:
            self.out += "".join(self.raw)
            self.error = self.string.error
        if self.string.done and self.error and decoded[0] != "{":
            self.kinds = ""
            self._string_ends(text, end, final)
        return end

    def _other(self, text: str, start: int, final: bool) -> int:
        """Reads more of a value that is no object."""
        if self.string is not None:
            self.out, self.notes = "", []
            self._string_ends(text, start, final)
            return start
        end = JsonScanner.read(self, text, start, start, final)
        self.plain = self.odd = None  # text that takes a shortcut would not count
        if self.place is not None:
            self.leave(self.place)
        self.length += end - start
        if self.done or (self.error and not self.length):  # a word whose end has not come is no error
            self.error = _OBJECT[JSON]
        return end

    def _string_ends(self, text: str, end: int, final: bool) -> None:
        """Ends a string that holds no object, as soon as it is known whether it goes on."""
        after = _after_string(text, end)
        waits = after is not None and after[1] is None and not final
        self.done = not waits and (after is None or after[1] is None)
        self.error = "" if waits else _OBJECT[JSON]


_after_string = re.compile(r'[ \t\r\n]{0,16}(?:\Z|([\w"\\:]))').match
"""Matches what a string goes on with, or the end of the text."""


class NoObject(Transcoder):
    """Reads nothing where a call's arguments are left out: they are an empty object."""

    __slots__ = ()

    def scan(self, text: str, start: int, final: bool) -> int:
        self.out, self.notes, self.done = "{}", [(start, "a JSON object", text[start : start + 1])], True
        return start


class AnswerScanner(JsonScanner):
    """Reads an answer in JSON: the content of a turn with a ``response_format``.

    No marker counts inside the value. Text that is not JSON ends the value, without a note: it is content as well.
    """

    __slots__ = ()

    def read(self, text: str, start: int, i: int, final: bool) -> int:
        end = JsonScanner.read(self, text, start, i, final)
        if self.error:
            self.error, self.done = "", True
        if self.notes:
            self.notes = []
        return end


class StringScanner(Transcoder):
    """Reads a JSON string, its opening quote included, and passes on its unescaped text."""

    __slots__ = ("begun",)

    def __init__(self) -> None:
        self._reset()
        self.begun = False

    def scan(self, text: str, start: int, final: bool) -> int:
        i = start
        if self.notes:
            self.notes = []
        if not self.begun and i < len(text):
            if text[i] != '"':
                self.error = "a JSON string"
                self.out = ""
                return i
            self.begun = True
            i += 1
        match = inside_string(text, i)
        end = match.end() if match else i
        self.done = end < len(text)
        inside = text[i:end]
        if not self.done and not final and (half := half_escape(inside)):
            inside = inside[: half.start(1)]
        self.out = _unescaped(inside, i, self.notes) if "\\" in inside else inside
        if final and not self.done:
            self.error = "the end of a string"
        i += len(inside)
        self.plain = _odd if i == len(text) and self.begun and not self.done else None
        return i + 1 if self.done else i


inside_string = re.compile(r'[^"\\]*(?:\\.?[^"\\]*)*', re.DOTALL).match
"""Matches what is in a string, up to its quote or the end of the text."""
half_escape = re.compile(
    r"(?<!\\)(?:\\\\)*(\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?)\Z"
).search
"""Finds an escape, or a pair of them, that is not whole at the end of a text: its group 1."""
_escape = re.compile(
    r'\\(?:["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4})?'
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unescaped(text: str, place: int, notes: list[tuple[int, str, str]]) -> str:
    """The inside of a string as text. ``notes`` gets each backslash that begins no escape; ``text`` is at ``place``."""

    def meant(found: re.Match[str]) -> str:
        escaped = found[0]
        if escaped == "\\":
            notes.append((place + found.start(), "an escape", text[found.start() : found.start() + 2]))
            return escaped
        if escaped[1] != "u":
            return _SHORT.get(escaped[1], escaped[1])
        code = int(escaped[2:6], 16)
        if len(escaped) == 12:
            return chr(0x10000 + ((code - 0xD800) << 10) + int(escaped[8:12], 16) - 0xDC00)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    return _escape.sub(meant, text)
