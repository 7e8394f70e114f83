"""What a usual run draws of the cases of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatparsers.testing.plugin import TEMPLATES, tokenizer_loaders

from ..conftest import template_files
from ..draw import Draw, touched


def test_a_module_touches_every_format_that_is_built_on_it() -> None:
    found = touched([Path("chatparsers/formats/qwen3.py"), Path("tests/templates_own/gpt-oss.jinja")])
    assert {"gpt-oss", "qwen3", "smollm3"} <= set(found) and "kimi-k2" not in found
    assert not touched([Path("chatparsers/formats/_shapes.py"), Path("docs/qwen3.py")])


def test_a_seed_draws_the_same_cases_and_the_seeds_together_all() -> None:
    cases = [f"case {number}" for number in range(100)]
    draws = [Draw(str(seed), ()) for seed in range(100)]
    found = [tuple(draw.some(cases, str, 7)) for draw in draws]
    assert found == [tuple(draw.some(reversed(cases), str, 7)) for draw in draws]
    assert all(len(set(some)) == 7 for some in found)
    assert set().union(*found) == set(cases)


def test_a_test_does_not_see_the_folder_of_real_data(pytestconfig: pytest.Config) -> None:
    assert not pytestconfig.stash[TEMPLATES] and not tokenizer_loaders(pytestconfig)


@pytest.mark.of_the_folder
def test_unless_it_says_so(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.stash[TEMPLATES] == template_files(pytestconfig)
