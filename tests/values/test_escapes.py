"""Strings whose characters are spelt in another way become the same strings, in every cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatparsers.core.machine.stops import StopFinder
from chatparsers.values.raw import raw_maker

Read = Callable[..., Any]

ENTITIES = (("&", "&amp;"), ("<", "&lt;"), ('"', "&#34;"))
BACKSLASHES = (("\\", "\\\\"), ("\n", "\\n"), ("<", "\\x3c"))
STOP = "</v>"
_texts = st.lists(
    st.sampled_from(["&", "<", '"', "\\", "\n", "a", "m", "p", ";", "&amp;", "5", "lt;", "x3c"])
).map("".join)


def make(escapes: tuple[tuple[str, str], ...], *types: str) -> Callable[[], Any]:
    return raw_maker(StopFinder((STOP,)), frozenset(types), False, escapes)


@pytest.mark.parametrize("escapes", [ENTITIES, BACKSLASHES])
@pytest.mark.parametrize("types", [("string",), ("string", "integer", "number", "object")])
@given(value=_texts, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_what_is_written_is_read(
    read: Read, escapes: tuple[tuple[str, str], ...], types: tuple[str, ...], value: str, cuts: list[int]
) -> None:
    if value.strip().isdigit():
        value += "a"
    text = "".join(dict(escapes).get(char, char) for char in value) + STOP
    found = read(make(escapes, *types), text, cuts)
    assert (json.loads(found.out), found.done) == (value, True)
    assert text[found.position :] == STOP


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a&b &am &unknown; &", "a&b &am &unknown; &"),
        ("&amp;lt;", "&lt;"),
        ("<i>&lt;</i>", "<i><</i>"),
        ("&am&amp;", "&am&"),
    ],
)
def test_what_is_no_spelling_is_kept(read: Read, text: str, meant: str) -> None:
    whole = read(make(ENTITIES, "string"), text + STOP)
    assert json.loads(whole.out) == meant
    for carry in ("same", "copy", "pickle"):
        cut = read(make(ENTITIES, "string"), text + STOP, range(len(text) + 4), carry=carry)
        assert cut == whole


def test_text_that_is_cut_off_is_not_lost(read: Read) -> None:
    whole = read(make(ENTITIES, "string"), "a &am")
    assert (whole.out, whole.error) == ('"a &am', repr(STOP))
    assert read(make(ENTITIES, "string"), "a &am", range(5), last_empty=True) == whole


def test_a_marker_behind_a_broken_value_is_not_in_it() -> None:
    """Whether it has already arrived or not when the value breaks."""
    text = '{"a": 1}</p><c>x</v>'
    for end in (len(text), text.index("<c>"), text.index("<c>") - 1):
        scanner = raw_maker(StopFinder((STOP,), markers=("<c>",)), frozenset({"integer"}))()
        assert scanner.scan(text[:end], 0, False) == 8
        assert (scanner.error, scanner.marked) == (repr(STOP), -1)


def test_only_strings_are_spelt_so(read: Read) -> None:
    found = read(make(ENTITIES, "object", "string"), '{"a": "&lt;"}' + STOP, range(20))
    assert json.loads(found.out) == {"a": "&lt;"}
