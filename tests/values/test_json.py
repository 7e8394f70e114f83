"""JSON is passed on byte for byte, and ends and breaks in the right places. The judge is `json.loads`."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatparsers.values.cut import cut_json
from chatparsers.values.json import JsonScanner, StringScanner

Read = Callable[..., Any]

_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
cuts = st.lists(st.integers(0, 400), max_size=8)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """JSON in one of its possible layouts."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r\n")]))
    return json.dumps(
        draw(values),
        indent=draw(st.sampled_from([None, None, 0, 3, "\t"])),
        separators=separators,
        ensure_ascii=draw(st.booleans()),
    )


@given(
    text=json_texts(),
    cuts=cuts,
    trail=st.sampled_from(["", "\n", "}", "]", ", 1", "</tool_call>", '"', " x"]),
)
def test_json_is_passed_on_as_it_is_and_no_more(read: Read, text: str, cuts: list[int], trail: str) -> None:
    reading = read(JsonScanner, text + trail, cuts)
    assert (reading.out, reading.done, reading.position, reading.notes) == (text, True, len(text), [])


@given(text=json_texts(), broken=st.integers(0, 400), char=st.sampled_from('{}[]",:0e-.x\\ \n'), cuts=cuts)
def test_complete_means_json_and_json_is_complete(
    read: Read, text: str, broken: int, char: str, cuts: list[int]
) -> None:
    text = text[:broken] + char + text[broken:]
    reading = read(JsonScanner, text, cuts)
    if reading.done:
        json.loads(reading.out)
        assert reading.notes or reading.out == text[: reading.position]
    else:
        assert reading.error
        with pytest.raises(ValueError):
            json.loads(text)


BROKEN = [
    ("", 0, "a JSON value"),
    ("  ", 2, "a JSON value"),
    ("x", 0, "a JSON value"),
    ("}", 0, "a JSON value"),
    ("nul", 0, "a JSON value"),
    ("nulls", 0, "a JSON value"),
    ("undefined", 0, "a JSON value"),
    ("'a'", 0, "a JSON value"),
    ("-", 1, "a JSON number"),
    ("01", 2, "a JSON number"),
    ("1.", 2, "a JSON number"),
    ("1.5.2 ", 5, "a JSON number"),
    ("1e+", 3, "a JSON number"),
    ("--1", 3, "a JSON number"),
    ('"abc', 4, "the end of a string"),
    ("{", 1, "a key or '}'"),
    ("{a:1}", 1, "a key or '}'"),
    ("{,}", 1, "a key or '}'"),
    ('{"a', 3, "the end of a key"),
    ('{"a"', 4, "':'"),
    ('{"a" 1}', 5, "':'"),
    ('{"a":}', 5, "a JSON value"),
    ('{"a":1', 6, "',' or '}'"),
    ('{"a":1]', 6, "',' or '}'"),
    ('{"a":1 "b":2}', 7, "',' or '}'"),
    ('{"a":1,,"b":2}', 7, "a key"),
    ('{"a":1,,}', 7, "a key"),
    ("[1 ,, ]", 4, "a JSON value"),
    ("-Inf", 0, "a JSON value"),
    ("-Infinitys", 0, "a JSON value"),
    ("nan", 0, "a JSON value"),
    ("[", 1, "a JSON value or ']'"),
    ("[1", 2, "',' or ']'"),
    ("[1 2]", 3, "',' or ']'"),
    ("[1}", 2, "',' or ']'"),
    ("[,1]", 1, "a JSON value or ']'"),
    ('["a" "b"]', 5, "',' or ']'"),
    ("[1, 2, x" + ", 3" * 40, 7, "a JSON value"),
]


@pytest.mark.one_in(1)
@pytest.mark.parametrize(("text", "position", "expected"), BROKEN)
def test_what_is_not_json_breaks_at_one_place(read: Read, text: str, position: int, expected: str) -> None:
    whole = read(JsonScanner, text)
    assert (whole.position, whole.error, whole.done) == (position, expected, False)
    assert text.startswith(whole.out)
    assert read(JsonScanner, text, range(len(text)), last_empty=True) == whole


