"""What the three syntaxes that spell any JSON value promise alike: JSON, Python's literals, and Gemma's."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatparsers.core.machine.value import Transcoder
from chatparsers.values.gemma import GemmaScanner
from chatparsers.values.json import JsonScanner
from chatparsers.values.python import PythonScanner

Read = Callable[..., Any]
Note = tuple[int, str, str]

QUOTES = {"gemma <escape>": "<escape>", 'gemma <|"|>': '<|"|>', "gemma token": "\ud801"}
SYNTAXES: dict[str, Callable[..., Transcoder]] = {
    "json": JsonScanner,
    "python": PythonScanner,
    "gemma <escape>": lambda *kinds: GemmaScanner("<escape>", *kinds),
    'gemma <|"|>': lambda *kinds: GemmaScanner('<|"|>', *kinds),
    "gemma token": lambda *kinds: GemmaScanner("\ud801", *kinds),
}
_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """JSON in one of its possible layouts."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r\n")]))
    return json.dumps(
        draw(_values),
        indent=draw(st.sampled_from([None, None, 0, 3, "\t"])),
        separators=separators,
        ensure_ascii=draw(st.booleans()),
    )


@pytest.mark.parametrize("name", SYNTAXES)
@given(
    text=json_texts(),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    trail=st.sampled_from(["", "\n", "}", "]", ", 1", "</tool_call>", " x"]),
)
def test_json_is_passed_on_as_it_is_and_no_more(
    read: Read, name: str, text: str, cuts: list[int], trail: str
) -> None:
    reading = read(SYNTAXES[name], text + trail, cuts)
    assert (reading.out, reading.done, reading.position, reading.notes) == (text, True, len(text), [])


