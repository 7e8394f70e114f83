"""Python literals become the JSON of the same value. The judges are `ast.literal_eval` and `json.loads`."""

from __future__ import annotations

import ast
import json
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

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


@given(value=values.map(as_json), cuts=cuts, indent=st.sampled_from([None, 0, 2]), ascii_only=st.booleans())
def test_json_is_passed_on_as_it_is(
    read: Read, value: Any, cuts: list[int], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    reading = read(PythonScanner, text + ",", cuts)
    assert (reading.out, reading.done, reading.position, reading.notes) == (text, True, len(text), [])


@pytest.mark.parametrize(
    "text",
    [
        r'"\/ \ud83d\ude00 \ud800"',
        '{\r\n\t"a" : [ ] , "b":{ }, "c" : [ 1e400 , -0.0,' + "9" * 5000 + " ] }",
        '{"' + "k" * 1000 + '": "v"}',
        "[" + " " * 600 + "1" + " " * 600 + "," + " " * 600 + '"a"' + " " * 600 + "]",
        "[" + '{"a":1,"b":"c\\"d","e":null},' * 40 + "{}]",
        '{"a": "' + "b" * 1000 + '", "c": true, "d": [1, 2, 3]}',
    ],
)
def test_odd_json_is_passed_on_as_it_is(read: Read, text: str) -> None:
    whole = read(PythonScanner, text)
    assert (whole.out, whole.done, whole.notes) == (text, True, [])
    assert read(PythonScanner, text, range(len(text))) == whole


RESPELT = [
    ("'it\\'s \"q\"'", '"it\'s \\"q\\""', []),
    ("''", '""', []),
    ("''''''", '""', []),
    ("'''a'b''c\n'''", "\"a'b''c\\n\"", []),
    ('"""a"b""c\\""" """', '"a\\"b\\"\\"c\\"\\"\\" "', []),
    ("r'\\d+\\''", '"\\\\d+\\\\\'"', []),
    ("['a' \"b\"\n  r'\\c', 'd']", '["ab\\\\c", "d"]', []),
    ("{'a' 'b': 'c' u'd'}", '{"ab": "cd"}', []),
    ("('a' 'b')", '"ab"', []),
    ("(1)", "1", []),
    ("( None )", " null ", []),
    ("{'a': ('b')}", '{"a": "b"}', []),
    ("('a',)", '["a"]', []),
    ("()", "[]", []),
    ("((1, 2), [3],)", "[[1, 2], [3]]", []),
    ("{1, 2}", "[1, 2]", []),
    ("{(1, 2)}", "[[1, 2]]", []),
    ("{'a': {'b': 1, }, }", '{"a": {"b": 1 } }', []),
    ("[1,\n]", "[1\n]", []),
    ("'\\ud800 \\U0000dfff'", '"\\ud800 \\udfff"', []),
    ("'a\\\r\nb'", '"ab"', []),
    ("[+1, 1_000]", "[1, 1000]", [(3, "1", "+1"), (10, "1000", "1_000")]),
    ("[.5,5.,-.5e-3]", "[0.5,5,-0.5e-3]", [(3, "0.5", ".5"), (6, "5", "5."), (13, "-0.5e-3", "-.5e-3")]),
    ("[007,-0xFF]", "[7,-255]", [(4, "7", "007"), (10, "-255", "-0xFF")]),
    ("{1: 2}", '{"1": 2}', [(1, "a string as key", "1")]),
    ("{None: 1, 0x10: 2}", '{"null": 1, "16": 2}', None),
    ("'a\nb'", '"a\\nb"', [(2, "an escaped line break", "\n")]),
    ("['it's','b']", '["it\'s","b"]', [(4, "an escaped quote", "'s")]),
    ("['Johns' car','b']", '["Johns\' car","b"]', [(7, "an escaped quote", "' ")]),
    ('["say "hi" now" , {"a": "b"c"}]', '["say \\"hi\\" now" , {"a": "b\\"c"}]', None),
    ("'\\d\\N{DASH}\\x4'", '"\\\\d\\\\N{DASH}\\\\x4"', None),
    ("'\\U00110000'", '"\\\\U00110000"', [(1, "an escape", "\\U")]),
    ("b'\\xff'", '"\u00ff"', [(0, "a plain string", "b'")]),
    ("Rb'\\x'", '"\\\\x"', [(0, "a plain string", "Rb'")]),
    ("f'{x}'", '"{x}"', [(0, "a plain string", "f'")]),
    ("([1])", "[[1]]", [(4, "','", ")")]),
    ("[NaN,inf]", '["NaN","inf"]', [(1, "a number", "NaN"), (5, "a number", "inf")]),
    ("{'a': -Infinity, nan: -inf}", '{"a": "-Infinity", "nan": "-inf"}', None),
]


@pytest.mark.one_in(1)
@pytest.mark.parametrize(("text", "out", "notes"), RESPELT)
def test_what_is_respelt_and_what_is_noted(
    read: Read, text: str, out: str, notes: list[tuple[int, str, str]] | None
) -> None:
    whole = read(PythonScanner, text + ")")
    assert (whole.out, whole.done, whole.position) == (out, True, len(text))
    assert whole.notes == notes if notes is not None else whole.notes
    json.loads(whole.out)
    assert read(PythonScanner, text + ")", range(len(text) + 1), last_empty=True) == whole


BROKEN = [
    ("", 0, "a Python literal"),
    ("x", 0, "a Python literal"),
    ("datetime(2020, 1, 1)", 0, "a Python literal"),
    ("frozenset({1})", 0, "a Python literal"),
    ("math.nan", 0, "a Python literal"),
    ("+inf", 4, "a number"),
    ("Nones", 0, "a Python literal"),
    ("ub'x'", 0, "a Python literal"),
    ("\u00e9", 0, "a Python literal"),
    (")", 0, "a Python literal"),
    ("1+2", 3, "a number"),
    ("-", 1, "a number"),
    ("1j", 2, "a number"),
    ("1__0", 4, "a number"),
    ("0x", 2, "a number"),
    ("1e", 2, "a number"),
    ("5" * 300 + "_0", 302, "a number"),
    ("0" * 300, 300, "a number"),
    ("'abc", 4, "the end of a string"),
    ("'''abc''", 8, "the end of a string"),
    ("'abc\\", 5, "the end of a string"),
    ("[", 1, "a Python literal or ']'"),
    ("[1", 2, "',' or ']'"),
    ("[1,", 3, "a Python literal"),
    ("[1, 2 + 3]", 6, "',' or ']'"),
    ("[1)", 2, "',' or ']'"),
    ("[1,,]", 3, "a Python literal"),
    ("[,]", 1, "a Python literal or ']'"),
    ("['a', x]", 6, "a Python literal"),
    ("['a' x]", 7, "the end of a string"),
    ("(1, 2]", 5, "',' or ')'"),
    ("((1), 2}", 7, "',' or ')'"),
    ("('" + "a" * 300 + "', 1)", 303, "')'"),
    ("{a: 1}", 1, "a key or '}'"),
    ("{{'a': 1}}", 1, "a key or '}'"),
    ("{'a': 1, [1]: 2}", 9, "a key"),
    ("{'a': 1, 'b'}", 12, "':'"),
    ("{'a' 1}", 5, "':'"),
    ("{'a': }", 6, "a Python literal"),
    ("{'a': 1", 7, "',' or '}'"),
    ("{1, 2: 3}", 5, "',' or '}'"),
    ("{'" + "a" * 300 + "', 'b'}", 303, "':'"),
]


@pytest.mark.parametrize(("text", "position", "expected"), BROKEN)
def test_what_is_no_literal_breaks_at_one_place(read: Read, text: str, position: int, expected: str) -> None:
    whole = read(PythonScanner, text)
    assert (whole.position, whole.error, whole.done) == (position, expected, False)
    assert read(PythonScanner, text, range(len(text)), last_empty=True) == whole


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("opening", "inside", "closing"), [("[", "", "]"), ("{'a':", "None", ",}"), ("((", "", "),)")]
)
def test_depth_costs_no_recursion(read: Read, opening: str, inside: str, closing: str, step: int) -> None:
    text = opening * 10_000 + inside + closing * 10_000
    reading = read(PythonScanner, text, range(0, len(text), step))
    assert (reading.done, reading.position) == (True, len(text))
    assert reading.out.count("[") + reading.out.count("{") == reading.out.count("]") + reading.out.count("}")
    assert len(reading.out) >= 20_000