MENDED = [
    ('"a\nb"', '"a\\nb"', [(2, "an escaped control character", "\n")]),
    (
        '"\x00\t"',
        '"\\u0000\\t"',
        [(1, "an escaped control character", "\0"), (2, "an escaped control character", "\t")],
    ),
    (r'"\d+\."', r'"\\d+\\."', [(1, "an escape", r"\d"), (4, "an escape", r"\.")]),
    (r'"\u12g4"', r'"\\u12g4"', [(1, "an escape", r"\u")]),
    ('{"a\n":None}', '{"a\\n":null}', [(3, "an escaped control character", "\n"), (6, "'null'", "None")]),
    ("[True, False]", "[true, false]", [(1, "'true'", "True"), (7, "'false'", "False")]),
    ("None", "null", [(0, "'null'", "None")]),
    ("NaN", '"NaN"', [(0, "'\"NaN\"'", "NaN")]),
    (
        "[-Infinity,-1, Infinity]",
        '["-Infinity",-1, "Infinity"]',
        [(1, "'\"-Infinity\"'", "-Infinity"), (15, "'\"Infinity\"'", "Infinity")],
    ),
    ('{"a":1 , \n}', '{"a":1  \n}', [(10, "a key", "}")]),
    ("[[1,],2,\t]", "[[1],2\t]", [(4, "a JSON value", "]"), (9, "a JSON value", "]")]),
    ("[" + "1, " * 60 + "]", "[" + "1, " * 59 + "1 ]", [(181, "a JSON value", "]")]),
    ("[1," + " " * 255 + "]", "[1" + " " * 255 + "]", [(258, "a JSON value", "]")]),
    ('{"k": "' + "a" * 70 + '", }', '{"k": "' + "a" * 70 + '" }', [(80, "a key", "}")]),
]


@pytest.mark.parametrize(("text", "out", "notes"), MENDED)
def test_what_is_nearly_json_is_mended_with_a_note(
    read: Read, text: str, out: str, notes: list[tuple[int, str, str]]
) -> None:
    whole = read(JsonScanner, text)
    assert (whole.out, whole.done, whole.notes) == (out, True, notes)
    json.loads(whole.out)
    assert read(JsonScanner, text, range(len(text)), last_empty=True) == whole


@pytest.mark.parametrize(
    ("kinds", "text", "error"),
    [
        ("{", "[]", "a JSON object"),
        ("{", " 1", "a JSON object"),
        ("[{", '"a"', "a JSON value"),
        ("{", "{}", ""),
    ],
)
def test_kinds_say_how_a_value_may_begin(read: Read, kinds: str, text: str, error: str) -> None:
    reading = read(lambda: JsonScanner(kinds), text)
    assert (reading.error, reading.done) == (error, not error)


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("opening", "inside", "closing"), [("[", "", "]"), ('{"a":', "null", "}"), ('[{"b": ', "1", "} ]")]
)
def test_depth_costs_no_recursion(read: Read, opening: str, inside: str, closing: str, step: int) -> None:
    text = opening * 10_000 + inside + closing * 10_000
    reading = read(JsonScanner, text, range(0, len(text), step))
    assert (reading.out, reading.done) == (text, True)


def test_a_long_number_leaves_nothing_to_scan_again(read: Read) -> None:
    text = "[" + "1" * 100_000 + "]"
    reading = read(JsonScanner, text, range(len(text)))
    assert (reading.out, reading.done) == (text, True)
    assert reading.most_held == 0


@pytest.mark.parametrize("opening", ['"', '{"a": ["', '{"'])
def test_a_long_string_goes_out_at_once_and_leaves_no_trace(opening: str) -> None:
    scanner = JsonScanner()
    scanner.scan(opening, 0, False)
    before = len(pickle.dumps(scanner))
    for piece in ["text ", "and \\n", "caf\u00e9"] * 1000:
        assert scanner.scan(piece, 0, False) == len(piece)
        assert scanner.out == piece
        assert scanner.plain is not None
        assert (scanner.plain(piece) is None) == ("\\" not in piece)
    assert len(pickle.dumps(scanner)) < before + 100