@given(
    text=json_texts(),
    broken=st.integers(0, 400),
    char=st.sampled_from('{}[]",:0e-.x\\ \n'),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_a_json_value_that_is_complete_is_json_and_json_is_complete(
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
# Odd JSON is passed on as it is.
ODD_JSON = [
    r'"\/ \ud83d\ude00 \ud800"',
    '{\r\n\t"a" : [ ] , "b":{ }, "c" : [ 1e400 , -0.0,' + "9" * 5000 + " ] }",
    '{"' + "k" * 1000 + '": "v"}',
    "[" + " " * 600 + "1" + " " * 600 + "," + " " * 600 + '"a"' + " " * 600 + "]",
    "[" + '{"a":1,"b":"c\\"d","e":null},' * 40 + "{}]",
    '{"a": "' + "b" * 1000 + '", "c": true, "d": [1, 2, 3]}',
]
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
# Q is the quote.
GEMMA = [
    ("{k:Q\\ \"'\nQ}", '{"k":"\\\\ \\"\'\\n"}', []),
    ("{k:QQ}", '{"k":""}', []),
    ("{a b : 1}", '{"a b" : 1}', []),
    ("{a\nb:1}", '{"a\\nb":1}', []),
    ('{a"b\\:1}', '{"a\\"b\\\\":1}', []),
    ("{filter[x]:1e400}", '{"filter[x]":1e400}', []),
    ("{Qa:bQ:1}", '{"a:b":1}', []),
    ("{<a:1}", '{"<a":1}', []),
    ("{k:None,l:[True]}", '{"k":null,"l":[true]}', [(3, "'null'", "None"), (11, "'true'", "True")]),
    ('{k:"a\nb"}', '{"k":"a\\nb"}', [(5, "an escaped control character", "\n")]),
    ("{" + "k" * 1000 + " " * 1000 + "k:1}", '{"' + "k" * 1000 + " " * 1000 + 'k":1}', []),
    ("{a:1, \n}", '{"a":1 \n}', [(7, "a key", "}")]),
    ("{a:[1,{b:2,},]}", '{"a":[1,{"b":2}]}', [(11, "a key", "}"), (13, "a value", "]")]),
]


def of(syntax: str, rows: list[Any]) -> Iterator[Any]:
    """The rows for this syntax; those of Gemma's, for each of its quotes."""
    for name in QUOTES if syntax == "gemma" else [syntax]:
        for text, *wanted in rows:
            yield (name, text.replace("Q", QUOTES[name]) if syntax == "gemma" else text, *wanted)


READ = [
    *of("json", MENDED),
    *of("python", [(text, text, []) for text in ODD_JSON]),
    *of("python", RESPELT),
    *of("gemma", GEMMA),
]


@pytest.mark.one_in(1)
@pytest.mark.parametrize(("name", "text", "out", "notes"), READ)
def test_what_is_read_and_noted(read: Read, name: str, text: str, out: str, notes: list[Note] | None) -> None:
    whole = read(SYNTAXES[name], text + ",")
    assert (whole.out, whole.done, whole.position) == (out, True, len(text))
    assert whole.notes == notes if notes is not None else whole.notes
    json.loads(whole.out, parse_int=str)  # of any length
    assert read(SYNTAXES[name], text + ",", range(len(text) + 1), last_empty=True) == whole


NO_JSON = [
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
NO_PYTHON = [
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
NO_GEMMA = [
    ("", 0, "a value"),
    ("}", 0, "a value"),
    ("x", 0, "a value"),
    ("<x", 0, "a value"),
    ("'x'", 0, "a value"),
    ("nul", 0, "a value"),
    ("{", 1, "a key or '}'"),
    ("{:1}", 1, "a key or '}'"),
    ("{,}", 1, "a key or '}'"),
    ("{]", 1, "a key or '}'"),
    ("{a", 2, "':'"),
    ("{a  ", 4, "':'"),
    ("{a,b:1}", 2, "':'"),
    ("{a}", 2, "':'"),
    ("{a b{", 4, "':'"),
    ('{"a"', 4, "':'"),
    ('{"a" b:1}', 5, "':'"),
    ('{"a', 3, "the end of a key"),
    ("{a:}", 3, "a value"),
    ("{a:Oslo}", 3, "a value"),
    ("{a:nothing}", 3, "a value"),
    ("{a:Infinitys}", 3, "a value"),
    ("{a:01}", 5, "a JSON number"),
    ("{a:1", 4, "',' or '}'"),
    ("{a:1]", 4, "',' or '}'"),
    ("{a:1,,}", 5, "a key"),
    ("{a:1,]", 5, "a key"),
    ("{a:1 b:2}", 5, "',' or '}'"),
    ("[", 1, "a value or ']'"),
    ("[1}", 2, "',' or ']'"),
]


@pytest.mark.one_in(1)
@pytest.mark.parametrize(
    ("name", "text", "position", "expected"),
    [
        *of("json", NO_JSON),
        *of("python", NO_PYTHON),
        *of("gemma", NO_GEMMA),
        *((name, f"{{a:{quote}b", 4 + len(quote), "the end of a string") for name, quote in QUOTES.items()),
        *((name, f"{{{quote}a", 2 + len(quote), "the end of a key") for name, quote in QUOTES.items()),
        ("gemma <escape>", "{a:<escape>b<escap", 18, "the end of a string"),
        ("gemma <escape>", "{<escape>a<escap", 16, "the end of a key"),
    ],
)
def test_what_is_no_value_breaks_at_one_place(
    read: Read, name: str, text: str, position: int, expected: str
) -> None:
    whole = read(SYNTAXES[name], text)
    assert (whole.position, whole.error, whole.done) == (position, expected, False)
    assert name != "json" or text.startswith(whole.out)
    assert read(SYNTAXES[name], text, range(len(text)), last_empty=True) == whole


@pytest.mark.parametrize(
    ("name", "kinds", "text", "error"),
    [
        ("json", "{", "[]", "a JSON object"),
        ("json", "{", " 1", "a JSON object"),
        ("json", "[{", '"a"', "a JSON value"),
        ("json", "{", "{}", ""),
        ("gemma <escape>", "{", "[1]", "an object"),
        ("gemma <escape>", "{", "<escape>a<escape>", "an object"),
        ("gemma <escape>", "{[", "1", "a value"),
        ("gemma <escape>", "{", " {}", ""),
    ],
)
def test_kinds_say_how_a_value_may_begin(read: Read, name: str, kinds: str, text: str, error: str) -> None:
    reading = read(lambda: SYNTAXES[name](kinds), text)
    assert (reading.error, reading.done) == (error, not error)


DEEP = 10_000
"""Ten times as deep as Python's functions may call each other."""


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("name", "opening", "inside", "closing"),
    [
        ("json", "[", "", "]"),
        ("json", '{"a":', "null", "}"),
        ("json", '[{"b": ', "1", "} ]"),
        ("python", "[", "", "]"),
        ("python", "{'a':", "None", ",}"),
        ("python", "((", "", "),)"),
        ("gemma <escape>", "{a:[", "", "]}"),
    ],
)
def test_depth_costs_no_recursion(
    read: Read, name: str, opening: str, inside: str, closing: str, step: int
) -> None:
    text = opening * DEEP + inside + closing * DEEP
    reading = read(SYNTAXES[name], text, range(0, len(text), step))
    before, after = read(SYNTAXES[name], f"{opening}[1]{closing}").out.split("[1]")
    out = before * DEEP + inside.replace("None", "null") + after * DEEP
    assert (reading.out, reading.done, reading.position) == (out, True, len(text))


@pytest.mark.parametrize("text", ["[", "[" * 20_000 + "1", "1", "[1", "[1,", "[" * 9 + "1 "])
@pytest.mark.parametrize("name", SYNTAXES)
def test_a_piece_does_not_copy_what_is_open(name: str, text: str) -> None:
    """Brackets, the digits of a number, white space: many came, each in its own piece, and one more does."""
    scanner = SYNTAXES[name]()
    char = " " if text[-1] in ", " else text[-1]
    for piece in [text, *char * 20_000]:
        scanner.scan(piece, 0, False)
    taken = []
    tracemalloc.start()
    for _ in range(8):  # now and then a list grows
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        scanner.scan(char, 0, False)
        taken.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    assert min(taken) < 4_000, taken


@pytest.mark.parametrize(("name", "opening"), [("json", "["), ("python", "["), ("python", "{'a': ")])
def test_a_long_number_leaves_nothing_to_scan_again(name: str, opening: str) -> None:
    scanner = SYNTAXES[name]()
    scanner.scan(opening, 0, False)
    before = len(pickle.dumps(scanner))
    outs = []
    for _ in range(100_000):
        assert scanner.scan("1", 0, False) == 1
        outs.append(scanner.out)
    assert len(pickle.dumps(scanner)) < before + 300_000  # a number is judged whole: its pieces are kept
    scanner.scan(" ", 0, False)
    assert "".join(outs) + scanner.out == "1" * 100_000 + " "
    assert not scanner.error


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        *(("json", opening) for opening in ('"', '{"a": ["', '{"')),
        *(
            ("python", opening)
            for opening in ("'", '"', "'''", '"""', "r'", "{'a': ['", "{'a': '''", '["a" "')
        ),
        *((name, "{a:" + quote) for name, quote in QUOTES.items()),
    ],
)
def test_a_long_string_goes_out_at_once_and_leaves_no_trace(name: str, opening: str) -> None:
    """Each piece at once; one that must be spelt otherwise in JSON does not take the stream's shortcut."""
    scanner = SYNTAXES[name]()
    scanner.scan(opening + "xyz", 0, False)
    before = len(pickle.dumps(scanner))
    rare = {"json": "and \\n", "python": "and \t"}.get(name, 'q"\\ \n')
    for piece in ["text ", rare, "caf\u00e9"] * 1000:
        assert scanner.scan(piece, 0, False) == len(piece)
        assert scanner.out == (piece if name == "json" else json.dumps(piece, ensure_ascii=False)[1:-1])
        assert scanner.plain is not None
        assert (scanner.plain(piece) is None) == (piece != rare)
    assert len(pickle.dumps(scanner)) < before + 100
    if name in QUOTES:  # what may be the beginning of the quote is held
        held = scanner.scan("x" + QUOTES[name][:-1], 0, False)
        assert (held, scanner.out, scanner.plain is None) == (1, "x", len(QUOTES[name]) > 1)
