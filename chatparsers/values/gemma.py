"""Gemma's own object syntax, passed on as JSON while it arrives: ``{name:<escape>Oslo<escape>,days:3,o:{a:true}}``.

Keys have no quotes. A string is between two quote markers, verbatim, without any escape. The marker is one special
token: ``<escape>`` in FunctionGemma, ``<|"|>`` in Gemma 4 (from their chat templates). Everything else is
JSON. Quoted keys and JSON's own strings are read too, so JSON itself passes unchanged.

Models also write the marker for a quotation mark within a string. So it ends the string only before what may follow a
value: a comma and the next key or item, a closing bracket, or the end of the call. A string whose second marker is
missing, as the schema of its argument admits none, ends where the next string begins: before ``, city:<|"|>``.

Strategy: the scanner keeps a state and a stack of open brackets. ``str.find`` finds the end of a string, and its inside
is escaped in bulk; only the part that may still become the marker is left unconsumed. A `JsonScanner` reads JSON's
scalars. An unquoted key runs up to the colon, without the white space before it; at most ``_WINDOW`` characters of it
are left unconsumed. A comma before a closing bracket is left out, so a comma goes out with what follows it. A marker
may be a single lone surrogate, the character that stands for a special token: nothing here depends on the marker's
length. Where the model forgot quotes, unquoted.py finds the end of the value; a value without quotes is kept until
then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .base import Transcoder, escape, white
from .json import NUMBER, JsonScanner
from .unquoted import HELD, MOST, NEAR, StringPatterns, is_scalar, string_patterns

if TYPE_CHECKING:
    from ..schema.tools import Argument

_WINDOW = 256
_NO_ARGUMENTS: Mapping[str, Argument] = {}

_key_run = re.compile(r"[^:,{}= \t\r\n]*").match

# After a key, in place of its colon: what begins a value and is in no key.
_assigns = re.compile(rf"""=(?:['"\[{{]|(?:{NUMBER}|[Tt]rue|[Ff]alse|[Nn]one|null)[,\]}})])""").match
_assigns_begun = re.compile(r"=[-+.0-9A-Za-z]{0,32}\Z").match

# Taken at once if they are whole: a plain key and its colon, the same after a comma, a JSON scalar.
_whole_key = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):").match
_whole_next_key = re.compile(r",([A-Za-z_][A-Za-z0-9_]*):").match
_whole_scalar = re.compile(rf"(?:{NUMBER}|true|false|null)(?=[,\]}})])").match

# The next key, where the comma before it is missing.
_key_begins = re.compile(r"[A-Za-z_]\w{0,63}[:=]").match
_key_begun = re.compile(r"[A-Za-z_]\w{0,63}\Z").match

_CLOSE = {"{": "}", "[": "]", "(": ")"}

# The states: what may come next. _STRING is between markers, _BARE in a key without quotes, _JSON in a JSON scalar,
# _TEXT in a value without quotes.
_VALUE, _ITEM_OR_END, _KEY_OR_END, _KEY, _COLON, _NEXT, _STRING, _BARE, _JSON, _TEXT = range(10)
_EXPECTED = {
    _VALUE: "a value",
    _ITEM_OR_END: "a value or ']'",
    _KEY_OR_END: "a key or '}'",
    _KEY: "a key",
    _COLON: "':'",
    _BARE: "':'",
}


def gemma_key(name: str, quote: str) -> str:
    """A key: without quotes, or as a JSON string if it holds what ends a key."""
    bare = name and quote not in name and not any(char in ':,{}[]"' or char.isspace() for char in name)
    bare = bare and "='" not in name
    return name if bare else json.dumps(name, ensure_ascii=False)


class GemmaScanner(Transcoder):
    """Reads one value in Gemma's syntax. ``quote``: the marker around strings. ``kinds``: as in `JsonScanner`.
    ``closers``: the forms of the marker that ends the call. It also ends a string or a text without quotes; without it,
    these are errors. ``openers``: the forms of the one that begins the next call, which ends them too. ``arguments``:
    those that the tool declares."""

    __slots__ = (
        "ahead", "arguments", "bare", "closers", "comma", "inner", "key", "kinds", "name", "open", "openers",
        "patterns", "quote", "sign", "stack", "state", "told", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        quote: str,
        kinds: str = "",
        closers: tuple[str, ...] = (),
        openers: tuple[str, ...] = (),
        arguments: Mapping[str, Argument] = _NO_ARGUMENTS,
    ) -> None:
        self._reset()
        self.quote = quote
        self.closers = closers
        self.openers = openers
        self.patterns = string_patterns(quote, closers, openers)
        self.kinds = kinds
        self.state = _VALUE
        self.stack: list[str] = []
        self.key = False
        """True while a key is being read."""
        self.sign = ":"
        """What the model writes after a key."""
        self.bare: list[str] = []
        """The value without quotes that is being read."""
        self.comma: list[str] = []
        """The comma at the end of the text so far, and the white space after it."""
        self.inner: JsonScanner | None = None
        self.arguments = arguments
        self.name = ""
        """The key of the value that is open, if it has no quotes."""
        self.ahead: StringPatterns | None = None
        """The patterns for the string that is open, with the arguments whose string may end it; ``patterns`` if there
        are none, None if they were not yet looked up."""
        self.told = False
        """Whether a marker in a string was reported."""
        self.waiting = False
        """True if the scan must stop until more text comes."""
        self.open = False
        """True if the text was cut off: a marker at its end may be part of a string."""

    def scan(self, text: str, start: int, final: bool) -> int:
        n = len(text)
        i = start
        parts: list[str] = []
        if self.notes:
            self.notes = []
        self.marked = -1
        self.waiting = False
        while i < n or (final and self.state == _JSON):
            if self.comma and text[i] not in " \t\r\n":
                self._after_comma(text, i, parts)
            state = self.state
            if state == _STRING:
                i = self._string(text, i, final, parts)
            elif (state == _KEY or state == _KEY_OR_END) and (match := _whole_key(text, i)):
                parts.append(f'"{match[1]}":')
                i = self._value_begins(text, match, parts)
            elif state == _NEXT and self.stack[-1] != "[" and (match := _whole_next_key(text, i)):
                parts.append(f',"{match[1]}":')
                i = self._value_begins(text, match, parts)
            elif state == _VALUE and self.stack and (match := _whole_scalar(text, i)):
                parts.append(match[0])
                i = match.end()
                self.state = _NEXT
            elif state == _JSON:
                i = self._scalar(text, i, final, parts)
            elif state == _BARE:
                i = self._bare(text, i, final, parts)
            elif state == _TEXT:
                i = self._text(text, i, final, parts)
            else:
                i = self._between(text, i, final, parts)
            if self.waiting or self.done or self.error:
                break
        if final and not self.done and not self.error:
            parts += self.comma
            self._fail()
        self.out = parts[0] if len(parts) == 1 else "".join(parts)
        self.plain = None
        if i == n and not self.error:
            if self.state == _STRING:
                self.plain = (self.ahead or self._look_ahead()).plain
            elif self.inner is not None:
                self.plain = self.inner.plain
        return i

    def cut_off(self) -> None:
        self.open = True

    def holds(self, text: str) -> bool:
        if self.state == _STRING:
            match = self.patterns.stops.find(text, 0)
            if match is None or match.start():
                return False
            if match[1] is not None:
                return True
            return match[0] == self.quote and not self.key and self._string_over(text, match.end()) < 0
        return self.state < _COLON and len(text) < len(self.quote) and self.quote.startswith(text)

    def _look_ahead(self) -> StringPatterns:
        """Sets ``ahead``: with the other arguments if that of the open string is no string."""
        names: tuple[str, ...] = ()
        if len(self.stack) == 1 and not self.key:
            argument = self.arguments.get(self.name)
            if argument is not None and "string" not in argument.types:
                names = tuple([name for name in self.arguments if name != self.name])
        ahead = self.patterns
        if names:
            ahead = string_patterns(self.quote, self.closers, self.openers, self.sign, names)
        self.ahead = ahead
        return ahead

    def _fail(self) -> None:
        if self.state == _NEXT:
            self.error = "',' or '}'" if self.stack[-1] == "{" else "',' or ']'"
        elif self.state == _STRING:
            self.error = "the end of a key" if self.key else "the end of a string"
        elif self.state == _TEXT:
            self.error = "the end of a value"
        else:
            self.error = _EXPECTED[self.state]

    def _over(self) -> None:
        """Ends a key or a value."""
        if self.key:
            self.state = _COLON
        elif self.stack:
            self.state = _NEXT
        else:
            self.done = True

    def _after_comma(self, text: str, i: int, parts: list[str]) -> None:
        """Puts out the comma before what is at ``i``; not before a closing bracket."""
        if text[i] == _CLOSE[self.stack[-1]]:
            self.notes.append((i, _EXPECTED[self.state], text[i]))
            self.state = _NEXT
            del self.comma[0]
        parts += self.comma
        self.comma.clear()

    def _value_begins(self, text: str, key: re.Match[str], parts: list[str]) -> int:
        """Reads what is whole after the key: a scalar, or the marker that begins a string."""
        i = key.end()
        self.name = key[1]
        self.key = False
        if text.startswith(self.quote, i):
            parts.append('"')
            self.state = _STRING
            self.ahead = None
            return i + len(self.quote)
        if match := _whole_scalar(text, i):
            parts.append(match[0])
            self.state = _NEXT
            return match.end()
        self.state = _VALUE
        return i

    def _string(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        quote = self.quote
        find = self.patterns.stops.find
        match = find(text, i)
        if match is not None and match[1] is None and match[0] != quote:  # a marker that may end it
            found, certain = self._cut_short(text, i, text.find(quote, i), final and not self.open)
            if found is not None and certain:
                return self._unquoted(found, text, i, parts, "the end of a string")
            if found is not None:
                self.waiting = True
                end = len(text) if final else found.start()
                parts.append(escape(text[i:end]))
                return end
            while match is not None and match[1] is None and match[0] != quote:
                match = find(text, match.end())
        if match is not None and match[1] is None:
            begin = match.start()
            over = 1 if self.key else self._string_over(text, match.end())
            if over > 0:
                parts.append(escape(text[i:begin]) + '"')
                self._over()
                return match.end()
            ahead = self.ahead or self._look_ahead()
            other = ahead.next(text, max(i, begin - HELD), begin) if ahead is not self.patterns else None
            if other is not None:
                begin = other.start()
                if not over:
                    self.notes.append((begin, "the end of a string", ","))
                    parts.append(escape(text[i:begin]) + '"')
                    self._over()
                    return begin
            parts.append(escape(text[i:begin]) + ("" if over else '\\"'))
            if over:
                self.waiting = True
                return len(text) if final else begin
            if not self.told:
                self.marked, self.told = begin, True
            return match.end()
        end = len(text)
        if not final:
            end = end if match is None else match.start()
            if self.closers and end > i and text[end - 1] in " \t\r\n}]":
                end = self._decided(text, i, end)
            ahead = self.ahead or self._look_ahead()
            if ahead is not self.patterns:
                other = ahead.next_begun(text, max(i, end - HELD), end)
                end = end if other is None else other.start()
            self.waiting = end < len(text)
        parts.append(escape(text[i:end] if i or self.waiting else text))
        return end

    def _string_over(self, text: str, end: int) -> int:
        """1 if the marker that ends at ``end`` ends a string, 0 if it is a quotation mark in it; -1 if more text must
        tell."""
        if not self.stack or not self.closers:
            return 1
        found = self.patterns.after(self.stack[-1])
        if found.whole(text, end):
            return 1
        return -1 if found.begun(text, end) else 0

    def _decided(self, text: str, i: int, end: int) -> int:
        """How far the text before ``end`` cannot become brackets before the marker that ends the call."""
        least = max(i, end - MOST)
        close = end
        while close > least and text[close - 1] in " \t\r\n":
            close -= 1
        least = max(i, close - min(MOST, len(self.stack)))
        begin = close
        while begin > least and text[begin - 1] in "}]":
            begin -= 1
        return begin if begin < close else end

    def _cut_short(self, text: str, i: int, end: int, final: bool) -> tuple[re.Match[str] | None, bool]:
        """Where the marker that ends the call, or the next call, ends the string, before the next quote at ``end`` (-1:
        not yet there), and whether more text cannot change that.

        It does not if the string's own quote follows: a near one, and after it a comma or a bracket. The next quote
        after a string that was cut short begins one of another call. With prose after the marker, the next call must
        be near, or the brackets before it and the end of the turn.
        """
        n = end if end >= 0 else len(text)
        begin = i
        patterns = self.patterns
        markers = self.closers + self.openers
        while at := [place for marker in markers if (place := text.find(marker, begin, n)) >= 0]:
            found = patterns.string(text, max(begin, min(at) - 2 * MOST))
            if found is None or found.start() >= n:
                break
            near = found.end() + NEAR
            opens = patterns.opens(text, found.end(), min(near, n)) is not None
            prose = found["prose"] is not None and not opens
            if 0 <= end < near:
                after = text[end + len(self.quote) :].lstrip(" \t\r\n")[:1]
                if after and after in ",]}":
                    return None, False
                if not prose:
                    return found, bool(after or final)
            elif end < 0 and len(text) < near + len(self.quote):
                return found, final and not (prose and not found["close"])
            elif opens:
                return found, True
            begin = found.end()
        return None, False

    def _certain(self, found: re.Match[str], text: str) -> bool:
        """Whether more text cannot change that the value ends at ``found``."""
        if found["close"] is not None:
            return found["likely"] is None or bool(text[found.end() :].strip())
        if text[found.end() - 1 : found.end()] not in ("}", "]"):
            return True
        # With the bracket before it, this one may still come before the marker: then the value ends before both.
        after = text[found.end() :]
        rest = after.lstrip("}]").lstrip(" \t\r\n")
        return len(after) - len(rest) > 2 * MOST or not any(
            closer.startswith(rest) for closer in self.closers
        )

    def _unquoted(self, found: re.Match[str], text: str, i: int, parts: list[str], expected: str) -> int:
        """Ends a string or a text without quotes, and all brackets, before the marker that ends the call. Before the
        next call it is an error. ``expected``: for the diagnostic, if it is not there yet."""
        start = found.start()
        close = found["close"]
        start += max(0, len(close.rstrip()) - len(self.stack))  # the other brackets are part of the value
        self._keep(text, i, start, parts)
        if found.end() == found.start() + len(close):  # the next call: this one has no end
            self.error = expected or "the end of a value"
            return start
        if expected:
            self.notes.append((start, expected, text[start : start + 1]))
        parts.extend("]" if bracket == "[" else "}" for bracket in reversed(self.stack))
        self.stack.clear()
        self.done = True
        return found.start() + len(close)

    def _keep(self, text: str, i: int, end: int, parts: list[str]) -> None:
        """Puts out the rest of the value, which ends at ``end``."""
        value = text[i:end]
        if self.state == _TEXT:
            value = "".join([*self.bare, value]).strip()
            self.bare.clear()
            if len(value) > 1 and value[0] == value[-1] == "'":
                value = value[1:-1]
        parts.append(escape(value) + '"')

    def _text(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads a value without quotes. It is kept until its end."""
        n = len(text)
        found = self._text_end(
            string_patterns(self.quote, self.closers, self.openers, self.sign, tuple(self.arguments)), text, i
        )
        if found is None or not ((final and not self.open) or self._certain(found, text)):
            end = n if found is None or final else found.start()
            end = max(i, min(end, n - HELD)) if not final else end
            if end > i:
                self.bare.append(text[i:end])
            self.waiting = True
            return end
        if found["close"] is not None:
            return self._unquoted(found, text, i, parts, "")
        end = found.end()
        self._keep(text, i, end, parts)
        match = white(text, end)
        after = match.end() if match else end
        if text.startswith(self.quote, after):  # the second quote of a value that has no first
            end = after + len(self.quote)
        self._over()
        return end

    def _text_end(self, patterns: StringPatterns, text: str, i: int) -> re.Match[str] | None:
        """Where the value without quotes ends, as far as the window shows it."""
        begin = self.bare[0] if self.bare else text[i : i + 1]
        listed = self.stack[-1] == "["
        if begin.startswith("'"):
            return (patterns.quoted_item if listed else patterns.quoted)(text, i)
        if listed:
            return patterns.item(text, i)
        return (patterns.member if len(self.stack) == 1 else patterns.inner)(text, i)

    def _scalar(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        inner = self.inner
        if inner is None:
            inner = self.inner = JsonScanner()
        end = inner.scan(text, i, final)
        parts.append(inner.out)
        self.notes += inner.notes
        self.error = "the end of a key" if inner.error and self.key else inner.error
        if inner.done:
            self.inner = None
            self._over()
        elif end < len(text):
            self.waiting = True
        return end

    def _bare(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads a key without quotes, up to its colon."""
        n = len(text)
        match = _key_run(text, i)
        end = match.end() if match else i
        if end > i:
            self.name += text[i:end]
            parts.append(escape(text[i:end]))
            if end == n or text[end] != ":":
                return end
            i = end
        if text[i] in ",{}":
            self._fail()
            return i
        if text[i] == "=":
            return self._equals(text, i, final, parts)
        limit = i + _WINDOW
        match = white(text, i, limit)
        end = match.end() if match else i
        if end == n and end < limit and not final:
            self.waiting = True
        elif end < n and end < limit and text[end] == ":":
            parts.append(f'"{text[i:end]}:')
            self.state = _VALUE
            self.key = False
            return end + 1
        else:
            parts.append(escape(text[i:end]))
            return end
        return i

    def _equals(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads an equals sign: in place of the colon if a value follows, else part of the key."""
        quote = self.quote
        quoted = text[i + 1 : i + 1 + len(quote)]
        if _assigns(text, i) or quoted == quote:
            self.notes.append((i, "':'", "="))
            parts.append('":')
            self.sign = "="
            self.state = _VALUE
            self.key = False
        elif not final and (
            _assigns_begun(text, i) or (len(quoted) < len(quote) and quote.startswith(quoted))
        ):
            self.waiting = True
            return i
        else:
            parts.append("=")
        return i + 1

    def _between(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads one token outside strings, keys and scalars, or begins one of these."""
        char = text[i]
        state = self.state
        if char in " \t\r\n":
            match = white(text, i)
            end = match.end() if match else i
            (self.comma if self.comma else parts).append(text[i:end])
            return end
        if state == _NEXT or char in "}])":
            return self._next(text, i, final, parts)
        if state == _COLON:
            if char == ":":
                parts.append(char)
                self.state = _VALUE
                return i + 1
            self._fail()
            return i
        self.key = state == _KEY or state == _KEY_OR_END
        if self.key:
            self.name = ""
        if self.kinds and not self.stack and char == "(" and self.closers:
            self.notes.append((i, "'{'", char))
            parts.append("{")
            self.sign = "="
            self.stack.append(char)
            self.state = _KEY_OR_END
            return i + 1
        if self.kinds and not self.stack and char not in self.kinds:
            self.error = "an object" if self.kinds == "{" else _EXPECTED[_VALUE]
        elif text.startswith(self.quote, i):
            parts.append('"')
            self.state = _STRING
            self.ahead = None
            return i + len(self.quote)
        elif not final and len(text) - i < len(self.quote) and self.quote.startswith(text[i:]):
            self.waiting = True
        elif char == '"':
            self.state = _JSON
        elif self.key:
            if char in ":,{[":
                self._fail()
            else:
                parts.append('"')
                self.state = _BARE
                return self._bare(text, i, final, parts)
        elif char in "{[":
            parts.append(char)
            self.stack.append(char)
            self.state = _KEY_OR_END if char == "{" else _ITEM_OR_END
            return i + 1
        elif char in ":,":
            self._fail()
        else:
            self._word(text, i, final, parts)
        return i

    def _word(self, text: str, i: int, final: bool, parts: list[str]) -> None:
        """Begins a JSON scalar, or a value without quotes."""
        scalar: bool | None = text[i] in "-0123456789tfnTFN"
        if not self.closers or not self.stack:
            if scalar:
                self.state = _JSON
            else:
                self._fail()
            return
        if scalar:
            scalar = is_scalar(text, i, final)
        if scalar is None:
            self.waiting = True
        elif scalar:
            self.state = _JSON
        else:
            self.state = _TEXT
            self.notes.append((i, "a value in quotes", text[i : i + 1]))
            parts.append('"')

    def _next(self, text: str, i: int, final: bool, parts: list[str]) -> int:
        """Reads the token after a value in brackets, or a closing bracket."""
        char = text[i]
        close = _CLOSE[self.stack[-1]] if self.stack else ""
        if char == close and self.state in (_NEXT, _KEY_OR_END, _ITEM_OR_END):
            char = "]" if close == "]" else "}"
            self.stack.pop()
            self.key = False
            self._over()
        elif char == "," and self.state == _NEXT:
            self.state = _VALUE if close == "]" else _KEY
            if text[i + 1 : i + 2] in " \t\r\n}])":  # or nothing
                self.comma.append(char)
                return i + 1
        elif self.state == _NEXT and self.closers and close != "]" and _key_begins(text, i):
            self.notes.append((i, "','", char))
            self.state = _KEY
            parts.append(",")
            return i
        elif self.state == _NEXT and self.closers and close != "]" and not final and _key_begun(text, i):
            self.waiting = True
            return i
        else:
            self._fail()
            return i
        parts.append(char)
        return i + 1
