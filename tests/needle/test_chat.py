"""From a template file to messages, as users do it: the prompt's end is where the stream begins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatparsers import formats, get_format, load
from chatparsers.core.errors import TemplateError
from chatparsers.testing import Entry, Inexpressible, Scenario, check_expected, render, scenarios
from chatparsers.testing.plugin import TEMPLATES

_TESTS = Path(__file__).parents[1]
_FAMILIES = json.loads((_TESTS / "needle" / "templates.json").read_text(encoding="utf-8"))
_WANTED = (
    "content-no-tools",
    "content-with-reasoning",
    "thinking-disabled",
    "tool-required-only",
    "tool-with-reasoning",
    "continue-reasoning",
    "continue-content",
    "continue-behind-reasoning",
)


def entries(config: pytest.Config) -> Iterator[Entry]:
    for info in formats():
        own = _TESTS / "templates_own" / f"{info.name}.jinja"
        if info.origin == "chatparsers" and own.is_file():
            yield Entry(info.load(), own)
    for path in config.stash[TEMPLATES]:
        family = _FAMILIES.get(path.name)
        if family:
            yield Entry(get_format(family["format"]), path, family.get("eos"), real=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "entry" in metafunc.fixturenames:
        only = metafunc.config.getoption("--chatparsers-format")
        chosen = [
            e for e in entries(metafunc.config) if only is None or e.format.name == get_format(only).name
        ]
        ids = [f"{entry.format.name}-{entry.path.stem}" for entry in chosen]
        metafunc.parametrize("entry", chosen, ids=ids)


def test_a_prepared_turn_reads_the_answer(entry: Entry) -> None:
    template = entry.template()
    chat = load(
        str(entry.path), format=entry.format.name, bos_token=template.bos_token, eos_token=template.eos_token
    )
    read = 0
    for scenario in scenarios(entry.format):
        if scenario.name not in _WANTED:
            continue
        try:
            case = render(entry.format, template, scenario)
        except Inexpressible:
            continue
        try:
            turn = chat.prepare(
                _messages(scenario),
                tools=list(scenario.tools) or None,
                tool_choice=scenario.tool_choice,
                thinking=scenario.thinking,
                add_generation_prompt=not scenario.continued,
                continue_final_message=bool(scenario.continued),
            )
        except TemplateError:
            assert scenario.continued  # the answer changes how the history is rendered
            continue
        if not scenario.continued and turn.prefix != case.prefix:
            continue  # the template does not show again what it prefills: this answer follows another prompt
        assert turn.prompt.endswith(turn.prefix)
        check_expected(case, turn.parse(case.text), turn)
        read += 1
    if not read:
        pytest.skip("the template never shows again what its prompt begins the answer with")


def _messages(scenario: Scenario) -> list[dict[str, str]]:
    messages = [{"role": "user", "content": "Please go on."}]
    if scenario.opened == "reasoning":
        messages.append({"role": "assistant", "content": "", "reasoning_content": scenario.continued})
    elif scenario.continued:
        messages.append({"role": "assistant", "content": scenario.continued})
        if scenario.reasoning:
            messages[-1]["reasoning_content"] = scenario.reasoning
    return messages
