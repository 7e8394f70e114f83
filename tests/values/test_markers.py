"""Markers of calls inside raw values: as text they are reported once, as a token they break the value."""

from __future__ import annotations

import pytest

import chatparsers
from chatparsers.core.machine.stops import StopFinder
from chatparsers.values.raw import raw_maker

_STRING, _UNION, _OBJECT = frozenset({"string"}), frozenset({"string", "number"}), frozenset({"object"})
_TOKEN = "\ud800"


def read(
    pieces: list[str], types: frozenset[str], markers: list[str]
) -> tuple[str, bool, str, list[int], int]:
    """What is put out, whether it is done, the error, where markers were found, and how much was consumed."""
    reader = raw_maker(StopFinder(["</a>b"], markers=markers), types)()
    out, rest, base, marked = "", "", 0, []
    for piece in pieces:
        rest += piece
        end = reader.scan(rest, 0, False)
        out += reader.out
        if reader.marked >= 0:
            marked.append(base + reader.marked)
        base, rest = base + end, rest[end:]
        if reader.done or reader.error:
            break
    return out, reader.done, reader.error, marked, base


@pytest.mark.parametrize("types", [_STRING, _UNION], ids=["string", "union"])
@pytest.mark.parametrize(
    ("text", "out", "marked"),
    [
        ("x</a>b", '"x"', []),  # the marker begins the stop
        ("x</a>c</a>d</a>b", '"x</a>c</a>d"', [1]),
        ("x</c</a>b", '"x</c"', []),
    ],
)
def test_a_marker_as_text_is_reported_once(
    types: frozenset[str], text: str, out: str, marked: list[int]
) -> None:
    whole = read([text], types, ["</a>", "</c>"])
    assert whole[:4] == (out, True, "", marked)
    for cut in range(1, len(text)):
        assert read([text[:cut], text[cut:]], types, ["</a>", "</c>"]) == whole, cut
    assert read(list(text), types, ["</a>", "</c>"]) == whole


@pytest.mark.parametrize(
    ("types", "text", "out"),
    [
        (_STRING, f"x{_TOKEN}y</a>b", '"x'),
        (_UNION, f"12{_TOKEN}y</a>b", '"12'),
    ],
    ids=["string", "union"],
)
def test_a_marker_as_a_token_breaks_the_value(types: frozenset[str], text: str, out: str) -> None:
    whole = read([text], types, [_TOKEN])
    assert whole == (out, False, "'</a>b'", [], text.index(_TOKEN))
    assert read(list(text), types, [_TOKEN]) == whole
    assert read([text], types, [])[1], "without the marker it is a character like others"


def test_a_marker_as_a_token_in_a_string_of_an_object_is_text() -> None:
    text = f'{{"k": "v{_TOKEN}"}}</a>b'
    whole = read([text], _OBJECT, [_TOKEN])
    assert whole[:3] == (f'{{"k": "v{_TOKEN}"}}', True, "")
    assert read(list(text), _OBJECT, [_TOKEN]) == whole


def test_a_marker_within_a_piece_is_reported_in_a_stream() -> None:
    """A piece that lies inside the value takes the stream's shortcut, but not where it holds a marker."""
    tools = [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}},
        }
    ]
    turn = chatparsers.get_format("glm-4-5").bind(tools=tools, id_seed="x")
    pieces = [
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x",
        "y</tool_call>z",
        "</arg_value>\n</tool_call>",
    ]
    stream = turn.stream()
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    assert [diagnostic.code for diagnostic in stream.message.diagnostics] == ["markup-in-value"]
    assert stream.message == turn.parse("".join(pieces))
