"""Nested elements become the JSON of the same value. The judge is a small writer of elements."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatparsers.schema.document import Document
from chatparsers.values.elements import ElementScanner

Read = Callable[..., Any]

MARKS = ["]<]m[>[", "§", "\ud801"]

_texts = st.lists(
    st.sampled_from(
        ["<", "</", "]", "]<", "]<]m[>", "<a>", "</a>", "</v>", ">", '"', "\\", "\n", "5", "x", " "]
    )
).map("".join)
_names = st.sampled_from(["a", "b", "item", "x-1", "é"])
# A schema, and the values that are valid under it.
_scalars: st.SearchStrategy[tuple[Any, Any]] = st.one_of(
    st.tuples(st.just({"type": "string"}), _texts),
    st.tuples(st.just({"type": "integer"}), st.integers()),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just({"type": ["integer", "null"]}), st.none()),
    st.tuples(st.just({"anyOf": [{"type": "string"}, {"type": "array"}]}), st.just("x")),
)


def _object(members: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
    schema = {"type": "object", "properties": {name: schema for name, (schema, _) in members.items()}}
    return schema, {name: value for name, (_, value) in members.items() if value is not None}


def _array(one: tuple[Any, Any], times: int) -> tuple[Any, Any]:
    return {"type": "array", "items": one[0]}, [one[1]] * times


typed: st.SearchStrategy[tuple[Any, Any]] = st.recursive(
    _scalars,
    lambda inner: (
        st.dictionaries(_names, inner, max_size=3).map(_object) | st.builds(_array, inner, st.integers(0, 3))
    ),
    max_leaves=12,
)


def write(value: Any, mark: str, gap: str) -> str:
    """``value`` as elements; ``gap`` is the white space between tags."""
    if isinstance(value, dict):
        named = list(value.items())
    elif isinstance(value, list):
        named = [("item", item) for item in value]
    else:
        return "" if value is None else value if isinstance(value, str) else json.dumps(value)
    inner = "".join(f"{gap}{mark}<{name}>{write(item, mark, gap)}{mark}</{name}>" for name, item in named)
    return inner + (gap if inner else "")


def scanner(mark: str, schema: Any, markers: tuple[str, ...] = ()) -> ElementScanner:
    return ElementScanner((mark,), "¦", markers, Document(schema), schema, "v")


def test_gathered_schemas_keep_their_types() -> None:
    """A schema that is put together of several is known by its identity: none may get that of one that is gone."""
    kinds = ["string", "integer", "boolean", "array"]
    schema = {
        "anyOf": [
            {"items": {"anyOf": [{"type": kind}]}, "properties": {"a": {"type": kind}}} for kind in kinds
        ]
    }
    parts = [
        {"anyOf": [{"prefixItems": [{"type": kind}] * 9}, {"items": {"type": "null"}}]} for kind in kinds
    ]
    document = Document({"anyOf": [schema, *parts]})
    for _ in range(3):
        assert (
            document.types(document.items(schema, 0))
            == document.types(document.members(schema)[0]["a"])
            == {*kinds}
        )
        for kind, part in zip(kinds, parts, strict=True):
            assert document.types(document.items(part, 3)) == {kind, "null"}


@pytest.mark.parametrize("mark", MARKS)
@given(found=typed, gap=st.sampled_from(["", "\n", " \n  "]), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_what_the_writer_writes_comes_out_as_json(
    read: Read, mark: str, found: tuple[Any, Any], gap: str, cuts: list[int]
) -> None:
    schema, value = found
    text = write(value, mark, gap)
    reading = read(lambda: scanner(mark, schema), f"{text}{mark}</v>", cuts)
    assert (reading.done, reading.position) == (True, len(text))
    assert json.loads(reading.out) == value


ANY = True
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
PAIR = {
    "type": "array",
    "prefixItems": [{"type": "string"}, {"type": "integer"}],
    "items": {"type": "boolean"},
}
# In the texts, § is the marker.
TAKEN: list[tuple[Any, str, str, list[tuple[int, str, str]]]] = [
    (ANY, "x", '"x"', []),
    (ANY, "5", "5", []),
    (ANY, "", '""', []),
    (ANY, "§<a>1§</a>", '{"a": 1}', []),
    (ANY, "§<item>1§</item>§<item>x§</item>", '[1, "x"]', []),
    (OBJECT, "§<s>5§</s>§<n>5§</n>", '{"s": "5", "n": 5}', []),
    (OBJECT, '{"n": 5}', '{"n": 5}', []),
    (OBJECT, "", "{}", []),
    (OBJECT, " \n", "{}", []),
    (OBJECT, "\n§<n>\n5\n§</n>\n", '{"n": 5}', []),
    (OBJECT, "§<item>1§</item>", '{"item": 1}', []),
    (OBJECT, "§<n>x§</n>", '{"n": "x"}', [(5, "integer", "x")]),
    ({"type": "array"}, "§<entry>1§</entry>", "[1]", []),
    ({"type": "array"}, "", "[]", []),
    (PAIR, "§<item>5§</item>§<item>5§</item>§<item>true§</item>", '["5", 5, true]', []),
    ({"type": ["string", "object"]}, "§<a>x§</a>", '{"a": "x"}', []),
    ({"type": ["string", "object"]}, "", '""', []),
    ({"type": ["integer", "null"]}, "", "null", []),
    ({"type": "string"}, "§<a>x§</a>", '"§<a>x§</a>"', []),
    ({"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"t": {"$ref": "#/$defs/t"}, "s": {"type": "string"}}}}},
     "§<t>§<t>§<s>1§</s>§</t>§</t>", '{"t": {"t": {"s": "1"}}}', []),
]  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(("schema", "text", "out", "notes"), TAKEN)
def test_what_is_read(
    read: Read, mark: str, schema: Any, text: str, out: str, notes: list[tuple[int, str, str]]
) -> None:
    out = out.replace("§", mark)
    text = (text + "§</v>rest").replace("§", mark)
    notes = [(len(mark) + at - 1, expected, found) for at, expected, found in notes]  # after one marker
    whole = read(lambda: scanner(mark, schema), text)
    assert (whole.out, whole.done, whole.notes) == (out, True, notes)
    assert text[whole.position :] == f"{mark}</v>rest"
    assert read(lambda: scanner(mark, schema), text, range(len(text)), last_empty=True) == whole
    for carry in ("copy", "pickle"):
        assert read(lambda: scanner(mark, schema), text, range(len(text)), carry=carry) == whole
    assert read(lambda: scanner(mark, schema), text, range(0, len(text), 2), shortcut=True) == whole


BROKEN = [
    (OBJECT, "", 0, "'¦</v>'"),
    (OBJECT, "§", 1, "'¦</v>'"),
    (OBJECT, "§<n>5", 5, "'¦</n>'"),
    (OBJECT, "§<n>5§</n>", 10, "'¦</v>'"),
    (OBJECT, "§<n>5§</n>x", 10, "an element or '¦</v>'"),
    (OBJECT, "§<n>5§</n>§</o>", 10, "an element or '¦</v>'"),
    ({"type": "string"}, "abc", 3, "'¦</v>'"),
]


@pytest.mark.parametrize(("schema", "text", "position", "expected"), BROKEN)
def test_what_is_broken(read: Read, schema: Any, text: str, position: int, expected: str) -> None:
    whole = read(lambda: scanner("§", schema), text)
    assert (whole.done, whole.error, whole.position) == (False, expected, position)
    assert read(lambda: scanner("§", schema), text, range(len(text)), last_empty=True) == whole


def test_the_text_that_is_held_is_bounded(read: Read) -> None:
    text = "§<s>" + "x" * 5000 + "§</s>§<n>" + " " * 5000 + "5§</n>§</v>"
    assert read(lambda: scanner("§", OBJECT), text, range(len(text))).most_held < 300


def test_a_marker_that_is_a_token_breaks_a_text(read: Read) -> None:
    made = lambda: scanner("\ud801", {"type": "string"}, ("\ud801", "\ud802"))  # noqa: E731
    assert read(made, "a\ud801</v>", range(9)).done
    for text in ("a\ud802b\ud801</v>", "a\ud801<b>\ud801</v>"):
        whole = read(made, text)
        assert (whole.done, whole.position, whole.error) == (False, 1, "'¦</v>'")
        assert read(made, text, range(len(text))) == whole
