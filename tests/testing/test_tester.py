"""The fluent tester accepts right messages, and shows what is wrong and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatparsers import get_format, load
from chatparsers.testing import tester

OWN = Path(__file__).parents[1] / "templates_own"
TEXT = 'So.\n<tool_call>\n{"name": "f", "arguments": {"a": 1.50}}\n</tool_call><|im_end|>'


def test_a_format_and_a_template_are_read_alike() -> None:
    sources = [
        "hermes-2-pro",
        get_format("hermes-2-pro"),
        OWN / "hermes-2-pro.jinja",
        str(OWN / "hermes-2-pro.jinja"),
    ]
    for source in (*sources, load(OWN / "hermes-2-pro.jinja"), (OWN / "hermes-2-pro.jinja").read_text()):
        test = tester(source).tools("f").text(TEXT)
        message = test.expect(content="So.", calls=[("f", '{"a": 1.50}')])
        assert message == test.read() == test.turn.parse(TEXT)


def test_the_template_says_how_the_turn_begins() -> None:
    test = tester(OWN / "minimax-m2.jinja").thinking(True)
    test.text("Hm.\n</think>\n\nYes.[e~[").expect(reasoning="Hm.", content="Yes.")
    assert test.turn.prefix == "<think>\n"
    test.options(prefix="").text("Yes.[e~[").expect(content="Yes.")


def test_each_step_leaves_the_one_before_as_it_is() -> None:
    first = tester("hermes-2-pro")
    second = first.tools("f").tools({"type": "function", "function": {"name": "g"}}).text(TEXT)
    assert dict(first.request) == {} and first.output == ""
    assert sorted(second.turn.tools.names()) == ["f", "g"]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"content": "So!"}, "content: parts at character 2, after 'So' expected '!', found '.'"),
        ({"content": "So."}, "calls: expected [], found ['f']"),
        ({"calls": [("f", {"a": 1.5})]}, "content: parts at character 0, expected '', found 'So.'"),
        (
            {"content": "So.", "calls": [("f", {"a": 1.5})]},
            "arguments of call 0, f: parts at character 9, after '{\"a\": 1.5' expected '}', found '0}'",
        ),
        (
            {"content": "So.", "calls": [("f", '{"a": 1.50}')], "complete": False},
            "complete: expected False, found True",
        ),
        (
            {"content": "So.", "calls": [("f", '{"a": 1.50}')], "diagnostics": ["mended"]},
            "diagnostics: expected ['mended'], found []",
        ),
    ],
)
def test_what_is_wrong_is_said(expected: dict[str, object], said: str) -> None:
    with pytest.raises(AssertionError) as error:
        tester("hermes-2-pro").tools("f").text(TEXT).expect(**expected)  # type: ignore[arg-type]
    assert said in str(error.value) and "    call      '{" in str(error.value)
