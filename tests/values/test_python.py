"""Python literals become the JSON of the same value. The judges are `ast.literal_eval` and `json.loads`."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chatparsers.values import respell
from chatparsers.values.python import PythonScanner

Read = Callable[..., Any]

_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(_scalars, inner, max_size=4)
        | st.sets(_scalars | st.tuples(_scalars, _scalars), min_size=1, max_size=4)
    ),
    max_leaves=20,
)
cuts = st.lists(st.integers(0, 400), max_size=8)


def as_json(value: Any) -> Any:
    """``value`` as JSON: keys are strings, every sequence is a list."""
    if isinstance(value, dict):
        return {next(iter(json.loads(json.dumps({key: 0})))): as_json(inner) for key, inner in value.items()}
    return [as_json(inner) for inner in value] if isinstance(value, (list, tuple, set)) else value


@given(value=values, cuts=cuts, trail=st.sampled_from([")", ", b=1)", "]", "}", "\n", " # x"]))
def test_repr_comes_out_as_json(read: Read, value: Any, cuts: list[int], trail: str) -> None:
    text = repr(value)
    assert ast.literal_eval(text) == value
    reading = read(PythonScanner, text + trail, cuts)
    assert (reading.done, reading.position) == (True, len(text))
    assert json.loads(reading.out) == as_json(value)


@given(value=values, data=st.data(), cuts=cuts)
def test_the_many_ways_to_write_a_value(read: Read, value: Any, data: st.DataObject, cuts: list[int]) -> None:
    text = write(value, data.draw)
    reading = read(PythonScanner, text + ")", cuts)
    assert (reading.done, reading.position) == (True, len(text))
    assert json.loads(reading.out) == as_json(value)


@given(
    value=values,
    at=st.integers(0, 60),
    odd=st.sampled_from(["", "'", '"', "\\", "\\x41", ",", "True", "[", "}", "\n"]),
    trail=st.sampled_from(["", ", b='it', c=" + '"a b" ' * 20, "] 'q" + "r" * 400]),
)
def test_one_piece_says_what_single_characters_say(
    read: Read, value: Any, at: int, odd: str, trail: str
) -> None:
    text = repr(["it's", 'say "a"', value, "'\"\\", "x" * 70, None])
    text = text[:at] + odd + text[at:] + trail
    assert read(PythonScanner, text) == read(PythonScanner, text, range(len(text)))


def write(value: Any, draw: Callable[[st.SearchStrategy[str]], str], nested: bool = False) -> str:
    """``value`` as a literal in a model's style, with Python's and JSON's spellings mixed."""

    def among(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    def escaped(char: str) -> str:
        return {"'": "\\'", '"': '\\"'}.get(char) or char.encode("unicode_escape").decode("ascii")

    def members(texts: list[str]) -> str:
        return (
            among("", " ", "\n  ")
            + among(",", ", ", " ,\n\t").join(texts)
            + among("", ",", " , ", ",\n", " ")
        )

    if isinstance(value, dict):
        texts = [
            write(key, draw, True) + among(":", ": ", " : ") + write(inner, draw, True)
            for key, inner in value.items()
        ]
        return "{" + members(texts) + "}" if texts else among("{}", "{ }")
    if isinstance(value, (list, tuple, set)):
        texts = [write(inner, draw, True) for inner in value]
        begin, end = {list: "[]", tuple: "()", set: "{}"}[type(value)]
        if not texts:
            return begin + among("", " ") + end
        return begin + (texts[0] + "," if len(texts) == 1 and begin == "(" else members(texts)) + end
    if isinstance(value, str):
        if nested and value and among("whole", "parts") == "parts":
            middle = len(value) // 2
            return write(value[:middle], draw) + among(" ", "\n    ", "\t") + write(value[middle:], draw)
        triple = "".join(escaped(char) if char in "\\'\"\r\0" else char for char in value)
        ways = [repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False)]
        ways += [f"'''{triple}'''", f'"""{triple}"""', "u" + repr(value)]
        if not set(value) & set("'\\\r\n\0"):
            ways.append(f"r'{value}'")
        return among(*ways)
    if value is None or isinstance(value, bool):
        return among(repr(value), json.dumps(value))
    return repr(value)


_BODY = [
    "\\n",
    "\\t",
    "\\a",
    "\\v",
    "\\b",
    "\\f",
    "\\r",
    "\\'",
    '\\"',
    "\\\\",
    "\\x41",
    "\\xff",
    "\\x0a",
    "\\u00e9",
    "\\0",
]
_BODY += [
    "\\1",
    "\\12",
    "\\101",
    "\\400",
    "\\U0001F600",
    "\\U0000000a",
    "\\q",
    "\\d",
    "\\\n",
    "'",
    '"',
    "''",
    '""',
    "7",
    "b",
]
_BODY += [" ", "x", "\u00e9", "\U0001f600", "\t", "\x7f", "\x0b", "\n"]


@given(
    quote=st.sampled_from(["'", '"', "'''", '"""']),
    prefix=st.sampled_from(["", "", "r", "R", "u", "U"]),
    body=st.lists(st.sampled_from(_BODY), max_size=10).map("".join),
    cuts=cuts,
)
def test_strings_mean_what_they_mean_in_python(
    read: Read, quote: str, prefix: str, body: str, cuts: list[int]
) -> None:
    text = prefix + quote + body + quote
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(f"[{text}]")[0]
    except SyntaxError:
        assume(False)
    reading = read(PythonScanner, f"[{text}]", cuts)
    assert reading.done
    assert json.loads(reading.out) == [value]


@given(text=st.text("0123456789+-._eExobfABj", min_size=1, max_size=9), cuts=cuts)
def test_numbers_mean_what_they_mean_in_python(read: Read, text: str, cuts: list[int]) -> None:
    reading = read(PythonScanner, text, cuts)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        if reading.done:
            digits = text.replace("_", "").lstrip("+-")
            assert digits.startswith("0"), "only leading zeros are read with more good will than Python has"
            assert json.loads(reading.out) == float(text)
        return
    if isinstance(value, complex) or text.count("+") + text.count("-") > 1 + ("e" in text.lower()):
        assert not reading.done
        return
    assert reading.done
    assert json.loads(reading.out) == value
    assert not reading.notes or reading.out != text


def test_nothing_is_searched_after_a_string_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of each later string would be searched through all the text."""
    tokens, seen = respell._tokens, 0

    def counted(text: str) -> Iterator[re.Match[str]]:
        nonlocal seen
        for token in tokens(text):
            seen += 1
            yield token

    monkeypatch.setattr(respell, "_tokens", counted)
    scanner = PythonScanner()
    scanner.scan("[True, '" + r""" "a": \'b\',""" * 1000, 0, False)
    assert scanner.out.startswith(r"""[true, " \"a\": 'b',""")
    assert 0 < seen < 20
