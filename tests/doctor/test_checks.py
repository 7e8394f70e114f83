"""Each check finds its own fault in templates that are fine, and finds nothing else there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers.doctor.check import CHECKS

OWN = Path(__file__).parents[1] / "templates_own"
FINE = [
    "qwen3-coder",
    "hermes-2-pro",
    "glm-4-5",
    "granite-4",
    "seed-oss",
    "internlm2",
    "minimax-m2",
    "xlam",
    "nanbeige",
    "deepseek-v3-1",
]
_EACH = (
    "{%- set ns = namespace(m=[]) -%}{%- for m in messages -%}"
    "{%- set ns.m = ns.m + [CHANGED] -%}{%- endfor -%}{%- set messages = ns.m -%}"
)
_LONG = "{%- if messages|length > 150 -%}{%- for i in range(99999999) -%}{{ i }}{%- endfor -%}{%- endif -%}"


def _without(role: str) -> str:
    return f"{{%- set messages = messages | rejectattr('role', 'equalto', '{role}') | list -%}}"


@dataclass(frozen=True)
class Fault:
    """A fault of templates: ``code`` finds it, ``before`` stands before the source, and ``also`` may follow from it."""

    code: str
    before: str
    also: tuple[str, ...] = ()


FAULTS = [
    Fault("loses-tools", "{%- set tools = none -%}", ("call-not-read",)),
    Fault("loses-system", _without("system"), ("loses-late-system",)),
    Fault(
        "loses-results",
        _without("tool"),
        ("loses-several-results", "loses-result-ids", "not-append-only", "mask-leaves-out"),
    ),
    Fault(
        "loses-calls",
        _without("assistant"),
        ("loses-", "format-", "not-append-only", "stop-missing", "mask-", "prompt-"),
    ),
    Fault("date", "{{ strftime_now('%Y-%m-%d') }}\n"),
    Fault("system-invented", "You are a very helpful assistant indeed.\n"),
    Fault("not-append-only", "{{ messages|length }}\n", ("mask-", "format-", "prompt-not-in-history")),
    Fault(
        "whitespace-trimmed",
        _EACH.replace("CHANGED", "dict(m, content=m.content|trim if m.content is string else m.content)"),
    ),
    Fault(
        "loses-null-content",
        _EACH.replace("CHANGED", "dict(m, content=m.content|string)"),
        ("loses-", "whitespace-"),
    ),
    Fault("cost-limit", _LONG),
    Fault("prompt-unknown-variable", "{{ nowhere.attribute }}", ("",)),
]


def _codes(report: chatparsers.Report) -> set[str]:
    return set(report.codes())


def _source(name: str) -> str:
    return (OWN / f"{name}.jinja").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.code)
def test_a_fault_is_found_and_nothing_else(fault: Fault, amount: Callable[[int, int, int], int]) -> None:
    for name in FINE[: amount(1, 2, 10)]:
        before = _codes(chatparsers.check(_source(name), format=name))
        assert fault.code not in before, name
        after = chatparsers.check(fault.before + _source(name), format=name)
        assert fault.code in _codes(after), f"{name}: {after}"
        new = {
            code
            for code in _codes(after) - before
            if code != fault.code and not code.startswith(fault.also or "\0")
        }
        assert not new, f"{name}: {after}"
        found = next(finding for finding in after.findings if finding.code == fault.code)
        assert found.message and found.witness


def test_ends_that_three_files_spell_differently(tmp_path: Path) -> None:
    """The template writes one stop, the tokenizer's configuration another; the first is many tokens."""
    from tokenizers import Tokenizer, models

    (tmp_path / "chat_template.jinja").write_text(_source("qwen3"), encoding="utf-8")
    vocabulary = {character: id for id, character in enumerate(sorted(set(map(chr, range(32, 127)))))}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}))
    report = chatparsers.check(tmp_path)
    assert {"stop-differs", "stop-several-tokens", "text-changes"} <= _codes(report)
    assert not report and report.findings[0].severity == "error"


def test_an_added_token_that_eats_white_space(tmp_path: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, models

    (tmp_path / "chat_template.jinja").write_text(_source("qwen3"), encoding="utf-8")
    tokenizer = Tokenizer(models.BPE({"a": 0}, []))
    tokenizer.add_special_tokens([AddedToken("<tool_call>", lstrip=True), AddedToken("</tool_call>")])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    found = [f for f in chatparsers.check(tmp_path).findings if f.code == "token-strips"]
    assert len(found) == 1 and "'<tool_call>'" in found[0].message


def test_every_code_has_its_section_in_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    folder = Path(chatparsers.__file__).parent / "doctor"
    import re

    source = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    codes = set(re.findall(r'Finding\(\s*"([\w-]+)"', source))
    assert "stop-differs" in codes
    missing = [code for code in sorted(codes) if f"### {code}\n" not in page]
    assert not missing, "docs/check.md: expected a section for each code"
    assert all(f"`{name}`" in page for name in CHECKS)


def test_a_plugin_adds_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    from chatparsers import plugins

    def mine(model: Any) -> Any:
        yield chatparsers.Finding(
            "acme-short", "note", "the template is short", str(len(model.template.source))
        )

    monkeypatch.setattr(plugins.Plugins, "checks", lambda self: iter([("acme", mine)]))
    assert "acme-short" in chatparsers.check("{{ messages[0].content }}").codes()
