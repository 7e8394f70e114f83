"""The text that a template renders of a valid assistant message is in the grammar. The templates are our own, all of
them, and the real ones if present."""

from __future__ import annotations

import json
import re
from collections import Counter

import jsonschema
import pytest
from engines import FULL, PREFIX, compile_for, engines_of
from test_matrix import DIALECTS

from chatparsers.answers.format import Format
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Value
from chatparsers.core.tree import once
from chatparsers.testing import Entry
from chatparsers.testing.rendering import Inexpressible, render
from chatparsers.testing.scenarios import Scenario, scenarios
from chatparsers.values import Raw

UNCLOSED = {
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "does not close the section of calls",
}
AS_PYTHON = re.compile(r"[\[{]'|[\[:,] ?(?:None|True|False)\b").search
"""Values as Seed's and Gemma's templates print them, by Python: the parser mends them, the grammar writes JSON."""


def valid(scenario: Scenario) -> bool:
    """Whether the message has only calls, with arguments that its tools declare."""
    if not scenario.calls or scenario.content or scenario.after or scenario.continued:
        return False
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in scenario.tools}
    for call in scenario.calls:
        schema = tools.get(call.name)
        arguments = json.loads(call.arguments)
        if schema is None or not jsonschema.Draft202012Validator(schema).is_valid(arguments):
            return False
        if "properties" in schema and not set(arguments) <= set(schema["properties"]):
            return False
    return True


def opens_a_tag(format: Format, scenario: Scenario) -> bool:
    """Whether a text value holds what opens another argument or call. With a declared name it may end the value for
    the parser, so the grammar keeps the beginning out of every value."""
    pairs = [
        pair
        for node in once(format.tree(Options(tools=True)))
        if isinstance(node, Value) and isinstance(node.syntax, Raw)
        for pair in (*node.syntax.named, *node.syntax.seams)
    ]
    found = [json.loads(call.arguments) for call in scenario.calls]
    values = [value for arguments in found for value in arguments.values() if isinstance(value, str)]
    return any(before.strip() in value for before, _ in pairs for value in values)


@pytest.mark.one_in(12, quick=64)
def test_what_our_template_renders_is_generated(own_entry: Entry, pytestconfig: pytest.Config) -> None:
    check_generated(own_entry, pytestconfig)


def test_what_a_real_template_renders_is_generated(real_entry: Entry, pytestconfig: pytest.Config) -> None:
    check_generated(real_entry, pytestconfig)


def check_generated(entry: Entry, pytestconfig: pytest.Config) -> None:
    """Each text is judged in one dialect, and nightly in all: another one for the next text."""
    nightly = pytestconfig.getoption("--nightly")
    seen: Counter[str] = Counter()
    for scenario in scenarios(entry.format):
        if not valid(scenario) or scenario.heavy:
            continue
        try:
            case = render(entry.format, entry.template(), scenario)
        except Inexpressible:
            continue
        if AS_PYTHON(case.text):
            continue
        text = case.text
        while stop := next((stop for stop in entry.format.stops if text.endswith(stop)), None):
            text = text.removesuffix(stop)
        text = text.rstrip("\n")
        options = {**case.options, "tool_choice": "required", "prefix": case.prefix}
        options.pop("response_format", None)
        at = seen.total() % len(DIALECTS)
        for dialect in DIALECTS if nightly else DIALECTS[at : at + 1]:
            grammar = entry.format.bind(**options).grammar(dialect)
            status = compile_for(engines_of(dialect)[0], str(grammar), dialect).status(text)
            cut_short = status == PREFIX and (entry.path.stem in UNCLOSED or text != case.text)
            assert status == FULL or cut_short or opens_a_tag(entry.format, scenario), (
                scenario.name,
                dialect,
                case.prefix,
                text,
                text[status.at :] if status.at >= 0 else str(status),
            )
            seen[dialect] += 1
    if not seen:
        pytest.skip("the template renders no message of calls alone")
