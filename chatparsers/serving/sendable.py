"""A call's arguments as every client can read them, and send them back: while they are streamed.

A model may write what JSON allows and clients do not: half of a surrogate pair as an escape, which is no text, and a
number beyond a float's range, which Python reads as an infinity and JavaScript sends back as null. They become U+FFFD
and the largest float, as `chatparsers.gateway.body` reads them in a history.

The pieces may be cut anywhere. What waits for the next piece is an escape or a number that is not whole, and no more.
In a string a piece without a quote or a backslash passes as it is: most do.
"""

from __future__ import annotations

import math
import re
import sys

from .partial import ArgumentsFilter

_HEX = "[0-9a-fA-F]"
_HIGH, _LOW = rf"\\u[dD][89abAB]{_HEX}{{2}}", rf"\\u[dD][c-fC-F]{_HEX}{{2}}"
_BMP = rf"\\u(?:[0-9a-ce-fA-CE-F]{_HEX}|[dD][0-7]){_HEX}{{2}}"
_whole = re.compile(rf'(?:[^"\\]+|\\[^u]|{_BMP}|{_HIGH}{_LOW})*').match
"""Text of a string whose escapes are whole characters."""
_half = re.compile(f"{_HIGH}|{_LOW}").match
_begun = re.compile(
    rf"\\(?:u(?:{_HEX}{{0,3}}|[dD][89abAB]{_HEX}{{2}}(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?))?"
).fullmatch
"""An escape, or a pair of them, that the next piece may make whole."""
_outside = re.compile('["0-9-]').search
_number = re.compile("[-0-9][-+.0-9eE]*").match
_more_of_it = re.compile("[-+.0-9eE]*").fullmatch
_FLOAT_DIGITS = 308
"""A number of so many characters, without an exponent, is a float."""
_LARGEST = repr(sys.float_info.max)


class Sendable:
    """Passes on the pieces of a call's arguments. ``first``: what they go through before.

    >>> from chatparsers.serving.sendable import Sendable
    >>> sendable = Sendable()
    >>> [sendable.take(piece) for piece in ('{"a": 1e4', '00, "b": "\\\\ud8', '3d!"', "}")]
    ['{"a": ', '1.7976931348623157e+308, "b": "', '\\\\ufffd!"', '}']
    """

    __slots__ = ("_first", "_held", "_quoted")

    def __init__(self, first: ArgumentsFilter | None = None) -> None:
        self._first = first
        self._held: list[str] = []
        """The pieces of a number or an escape that is not whole."""
        self._quoted = False
        """Whether the next character is in a string."""

    def take(self, piece: str) -> str:
        """The part of the held text and ``piece`` that may go out."""
        if self._first is not None:
            piece = self._first.take(piece)
        if self._held:
            self._held.append(piece)
            if not self._quoted and _more_of_it(piece):
                return ""  # joined once at its end, however long the number is
            piece = "".join(self._held)
            self._held = []
        elif self._quoted:
            if '"' not in piece and "\\" not in piece:
                return piece
        elif _outside(piece) is None:
            return piece
        return self._read(piece)

    def finish(self) -> str:
        """What is left of arguments that were cut off. The half of a pair is left out, so that a model that goes on
        writes it again."""
        held, self._held = "".join(self._held), []
        if self._quoted:
            return "" if _half(held) else held
        return _finite(held)

    def _read(self, text: str) -> str:
        out: list[str] = []
        at = 0
        while at < len(text):
            if self._quoted:
                end = _whole(text, at).end()  # type: ignore[union-attr]
                found = text[at:end]
                if not found and text[at] == '"':
                    found, self._quoted = '"', False
                elif not found:
                    if _begun(text, at):
                        self._held = [text[at:]]
                        break
                    half = _half(text, at)
                    if half is not None:
                        out.append("\\ufffd")
                        at = half.end()
                        continue
                    found = text[at]
            elif text[at] == '"':
                found, self._quoted = '"', True
            elif (run := _number(text, at)) is not None:
                if run.end() == len(text):
                    self._held = [run[0]]
                    break
                out.append(_finite(run[0]))
                at = run.end()
                continue
            else:
                odd = _outside(text, at)
                found = text[at : odd.start() if odd is not None else len(text)]
            out.append(found)
            at += len(found)
        return "".join(out)


def _finite(number: str) -> str:
    if len(number) > _FLOAT_DIGITS or "e" in number or "E" in number:
        try:
            if math.isinf(float(number)):
                return f"-{_LARGEST}" if number[0] == "-" else _LARGEST
        except ValueError:
            pass  # cut off, or of a broken call
    return number