@given(value=st.text(), ascii_only=st.booleans(), cuts=cuts)
def test_a_string_is_unescaped_as_json_does(
    read: Read, value: str, ascii_only: bool, cuts: list[int]
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    reading = read(StringScanner, text + '"', cuts)
    assert (reading.out, reading.done, reading.position, reading.notes) == (value, True, len(text), [])


_PIECES = [
    "\\ud83d",
    "\\ude00",
    "\\uD83D\\uDE00",
    "\\u00e9",
    "\\/",
    "\\b\\f\\n\\r\\t",
    '\\"',
    "\\\\",
    "x",
    "\U0001f600",
]


@given(text=st.lists(st.sampled_from(_PIECES)).map("".join), cuts=cuts)
def test_pairs_of_surrogates_are_joined_over_cuts(read: Read, text: str, cuts: list[int]) -> None:
    text = f'"{text}"'
    value = json.loads(text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    reading = read(StringScanner, text, cuts)
    assert reading.out == value
    assert read(StringScanner, text, range(len(text))) == reading


@pytest.mark.parametrize(
    ("text", "out", "position", "error"),
    [
        ("x", "", 0, "a JSON string"),
        ('"ab', "ab", 3, "the end of a string"),
        ('"\\', "\\", 2, "the end of a string"),
        ('"\\ud83d', "\ufffd", 7, "the end of a string"),
        ('"\\ud83d\\u', "\ufffd\\u", 9, "the end of a string"),
        ('"\\q\n"', "\\q\n", 5, ""),
        ('"\\u12"', "\\u12", 6, ""),
    ],
)
def test_strings_that_break_or_are_mended(read: Read, text: str, out: str, position: int, error: str) -> None:
    reading = read(StringScanner, text)
    assert (reading.out, reading.position, reading.error) == (out, position, error)
    assert read(StringScanner, text, range(len(text)), last_empty=True) == reading


@pytest.mark.pure
def test_bad_escapes_cost_no_copy_of_the_rest() -> None:
    """For ten times the text, ten times the characters are read: `text[i:]` never copies a long rest."""

    class Counted(str):
        taken = 0

        def __getitem__(self, key: Any) -> str:
            found = super().__getitem__(key)
            Counted.taken += len(found)
            return found

    def count(bad: int) -> int:
        Counted.taken = 0
        StringScanner().scan(Counted('"' + "\\d" * bad + '"'), 0, False)
        JsonScanner().scan(Counted('"' + "\\d" * bad + '"'), 0, False)
        return Counted.taken

    assert count(2000) < 11 * count(200)


def _read(text: str) -> Any:
    """The value of a JSON text; None if it is none, or if half of a pair of surrogates is alone in it."""
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()
    except ValueError:
        return None
    return found


def test_what_is_cut_off_is_closed_after_all_that_is_whole() -> None:
    """At every place: after the last whole value, and inside a string after its last whole character."""
    for whole in (
        '{"a": [1, {"b": "x, }"}, []], "c": {}, "": null}',
        r'{"a\"": "\\\" \u00e9\ud83d\ude00\n", "b": ["\\\\", "\u0041x"]}',
        r'["\\ud83d", "\ud83d\ude00", "}", "é😀"]',
    ):
        for end in range(1, len(whole) + 1):
            text, cut = whole[:end], cut_json(whole[:end])
            assert cut.open is (end < len(whole))
            assert _read(text[: cut.whole] + cut.closers) is not None, text
            strings = [
                place for place in range(end + 1) if _read(text[:place] + '"' + cut.closers) is not None
            ]
            if cut.open:
                assert cut.inside == max((place for place in strings if place > cut.whole), default=-1), text
