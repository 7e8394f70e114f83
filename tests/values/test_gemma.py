"""Gemma's syntax becomes the JSON of the same value. The judge is a small writer of that syntax."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from string import ascii_letters
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chatparsers
from chatparsers.values.gemma import GemmaScanner

Read = Callable[..., Any]

QUOTES = ["<escape>", '<|"|>', "\ud801"]

# Text that is full of near-markers.
_texts = st.text() | st.lists(
    st.sampled_from(
        ["<", "<e", "<escape", "<<escape", "<|", '<|"', '<|"|', ">", '"', "\\", "\n", "a", ":", "}", ","]
    )
).map("".join)
_texts = _texts.map(lambda text: text.replace("<escape>", "").replace('<|"|>', ""))
# With a regular expression, hypothesis would try each character of Unicode: four seconds.
_LETTERS = ("L", "N")
_names = st.builds(
    "{}{}{}".format,
    st.sampled_from([*ascii_letters, "_", "$", "@"]),
    st.text(st.characters(categories=_LETTERS, include_characters="_.-[] "), max_size=20),
    st.characters(categories=_LETTERS, include_characters="_]"),
) | st.sampled_from(["", "a:b", "{}", ",", " x"])
_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts
)
values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=20,
)
cuts = st.lists(st.integers(0, 400), max_size=8)


def write(value: Any, quote: str, draw: Callable[[st.SearchStrategy[str]], str]) -> str:
    """``value`` in Gemma's syntax: compact, as the templates write it, or with the variations that are read."""

    def among(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    def key(name: str) -> str:
        quoted = [quote + name + quote, json.dumps(name)]
        return (
            among(*quoted)
            if not name.strip("]") or set(name) & set(":,{}") or name[0] == " "
            else among(name, *quoted)
        )

    if isinstance(value, dict):
        texts = [
            among("", " ") + key(k) + among("", "", " ") + ":" + write(v, quote, draw)
            for k, v in value.items()
        ]
        return "{" + ",".join(texts) + among("", "\n") + "}"
    if isinstance(value, list):
        return "[" + among(",", ", ", " ,\n").join(write(inner, quote, draw) for inner in value) + "]"
    if isinstance(value, str):
        return among(quote + value + quote, quote + value + quote, json.dumps(value))
    return json.dumps(value) if value is not None else among("null", "None")


@pytest.mark.parametrize("quote", QUOTES)
@given(
    value=values,
    data=st.data(),
    cuts=cuts,
    trail=st.sampled_from(["}", "<end_function_call>", '"', ",", " "]),
)
def test_what_the_writer_writes_comes_out_as_json(
    read: Read, quote: str, value: Any, data: st.DataObject, cuts: list[int], trail: str
) -> None:
    text = write(value, quote, data.draw)
    reading = read(lambda: GemmaScanner(quote), text + trail, cuts)
    assert (reading.done, reading.position) == (True, len(text))
    assert json.loads(reading.out) == value


ENDS = ["<end>", "\ud802"]
# E ends the call.
UNQUOTED = [
    ("{k:Qls}E", {"k": "ls"}),
    ("{k:QlsE", {"k": "ls"}),
    ("{k:ls}E", {"k": "ls"}),
    ("{k:\n# Do, please: {x}E", {"k": "# Do, please: {x"}),
    ("{k:Qif {x}}E", {"k": "if {x}"}),
    ("{k:Qif {x}\n}\nE", {"k": "if {x}\n"}),
    ("{k:'a:b',l:QcQ}E", {"k": "a:b", "l": "c"}),
    ("{k:'a'Q,l:1}E", {"k": "a", "l": 1}),
    ("{k:ls -la,l:3}E", {"k": "ls -la", "l": 3}),
    ("{k:3 days,l:[a b,'c',3,true,4 x]}E", {"k": "3 days", "l": ["a b", "c", 3, True, "4 x"]}),
    ("{o:{m:no},k:a}E", {"o": {"m": "no"}, "k": "a"}),
    ("{k:true story}E", {"k": "true story"}),
    ("{k:[Qa]}E", {"k": ["a"]}),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("quote", QUOTES)
@pytest.mark.parametrize(("text", "value"), UNQUOTED)
def test_values_without_their_quotes(read: Read, quote: str, end: str, text: str, value: Any) -> None:
    text = text.replace("Q", quote).replace("E", end)
    make = partial(GemmaScanner, quote, "{", (end,))
    whole = read(make, text)
    assert (json.loads(whole.out), whole.done, whole.error) == (value, True, "")
    assert text[whole.position :] == end
    assert {expected for _, expected, _ in whole.notes} <= {"the end of a string", "a value in quotes"}
    assert whole.notes
    assert read(make, text, range(len(text)), last_empty=True) == whole


# What follows decides whether a bracket or a quote ends the value.
UNDECIDED = [
    "{a:{b:c,]}E<",
    "{a:{b:c,]}E d",
    "{a:[c }]E",
    "{a:{b:c]},d:e}E",
    "{k:'l':{m:Q",
    "{k:''l:" + "m" * 150 + "}E",
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("quote", QUOTES)
@pytest.mark.parametrize("text", UNDECIDED)
def test_the_end_of_a_value_without_quotes_waits(read: Read, quote: str, end: str, text: str) -> None:
    text = text.replace("Q", quote).replace("E", end)
    make = partial(GemmaScanner, quote, "{", (end,))
    whole = read(make, text)
    for cuts in (*([at] for at in range(len(text))), range(len(text))):
        assert read(make, text, cuts) == read(make, text, cuts, last_empty=True) == whole


@pytest.mark.parametrize("quote", QUOTES)
@given(value=values, data=st.data(), cuts=cuts)
def test_values_with_their_quotes_are_not_mended(
    read: Read, quote: str, value: Any, data: st.DataObject, cuts: list[int]
) -> None:
    value = {"k": value, "l": "say {x}<end> to end"}
    text = write(value, quote, data.draw)
    reading = read(lambda: GemmaScanner(quote, "{", ("<end>",)), text + "<end>", cuts)
    assert (reading.done, reading.position, json.loads(reading.out)) == (True, len(text), value)


@given(before=_texts, text=_texts, cuts=cuts)
def test_a_string_that_is_not_closed_ends_with_the_call(
    read: Read, before: str, text: str, cuts: list[int]
) -> None:
    text = text.rstrip("}] \t\r\n")
    written = f"{{a:<escape>{before}<escape>,k:<escape>{text}"
    whole = read(lambda: GemmaScanner("<escape>", "{", ("<end>",)), written + "}<end>", cuts)
    assert (json.loads(whole.out), written[whole.position :]) == ({"a": before, "k": text}, "")
    assert whole.done


@pytest.mark.parametrize("text", ["{a:QOslo}E", "{a:Oslo}E"])
@pytest.mark.parametrize("step", [1, 100])
def test_a_marker_at_a_cut_may_be_part_of_the_string(text: str, step: int) -> None:
    """The call of a turn that was cut off there is not whole (C3): more of the string may follow."""
    for cut_off in (False, True):
        scanner, rest = GemmaScanner("Q", "{", ("E",)), ""
        for at in range(0, len(text), step):
            rest += text[at : at + step]
            rest = rest[scanner.scan(rest, 0, False) :]
        if cut_off:
            scanner.cut_off()
        end = scanner.scan(rest, 0, True)
        assert scanner.done is not cut_off and (end == len(rest)) is cut_off, scanner.error


def test_a_closer_at_the_end_of_a_turn_that_is_cut_off_is_of_the_open_string() -> None:
    turn = chatparsers.get_format("gemma-4").bind(tools=[{"name": "f"}])
    for reason, complete in (("stop", True), ("length", False)):
        stream = turn.stream()
        stream.feed('<|tool_call>call:f{a:<|"|>x<tool_call|>')
        stream.finish(reason)
        assert [call.complete for call in stream.message.tool_calls] == [complete], reason
