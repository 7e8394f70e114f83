"""The page of capabilities is right for every template of the data folder."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from chatparsers import load
from chatparsers.templates import Template

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="no docs: not a checkout")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("capabilities_page", DOCS / "_capabilities.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_of_these_templates(script: ModuleType, found_template: Path) -> None:
    rows = script.rows_of(script.PAGE.read_text(encoding="utf-8"))
    source, name = found_template.read_text(encoding="utf-8"), found_template.stem
    can = Template(source, bos_token="<s>", eos_token="</s>", name=name).probe()
    assert rows.get(name) == script.row(can)


def test_the_page_says_what_the_bridges_are(
    real_templates: list[Path], script: ModuleType, amount: Callable[[int, int, int], int]
) -> None:
    rows = script.rows_of(script.PAGE.read_text(encoding="utf-8"), script.BRIDGES_HEAD)
    for path in Random(11).sample(real_templates, amount(1, 3, len(real_templates))):
        chat = load(path, bos_token="<s>", eos_token="</s>")
        assert rows.get(path.stem) == script.bridges_row(chat), path.stem


def test_the_page_says_what_thinking_and_effort_reach(script: ModuleType, found_template: Path) -> None:
    rows = script.rows_of(script.PAGE.read_text(encoding="utf-8"), script.DIALS_HEAD)
    chat = load(found_template, bos_token="<s>", eos_token="</s>")
    assert rows.get(found_template.stem, "") == script.dial_row(chat)


# What rendering by hand shows of our own templates.
CALLS = {"tools": True, "tool_calls": True, "tool_role": True, "system_role": True, "parallel_calls": True}
THINKS = {**CALLS, "reasoning": True, "reasoning_with_calls": True}
KNOWN: dict[str, dict[str, object]] = {
    "hermes-2-pro": {**CALLS, "reasoning": False, "content_beside_calls": True},
    "kimi-k2": {**CALLS, "reasoning": False},
    "qwen3-coder": {**CALLS, "reasoning": False},
    "llama-3-x": {**CALLS, "parallel_calls": False, "content_beside_calls": False, "reasoning": False},
    "glm-4-5": THINKS,
    "deepseek-v3-1": THINKS,
    "minimax-m2": THINKS,
    "qwen3": {
        **THINKS,
        "reasoning_as": "reasoning_content",
        "parallel_results": True,
        "result_ids": False,
        "several_systems": True,
        "images": False,
        "late_system": True,
    },
    "mistral-nemo": {**CALLS, "result_ids": True},
    "gpt-oss": {
        **THINKS,
        "parallel_calls": False,
        "reasoning_as": "thinking",
        "developer_role": True,
        "channel": ("<|channel|>final<|message|>", ""),
    },
    "command-r7b": {"channel": ("<|START_RESPONSE|>", "<|END_RESPONSE|>"), "content_beside_calls": False},
}


PARTS = "{{ p.text if p.text else '<image>' }}"
ROLES = ("consecutive_users", "several_systems", "developer_role")
# Other templates, and what they show.
SHOWN: dict[str, tuple[str, dict[str, object]]] = {
    "the first message alone, with pictures": (
        "{% for m in messages %}{% if m.role != 'user' or not loop.first %}{{ raise_exception('no') }}{% endif %}"
        "{% for p in m.content %}" + PARTS + "{% endfor %}{% endfor %}",
        {"images": True, **dict.fromkeys(ROLES, False)},
    ),
    "any role, and text": (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
        {"images": False, **dict.fromkeys(ROLES, True)},
    ),
    **{
        f"arguments one by one: {how}": (
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>"
            "{{ c.function.name }}{% for k, v in c.function.arguments.items() %}"
            + argument
            + "{% endfor %}</call>{% endfor %}{% endfor %}",
            {"tool_calls": shown, "parallel_calls": shown},
        )
        for how, argument, shown in (
            ("a tag named by the argument", "<{{ k }}>{{ v }}</{{ k }}>", True),
            ("the name once", "{{ k }}={{ v }}", True),
            ("no name", "{{ v }}", False),
            ("the value twice", "{{ k }}={{ v }}, {{ v }}", False),
        )
    },
}


@pytest.mark.parametrize("case", [*KNOWN, *SHOWN])
def test_what_a_template_can_show(own_folder: Path, case: str) -> None:
    if case in KNOWN:
        source, known = (own_folder / f"{case}.jinja").read_text(encoding="utf-8"), KNOWN[case]
    else:
        source, known = SHOWN[case]
    can = Template(source, name=case).probe()
    assert {field: getattr(can, field) for field in known} == known
