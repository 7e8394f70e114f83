"""For every transcoder: cutting, copying, pickling and shortcuts do not change the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatparsers.core.machine.stops import StopFinder
from chatparsers.core.machine.value import Transcoder
from chatparsers.schema.document import Document
from chatparsers.values.closers import of_texts
from chatparsers.values.elements import ElementScanner
from chatparsers.values.gemma import GemmaScanner
from chatparsers.values.json import JsonScanner, ObjectScanner, StringScanner
from chatparsers.values.python import PythonScanner
from chatparsers.values.raw import raw_maker
from chatparsers.values.unquoted import NEAR

Read = Callable[..., Any]
Make = Callable[[], Transcoder]

_STOPS = StopFinder(["</parameter>", "<parameter="])


def _raw(*types: str) -> Make:
    return raw_maker(_STOPS, frozenset(types))


MAKES: dict[str, Make] = {
    "json": JsonScanner,
    "json object": lambda: JsonScanner("{"),
    "json arguments": ObjectScanner,
    "json string": StringScanner,
    "python": PythonScanner,
    "python argument": lambda: PythonScanner(True, of_texts({")": (",", "]")})),
    "gemma <escape>": lambda: GemmaScanner("<escape>"),
    'gemma <|"|>': lambda: GemmaScanner('<|"|>'),
    "gemma token": lambda: GemmaScanner("\ud801", "{"),
    "gemma, mended": lambda: GemmaScanner("<escape>", "{", ("</parameter>",)),
    "gemma, mended by token": lambda: GemmaScanner('<|"|>', "{", ("\ud801", "</parameter>")),
    "elements": lambda: ElementScanner(("<",), "<", (), Document(True), True, "a"),
    "elements, token": lambda: ElementScanner(("\ud801",), "<", ("\ud801",), Document(True), True, "a"),
    "raw string": _raw("string"),
    "raw array": _raw("array", "integer"),
    "raw union": _raw("string", "integer", "null"),
}

# Fragments with a meaning to some transcoder, so that random texts of them reach rare cases.
_FRAGMENTS = [
    *"{}[](),:+-.0129eExu_\\'\"<>|tTnNrbfa \n\t\r\x00\x7f\u00e9\u2028\U0001f600\ud801",
    *(
        '"""',
        "'''",
        '""',
        "''",
        '"a"',
        "'b'",
        "r'",
        'f"',
        "rb'",
        "\\u00e9",
        "\\ud83d",
        "\\ude00",
        "\\x41",
        "\\U0001F600",
    ),
    *("\\n", "\\'", '\\"', "\\\\", "\\/", "\\101", "\\\n", "\\\r\n", "\\N{DASH}", "\\u12", "\\q"),
    *(
        "None",
        "True",
        "False",
        "true",
        "false",
        "null",
        "inf",
        "datetime(",
        "nul",
        "12",
        "-0.0",
        "1e400",
        "1_000",
        "0xff",
    ),
    *(
        "<escape>",
        "<esc",
        '<|"|>',
        '<|"',
        "</parameter>",
        "</param",
        "<parameter=",
        "k:",
        '"k":',
        "'k':",
        '{"a": [1, ',
    ),
    *(
        ", ",
        ',\n  "',
        ": ",
        "{a:1,",
        "{k:<escape>",
        '{k:<|"|>',
        ",k:",
        "}</parameter>",
        "((1,), ",
        "a" * 70,
        " " * 90,
        "1" * 90,
        '{"k":1,"l":"m",' * 6,
        "['x'," * 30,
    ),
]
texts = st.lists(st.sampled_from(_FRAGMENTS), max_size=14).map("".join)

# Beginnings that lead into each state, so that random texts get there.
_OPENINGS = [
    "",
    '"',
    "'",
    '"""',
    "'''",
    "r'",
    "{",
    "[",
    "(",
    '{"',
    "{'",
    "{a",
    "{a:",
    "<escape>",
    "{a:<escape>",
    '{a:<|"|>',
]
opened = st.tuples(st.sampled_from(_OPENINGS), texts).map("".join)


@pytest.mark.parametrize("name", MAKES)
@given(data=st.data())
def test_cuts_are_invisible(read: Read, name: str, data: st.DataObject) -> None:
    text = data.draw(opened)
    whole = read(MAKES[name], text)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    carry = data.draw(st.sampled_from(["same", "copy", "pickle"]))
    last_empty = data.draw(st.booleans())
    shortcut = data.draw(st.booleans())
    assert read(MAKES[name], text, cuts, last_empty=last_empty, carry=carry, shortcut=shortcut) == whole
    assert read(MAKES[name], text, range(len(text)), last_empty=last_empty, shortcut=shortcut) == whole


@pytest.mark.parametrize("name", MAKES)
@given(text=opened)
def test_what_is_not_consumed_is_short(read: Read, name: str, text: str) -> None:
    reading = read(MAKES[name], text + " " * 3000 + text, range(0, 2 * len(text) + 3000, 7))
    # Behind a marker in a string without its second quote, Gemma's syntax waits for that quote.
    assert reading.most_held <= 300 + (NEAR if "mended" in name else 0)
