"""Numbers survive the way through a template."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatparsers.templates import Template, from_json, to_json

NUMBERS = [
    "0", "-0", "1", "-1", "0.0", "-0.0", "1.10", "1e400", "-1E400", "1E5", "1e5", "100000.0", "5e-324", "1e-400",
    "9223372036854775808", "123456789012345678901234567890", "0.1000000000000000055511151231257827",
    "1e9999999999999999999999", "-1e9999999999999999999999", "1" * 5000,
]  # fmt: skip
SOURCE = (
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}"
    "{% endfor %}{% endfor %}"
)


def turn(arguments: object) -> dict[str, object]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "f", "arguments": arguments}}],
    }


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_rendered_as_it_was_written(number: str) -> None:
    text = f'{{"x": {number}, "deep": [{{"y": {number}}}]}}'
    assert Template(SOURCE).render([{"role": "user", "content": "Hi"}, turn(text)]) == text
    assert to_json(from_json(text)) == text
    assert Template("{{ messages[0].tool_calls[0].function.arguments.x }}").render([turn(text)]) == number


def test_exact_numbers_are_numbers() -> None:
    value = from_json("1.10")
    assert value == from_json("1.1000") and value < 2 and float(value) == 1.1
    assert f"{value}" == str(value) == repr(copy.deepcopy(value)) == "1.10" and f"{value:.1f}" == "1.1"
    assert str(pickle.loads(pickle.dumps(value))) == "1.10"
    assert isinstance(from_json("1.5"), float) and isinstance(from_json("7"), int)
    assert Template("{{ messages[0].x is number }}").render([{"role": "user", "x": value}]) == "True"


def test_what_stands_beside_an_exact_number_stays() -> None:
    exact = from_json("1.10")
    alike = {"a": exact, "@number0@0": "@number0@1", "b": "@number1@0"}  # as the placeholders of numbers
    assert to_json(alike) == '{"a": 1.10, "@number0@0": "@number0@1", "b": "@number1@0"}'
    assert to_json([exact, (n for n in (1, 2))]) == "[1.10, [1, 2]]"
    assert to_json({"k": "a\ud800b😀"}) == '{"k": "a\\ud800b😀"}'


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_otherwise_it_is_json_dumps(value: object) -> None:
    assert to_json(value) == json.dumps(value, ensure_ascii=False)
    assert to_json(value, indent=2, sort_keys=True) == json.dumps(
        value, ensure_ascii=False, indent=2, sort_keys=True
    )
