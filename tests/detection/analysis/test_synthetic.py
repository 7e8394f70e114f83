"""Invented templates with 26 ways to write calls: the analysis reads no turn wrong, and finds nearly all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from chatparsers.detection.analysis import Found, analyse
from chatparsers.templates import Template
from chatparsers.testing.scenarios import scenarios

from .reading import INEXPRESSIBLE, REFUSED, read
from .synthetic import STYLES, Spec, choose, write

ASKED = {
    "content-no-tools",
    "content-with-reasoning",
    "thinking-disabled",
    "content-with-tools",
    "tool-auto-single",
    "tool-required-only",
    "parallel-tool-calls",
    "text-before-call",
    "tool-with-reasoning",
    "reasoning-text-call",
    "zero-arguments",
    "zero-and-more",
    "nested",
    "numbers",
    "literals",
    "code",
    "look-alikes",
    "white-space",
}


def recovered(spec: Spec, found: Found) -> bool:
    """Whether the format has all that the template has."""
    if found.format is None:
        return False
    features = found.format.features
    return (
        features.tools
        and features.parallel >= spec.parallel
        and features.reasoning >= (spec.reasoning != "none")
    )


@pytest.mark.one_in(16)
@pytest.mark.parametrize("style", STYLES)
def test_style(style: str, amount: Callable[[int, int, int], int]) -> None:
    number = amount(4, 8, 80)
    first = STYLES.index(style)
    lost, wrong, read_ = [], [], Counter[str]()
    for seed in range(first, first + number * len(STYLES), len(STYLES)):
        spec = choose(seed)
        template = Template(write(spec), name=spec.name)
        found = analyse(template)
        if not recovered(spec, found):
            lost.append(f"{spec.name}: {found.levels}")
        if found.format is None:
            continue
        for scenario in scenarios(found.format):
            if scenario.name in ASKED and (result := read(found.format, template, scenario)) != INEXPRESSIBLE:
                read_[scenario.name] += 1
                if result and result != REFUSED:
                    wrong.append(f"{spec.name}: {result}")
    assert not wrong, "\n".join(wrong)
    assert len(lost) <= max(1, number * 0.1), "\n".join(lost)
    assert read_["tool-auto-single"] >= min(number - 1, number * 0.9)
    if (
        style != "nested elements"
    ):  # elements leave null out, so they do not show the message of this scenario
        assert read_["nested"] >= min(number - 1, number * 0.9)


def test_nineteen_of_twenty_are_recovered(amount: Callable[[int, int, int], int]) -> None:
    """Over all styles; a single style may be harder. `test_style` reads what is found."""
    specs = [choose(seed) for seed in range(amount(1, 2, 25) * len(STYLES))]
    lost = [
        spec.name for spec in specs if not recovered(spec, analyse(Template(write(spec), name=spec.name)))
    ]
    assert len(lost) <= 0.05 * len(specs), lost
