"""JSON is passed on byte for byte, and ends and breaks in the right places. The judge is `json.loads`."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatparsers.values.cut import cut_json
from chatparsers.values.json import JsonScanner, ObjectScanner, StringScanner
from chatparsers.values.json import _Place as Place

Read = Callable[..., Any]

cuts = st.lists(st.integers(0, 400), max_size=8)


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


_SCALARS = [
    "0",
    "12",
    "-1.50",
    "1e+07",
    "-0",
    "2E-3",
    "01",
    "1.",
    "-",
    "true",
    "nul",
    "None",
    '"a"',
    '"',
    '"\\"\\n"',
]


def _written(draw: random.Random, depth: int) -> str:
    """A value as models write them, now and then with a fault."""
    kind = draw.choice("{[sss" if depth else "{[")
    if kind == "s" or depth == 3:
        return draw.choice(_SCALARS)
    space, count = draw.choice(["", " ", "\n "]), draw.randrange(4)
    members = [('"k":' + space if kind == "{" else "") + _written(draw, depth + 1) for _ in range(count)]
    over = draw.choice(["", "", "", f",{space}", "x"])
    return kind + f",{space}".join(members) + over + draw.choice("}]" if over else {"{": "}", "[": "]"}[kind])


def test_what_a_place_remembers_changes_nothing(read: Read, amount: Callable[..., int]) -> None:
    """Short pieces are read by what was remembered of all the others; the whole text is not."""
    draw = random.Random(7)
    for _ in range(amount(1500, 6000, 60000)):
        text = _written(draw, 0) + draw.choice(["", " ", "}"])
        cuts = sorted(draw.sample(range(len(text) + 1), draw.randrange(len(text) + 1)))
        for make in (JsonScanner, ObjectScanner):
            carry = draw.choice(["same", "same", "copy", "pickle"])
            assert read(make, text, cuts, carry=carry, shortcut=True) == read(make, text), (text, cuts)


def test_what_is_mended_in_the_text_of_a_string_is_told_in_no_cut(read: Read) -> None:
    """An object's JSON text in a string is one mend, wherever the text is cut."""
    text = json.dumps('{"a": "b\nc"}')
    for cut in range(len(text) + 1):
        assert read(ObjectScanner, text, [cut]).notes == [(0, "an object", "a string")], cut


@pytest.mark.pure
def test_a_string_is_remembered_up_to_its_quote() -> None:
    """Its text differs each time. It goes on unchanged after the quote, up to what is odd, also where it is new."""
    found = []
    for text in ("ab", "longer than what is remembered", 'a\\"b', "odd\\", "odd\n"):
        scanner = JsonScanner("{")
        scanner.scan("{", 0, False)
        place = scanner.place
        assert place is not None
        end = scanner.scan('"k":"' + text, 0, False)
        found.append((end - 5, scanner.out, scanner.plain is not None, len(scanner.notes)))
        assert '"k":"ab' not in place.goes and '"k":"' in place.goes
    assert found == [
        (2, '"k":"ab', True, 0),
        (30, '"k":"longer than what is remembered', True, 0),
        (4, '"k":"a\\"b', True, 0),
        (3, '"k":"odd', False, 0),
        (4, '"k":"odd\\n', True, 1),
    ]


@pytest.mark.pure
def test_what_is_remembered_stays_small() -> None:
    """Places hold one another, and scanners hold places: what a stranger writes must not make them more and more."""

    def places() -> int:
        gc.collect()
        return sum(isinstance(one, Place) for one in gc.get_objects())

    before, held = places(), []
    for number in range(4**6):
        white = "".join(" \n\t\r"[number >> 2 * place & 3] for place in range(6))
        scanner = JsonScanner("[")
        for char in f"[1,{white}2":
            scanner.scan(char, 0, False)
        held += [scanner] * (number % 64 == 0)
    assert places() < before + 2 * 512 + len(held)
