"""From a template file to messages, as users do it: the stream begins at the prompt's end."""

from __future__ import annotations

import pytest

from chatparsers import load
from chatparsers.errors import TemplateError
from chatparsers.testing import Entry, Inexpressible, Scenario, check_expected, render, scenarios

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