@pytest.mark.parametrize("opening", ["[", "{'a': "])
def test_a_long_number_leaves_nothing_to_scan_again(opening: str) -> None:
    scanner = PythonScanner()
    scanner.scan(opening, 0, False)
    before = len(pickle.dumps(scanner))
    outs = []
    for _ in range(100_000):
        assert scanner.scan("1", 0, False) == 1
        outs.append(scanner.out)
    assert len(pickle.dumps(scanner)) < before + 300
    scanner.scan(" ", 0, False)
    assert "".join(outs) + scanner.out == "1" * 100_000 + " "
    assert not scanner.error


@pytest.mark.parametrize("opening", ["'", '"', "'''", '"""', "r'", "{'a': ['", "{'a': '''", '["a" "'])
def test_a_long_string_goes_out_at_once_and_leaves_no_trace(opening: str) -> None:
    scanner = PythonScanner()
    assert scanner.scan(opening + "xyz", 0, False) == len(opening) + 3
    before = len(pickle.dumps(scanner))
    for piece in ["text ", "and \t", "caf\u00e9"] * 1000:
        assert scanner.scan(piece, 0, False) == len(piece)
        assert scanner.out == piece.replace("\t", "\\t")
        assert scanner.plain is not None
        assert (scanner.plain(piece) is None) == ("\t" not in piece)
    assert len(pickle.dumps(scanner)) < before + 100
