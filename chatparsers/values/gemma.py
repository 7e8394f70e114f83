"""Gemma's own object syntax, passed on as JSON while it arrives: ``{name:<escape>Oslo<escape>,days:3,o:{a:true}}``.

Keys have no quotes. A string is between two quote markers, verbatim, without any escape. The marker is one special
token: ``<escape>`` in FunctionGemma, ``<|"|>`` in Gemma 4 (from their chat templates). Everything else is
JSON. Quoted keys and JSON's own strings are read too, so JSON itself passes unchanged.

Models also write the marker for a quotation mark within a string. So it ends the string only before what may follow a
value: a comma and the next key or item, a closing bracket, or the end of the call. A string whose second marker is
missing, as the schema of its argument admits none, ends where the next string begins: before ``, city:<|"|>``.

Strategy: json.py walks through the brackets, commas and colons and reads JSON's scalars. It asks this scanner for keys,
strings between markers and values without quotes. One search finds the end of a string, and its inside is escaped in
bulk; only the part that may still become the marker is left unconsumed. An unquoted key runs up to the colon, without
the white space before it; at most ``_WINDOW`` characters of it are left unconsumed. A marker may be a single lone
surrogate, the character that stands for a special token: nothing here depends on the marker's length. Where the model
forgot quotes, unquoted.py finds the end of the value; a value without quotes is kept until then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .base import escape, white
from .json import AS_JSON, BARE, COLON, GEMMA, KEY, KEY_OR_END, NEXT, NUMBER, QUOTED, TEXT, VALUE, JsonScanner
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


def gemma_key(name: str, quote: str) -> str:
    """A key: without quotes, or as a JSON string if it holds what ends a key."""
    bare = name and quote not in name and not any(char in ':,{}[]"' or char.isspace() for char in name)
    bare = bare and "='" not in name
    return name if bare else json.dumps(name, ensure_ascii=False)


class GemmaScanner(JsonScanner):
    """Reads one value in Gemma's syntax. ``quote``: the marker around strings. ``kinds``: as in `JsonScanner`.
    ``closers``: the forms of the marker that ends the call. It also ends a string or a text without quotes; without it,
    these are errors. ``openers``: the forms of the one that begins the next call, which ends them too. ``arguments``:
    those that the tool declares."""

    __slots__ = (
        "ahead", "arguments", "bare", "closers", "name", "open", "openers", "patterns", "quote", "sign", "told",
    )  # fmt: skip

    def __init__(
        self,
        quote: str,
        kinds: str = "",
        closers: tuple[str, ...] = (),
        openers: tuple[str, ...] = (),
        arguments: Mapping[str, Argument] = _NO_ARGUMENTS,
    ) -> None:
        self._set_up(kinds, GEMMA)
        self.quote = quote
        self.closers = closers
        self.openers = openers
        self.patterns = string_patterns(quote, closers, openers)
        self.sign = ":"
        """What the model writes after a key."""
        self.bare: list[str] = []
        """The value without quotes that is being read."""
        self.arguments = arguments
        self.name = ""
        """The key of the value that is open, if it has no quotes."""
        self.ahead: StringPatterns | None = None
        """The patterns for the string that is open, with the arguments whose string may end it; ``patterns`` if there
        are none, None if they were not yet looked up."""
        self.told = False
        """Whether a marker in a string was reported."""
        self.open = False
        """True if the text was cut off: a marker at its end may be part of a string."""

    def begin(self, text: str, i: int, final: bool) -> int:
        key = self.key
        if key:
            if match := _whole_key(text, i):
                return self._members(text, match)
            self.name = ""
        elif self.state == VALUE and self.stack and (match := _whole_scalar(text, i)):
            self.state = NEXT
            return match.end()
        char = text[i]
        if self.kinds and not self.stack and char not in self.kinds:
            if char != "(" or not self.closers:
                return -1
            self.notes.append((i, "'{'", char))
            self.put(text, i, i + 1, "{")
            self.sign = "="
            self.stack.append("c")
            self.state = KEY_OR_END
            return i + 1
        if text.startswith(self.quote, i):
            end = i + len(self.quote)
            self.put(text, i, end, '"')
            self.state = QUOTED
            self.ahead = None
            return end
        if not final and len(text) - i < len(self.quote) and self.quote.startswith(text[i:]):
            self.stopped = True
            return i
        if char in '":,{}[])':
            self.goes_on = AS_JSON
            return -1
        if key:
            self.put(text, i, i, '"')
            self.state = BARE
            return self._bare(text, i, final)
        scalar = is_scalar(text, i, final) if char in "-0123456789tfnTFN" else False
        if scalar or not self.closers or not self.stack:
            return -1
        if scalar is None:
            self.stopped = True
        else:
            self.notes.append((i, "a value in quotes", char))
            self.put(text, i, i, '"')
            self.state = TEXT
        return i

    def after(self, text: str, i: int, final: bool) -> int:
        """Reads the next key where the comma before it is missing."""
        if self.closers and self.stack[-1] != "[":
            if _key_begins(text, i):
                self.notes.append((i, "','", text[i]))
                self.put(text, i, i, ",")
                self.state, self.key = KEY, True
                return self.begin(text, i, final)
            if not final and _key_begun(text, i):
                self.stopped = True
                return i
        return JsonScanner.after(self, text, i, final)

    def cut_off(self) -> None:
        self.open = True

    def holds(self, text: str) -> bool:
        if self.state == QUOTED:
            match = self.patterns.stops.find(text, 0)
            if match is None or match.start():
                return False
            if match[1] is not None:
                return True
            return match[0] == self.quote and not self.key and self._string_over(text, match.end()) < 0
        return self.state < COLON and len(text) < len(self.quote) and self.quote.startswith(text)

    def _look_ahead(self) -> StringPatterns:
        """Sets ``ahead``, with the other arguments if that of the open string is no string; and so how it goes on."""
        names: tuple[str, ...] = ()
        if len(self.stack) == 1 and not self.key:
            argument = self.arguments.get(self.name)
            if argument is not None and "string" not in argument.types:
                names = tuple([name for name in self.arguments if name != self.name])
        ahead = self.patterns
        if names:
            ahead = string_patterns(self.quote, self.closers, self.openers, self.sign, names)
        self.ahead = ahead
        self.odd, self.goes_on = ahead.plain, (ahead.goes_on, escape)
        return ahead

    def _members(self, text: str, key: re.Match[str] | None) -> int:
        """Reads a key and the scalar after it, and the next ones, as long as they are whole; or a key and the marker
        that begins a string."""
        i = 0
        while key is not None:
            i = key.end()
            self.name = key[1]
            if text.startswith(self.quote, i):
                i += len(self.quote)
                self.put(text, key.start(1), i, f'"{key[1]}":"')
                self.state = QUOTED
                self.ahead = None
                break
            self.put(text, key.start(1), i, f'"{key[1]}":')
            self.state = VALUE
            scalar = _whole_scalar(text, i)
            if scalar is None:
                break
            self.state = NEXT
            i = scalar.end()
            key = _whole_next_key(text, i)
        self.key = False
        return i

    def inside(self, text: str, i: int, final: bool) -> int:
        if self.state != QUOTED:
            return self._bare(text, i, final) if self.state == BARE else self._text(text, i, final)
        quote = self.quote
        find = self.patterns.stops.find
        match = find(text, i)
        if match is not None and match[1] is None and match[0] != quote:  # a marker that may end it
            found, certain = self._cut_short(text, i, text.find(quote, i), final and not self.open)
            if found is not None and certain:
                return self._unquoted(found, text, i, "the end of a string")
            if found is not None:
                self.stopped = True
                end = len(text) if final else found.start()
                self.put(text, i, end, escape(text[i:end]))
                return end
            while match is not None and match[1] is None and match[0] != quote:
                match = find(text, match.end())
        if match is not None and match[1] is None:
            begin = match.start()
            over = 1 if self.key else self._string_over(text, match.end())
            if over > 0:
                end = match.end()
                self.put(text, i, end, escape(text[i:begin]) + '"')
                self.over()
                if self.state == NEXT and self.stack[-1] != "[" and (key := _whole_next_key(text, end)):
                    end = self._members(text, key)
                return end
            ahead = self.ahead or self._look_ahead()
            other = ahead.next(text, max(i, begin - HELD), begin) if ahead is not self.patterns else None
            if other is not None:
                begin = other.start()
                if not over:
                    self.notes.append((begin, "the end of a string", ","))
                    self.put(text, i, begin, escape(text[i:begin]) + '"')
                    self.over()
                    return begin
            if over:
                end = len(text) if final else begin
                if i < end:
                    self.put(text, i, end, escape(text[i:begin]))
                self.stopped = True
                return end
            self.put(text, i, match.end(), escape(text[i:begin]) + '\\"')
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
            self.stopped = end < len(text)
        if i < end:
            self.put(text, i, end, escape(text[i:end]))
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

    def _unquoted(self, found: re.Match[str], text: str, i: int, expected: str) -> int:
        """Ends a string or a text without quotes, and all brackets, before the marker that ends the call. Before the
        next call it is an error. ``expected``: for the diagnostic, if it is not there yet."""
        start = found.start()
        close = found["close"]
        start += max(0, len(close.rstrip()) - len(self.stack))  # the other brackets are part of the value
        self._keep(text, i, start, start)
        self.stopped = True
        if found.end() == found.start() + len(close):  # the next call: this one has no end
            self.error = expected or "the end of a value"
            return start
        if expected:
            self.notes.append((start, expected, text[start : start + 1]))
        end = found.start() + len(close)
        self.put(
            text, start, end, "".join("]" if bracket == "[" else "}" for bracket in reversed(self.stack))
        )
        self.stack.clear()
        self.done = True
        return end

    def _keep(self, text: str, i: int, end: int, after: int) -> None:
        """Passes on the rest of the value, which ends at ``end``, in place of the text up to ``after``."""
        value = text[i:end]
        if self.state == TEXT:
            value = "".join([*self.bare, value]).strip()
            self.bare.clear()
            if len(value) > 1 and value[0] == value[-1] == "'":
                value = value[1:-1]
        self.put(text, i, after, escape(value) + '"')

    def _text(self, text: str, i: int, final: bool) -> int:
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
                self.put(text, i, end, "")
            self.stopped = True
            return end
        if found["close"] is not None:
            return self._unquoted(found, text, i, "")
        end = after = found.end()
        match = white(text, end)
        quoted = match.end() if match else end
        if text.startswith(self.quote, quoted):  # the second quote of a value that has no first
            after = quoted + len(self.quote)
        self._keep(text, i, end, after)
        self.over()
        return after

    def _text_end(self, patterns: StringPatterns, text: str, i: int) -> re.Match[str] | None:
        """Where the value without quotes ends, as far as the window shows it."""
        begin = self.bare[0] if self.bare else text[i : i + 1]
        listed = self.stack[-1] == "["
        if begin.startswith("'"):
            return (patterns.quoted_item if listed else patterns.quoted)(text, i)
        if listed:
            return patterns.item(text, i)
        return (patterns.member if len(self.stack) == 1 else patterns.inner)(text, i)

    def _bare(self, text: str, i: int, final: bool) -> int:
        """Reads a key without quotes, up to its colon."""
        n = len(text)
        match = _key_run(text, i)
        end = match.end() if match else i
        if end > i:
            self.name += text[i:end]
            self.put(text, i, end, escape(text[i:end]))
            if end == n or text[end] != ":":
                return end
            i = end
        if text[i] in ",{}":
            self.fail(BARE)
            return i
        if text[i] == "=":
            return self._equals(text, i, final)
        limit = i + _WINDOW
        match = white(text, i, limit)
        end = match.end() if match else i
        if end == n and end < limit and not final:
            self.stopped = True
        elif end < n and end < limit and text[end] == ":":
            self.put(text, i, end + 1, f'"{text[i:end]}:')
            self.state = VALUE
            self.key = False
            return end + 1
        else:
            self.put(text, i, end, escape(text[i:end]))
            return end
        return i

    def _equals(self, text: str, i: int, final: bool) -> int:
        """Reads an equals sign: in place of the colon if a value follows, else part of the key."""
        quote = self.quote
        quoted = text[i + 1 : i + 1 + len(quote)]
        if _assigns(text, i) or quoted == quote:
            self.notes.append((i, "':'", "="))
            self.put(text, i, i + 1, '":')
            self.sign = "="
            self.state = VALUE
            self.key = False
        elif not final and (
            _assigns_begun(text, i) or (len(quoted) < len(quote) and quote.startswith(quoted))
        ):
            self.stopped = True
            return i
        return i + 1
